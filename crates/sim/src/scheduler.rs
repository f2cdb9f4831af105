//! Packet schedulers of a run: made from the scenario, and shown what they ask for. The schedulers themselves are in
//! `crates/policy/src/scheduler/`.

use anabranch_link::Nanos;
use anabranch_policy::{
    energy::Linear,
    scheduler::{self, Details, Facts, Scheduler, SchedulerInfo, Setup, Subflow},
};
use anabranch_scenario::model::{Connection, Scenario};

use crate::{
    mptcp::meta_sender::MetaSender,
    tcp::pacer,
    world::{Endpoint, Mechanics},
};

/// The scheduler that a connection names.
pub(crate) fn info(model: &Connection) -> &'static SchedulerInfo {
    scheduler::find(&model.scheduler.name).expect("the scenario checked the name")
}

/// A scheduler for one side of a connection.
pub(crate) fn make(scenario: &Scenario, model: &Connection) -> Box<dyn Scheduler + Send> {
    // Only those that the scenario has checked for radios look at them.
    let none = Linear { b_mw_per_mbps: 0.0, theta_mw: 0.0 };
    let facts = model.subflows.iter().map(|subflow| Facts {
        weight: subflow.weight,
        radio: scenario.radio_of(model, subflow).map_or(none, |radio| radio.linear),
    });
    let subflows: Vec<Facts> = facts.collect();
    (info(model).make)(&Setup { params: &model.scheduler.params, subflows: &subflows })
}

/// One side of a connection, for a scheduler that asks.
pub(crate) struct Look<'a> {
    /// From the side's endpoint of the first subflow on; the others follow at distance 2.
    pub(crate) endpoints: &'a [Endpoint],
    pub(crate) send: &'a MetaSender,
    pub(crate) mechanics: Option<&'a Mechanics>,
    pub(crate) now: Nanos,
}

impl Look<'_> {
    fn queued(&self, subflow: usize) -> u32 {
        let later = self.mechanics.and_then(|mechanics| mechanics.later.as_deref());
        later.map_or(0, |later| later.queued(subflow))
    }
}

impl Details for Look<'_> {
    fn subflow(&self, index: usize) -> Subflow {
        let endpoint = &self.endpoints[2 * index];
        let sender = &endpoint.sender;
        Subflow {
            cwnd: sender.cwnd,
            ssthresh: sender.ssthresh,
            in_flight: sender.in_flight(),
            unacknowledged: sender.outstanding() as u32,
            queued: self.queued(index),
            segment_bytes: u32::from(endpoint.segment_bytes),
            mdev4_us: sender.rtt.mdev4_us,
            pacing_bytes_per_s: pacer::rate(endpoint.pacer.as_deref(), sender, endpoint.segment_bytes),
            packets: sender.counters.packets,
            retransmits: sender.counters.retransmits,
        }
    }

    fn connection(&self) -> scheduler::Connection {
        scheduler::Connection {
            now_us: self.now / 1000,
            unsent_bytes: self.send.unsent_bytes(),
            unacknowledged_bytes: self.send.unacknowledged_bytes(),
            window_bytes: self.send.window_bytes(),
            reinjections: self.send.reinjections,
        }
    }
}
