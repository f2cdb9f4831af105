//! One subflow carries everything while it can, else the next: the socket scheduler of MPTCP-IoT, of which a transfer has two.
//!
//! A socket of MPTCP-IoT has one dedicated subflow and a backup over the other path: the first regular subflow of the scenario
//! that is usable, then the first usable one with `backup = true`. Nothing is spread, so nothing is reordered inside a
//! connection. The file that two such sockets share is handed out by [`crate::transfer`].

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, Sends, eligible, is_again, none_has_room,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "dedicated",
    title: "dedicated subflow, the others only when it fails (MPTCP-IoT)",
    tag: "B",
    params: &[],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: false,
    make: |_| Box::new(Dedicated),
};

/// Stateless.
struct Dedicated;

impl Scheduler for Dedicated {
    fn pick(&mut self, subflows: &[Candidate], _: &dyn Details) -> Pick {
        match eligible(subflows).find(|(_, subflow)| !subflow.carried) {
            Some((index, subflow)) if subflow.has_room => Pick::Subflow(index),
            _ => none_has_room(subflows),
        }
    }

    fn why(&self, subflows: &[Candidate], _: &dyn Details, answer: Answer) -> Reason {
        let code = match answer {
            Answer::Takes(_) if is_again(subflows) => "reinjection",
            Answer::Takes(0) => "dedicated",
            Answer::Takes(index) if subflows[index].backup => "backup",
            Answer::Takes(_) => "next",
            Answer::Leaves(_) => "dedicated-full",
        };
        Reason::new(code, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Still, candidate, make};
    use super::*;

    fn pick(subflows: [Candidate; 3]) -> Pick {
        make("dedicated", &[1; 3]).pick(&subflows, &Still::default())
    }

    #[test]
    fn c9_the_dedicated_subflow_if_usable_then_the_backup_else_wait() {
        let (dedicated, full) = (candidate(100, true), candidate(100, false));
        let gone = Candidate { usable: false, ..dedicated };
        let backup = Candidate { backup: true, ..candidate(20, true) };
        assert_eq!(pick([dedicated, candidate(20, true), backup]), Pick::Subflow(0), "not the fastest");
        assert_eq!(pick([full, candidate(20, true), backup]), Pick::Wait, "nothing is spread");
        assert_eq!(pick([gone, gone, backup]), Pick::Subflow(2));
        assert_eq!(pick([gone, gone, Candidate { usable: false, ..backup }]), Pick::Wait);
    }

    #[test]
    fn what_the_dedicated_subflow_has_carried_goes_to_the_next() {
        let carried = Candidate { carried: true, ..candidate(100, true) };
        assert_eq!(pick([carried, candidate(20, true), carried]), Pick::Subflow(1));
        assert_eq!(pick([carried; 3]), Pick::AllCarried);
    }
}
