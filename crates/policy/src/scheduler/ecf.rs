//! ECF, earliest completion first (Lim et al., CoNEXT 2017), in the integers of `mptcp_ecf.c`: a slow subflow is used only if
//! the fast one would not have finished everything before it.

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, SchedulerParam, SchedulerUnit, Sends,
    Subflow, is_again, minrtt::by_rtt, minrtt::fastest, minrtt::fastest_of_all,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "ecf",
    title: "ECF: waits for the fast subflow if that completes earlier (Lim et al. 2017)",
    tag: "A",
    params: &[SchedulerParam::new(
        "beta",
        SchedulerUnit::Permille,
        250,
        (0, 10_000),
        "hysteresis: what more is granted to waiting once it waits",
    )],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: false,
    make: |setup| {
        let &[beta] = setup.params else { unreachable!("it has one parameter") };
        Box::new(Ecf { beta, waiting: false })
    },
};

struct Ecf {
    /// In thousandths.
    beta: u32,
    waiting: bool,
}

/// A subflow as the inequalities see it.
#[derive(Clone, Copy, Debug)]
struct Path {
    srtt_us: u128,
    sigma_us: u128,
    window_bytes: u128,
}

impl Path {
    fn new(candidate: &Candidate, subflow: &Subflow) -> Self {
        Self {
            srtt_us: u128::from(candidate.srtt8_us >> 3),
            // The module's standard deviation: twice the mean deviation.
            sigma_us: u128::from(subflow.mdev4_us >> 1),
            window_bytes: u128::from(subflow.cwnd) * u128::from(subflow.segment_bytes),
        }
    }
}

impl Ecf {
    /// Whether the fast subflow alone ends sooner than the slow one's next round trip, with so many bytes to send. All products
    /// stay below 2^32 us times 2^64 bytes times 11000 thousandths.
    fn is_sooner(&self, fast: Path, slow: Path, unsent_bytes: u64) -> bool {
        let delta = fast.sigma_us.max(slow.sigma_us);
        // n * RTT_F < (1 + waiting * beta) * (RTT_S + delta), times cwnd_F.
        let fast_bytes = u128::from(unsent_bytes).max(fast.window_bytes) + fast.window_bytes;
        let thousandths = 1000 + u128::from(self.beta) * u128::from(self.waiting);
        1000 * fast.srtt_us * fast_bytes < thousandths * fast.window_bytes * (slow.srtt_us + delta)
    }

    /// Whether to wait for the fast subflow with so many bytes to send.
    fn waits(&mut self, fast: Path, slow: Path, unsent_bytes: u64) -> bool {
        if !self.is_sooner(fast, slow, unsent_bytes) {
            self.waiting = false;
            return false;
        }
        let unsent = u128::from(unsent_bytes);
        let delta = fast.sigma_us.max(slow.sigma_us);
        // k / cwnd_S * RTT_S >= 2 RTT_F + delta, times cwnd_S.
        let slow_bytes = unsent.max(slow.window_bytes);
        let waits = slow.srtt_us * slow_bytes >= slow.window_bytes * (2 * fast.srtt_us + delta);
        self.waiting |= waits;
        waits
    }

    /// Why it did what it did with the slow subflow, by the inequality that decided. They come out after the answer as they did
    /// for it: `waiting` is set only where the first holds without it, and cleared only where it fails even with it.
    fn reason(&self, fast: Path, slow: Path, unsent_bytes: u64, waits: bool) -> Reason {
        let unsent = u128::from(unsent_bytes);
        let delta = fast.sigma_us.max(slow.sigma_us);
        let number = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        let per_window = |us: u128, bytes: u128, path: Path| number(us * bytes / path.window_bytes.max(1));
        let fast_bytes = unsent.max(fast.window_bytes) + fast.window_bytes;
        let fast_us = per_window(fast.srtt_us, fast_bytes, fast);
        let thousandths = 1000 + u128::from(self.beta) * u128::from(self.waiting);
        let slow_us = number(thousandths * (slow.srtt_us + delta) / 1000);
        let first = [("fast_us", fast_us), ("slow_us", slow_us)];
        if waits {
            return Reason::new("fast-sooner", &first);
        }
        if !self.is_sooner(fast, slow, unsent_bytes) {
            return Reason::new("slow-needed", &first);
        }
        let slow_us = per_window(slow.srtt_us, unsent.max(slow.window_bytes), slow);
        Reason::new(
            "slow-in-time",
            &[("slow_us", slow_us), ("two_fast_us", number(2 * fast.srtt_us + delta))],
        )
    }
}

impl Scheduler for Ecf {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        let picked = fastest(subflows);
        match (picked, fastest_of_all(subflows)) {
            (Pick::Subflow(slow), Some(fast)) if slow != fast && !is_again(subflows) => {
                let path = |index: usize| Path::new(&subflows[index], &details.subflow(index));
                let unsent = details.connection().unsent_bytes;
                if self.waits(path(fast), path(slow), unsent) { Pick::Wait } else { picked }
            }
            _ => picked,
        }
    }

    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason {
        let slow = answer.subflow();
        match fastest_of_all(subflows) {
            Some(fast) if fast != slow && !is_again(subflows) => {
                let path = |index: usize| Path::new(&subflows[index], &details.subflow(index));
                let unsent = details.connection().unsent_bytes;
                self.reason(path(fast), path(slow), unsent, answer == Answer::Leaves(slow))
            }
            _ => by_rtt(subflows, slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Connection, testing::Still, testing::candidate};
    use super::*;

    /// Ten segments of 1000 bytes and delta 10 ms on both, 20 ms and 100 ms, the fast one full.
    fn picked(ecf: &mut Ecf, unsent: u64) -> (Pick, bool) {
        let subflow = Subflow { cwnd: 10, segment_bytes: 1000, mdev4_us: 20_000, ..Subflow::default() };
        let connection = Connection { unsent_bytes: 1000 * unsent, ..Connection::default() };
        let still = Still { subflows: vec![subflow; 2], connection };
        (ecf.pick(&[candidate(20, false), candidate(100, true)], &still), ecf.waiting)
    }

    #[test]
    fn ecf1_waits_with_20_segments_uses_the_slow_one_with_100_and_with_55_it_depends() {
        let mut ecf = Ecf { beta: 250, waiting: false };
        assert_eq!(picked(&mut ecf, 55), (Pick::Subflow(1), false), "130 is not below 110");
        assert_eq!(picked(&mut ecf, 20), (Pick::Wait, true), "60 < 110 and 200 >= 50");
        assert_eq!(picked(&mut ecf, 55), (Pick::Wait, true), "130 < 137.5");
        assert_eq!(picked(&mut ecf, 100), (Pick::Subflow(1), false), "220 is not below 137.5");
    }

    #[test]
    fn the_first_inequality_is_strict() {
        let mut ecf = Ecf { beta: 250, waiting: false };
        assert_eq!(picked(&mut ecf, 45), (Pick::Subflow(1), false), "20 * 5.5 is 110");
        assert_eq!(picked(&mut ecf, 44), (Pick::Wait, true));
    }

    #[test]
    fn what_a_slow_subflow_finishes_before_two_fast_rounds_is_sent_there() {
        // 45 ms against 2 * 20 ms + 10 ms.
        let subflow = Subflow { cwnd: 10, segment_bytes: 1000, mdev4_us: 20_000, ..Subflow::default() };
        let connection = Connection { unsent_bytes: 1000, ..Connection::default() };
        let still = Still { subflows: vec![subflow; 2], connection };
        for (slow_ms, expected) in [(45, Pick::Subflow(1)), (50, Pick::Wait)] {
            let mut ecf = Ecf { beta: 250, waiting: false };
            assert_eq!(ecf.pick(&[candidate(20, false), candidate(slow_ms, true)], &still), expected);
        }
    }

    #[test]
    fn endless_data_does_not_overflow() {
        let path = |srtt_us| Path { srtt_us, sigma_us: srtt_us, window_bytes: 1 << 48 };
        let mut ecf = Ecf { beta: 10_000, waiting: true };
        assert!(!ecf.waits(path(1 << 28), path(1 << 29), u64::MAX));
    }
}
