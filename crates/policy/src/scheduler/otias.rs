//! OTIAS, out-of-order transmission for in-order arrival (Yang, Wang, Amer 2014), as the out-of-tree module of mptcp-kau has
//! it: the subflow on which the segment would arrive first, though it has to wait for the window.
//!
//! `T = wait * srtt + srtt / 2`: half a round trip on the way, and before that so many whole ones as the queue of the subflow takes
//! to leave, each with a window.
//!
//! We differ in: a subflow that has no sample of its round-trip time yet, which takes only what fits its window; a bound on the queue of a subflow (`queue`), for where the receive window has none; reinjections go where minRTT
//! sends them, as there.

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, SchedulerParam, SchedulerUnit, Sends,
    Subflow, eligible, is_again, minrtt::by_rtt, minrtt::fastest,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "otias",
    title: "OTIAS: the subflow on which a segment would arrive first, with queues (Yang et al. 2014)",
    tag: "A",
    params: &[QUEUE],
    sends: Sends::Queued,
    reckons_energy: false,
    weighs: false,
    make: |setup| {
        let &[most] = setup.params else { unreachable!("it has one parameter") };
        Box::new(Otias { most })
    },
};

/// Parameter of those that queue without a rule for the length of queues.
pub(super) const QUEUE: SchedulerParam = SchedulerParam::new(
    "queue",
    SchedulerUnit::Packets,
    1000,
    (1, 1_000_000),
    "most segments that wait for the window of a subflow",
);

struct Otias {
    most: u32,
}

/// Half round trips until the segment arrives: two for each window that has to leave before, and one.
fn half_rounds(subflow: &Subflow) -> u64 {
    let room = subflow.cwnd.saturating_sub(subflow.in_flight);
    let wait =
        if subflow.queued < room { 0 } else { (subflow.queued - room + 1).div_ceil(subflow.cwnd.max(1)) };
    2 * u64::from(wait) + 1
}

/// Above every time.
const NEVER: u64 = u64::MAX;

/// Until arrival, in units of 1/16 us. A subflow without a sample takes what fits its window, and nothing more.
fn time(half_rounds: u64, srtt8_us: u32) -> u64 {
    if srtt8_us == 0 && half_rounds > 1 { NEVER } else { half_rounds * u64::from(srtt8_us) }
}

impl Scheduler for Otias {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        if is_again(subflows) {
            return fastest(subflows);
        }
        let with_time = eligible(subflows).map(|(index, candidate)| {
            let subflow = details.subflow(index);
            (time(half_rounds(&subflow), candidate.srtt8_us), index, subflow.queued)
        });
        match with_time.min_by_key(|&(time, index, _)| (time, index)) {
            Some((time, index, queued)) if time < NEVER && queued < self.most => Pick::Queue(index),
            _ => Pick::Wait,
        }
    }

    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason {
        let about = answer.subflow();
        if is_again(subflows) {
            return by_rtt(subflows, about);
        }
        let subflow = details.subflow(about);
        let arrives = time(half_rounds(&subflow), subflows[about].srtt8_us);
        let numbers = [("arrives_us", arrives / 16), ("queued_segments", u64::from(subflow.queued))];
        match answer {
            Answer::Takes(_) => Reason::new("arrives-first", &numbers),
            Answer::Leaves(_) => Reason::new("first-is-full", &numbers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{testing::Still, testing::candidate, testing::make, testing::make_with};
    use super::*;

    /// RTT (20, 100) ms, cwnd (10, 10), flight (10, 0), so many queued on the first.
    fn still(queued: u32) -> Still {
        let slow = Subflow { cwnd: 10, ..Subflow::default() };
        let fast = Subflow { in_flight: 10, queued, ..slow };
        Still { subflows: vec![fast, slow], ..Still::default() }
    }

    fn picked(queued: u32) -> Pick {
        make("otias", &[1; 2]).pick(&[candidate(20, false), candidate(100, true)], &still(queued))
    }

    #[test]
    fn otias1_the_full_fast_subflow_at_30_ms_beats_the_slow_one_at_50_until_20_are_queued() {
        let times = [0, 10, 20].map(|queued| half_rounds(&still(queued).subflows[0]) * 10);
        assert_eq!(times, [30, 50, 70], "milliseconds");
        assert_eq!([picked(0), picked(10), picked(20)], [Pick::Queue(0), Pick::Queue(0), Pick::Queue(1)]);
    }

    #[test]
    fn what_fits_the_window_does_not_wait() {
        let subflow = Subflow { cwnd: 10, in_flight: 4, queued: 5, ..Subflow::default() };
        assert_eq!(half_rounds(&subflow), 1);
        assert_eq!(half_rounds(&Subflow { queued: 6, ..subflow }), 3, "seven for six places");
    }

    #[test]
    fn a_subflow_without_a_sample_takes_what_fits_its_window() {
        let mut otias = make("otias", &[1; 2]);
        let fresh = candidate(0, true);
        assert_eq!(otias.pick(&[candidate(20, false), fresh], &still(0)), Pick::Queue(1));
        assert_eq!(
            otias.pick(&[fresh, candidate(100, true)], &still(0)),
            Pick::Queue(1),
            "the first is full"
        );
        assert_eq!(otias.pick(&[fresh, Candidate { usable: false, ..fresh }], &still(0)), Pick::Wait);
    }

    #[test]
    fn a_queue_is_bounded() {
        let mut otias = make_with("otias", &[5], &[1; 2]);
        let candidates = [candidate(20, false), candidate(1000, true)];
        assert_eq!(otias.pick(&candidates, &still(4)), Pick::Queue(0));
        assert_eq!(otias.pick(&candidates, &still(5)), Pick::Wait);
    }
}
