//! The applications: our own senders and receivers, which do exactly what the scenario says over real sockets.
//!
//! Every end is a thread. Its sockets were opened in the namespace of its node and stay there; the thread
//! itself need not. All threads wait on the same sign to end, so that a stop or an interrupt reaches them
//! wherever they are.
//!
//! What a user may notice: data that lie in the sender's buffer when an `ftp` stops are still sent, as by every
//! application on a kernel.

pub mod anabranchd;
mod chunks;
mod clock;
mod connection;
mod datagram;
mod exchange;
pub mod iperf3;
mod pattern;
mod process;
mod relay;
mod schedule;
mod state;
mod transfer;

use std::{
    panic,
    sync::{Arc, atomic::AtomicBool},
    thread::{self, JoinHandle},
};

use anabranch_link::Streams;
use anabranch_scenario::model::{Scenario, Traffic};

use self::clock::{Clock, Stop};
pub(crate) use self::process::child_command;
pub use self::{
    chunks::TransferOutcome,
    relay::RelayOutcome,
    schedule::Schedule,
    state::{ConnectionState, DatagramOutcome, DatagramState, Latency, Outcome},
};
use crate::{BedError, host::Namespace, plan::Plan};

/// The applications of a run, from the start until they are stopped or dropped; no thread outlives it.
#[derive(Debug)]
pub struct Applications {
    connections: Arc<[ConnectionState]>,
    datagrams: Arc<[DatagramState]>,
    relays: Arc<[relay::RelayState]>,
    transfers: Vec<Arc<chunks::TransferState>>,
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
}

/// How the applications have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// One per connection of the plan; none if they were left out.
    pub connections: Vec<Outcome>,
    /// One per datagram flow of the plan.
    pub datagrams: Vec<DatagramOutcome>,
    /// One per relay of the scenario.
    pub relays: Vec<RelayOutcome>,
    /// One per transfer of the scenario.
    pub transfers: Vec<TransferOutcome>,
}

impl Applications {
    /// Starts them all. `hosts` are the namespaces of `plan.hosts`. The scenario's time 0 is `zero_ns` on
    /// `CLOCK_MONOTONIC`; it should not be past. When `interrupt` becomes true, they end by themselves within
    /// 200 ms.
    ///
    /// All servers listen when it returns. What fails later is said in the states.
    ///
    /// # Errors
    /// [`BedError::System`] if a socket cannot be made (the congestion control is not registered, an address
    /// or port is not to be had) or a thread cannot be started.
    pub fn start(
        plan: &Plan,
        scenario: &Scenario,
        hosts: &[Namespace],
        zero_ns: u64,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, BedError> {
        let connections = plan.connections.iter().zip(&scenario.connections);
        let connections = connections.map(|(plan, model)| connection::prepare(plan, model, hosts));
        let connections = connections.collect::<Result<Vec<_>, _>>()?;
        Self::with(connections, plan, scenario, hosts, zero_ns, interrupt)
    }

    /// Starts the UDP flows alone, for a run whose connections [`iperf3`] makes; otherwise as [`Self::start`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_datagrams(
        plan: &Plan,
        scenario: &Scenario,
        hosts: &[Namespace],
        zero_ns: u64,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, BedError> {
        Self::with(Vec::new(), plan, scenario, hosts, zero_ns, interrupt)
    }

    fn with(
        connections: Vec<ConnectionState>,
        plan: &Plan,
        scenario: &Scenario,
        hosts: &[Namespace],
        zero_ns: u64,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, BedError> {
        let streams = Streams::new(plan.seed);
        let flows = plan.datagrams.iter().zip(&scenario.datagrams);
        let sockets = flows.clone().map(|(plan, model)| datagram::prepare(plan, &model.name, hosts));
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        let stop = Stop::new(Clock::new(zero_ns), Arc::clone(interrupt));
        let mut this = Self {
            connections: connections.into(),
            datagrams: flows.clone().map(|(_, model)| DatagramState::new(model.packet_bytes)).collect(),
            relays: scenario.relays.iter().map(|_| relay::RelayState::default()).collect(),
            transfers: scenario.transfers.iter().map(chunks::TransferState::new).map(Arc::new).collect(),
            stop: Arc::new(stop.map_err(BedError::system("making an eventfd"))?),
            threads: Vec::new(),
        };
        this.start_connections(plan, scenario, streams)?;
        for (index, ((plan, model), sockets)) in flows.zip(sockets).enumerate() {
            let rng = || model.pattern_draws(streams);
            let (rate_bps, packet_bytes) = (model.rate_bps, model.packet_bytes);
            let schedule = Schedule::with_pattern(&plan.on, rate_bps, packet_bytes, model.pattern, rng);
            let flow = (sockets, plan.clone(), schedule);
            let flow = Arc::new(flow);
            for (role, work) in [("receive", datagram::receive as DatagramWork), ("send", datagram::send)] {
                let datagrams = Arc::clone(&this.datagrams);
                let stop = Arc::clone(&this.stop);
                let flow = Arc::clone(&flow);
                this.spawn(role, move || work(&datagrams[index], &flow.0, &flow.1, &flow.2, &stop))?;
            }
        }
        Ok(this)
    }

    fn start_connections(
        &mut self,
        plan: &Plan,
        scenario: &Scenario,
        streams: Streams,
    ) -> Result<(), BedError> {
        let transfers = self.transfers.clone();
        let task = |index: usize| {
            let (plan, model) = (&plan.connections[index], &scenario.connections[index]);
            let carried_bytes = carried_bytes(scenario, index);
            let shares = chunks::shares(scenario, &transfers, index);
            connection::Task::new(plan, model, carried_bytes, shares, scenario.duration, streams)
        };
        for index in 0..self.connections.len() {
            // What a relay reads it accepts, and what it writes to it opens.
            let is_read = scenario.relays.iter().any(|relay| relay.input == index);
            let is_written = scenario.relays.iter().any(|relay| relay.output == index);
            let roles = [
                ("accept", connection::accept as ConnectionWork, !is_read),
                ("open", connection::open, !is_written),
            ];
            let task = task(index);
            for (role, work, _) in roles.into_iter().filter(|&(_, _, is_ours)| is_ours) {
                let connections = Arc::clone(&self.connections);
                let (stop, task) = (Arc::clone(&self.stop), task.clone());
                self.spawn(role, move || work(&connections[index], &task, &stop))?;
            }
        }
        let relays = if self.connections.is_empty() { &[][..] } else { &scenario.relays };
        for (index, model) in relays.iter().enumerate() {
            let (model, tasks) = (model.clone(), [task(model.input), task(model.output)]);
            let (connections, relays) = (Arc::clone(&self.connections), Arc::clone(&self.relays));
            let stop = Arc::clone(&self.stop);
            self.spawn("relay", move || {
                let legs = [(&connections[model.input], &tasks[0]), (&connections[model.output], &tasks[1])];
                relay::relay(&relays[index], &model, legs[0], legs[1], &stop);
            })?;
        }
        Ok(())
    }

    fn spawn(&mut self, role: &str, work: impl FnOnce() + Send + 'static) -> Result<(), BedError> {
        let thread = thread::Builder::new().name(format!("bed-{role}")).spawn(work);
        self.threads.push(thread.map_err(BedError::system("starting a thread for an application"))?);
        Ok(())
    }

    /// The connections, in the plan's order.
    pub fn connections(&self) -> &[ConnectionState] {
        &self.connections
    }

    /// The UDP flows, in the plan's order.
    pub fn datagrams(&self) -> &[DatagramState] {
        &self.datagrams
    }

    /// Ends all that still goes on, resets the connections and says how far they came. Takes at most as long
    /// as a thread needs to notice, 200 ms.
    ///
    /// # Panics
    /// If a thread of an application has panicked.
    pub fn stop(mut self) -> Outcomes {
        if let Some(panic) = self.end() {
            panic::resume_unwind(panic);
        }
        Outcomes {
            connections: self.connections.iter().map(ConnectionState::outcome).collect(),
            datagrams: self.datagrams.iter().map(DatagramState::outcome).collect(),
            relays: self.relays.iter().map(relay::RelayState::outcome).collect(),
            transfers: self.transfers.iter().map(|transfer| transfer.outcome()).collect(),
        }
    }

    fn end(&mut self) -> Option<Box<dyn std::any::Any + Send>> {
        self.stop.raise();
        let panics = self.threads.drain(..).filter_map(|thread| thread.join().err());
        let panic = panics.reduce(|first, _| first);
        self.connections.iter().for_each(connection::abort);
        panic
    }
}

/// The file that a connection carries, its own or what a relay writes to it.
fn carried_bytes(scenario: &Scenario, connection: usize) -> Option<u64> {
    match scenario.connections[connection].traffic {
        Traffic::File { bytes, .. } => Some(bytes),
        Traffic::Relayed => {
            let relay = scenario.relays.iter().find(|relay| relay.output == connection)?;
            carried_bytes(scenario, relay.input)
        }
        _ => None,
    }
}

type ConnectionWork = fn(&ConnectionState, &connection::Task, &Stop);
type DatagramWork = fn(&DatagramState, &datagram::Sockets, &crate::plan::DatagramPlan, &Schedule, &Stop);

impl Drop for Applications {
    fn drop(&mut self) {
        self.end();
    }
}
