//! Hosts and links of a scenario without its traffic, for whatever the user wants to run there.

use anabranch_scenario::{model::Scenario, workload};

use super::attempt::{emulate, load, pause_until};
use crate::{
    BedError, clock,
    emulator::Report,
    host::{Interrupt, Lab, Session},
    plan::{CongestionSource, Plan, plan},
};

/// Longer than any bed will stand.
const FOR_EVER: u64 = u64::MAX;

/// Builds hosts and links, registers the congestion controls, and keeps all of it until the interrupt. `ready` gets
/// the scenario with its workloads as connections, the plan and the namespaces' names, in the plan's order, once
/// everything is there.
///
/// # Errors
/// Any [`BedError`] but [`BedError::Interrupted`].
pub fn hold(
    scenario: &Scenario,
    seed: u64,
    session: &Session,
    interrupt: &Interrupt,
    ready: impl FnOnce(&Scenario, &Plan, &[String]),
) -> Result<Report, BedError> {
    let scenario = &*workload::expand(scenario, seed);
    let plan = plan(scenario, seed, CongestionSource::Bpf)?;
    let lab = Lab::build(&plan, session)?;
    let _algorithms = load(&plan)?;
    let network = emulate(scenario, seed, &plan, &lab, None)?.start(clock::monotonic())?;
    let names: Vec<String> = lab.hosts.iter().map(|host| host.name().to_owned()).collect();
    ready(scenario, &plan, &names);
    match pause_until(FOR_EVER, interrupt) {
        Err(BedError::Interrupted { .. }) | Ok(()) => network.stop(),
        Err(error) => Err(error),
    }
}
