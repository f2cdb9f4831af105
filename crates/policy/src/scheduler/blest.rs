//! BLEST (Ferlin et al., IFIP Networking 2016), in the integers of `mptcp_blest.c`: a slow subflow is left alone if what it
//! holds up would fill the receive window.
//!
//! When minRTT would take a segment to a slow subflow because the fastest is full, BLEST estimates what the fastest could send
//! while the segment is under way, scaled by lambda; if that would not fit the window beside what the slow one carries, it
//! waits. lambda grows when segments had to be reinjected and shrinks when not.
//!
//! We differ in: a reinjection of any kind counts as a head-of-line blocking (in the module: a retransmission at the data
//! level); reinjections themselves go where minRTT sends them, as there.

use super::{
    Answer, Candidate, Details, Pick, SSTHRESH_INFINITE, Scheduler, SchedulerInfo, SchedulerParam,
    SchedulerUnit, Sends, Subflow, is_again, minrtt::by_rtt, minrtt::fastest, minrtt::fastest_of_all,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "blest",
    title: "BLEST: no segment on a slow subflow that would block the receive window (Ferlin et al. 2016)",
    tag: "A",
    params: &[
        SchedulerParam::new(
            "lambda",
            SchedulerUnit::Permille,
            1200,
            LAMBDA,
            "factor on what the fast subflow could send, at first",
        ),
        SchedulerParam::new(
            "raise",
            SchedulerUnit::Permille,
            40,
            (0, 300),
            "what lambda grows by after a reinjection",
        ),
        SchedulerParam::new(
            "lower",
            SchedulerUnit::Permille,
            10,
            (0, 300),
            "what lambda shrinks by without one",
        ),
    ],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: false,
    make: |setup| {
        let &[lambda, raise, lower] = setup.params else { unreachable!("it has three parameters") };
        let ranges = vec![Range::default(); setup.subflows.len()];
        Box::new(Blest { lambda, raise, lower, ranges, updated_us: 0, reinjections: 0 })
    },
};

/// Bounds of lambda, in thousandths.
const LAMBDA: (u32, u32) = (1000, 1300);
/// Rounds of slow start beyond which the estimate does not double.
const MOST_ROUNDS: u32 = 16;

/// The smallest and the largest smoothed round-trip time seen of a subflow, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Range {
    min_us: u32,
    max_us: u32,
}

impl Range {
    fn note(&mut self, srtt_us: u32) {
        if srtt_us > 0 {
            self.min_us = if self.min_us == 0 { srtt_us } else { self.min_us.min(srtt_us) };
            self.max_us = self.max_us.max(srtt_us);
        }
    }
}

struct Blest {
    /// In thousandths.
    lambda: u32,
    raise: u32,
    lower: u32,
    ranges: Vec<Range>,
    /// When lambda was looked at last, and how many reinjections there had been.
    updated_us: u64,
    reinjections: u64,
}

/// How long a segment given to a slow subflow now stays under way, in microseconds.
fn linger_us(range: Range, srtt_us: u32, subflow: &Subflow) -> u64 {
    let spread = u64::from(range.max_us - range.min_us);
    let filling = spread * u64::from(subflow.in_flight + 1) / u64::from(subflow.cwnd.max(1));
    u64::from(srtt_us).max(u64::from(range.min_us) + filling)
}

/// Packets that a fast subflow could send in this time.
fn packets(range: Range, fast: &Subflow, linger_us: u64) -> u64 {
    let average = u64::midpoint(range.min_us.into(), range.max_us.into());
    let rounds = linger_us.checked_div(average).unwrap_or(0) + 1;
    let cwnd = u64::from(fast.cwnd);
    if fast.ssthresh >= SSTHRESH_INFINITE {
        cwnd * ((1 << rounds.min(u64::from(MOST_ROUNDS))) - 1)
    } else {
        // Above ssthresh the window grows by one per round.
        let from = cwnd.max(u64::from(fast.ssthresh) + 1);
        (from + (rounds - 1) / 2) * rounds
    }
}

impl Blest {
    /// Moves lambda, at most once in the slow subflow's shortest round-trip time.
    fn adapt(&mut self, slow: Range, now_us: u64, reinjections: u64) {
        if now_us - self.updated_us < u64::from(slow.min_us) {
            return;
        }
        let moved = if reinjections > self.reinjections {
            self.lambda + self.raise
        } else {
            self.lambda.saturating_sub(self.lower)
        };
        self.lambda = moved.clamp(LAMBDA.0, LAMBDA.1);
        (self.updated_us, self.reinjections) = (now_us, reinjections);
    }

    /// Whether a segment may go to the slow subflow though the fast one will soon have room.
    fn may_use(&mut self, slow: usize, fast: usize, srtt8_us: u32, details: &dyn Details) -> bool {
        let connection = details.connection();
        self.adapt(self.ranges[slow], connection.now_us, connection.reinjections);
        let (bytes, left) = self.sides(slow, fast, srtt8_us, details);
        bytes <= u128::from(left)
    }

    /// Bytes that the fast subflow could send while a segment is under way on the slow one, and what is left of the window.
    fn sides(&self, slow: usize, fast: usize, srtt8_us: u32, details: &dyn Details) -> (u128, u64) {
        let (of_slow, of_fast) = (details.subflow(slow), details.subflow(fast));
        let linger = linger_us(self.ranges[slow], srtt8_us >> 3, &of_slow);
        let packets = packets(self.ranges[fast], &of_fast, linger);
        // Below 2^32 * 2^16 packets in slow start, else (2^32 + 2^31) * 2^32; times 2^16 bytes and 1300.
        let bytes = u128::from(packets) * u128::from(of_fast.segment_bytes) * u128::from(self.lambda) / 1000;
        let slow_bytes = u64::from(of_slow.unacknowledged + 1) * u64::from(of_slow.segment_bytes);
        (bytes, details.connection().window_bytes.saturating_sub(slow_bytes))
    }
}

impl Scheduler for Blest {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        for (range, subflow) in self.ranges.iter_mut().zip(subflows) {
            range.note(subflow.srtt8_us >> 3);
        }
        let picked = fastest(subflows);
        match (picked, fastest_of_all(subflows)) {
            (Pick::Subflow(slow), Some(fast)) if slow != fast && !is_again(subflows) => {
                if self.may_use(slow, fast, subflows[slow].srtt8_us, details) { picked } else { Pick::Wait }
            }
            _ => picked,
        }
    }

    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason {
        let slow = answer.subflow();
        match fastest_of_all(subflows) {
            Some(fast) if fast != slow && !is_again(subflows) => {
                let (bytes, left) = self.sides(slow, fast, subflows[slow].srtt8_us, details);
                let code = if answer == Answer::Leaves(slow) { "would-block" } else { "fits-window" };
                let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                let lambda = u64::from(self.lambda);
                Reason::new(
                    code,
                    &[("fast_bytes", bytes), ("window_left_bytes", left), ("lambda_permille", lambda)],
                )
            }
            _ => by_rtt(subflows, slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Connection, testing::Still, testing::candidate, testing::make};
    use super::*;

    fn fast() -> Subflow {
        Subflow { cwnd: 10, ssthresh: 8, in_flight: 10, segment_bytes: 1400, ..Subflow::default() }
    }

    fn slow() -> Subflow {
        Subflow { cwnd: 10, in_flight: 4, unacknowledged: 4, segment_bytes: 1400, ..Subflow::default() }
    }

    fn picked(window_bytes: u64) -> Pick {
        let connection = Connection { window_bytes, ..Connection::default() };
        let still = Still { subflows: vec![fast(), slow()], connection };
        make("blest", &[1; 2]).pick(&[candidate(20, false), candidate(100, true)], &still)
    }

    #[test]
    fn blest1_120960_bytes_of_the_fast_subflow_fit_131072_and_not_120000() {
        let constant = |ms: u32| Range { min_us: 1000 * ms, max_us: 1000 * ms };
        assert_eq!(linger_us(constant(100), 100_000, &slow()), 100_000);
        assert_eq!(packets(constant(20), &fast(), 100_000), 72);
        assert_eq!(picked(131_072), Pick::Subflow(1), "124072 bytes are left");
        assert_eq!(picked(120_000), Pick::Wait, "113000 bytes are left");
    }

    #[test]
    fn the_border_is_where_the_estimate_equals_what_is_left_of_the_window() {
        assert_eq!(picked(120_960 + 5 * 1400), Pick::Subflow(1));
        assert_eq!(picked(120_960 + 5 * 1400 - 1), Pick::Wait);
    }

    #[test]
    fn in_the_first_slow_start_the_window_doubles_every_round() {
        let range = Range { min_us: 20_000, max_us: 20_000 };
        let starting = Subflow { ssthresh: SSTHRESH_INFINITE, ..fast() };
        assert_eq!(packets(range, &starting, 59_000), 10 * (1 + 2 + 4));
        assert_eq!(packets(range, &starting, 10_000_000_000), 10 * 65_535);
    }

    #[test]
    fn a_filling_slow_subflow_is_taken_to_linger_towards_its_longest_round_trip() {
        let range = Range { min_us: 60_000, max_us: 160_000 };
        assert_eq!(linger_us(range, 80_000, &slow()), 60_000 + 50_000);
        assert_eq!(linger_us(range, 120_000, &slow()), 120_000, "at least the present one");
    }

    #[test]
    fn lambda_grows_by_4_percent_after_reinjections_and_shrinks_by_1_once_per_slow_round_trip() {
        let mut blest =
            Blest { lambda: 1200, raise: 40, lower: 10, ranges: Vec::new(), updated_us: 0, reinjections: 0 };
        let slow = Range { min_us: 100_000, max_us: 200_000 };
        let lambdas = [(99_999, 1), (100_000, 1), (150_000, 2), (200_000, 2), (300_000, 2), (400_000, 9)]
            .map(|(now_us, reinjections)| {
                blest.adapt(slow, now_us, reinjections);
                blest.lambda
            });
        assert_eq!(lambdas, [1200, 1240, 1240, 1280, 1270, 1300]);
    }
}
