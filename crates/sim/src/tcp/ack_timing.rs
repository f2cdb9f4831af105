//! When a receiver answers at once though it may delay: quick acknowledgements and the adaptive timer of Linux.
//!
//! RFC 5681 section 4.2 bounds the delay from above and leaves the rest to the receiver. What is here follows the
//! behaviour of Linux 6.18 as observed on the wire (`docs/validation.md`). Left out: acknowledgements that an
//! application causes by when it reads (here it reads at once), and the compression of those that report
//! out-of-order data, which Linux holds back for at most 1 ms or 5 % of the RTT.

use anabranch_scenario::model::DelayedAck;

/// State of one receiving half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckTiming {
    /// Acknowledgements that will still leave at once.
    quick_left: u32,
    /// Delay that the gaps between arrivals suggest; 0 before the first segment.
    delay_us: u32,
    /// When the last segment came.
    arrived_us: u32,
    /// 8 x smoothed RTT as the receiver sees it; 0 before the first sample.
    rtt8_us: u32,
    /// Echo that gave the last sample: the segments of a flight repeat it.
    sampled_echo: u32,
}

impl AckTiming {
    /// The peer echoes `echo_us`, a clock reading that left with one of our acknowledgements.
    pub(crate) fn sample_rtt(&mut self, now_us: u32, echo_us: u32) {
        if self.rtt8_us > 0 && echo_us == self.sampled_echo {
            return;
        }
        self.sampled_echo = echo_us;
        let rtt_us = now_us.wrapping_sub(echo_us).clamp(1, u32::MAX / 8);
        self.rtt8_us = match self.rtt8_us {
            0 => 8 * rtt_us,
            before => before - (before >> 3) + rtt_us,
        };
    }

    /// Smoothed RTT in microseconds; 0 before the first sample.
    pub(crate) fn rtt_us(&self) -> u32 {
        self.rtt8_us >> 3
    }

    /// A segment that was not here before has come; `rto_us` is the timeout of this end, after which a gap is a
    /// pause, `window_segments` what the window offered holds.
    pub(crate) fn arrived(&mut self, now_us: u32, rto_us: u32, window_segments: u32, rule: &DelayedAck) {
        let floor_us = micros(rule.timeout);
        if self.delay_us == 0 {
            self.delay_us = floor_us.max(1);
            self.hurry(window_segments, rule);
        } else {
            let gap_us = now_us.wrapping_sub(self.arrived_us);
            if gap_us <= floor_us / 2 {
                self.delay_us = self.delay_us / 2 + floor_us / 2;
            } else if gap_us < self.delay_us {
                self.delay_us = (self.delay_us / 2 + gap_us).min(rto_us);
            } else if gap_us > rto_us {
                self.hurry(window_segments, rule);
            }
        }
        self.arrived_us = now_us;
    }

    /// The next acknowledgements leave at once, for at most half the segments of a window (Linux).
    pub(crate) fn hurry(&mut self, window_segments: u32, rule: &DelayedAck) {
        let most = (window_segments / 2).max(2).min(rule.quick);
        self.quick_left = self.quick_left.max(most);
    }

    /// Whether the acknowledgement that is due next is a quick one; it is counted.
    pub(crate) fn is_quick(&mut self) -> bool {
        let quick = self.quick_left > 0;
        self.quick_left -= u32::from(quick);
        quick
    }

    /// The timer has expired: waiting did not bring the second segment, and the next wait is twice as long.
    pub(crate) fn expired(&mut self, rto_us: u32) {
        self.delay_us = self.delay_us.saturating_mul(2).min(rto_us);
    }

    /// How long an acknowledgement may wait, in nanoseconds: what the gaps suggest, but not longer than the RTT
    /// `srtt_us` of this end (unless the floor is) nor than the rule's maximum.
    pub(crate) fn delay(&self, srtt_us: u32, rule: &DelayedAck) -> u64 {
        let floor_us = micros(rule.timeout);
        let most_us = micros(rule.timeout_max).min(srtt_us.max(floor_us));
        u64::from(self.delay_us.clamp(floor_us, most_us.max(floor_us))) * 1000
    }
}

fn micros(nanos: u64) -> u32 {
    u32::try_from(nanos / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LINUX: DelayedAck = DelayedAck { timeout: 40 * MS, every: 2, timeout_max: 200 * MS, quick: 16 };

    /// The delay in milliseconds after fifty segments with this gap.
    fn delay_ms(gap_ms: u32, srtt_ms: u32) -> u64 {
        let mut timing = AckTiming::default();
        for n in 0..50 {
            timing.arrived(n * gap_ms * 1000, 240_000, 45, &LINUX);
        }
        timing.delay(srtt_ms * 1000, &LINUX) / MS
    }

    #[test]
    fn the_first_sixteen_are_quick_or_half_the_window_if_that_is_less() {
        for (window, quick) in [(45, 16), (20, 10), (3, 2)] {
            let mut timing = AckTiming::default();
            timing.arrived(0, 200_000, window, &LINUX);
            assert_eq!(
                (0..100).filter(|_| timing.is_quick()).count(),
                quick,
                "a window of {window} segments"
            );
        }
    }

    #[test]
    fn a_pause_longer_than_the_timeout_makes_quick_again_and_a_shorter_one_does_not() {
        for (pause_us, quick) in [(199_000, false), (201_000, true)] {
            let mut timing = AckTiming::default();
            timing.arrived(0, 200_000, 45, &LINUX);
            while timing.is_quick() {}
            timing.arrived(pause_us, 200_000, 45, &LINUX);
            assert_eq!(timing.is_quick(), quick, "after {pause_us} us");
        }
    }

    #[test]
    fn the_delay_follows_the_gaps_but_not_beyond_the_round_trip() {
        assert_eq!(delay_ms(8, 120), 40, "gaps of up to half the floor");
        assert_eq!(delay_ms(30, 10), 40, "a short round trip leaves the floor");
        assert!((59..=60).contains(&delay_ms(30, 120)), "twice the gap: {}", delay_ms(30, 120));
        assert_eq!(delay_ms(60, 120), 40, "a gap above the delay says nothing");
    }

    #[test]
    fn a_timer_that_expires_doubles_the_delay_up_to_the_round_trip_and_the_maximum() {
        for (srtt_ms, longest) in [(10, 40), (120, 120), (900, 200)] {
            let mut timing = AckTiming::default();
            timing.arrived(0, 2_000_000, 45, &LINUX);
            for _ in 0..20 {
                timing.expired(2_000_000);
            }
            assert_eq!(timing.delay(srtt_ms * 1000, &LINUX) / MS, longest, "srtt {srtt_ms} ms");
        }
    }

    #[test]
    fn a_timer_without_a_maximum_of_its_own_is_constant() {
        let rfc = DelayedAck { timeout: 200 * MS, every: 2, timeout_max: 200 * MS, quick: 0 };
        let mut timing = AckTiming::default();
        for n in 0..50 {
            timing.arrived(n * 150_000, 1_000_000, 45, &rfc);
            assert!(!timing.is_quick());
            assert_eq!(timing.delay(0, &rfc), 200 * MS);
        }
    }

    #[test]
    fn one_flight_gives_one_sample() {
        let mut timing = AckTiming::default();
        timing.sample_rtt(100_000, 0);
        timing.sample_rtt(150_000, 0);
        assert_eq!(timing.rtt_us(), 100_000);
        timing.sample_rtt(280_000, 100_000);
        assert_eq!(timing.rtt_us(), 110_000, "an eighth of the difference (RFC 6298 section 2.3)");
    }
}
