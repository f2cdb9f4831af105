//! Looks at sockets, applications and emulator whenever a reading is due.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    os::fd::BorrowedFd,
};

use anabranch_record::{
    metrics::{self, Engines},
    model::Measurements,
};
use anabranch_scenario::model::{Connection, Protocol, Scenario, Strips};

use crate::{
    BedError, Nanos,
    emulator::{Counters as NetworkCounters, Running, middlebox},
    host::Namespace,
    plan::Plan,
    run::Application,
    telemetry::{
        ConnectionMemory, ConnectionReading, DatagramReading, Elsewhere, EndMemory, EnergySampler,
        LinkReading, Readings, Sample, Sampler, SocketDiag, mib, sockets,
    },
    traffic::{Applications, ConnectionState},
};

/// The telemetry of one run.
pub(super) struct Observer<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    hosts: &'a [Namespace],
    /// Where the sockets of the transfer are anabranchd's: at both ends of its first connection.
    elsewhere: Option<[Elsewhere; 2]>,
    /// One per host.
    diagnosis: Vec<SocketDiag>,
    counters_before: Vec<mib::Counters>,
    sampler: Sampler,
    energy: EnergySampler,
    /// The last reading of flows of workloads that were complete when it was made: nothing comes after it.
    complete: BTreeMap<usize, ConnectionReading>,
}

/// What the kernel's counters tell at the end.
pub(super) struct Verdict {
    /// Why the run does not count.
    pub(super) invalid: Vec<String>,
    /// What has changed in the counters, by node.
    pub(super) counters: BTreeMap<String, BTreeMap<String, i64>>,
}

impl<'a> Observer<'a> {
    /// For a run that has not begun.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub(super) fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        hosts: &'a [Namespace],
        application: Application,
    ) -> Result<Self, BedError> {
        let elsewhere = match application {
            Application::Anabranchd { .. } => {
                let first = &plan.connections[0];
                Some([Elsewhere::open(&hosts[first.client])?, Elsewhere::open(&hosts[first.server])?])
            }
            Application::Own | Application::Iperf3 => None,
        };
        let (mut diagnosis, mut counters_before) = (Vec::new(), Vec::new());
        for host in hosts {
            let (diag, counters) = host.enter(|| (SocketDiag::open(), mib::Counters::read()))?;
            diagnosis.push(diag.map_err(BedError::system("opening a NETLINK_SOCK_DIAG socket"))?);
            counters_before.push(counters.map_err(reading_counters)?);
        }
        let sampler = Sampler::new(scenario, plan);
        let energy = EnergySampler::new(scenario);
        let complete = BTreeMap::new();
        Ok(Self { scenario, plan, hosts, elsewhere, diagnosis, counters_before, sampler, energy, complete })
    }

    /// When the next reading is due, in scenario time.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.sampler.due().into_iter().chain(self.energy.due()).min()
    }

    /// Reads what is due at scenario time `now`: everything, or the links alone for the interfaces.
    pub(super) fn look(&mut self, now: Nanos, applications: &Applications, network: &Running) {
        let counters = network.counters();
        if self.energy.due().is_some_and(|due| due <= now) {
            self.energy.take(now, &counters.interfaces);
        }
        if self.sampler.due().is_none_or(|due| due > now) {
            return;
        }
        let mut readings = Readings {
            connections: (0..self.plan.connections.len())
                .map(|index| self.connection(index, applications.connections().get(index)))
                .collect(),
            datagrams: applications
                .datagrams()
                .iter()
                .map(|flow| DatagramReading {
                    sent: flow.sent_packets(),
                    received: flow.received_packets(),
                    received_bytes: flow.received_bytes(),
                })
                .collect(),
            ..network_readings(&counters)
        };
        self.look_elsewhere(&mut readings.connections);
        self.sampler.take(now, &readings);
    }

    /// What the sockets of another program hold, which is all that is read of them.
    fn look_elsewhere(&mut self, connections: &mut [ConnectionReading]) {
        let Some(elsewhere) = &mut self.elsewhere else { return };
        let clients: Vec<IpAddr> = self.plan.connections.iter().map(|of| of.client_addresses[0]).collect();
        let first = &self.plan.connections[0];
        let server = SocketAddr::new(first.server_address, first.port);
        for (side, sockets) in elsewhere.iter_mut().enumerate() {
            // Sockets that cannot be listed at this moment are looked at again at the next.
            let Ok(held) = sockets.read(&clients, server) else { continue };
            for (reading, held) in connections.iter_mut().zip(held) {
                reading.memory[side] = Some(held);
            }
        }
    }

    fn connection(&mut self, index: usize, state: Option<&ConnectionState>) -> ConnectionReading {
        // Those of other programs tell us nothing while they run.
        let Some(state) = state else { return ConnectionReading::default() };
        if let Some(reading) = self.complete.get(&index) {
            return reading.clone();
        }
        let (model, plan) = (&self.scenario.connections[index], &self.plan.connections[index]);
        let mut reading = ConnectionReading {
            delivered_bytes: state.delivered_bytes(),
            downloaded_bytes: state.downloaded_bytes(),
            opened_at: state.opened_at(),
            completed_at: state.completed_at(),
            ..ConnectionReading::default()
        };
        let Some((client, server)) = state.sockets() else { return reading };
        for (side, (socket, host)) in [(client, plan.client), (server, plan.server)].into_iter().enumerate() {
            // A socket that has just closed answers with an error; its last figures stay.
            let Some((sample, memory)) = read(socket, model.protocol, &mut self.diagnosis[host]) else {
                continue;
            };
            reading.memory[side] = Some(end_memory(&memory));
            if side == model.traffic.data_side() {
                reading.sender = Some(sample);
            }
        }
        if model.member_of.is_some() && reading.completed_at.is_some() && reading.sender.is_some() {
            self.complete.insert(index, reading.clone());
        }
        reading
    }

    /// What the namespaces' counters say about the run.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub(super) fn judge(&self) -> Result<Verdict, BedError> {
        let mut verdict = Verdict { invalid: Vec::new(), counters: BTreeMap::new() };
        for ((host, before), plan) in self.hosts.iter().zip(&self.counters_before).zip(&self.plan.hosts) {
            let after = host.enter(mib::Counters::read)?.map_err(reading_counters)?;
            let reasons = mib::fallback_reasons(before, &after);
            let at = |reason| format!("at {}: fallback to TCP: {reason}", plan.name);
            if !self.expects_fallback(|model| model.from == plan.node || model.to == plan.node) {
                verdict.invalid.extend(reasons.into_iter().map(at));
            }
            verdict.counters.insert(plan.name.clone(), after.since(before));
        }
        let fallen = self.sampler.fallen_back();
        let fallen = fallen.filter(|name| !self.expects_fallback(|model| model.name == *name));
        verdict.invalid.extend(fallen.map(|name| format!("connection {name} has fallen back to TCP")));
        Ok(verdict)
    }

    /// Whether the scenario lets one of some connections fall back: a middlebox on the path of its first subflow removes
    /// MP_CAPABLE.
    fn expects_fallback(&self, which: impl Fn(&Connection) -> bool) -> bool {
        let falls = |of: &&Connection| {
            of.protocol == Protocol::Mptcp
                && middlebox::on_path(&self.scenario.links, &of.subflows[0].hops) == Strips::Mptcp
        };
        self.scenario.connections.iter().filter(falls).any(which)
    }

    /// A fact: subflows besides the first ones that another program's connections have had at once, at most.
    pub(super) fn further_subflows(&self) -> Option<(&'static str, f64)> {
        let [sender, _] = self.elsewhere.as_ref()?;
        Some(("further_subflows", sender.further_subflows() as f64))
    }

    /// Subflows of the scenario that the kernel has never opened, one sentence each, as far as they are ours.
    pub(super) fn unopened(&self) -> Vec<String> {
        if self.elsewhere.is_some() {
            return Vec::new();
        }
        let unopened = self.sampler.unopened();
        unopened
            .map(|(connection, subflow)| format!("{connection}: subflow {subflow} was never opened"))
            .collect()
    }

    /// Summary and series.
    ///
    /// # Panics
    /// If the readings did not go on until the end of the window.
    pub(super) fn measurements(self) -> Measurements {
        let mut summary = self.sampler.summary().expect("all readings that were due have been taken");
        let delivered_bytes = self.scenario.delivered_over_interfaces(
            |connection| self.sampler.delivered_bytes(connection),
            |datagram| self.sampler.received_bytes(datagram),
        );
        summary.figures.extend(self.energy.figures(delivered_bytes));
        let mut series = self.sampler.series();
        series.extend(self.energy.series());
        let measured = Measurements { summary, series, ..Measurements::default() };
        let unknown = || metrics::unregistered(Engines::Kernel, &measured);
        debug_assert!(unknown().is_empty(), "crates/record/src/metrics.rs lacks {:?}", unknown());
        measured
    }
}

fn read(
    socket: BorrowedFd<'_>,
    protocol: Protocol,
    diagnosis: &mut SocketDiag,
) -> Option<(Sample, ConnectionMemory)> {
    let sample = sockets::sample(socket, protocol).ok()?;
    let memory = ConnectionMemory::read(socket, &sample, diagnosis).ok()?;
    Some((sample, memory))
}

fn end_memory(memory: &ConnectionMemory) -> EndMemory {
    EndMemory { send_bytes: memory.send_bytes(), receive_bytes: memory.receive_bytes() }
}

fn network_readings(counters: &NetworkCounters) -> Readings {
    let link = |link: &crate::emulator::LinkCounters| LinkReading {
        queued: link.queued,
        drops: link.dropped_queue + link.dropped_down,
        losses: link.lost,
        marks: link.marked,
        packets: link.packets,
        bytes: link.bytes,
        air: link.air,
    };
    let lost =
        |route: &crate::emulator::RouteCounters| route.lost_queue + route.lost_down + route.lost_random;
    Readings {
        links: counters.links.iter().map(link).collect(),
        lost_on_paths: counters.routes.iter().map(lost).collect(),
        ..Readings::default()
    }
}

fn reading_counters(source: io::Error) -> BedError {
    BedError::System { what: "reading the counters of a namespace".to_owned(), source }
}
