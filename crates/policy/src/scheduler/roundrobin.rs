//! Round-robin: so many segments per subflow in turn, as `mptcp_rr.c` of the out-of-tree kernel has it.
//!
//! We differ in: the first subflow of the scenario begins (the kernel takes the last of its list); a turn that a full
//! subflow breaks off is not resumed (the kernel keeps what is left of it until all have had theirs).

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, SchedulerParam, SchedulerUnit, Sends, Setup,
    eligible, is_again, none_has_room,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "roundrobin",
    title: "one segment per subflow in turn, full subflows skipped",
    tag: "A",
    params: &[
        SchedulerParam::new("num_segments", SchedulerUnit::Count, 1, (1, 1000), "segments in a turn"),
        CWND_LIMITED,
    ],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: false,
    make: |setup: &Setup<'_>| {
        let &[segments, cwnd_limited] = setup.params else { unreachable!("it has two parameters") };
        Box::new(RoundRobin::new(vec![segments; setup.subflows.len()], cwnd_limited != 0))
    },
};

pub(super) const CWND_LIMITED: SchedulerParam = SchedulerParam::new(
    "cwnd_limited",
    SchedulerUnit::Bool,
    1,
    (0, 1),
    "whether a full subflow is skipped; if not, all wait for it",
);

/// Remembers whose turn it is.
pub(super) struct RoundRobin {
    next: usize,
    /// Segments that `next` may still send in the turn that it has begun; 0: it has not begun.
    left: u32,
    /// Segments in a turn, by subflow.
    turns: Vec<u32>,
    skips: bool,
}

impl RoundRobin {
    pub(super) fn new(turns: Vec<u32>, skips: bool) -> Self {
        Self { next: 0, left: 0, turns, skips }
    }
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, subflows: &[Candidate], _: &dyn Details) -> Pick {
        let (n, next) = (subflows.len(), self.next);
        let turn = |index: usize| if index < next { index + n - next } else { index - next };
        let chosen = eligible(subflows)
            .filter(|(_, subflow)| (subflow.has_room || !self.skips) && !subflow.carried)
            .min_by_key(|&(index, _)| turn(index));
        match chosen {
            Some((_, subflow)) if !subflow.has_room => Pick::Wait,
            Some((index, _)) => {
                let goes_on = index == next && self.left > 0;
                self.left = if goes_on { self.left } else { self.turns[index] } - 1;
                self.next = if self.left > 0 { index } else { (index + 1) % n };
                Pick::Subflow(index)
            }
            None => none_has_room(subflows),
        }
    }

    fn why(&self, subflows: &[Candidate], _: &dyn Details, answer: Answer) -> Reason {
        match answer {
            Answer::Takes(_) if is_again(subflows) => Reason::new("reinjection", &[]),
            Answer::Takes(_) => Reason::new("turn", &[("left_segments", u64::from(self.left))]),
            Answer::Leaves(_) => Reason::new("not-its-turn", &[("next_subflow", self.next as u64)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{make, make_with, picks};
    use super::*;

    fn subflows<const N: usize>(indices: [usize; N]) -> Vec<Pick> {
        indices.map(Pick::Subflow).to_vec()
    }

    #[test]
    fn subflows_alternate_while_both_have_room() {
        let picked = picks(&mut *make("roundrobin", &[1; 2]), &[[true, true]; 6]);
        assert_eq!(picked, subflows([0, 1, 0, 1, 0, 1]));
    }

    #[test]
    fn a_full_subflow_is_skipped() {
        let rooms = [[true, true], [true, false], [true, false], [true, true]];
        let picked = picks(&mut *make("roundrobin", &[1; 2]), &rooms);
        assert_eq!(picked, subflows([0, 0, 0, 1]));
    }

    #[test]
    fn without_cwnd_limited_a_full_subflow_blocks_its_turn() {
        let rooms = [[true, true], [true, false], [true, false], [true, true], [true, true]];
        let picked = picks(&mut *make_with("roundrobin", &[1, 0], &[1; 2]), &rooms);
        let (first, second) = (Pick::Subflow(0), Pick::Subflow(1));
        assert_eq!(picked, [first, Pick::Wait, Pick::Wait, second, first]);
    }

    #[test]
    fn num_segments_is_the_length_of_a_turn() {
        let picked = picks(&mut *make_with("roundrobin", &[3, 1], &[1; 2]), &[[true, true]; 8]);
        assert_eq!(picked, subflows([0, 0, 0, 1, 1, 1, 0, 0]));
    }
}
