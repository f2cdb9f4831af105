//! Why packets go where they go: a scheduler in whose place one stands that asks it for the reason of every answer and
//! hands on what is new.
//!
//! A run without a log has none of these, so that it pays nothing for them. What is handed on is what is new of a subflow: another
//! action, another reason, another subset chosen. Numbers alone are others with every packet; they are handed on anew when a
//! second has passed.

use std::sync::mpsc::Sender;

use anabranch_policy::{
    Reason,
    scheduler::{Answer, Candidate, Details, Pick, Scheduler},
};

use crate::{engine::heads::Key, scheduler, world::World};

/// What a scheduler has said that it had not said before.
pub(super) struct Told {
    /// The sending endpoint that it is about.
    pub(super) endpoint: usize,
    /// What becomes of the segment.
    pub(super) action: &'static str,
    /// Why.
    pub(super) reason: Reason,
}

/// How long numbers of which nothing else has changed are not told again.
const STALE_US: u64 = 1_000_000;

/// A scheduler that is asked why.
struct Asked {
    scheduler: Box<dyn Scheduler + Send>,
    /// The side's endpoint of the first subflow; the others follow at distance 2.
    first: usize,
    /// By subflow.
    last: Vec<Option<Last>>,
    to: Sender<Told>,
}

/// What was handed on last of a subflow.
struct Last {
    action: &'static str,
    code: &'static str,
    subset: Option<u32>,
    at_us: u64,
}

impl Scheduler for Asked {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        let picked = self.scheduler.pick(subflows, details);
        if let Some(answer) = Answer::of(picked, subflows) {
            let action = match picked {
                Pick::Subflow(_) => "send",
                Pick::Queue(_) => "queue",
                Pick::Wait | Pick::AllCarried => "hold",
            };
            let reason = self.scheduler.why(subflows, details, answer);
            let (subset, at_us) = (self.scheduler.chosen(), details.connection().now_us);
            let last = &mut self.last[answer.subflow()];
            let is_told = last.as_ref().is_some_and(|last| {
                let same = (last.action, last.code, last.subset) == (action, reason.code, subset);
                same && at_us - last.at_us < STALE_US
            });
            if !is_told {
                *last = Some(Last { action, code: reason.code, subset, at_us });
                let endpoint = self.first + 2 * answer.subflow();
                // Nobody listens any more when the log has failed.
                self.to.send(Told { endpoint, action, reason }).ok();
            }
        }
        picked
    }

    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason {
        self.scheduler.why(subflows, details, answer)
    }

    fn chosen(&self) -> Option<u32> {
        self.scheduler.chosen()
    }
}

/// Has every scheduler that has a choice tell its reasons, in a world that has not begun.
pub(super) fn ask_schedulers<K: Key>(world: &mut World<'_, K>, to: &Sender<Told>) {
    let models = &world.scenario.connections;
    for (connection, model) in world.connections.iter_mut().zip(models) {
        if !connection.is_mptcp() || connection.subflows < 2 {
            continue;
        }
        for (side, state) in connection.sides.iter_mut().enumerate() {
            let last = (0..connection.subflows).map(|_| None).collect();
            let (scheduler, first) =
                (scheduler::make(world.scenario, model), connection.first as usize + side);
            state.scheduler = Box::new(Asked { scheduler, first, last, to: to.clone() });
        }
    }
}
