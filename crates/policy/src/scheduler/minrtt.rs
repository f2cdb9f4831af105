//! Lowest round-trip time first (Paasch et al., CSWS 2014), as the out-of-tree kernel has it.

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, Sends, eligible, is_again, none_has_room,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "minrtt",
    title: "lowest smoothed round-trip time first (default)",
    tag: "A",
    params: &[],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: false,
    make: |_| Box::new(MinRtt),
};

/// Stateless.
struct MinRtt;

impl Scheduler for MinRtt {
    fn pick(&mut self, subflows: &[Candidate], _: &dyn Details) -> Pick {
        fastest(subflows)
    }

    fn why(&self, subflows: &[Candidate], _: &dyn Details, answer: Answer) -> Reason {
        by_rtt(subflows, answer.subflow())
    }
}

/// Why minRTT takes this subflow.
pub(super) fn by_rtt(subflows: &[Candidate], index: usize) -> Reason {
    let srtt_us = |index: usize| u64::from(subflows[index].srtt8_us >> 3);
    let own = ("srtt_us", srtt_us(index));
    if is_again(subflows) {
        return Reason::new("reinjection", &[own]);
    }
    match fastest_of_all(subflows).filter(|&fast| fast != index) {
        Some(fast) => Reason::new("faster-full", &[own, ("fastest_srtt_us", srtt_us(fast))]),
        None => Reason::new("fastest", &[own]),
    }
}

/// What minRTT answers: the fastest subflow with room that has not carried the segment.
#[inline]
pub fn fastest(subflows: &[Candidate]) -> Pick {
    eligible(subflows)
        .filter(|(_, subflow)| subflow.has_room && !subflow.carried)
        .min_by_key(|&(index, subflow)| (subflow.srtt8_us, index))
        .map_or_else(|| none_has_room(subflows), |(index, _)| Pick::Subflow(index))
}

/// The fastest subflow of those that minRTT would take a segment to, with room or without; by index.
pub(super) fn fastest_of_all(subflows: &[Candidate]) -> Option<usize> {
    eligible(subflows)
        .filter(|(_, subflow)| !subflow.carried)
        .min_by_key(|&(index, subflow)| (subflow.srtt8_us, index))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::candidate;

    #[test]
    fn the_fastest_with_room_is_taken() {
        assert_eq!(fastest(&[candidate(20, false), candidate(100, true)]), Pick::Subflow(1));
        assert_eq!(fastest(&[candidate(20, true), candidate(100, true)]), Pick::Subflow(0));
        assert_eq!(fastest(&[candidate(20, false), candidate(100, false)]), Pick::Wait);
    }

    #[test]
    fn a_backup_is_taken_only_when_no_regular_subflow_is_usable() {
        let backup = Candidate { backup: true, ..candidate(1, true) };
        assert_eq!(fastest(&[candidate(20, true), backup]), Pick::Subflow(0));
        assert_eq!(fastest(&[candidate(20, false), backup]), Pick::Wait);
        let gone = Candidate { usable: false, ..candidate(20, true) };
        assert_eq!(fastest(&[gone, backup]), Pick::Subflow(1));
    }

    #[test]
    fn a_segment_waits_for_a_subflow_that_has_not_carried_it() {
        let carried = Candidate { carried: true, ..candidate(20, true) };
        assert_eq!(fastest(&[carried, candidate(100, false)]), Pick::Wait);
        assert_eq!(fastest(&[carried, candidate(100, true)]), Pick::Subflow(1));
        assert_eq!(fastest(&[carried, carried]), Pick::AllCarried);
    }
}
