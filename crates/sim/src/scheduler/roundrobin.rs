//! One segment per subflow in turn; a subflow without room is skipped.

use super::{Candidate, Pick, Scheduler, eligible, none_has_room};

/// Remembers whose turn it is.
#[derive(Default)]
pub(super) struct RoundRobin {
    next: usize,
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, subflows: &[Candidate]) -> Pick {
        let n = subflows.len();
        let turn = |index: usize| (index + n - self.next % n) % n;
        let chosen = eligible(subflows)
            .filter(|(_, subflow)| subflow.has_room && !subflow.carried)
            .min_by_key(|&(index, _)| turn(index));
        match chosen {
            Some((index, _)) => {
                self.next = index + 1;
                Pick::Subflow(index)
            }
            None => none_has_room(subflows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(scheduler: &mut RoundRobin, rooms: &[[bool; 2]]) -> Vec<Pick> {
        let subflow = |has_room| Candidate { usable: true, has_room, ..Candidate::default() };
        rooms.iter().map(|room| scheduler.pick(&room.map(subflow))).collect()
    }

    #[test]
    fn subflows_alternate_while_both_have_room() {
        let picked = picks(&mut RoundRobin::default(), &[[true, true]; 4]);
        assert_eq!(picked, [0, 1, 0, 1].map(Pick::Subflow));
    }

    #[test]
    fn a_full_subflow_is_skipped() {
        let rooms = [[true, true], [true, false], [true, false], [true, true]];
        let picked = picks(&mut RoundRobin::default(), &rooms);
        assert_eq!(picked, [0, 0, 0, 1].map(Pick::Subflow));
    }
}
