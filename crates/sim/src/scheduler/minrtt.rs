//! Lowest round-trip time first (Paasch et al., CSWS 2014).

use super::{Candidate, Pick, Scheduler, eligible, none_has_room};

/// Stateless.
pub(super) struct MinRtt;

impl Scheduler for MinRtt {
    fn pick(&mut self, subflows: &[Candidate]) -> Pick {
        eligible(subflows)
            .filter(|(_, subflow)| subflow.has_room && !subflow.carried)
            .min_by_key(|&(index, subflow)| (subflow.srtt8_us, index))
            .map_or_else(|| none_has_room(subflows), |(index, _)| Pick::Subflow(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subflow(srtt_ms: u32, has_room: bool) -> Candidate {
        Candidate { usable: true, has_room, srtt8_us: 8000 * srtt_ms, ..Candidate::default() }
    }

    #[test]
    fn the_fastest_with_room_is_taken() {
        assert_eq!(MinRtt.pick(&[subflow(20, false), subflow(100, true)]), Pick::Subflow(1));
        assert_eq!(MinRtt.pick(&[subflow(20, true), subflow(100, true)]), Pick::Subflow(0));
        assert_eq!(MinRtt.pick(&[subflow(20, false), subflow(100, false)]), Pick::Wait);
    }

    #[test]
    fn a_backup_is_taken_only_when_no_regular_subflow_is_usable() {
        let backup = Candidate { backup: true, ..subflow(1, true) };
        assert_eq!(MinRtt.pick(&[subflow(20, true), backup]), Pick::Subflow(0));
        assert_eq!(MinRtt.pick(&[subflow(20, false), backup]), Pick::Wait);
        let gone = Candidate { usable: false, ..subflow(20, true) };
        assert_eq!(MinRtt.pick(&[gone, backup]), Pick::Subflow(1));
    }

    #[test]
    fn a_segment_waits_for_a_subflow_that_has_not_carried_it() {
        let carried = Candidate { carried: true, ..subflow(20, true) };
        assert_eq!(MinRtt.pick(&[carried, subflow(100, false)]), Pick::Wait);
        assert_eq!(MinRtt.pick(&[carried, subflow(100, true)]), Pick::Subflow(1));
        assert_eq!(MinRtt.pick(&[carried, carried]), Pick::AllCarried);
    }
}
