//! What the tests of schedulers share.

use super::{Candidate, Connection, Details, Facts, Pick, Scheduler, Setup, Subflow, find};
use crate::energy::Linear;

/// A usable subflow with this round-trip time.
pub(super) fn candidate(srtt_ms: u32, has_room: bool) -> Candidate {
    Candidate { usable: true, has_room, srtt8_us: 8000 * srtt_ms, ..Candidate::default() }
}

/// Details that stand still.
#[derive(Clone, Debug, Default)]
pub(super) struct Still {
    pub(super) subflows: Vec<Subflow>,
    pub(super) connection: Connection,
}

impl Details for Still {
    fn subflow(&self, index: usize) -> Subflow {
        self.subflows[index]
    }

    fn connection(&self) -> Connection {
        self.connection
    }
}

/// The scheduler of that name with its default parameters, over subflows with these weights and Wi-Fi.
pub(super) fn make(name: &str, weights: &[u32]) -> Box<dyn Scheduler + Send> {
    let params = find(name).expect("it is registered").defaults();
    make_with(name, &params, weights)
}

/// The same with these parameters.
pub(super) fn make_with(name: &str, params: &[u32], weights: &[u32]) -> Box<dyn Scheduler + Send> {
    let facts: Vec<Facts> = weights.iter().map(|&weight| Facts { weight, radio: Linear::WIFI }).collect();
    (find(name).expect("it is registered").make)(&Setup { params, subflows: &facts })
}

/// What it answers, one time after the other, for subflows with a round-trip time of 20 ms and these rooms.
pub(super) fn picks<const N: usize>(scheduler: &mut dyn Scheduler, rooms: &[[bool; N]]) -> Vec<Pick> {
    let still = Still { subflows: vec![Subflow::default(); N], ..Still::default() };
    rooms.iter().map(|room| scheduler.pick(&room.map(|room| candidate(20, room)), &still)).collect()
}
