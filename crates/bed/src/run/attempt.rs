//! One attempt at a run: hosts, links, applications and telemetry, from the first packet to the figures.

use std::{collections::BTreeMap, path::Path};

use anabranch_kernel::Attached;
use anabranch_record::model::{Environment, Measurements};
use anabranch_scenario::{model::Scenario, workload};

use super::{
    Application, Options, agents::Agents, carriers, director, joins::Joiner, kernel_release, latencies,
    observe::Observer, relays, senders::Senders, timeline::Timeline, transfers, validity::lateness_bound,
};
use crate::{
    BedError, Nanos, clock,
    emulator::{Emulator, Report, Route, Tap},
    host::{Awake, DeviceDrops, Interrupt, Lab, Session},
    plan::{self, Plan, plan, plan_for_anabranchd},
    telemetry::capture::{self, Capture},
    traffic::Outcomes,
};

/// From the start of the threads to the scenario's time 0: long enough that all of them wait for it.
const LEAD: Nanos = 100_000_000;
/// The same for each connection, whose sockets and threads have to be made.
const LEAD_OF_CONNECTION: Nanos = 1_000_000;
/// An interrupt is seen at the latest after this.
const ATTENTION: Nanos = 50_000_000;
/// The capture's name in the run folder.
pub(super) const CAPTURE: &str = "packets.pcapng";

/// Where an attempt takes place.
pub(super) struct Place<'a> {
    pub(super) session: &'a Session,
    pub(super) interrupt: &'a Interrupt,
    /// A folder for files that are made during the run.
    pub(super) scratch: &'a Path,
}

/// Makes a run and measures it. `tell` hears of the scenario time reached.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    options: Options,
    place: &Place<'_>,
    tell: &mut dyn FnMut(Nanos),
) -> Result<Measurements, BedError> {
    let scenario = &*workload::expand(scenario, seed);
    let carried;
    let (scenario, plan) = match options.application {
        Application::Anabranchd { .. } => {
            carried = plan_for_anabranchd(scenario, seed, options.source)?;
            (&carried.0, carried.1)
        }
        Application::Own | Application::Iperf3 => (scenario, plan(scenario, seed, options.source)?),
    };
    let lab = Lab::build(&plan, place.session)?;
    let _algorithms = load(&plan)?;
    let agents = Agents::start(&plan, &lab.hosts, place)?;
    let awake = Awake::begin();
    let zero = clock::monotonic() + LEAD + LEAD_OF_CONNECTION * plan.connections.len() as Nanos;
    let (tap, capture) = options.capture.then(|| begin_capture(&plan, place.scratch)).transpose()?.unzip();
    let network = emulate(scenario, seed, &plan, &lab, tap)?.start(zero)?;
    let joiner = Joiner::start(&plan, &lab.hosts)?;
    let senders = Senders::start(&plan, scenario, &lab.hosts, zero, options.application, place)?;
    let director = director::start(&plan, &lab.hosts, zero)?;
    let carriers = carriers::start(&plan, &lab, zero)?;
    let mut observer = Observer::new(scenario, &plan, &lab.hosts, options.application)?;
    while let Some(due) = observer.due() {
        pause_until(zero + due, place.interrupt)?;
        observer.look(clock::monotonic() - zero, senders.applications(), &network);
        tell(due);
    }
    let events_late = director.map(Timeline::end).transpose()?;
    let carriers_late = carriers.map(Timeline::end).transpose()?;
    let refused_joins = joiner.end()?;
    let agents = agents.end(&plan, zero)?;
    let verdict = observer.judge()?;
    let (unopened, further_subflows) = (observer.unopened(), observer.further_subflows());
    let mut measured = observer.measurements();
    let (outcomes, said) = senders.end(scenario, &mut measured)?;
    latencies::add(scenario, &outcomes, &mut measured);
    relays::add(scenario, &outcomes, &mut measured);
    transfers::add(scenario, &outcomes, &mut measured);
    let report = network.stop()?;
    let mut judge = Judge { invalid: verdict.invalid, notes: plan.notes.clone(), facts: BTreeMap::new() };
    judge.notes.extend(unopened);
    judge.notes.extend(refused_joins);
    judge.invalid.extend(agents.failures);
    measured.attachments.extend(agents.attachments);
    judge.network(&report, lateness_bound(scenario, &plan));
    judge.fact("processors_kept_awake", awake.processors() as f64);
    judge.devices(&plan, &lab.device_drops()?);
    judge.applications(scenario, &outcomes);
    for (name, value) in further_subflows.into_iter().chain(said.facts) {
        judge.fact(name, value);
    }
    judge.invalid.extend(said.failure);
    if let Some(late) = events_late.max(carriers_late) {
        judge.fact("event_lateness_max_us", late as f64 / 1e3);
    }
    if let Some(capture) = capture {
        judge.capture(capture, &mut measured)?;
    }
    let counters = serde_json::to_vec_pretty(&verdict.counters).expect("names and numbers are JSON");
    measured.attachments.push(("counters.json".to_owned(), counters));
    measured.environment = Some(Environment {
        kernel: kernel_release(),
        invalid: judge.invalid,
        attempts: 1,
        notes: judge.notes,
        sysctls: sysctls(&plan),
        facts: judge.facts,
    });
    Ok(measured)
}

fn begin_capture(plan: &Plan, scratch: &Path) -> Result<(Box<dyn Tap>, Capture), BedError> {
    let names = capture::path_names(plan);
    let (tap, capture) = Capture::start(&scratch.join(CAPTURE), &names, capture::Options::default())?;
    Ok((Box::new(tap), capture))
}

/// Waits until a time of `CLOCK_MONOTONIC`.
pub(super) fn pause_until(time: Nanos, interrupt: &Interrupt) -> Result<(), BedError> {
    loop {
        interrupt.check()?;
        let now = clock::monotonic();
        if now >= time {
            return Ok(());
        }
        clock::sleep_until(time.min(now + ATTENTION));
    }
}

fn sysctls(plan: &Plan) -> BTreeMap<String, BTreeMap<String, String>> {
    let of_host = |host: &plan::Host| (host.name.clone(), host.sysctls.iter().cloned().collect());
    plan.hosts.iter().map(of_host).collect()
}

/// Gathers why a run does not count, and what else is known of its quality.
struct Judge {
    invalid: Vec<String>,
    notes: Vec<String>,
    facts: BTreeMap<String, f64>,
}

impl Judge {
    fn fact(&mut self, name: &str, value: f64) {
        self.facts.insert(name.to_owned(), value);
    }

    fn network(&mut self, report: &Report, bound: Nanos) {
        let micro = |nanos: Nanos| nanos as f64 / 1e3;
        let (lateness, gaps) = (report.lateness.summary(), report.gaps.summary());
        if lateness.p99_ns > bound {
            self.invalid.push(format!(
                "the emulator was late: 99 % of the packets by at most {:.0} us, where {:.0} us are allowed",
                micro(lateness.p99_ns),
                micro(bound)
            ));
        }
        let refused = report.counters.refused();
        if refused > 0 {
            let why = report.refusal.as_deref().unwrap_or("no reason given");
            self.invalid.push(format!("the kernel refused {refused} packets of the emulator: {why}"));
        }
        self.fact("emulator_lateness_bound_us", micro(bound));
        self.fact("emulator_lateness_p50_us", micro(lateness.p50_ns));
        self.fact("emulator_lateness_p90_us", micro(lateness.p90_ns));
        self.fact("emulator_lateness_p99_us", micro(lateness.p99_ns));
        self.fact("emulator_lateness_p999_us", micro(lateness.p999_ns));
        self.fact("emulator_lateness_max_us", micro(lateness.max_ns));
        self.fact("emulator_inattention_p99_us", micro(gaps.p99_ns));
        self.fact("emulator_inattention_max_us", micro(gaps.max_ns));
        self.fact("emulator_packets", lateness.count as f64);
        self.fact("emulator_cpu_us_per_packet", micro(report.cpu_ns) / lateness.count.max(1) as f64);
        self.fact("emulator_stray_packets", report.counters.strays as f64);
        if !report.realtime {
            self.notes.push("the emulator had no real-time priority (CAP_SYS_NICE)".to_owned());
        }
    }

    fn capture(&mut self, capture: Capture, measured: &mut Measurements) -> Result<(), BedError> {
        let captured = capture.finish()?;
        if captured.left_out > 0 {
            self.notes.push(format!("{} packets are missing in {CAPTURE}", captured.left_out));
        }
        measured.written.push(CAPTURE.to_owned());
        Ok(())
    }

    fn devices(&mut self, plan: &Plan, drops: &[DeviceDrops]) {
        for drop in drops {
            let text = format!(
                "at {} the kernel dropped {} packets before the emulator and {} behind it ({})",
                plan.hosts[drop.host].name, drop.from_host, drop.to_host, drop.interface
            );
            // Without a carrier the kernel drops what it sends, as the link would have.
            let is_expected = drop.to_host == 0 && plan.loses_carrier(drop.host, &drop.interface);
            if is_expected { self.notes.push(text) } else { self.invalid.push(text) }
        }
    }

    fn applications(&mut self, scenario: &Scenario, outcomes: &Outcomes) {
        for (model, outcome) in scenario.connections.iter().zip(&outcomes.connections) {
            self.invalid
                .extend(outcome.failure.as_ref().map(|why| format!("connection {}: {why}", model.name)));
        }
        for (model, outcome) in scenario.datagrams.iter().zip(&outcomes.datagrams) {
            self.invalid.extend(outcome.failure.as_ref().map(|why| format!("flow {}: {why}", model.name)));
            let late_us = outcome.lateness.p99_ns as f64 / 1e3;
            self.fact(&format!("sender_lateness_p99_us.{}", model.name), late_us);
            for (count, what) in [
                (outcome.refused_packets, "were not taken by the kernel"),
                (outcome.overflowed_packets, "found the receiver's socket full"),
            ] {
                if count > 0 {
                    self.invalid.push(format!("flow {}: {count} packets {what}", model.name));
                }
            }
        }
    }
}

/// Registers the congestion controls of a plan, until dropped.
pub(super) fn load(plan: &Plan) -> Result<Vec<Attached>, BedError> {
    let load = |algorithm: &plan::Algorithm| Attached::load(&algorithm.name, &algorithm.params);
    plan.algorithms.iter().map(load).collect::<Result<_, _>>().map_err(BedError::from)
}

/// The links of a plan between the devices of its hosts.
pub(super) fn emulate(
    scenario: &Scenario,
    seed: u64,
    plan: &Plan,
    lab: &Lab,
    tap: Option<Box<dyn Tap>>,
) -> Result<Emulator, BedError> {
    let mut first_device = Vec::new();
    let mut devices = 0;
    for host in &plan.hosts {
        first_device.push(devices);
        devices += host.interfaces.len();
    }
    let route = |path: &plan::Path| Route {
        from: path.from,
        to: path.to,
        hops: path.hops.clone(),
        exit: first_device[path.exit.0] + path.exit.1,
    };
    let routes: Vec<Route> = plan.paths.iter().map(route).collect();
    Emulator::new(scenario, seed, &routes, lab.devices()?, tap)
}
