//! Every segment once on every subflow, each at its own pace: `mptcp_redundant.c` of the out-of-tree kernel, ReMP TCP
//! (Froemmgen et al. 2016).
//!
//! The host walks through the data for each subflow ([`Sends::Copies`]): it sends what the subflow has not carried, skips
//! what is acknowledged at the data level, and cuts new data for whichever has carried all there is. Backup subflows
//! carry no copies while a regular one is usable. What is asked here are reinjections alone.

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, Sends, is_again, minrtt::by_rtt,
    minrtt::fastest,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "redundant",
    title: "every segment once on every subflow (ReMP TCP)",
    tag: "A",
    params: &[],
    sends: Sends::Copies,
    reckons_energy: false,
    weighs: false,
    make: |_| Box::new(Redundant),
};

/// Stateless: how far each subflow has come lies with the data.
struct Redundant;

impl Scheduler for Redundant {
    fn pick(&mut self, subflows: &[Candidate], _: &dyn Details) -> Pick {
        if is_again(subflows) { fastest(subflows) } else { Pick::Wait }
    }

    fn why(&self, subflows: &[Candidate], _: &dyn Details, answer: Answer) -> Reason {
        match answer {
            Answer::Takes(index) => by_rtt(subflows, index),
            Answer::Leaves(_) => Reason::new("copies", &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Still, candidate, make};
    use super::*;

    #[test]
    fn new_data_is_left_to_the_walk_and_reinjections_go_to_the_fastest() {
        let mut redundant = make("redundant", &[1; 2]);
        let carried = Candidate { carried: true, ..candidate(20, true) };
        let still = Still::default();
        assert_eq!(redundant.pick(&[candidate(20, true); 2], &still), Pick::Wait);
        assert_eq!(redundant.pick(&[carried, candidate(100, true)], &still), Pick::Subflow(1));
        assert_eq!(redundant.pick(&[carried; 2], &still), Pick::AllCarried);
    }
}
