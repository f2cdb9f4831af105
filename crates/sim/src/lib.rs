//! The deterministic packet-level simulator.
//!
//! A run is a function of a scenario and a seed. The clock is a count of nanoseconds; simultaneous events
//! have a fixed order; every random number comes from a stream that the seed and a name determine.

mod app;
mod datagram;
mod decisions;
mod engine;
mod measure;
mod mptcp;
mod net;
mod packet;
mod scheduler;
mod signal;
#[cfg(test)]
mod swarm;
mod tcp;
#[cfg(test)]
mod testing;
mod trace;
mod watch;
mod world;

use std::sync::atomic::{AtomicBool, AtomicU64};

use anabranch_record::model::Measurements;
use anabranch_scenario::{model::Scenario, workload};

use engine::heads::Key;
use watch::Watch;
use world::World;

pub use decisions::{Decisions, decisions};
pub use watch::{RecordError, Records, record};

/// How a caller watches and stops a run.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to make the run return [`Interrupted`] soon.
    pub cancel: AtomicBool,
    /// Simulated time reached, in nanoseconds; updated now and then.
    pub reached: AtomicU64,
}

/// The run was cancelled; nothing of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Runs a scenario with a seed.
///
/// # Errors
/// [`Interrupted`] if `control.cancel` was set before the end.
pub fn run(scenario: &Scenario, seed: u64, control: &Control) -> Result<Measurements, Interrupted> {
    if net::narrow_fits(scenario) {
        run_with::<u64>(scenario, seed, control)
    } else {
        run_with::<u128>(scenario, seed, control)
    }
}

fn run_with<K: Key>(scenario: &Scenario, seed: u64, control: &Control) -> Result<Measurements, Interrupted> {
    let scenario = &*workload::expand(scenario, seed);
    let mut world = World::<K>::new(scenario, seed);
    world.run(control)?;
    Ok(world.measurements())
}

/// Runs a scenario and returns the first `limit` packets that its endpoints sent, and those lost meanwhile, as
/// text: time in seconds, number of the subflow in the scenario, direction, what the packet says.
///
/// # Errors
/// [`Interrupted`] if `control.cancel` was set before the end.
pub fn trace(scenario: &Scenario, seed: u64, limit: usize, control: &Control) -> Result<String, Interrupted> {
    let scenario = &*workload::expand(scenario, seed);
    let mut world = World::<u128>::new(scenario, seed);
    world.watch = Some(Box::new(Watch::tracing(limit)));
    world.net.log_drops();
    world.run(control)?;
    let mut trace = world.watch.take().and_then(|watch| watch.trace).unwrap_or_default();
    for (time, packet) in world.net.take_drops() {
        trace.lost(time, world.net.sink_of(packet), &packet);
    }
    Ok(trace.finish())
}
