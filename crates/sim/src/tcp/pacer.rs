//! Pacing: data leaves no faster than a rate, in small bursts.
//!
//! The rate is the congestion control's, if it sets one; else that of Linux: cwnd/srtt times `tcp_pacing_ss_ratio`
//! (200 %) while cwnd is below half of ssthresh, so that it may double, and times `tcp_pacing_ca_ratio` (120 %) after.
//! A burst is what Linux puts into one super-packet: 1 ms at the rate, at least two segments (rate algorithms: one,
//! below 1.2 Mbit/s), at most 64 KiB. The first ten segments leave as the window lets them (fq's initial quantum), and time in which nothing was sent is credited
//! to the burst that follows, up to half of its length; both were seen on the wire (`docs/validation.md`). Left out:
//! larger super-packets on round trips below 10 ms (`tcp_tso_rtt_log`), and waiting for a window that lets out a
//! whole one (`tcp_tso_win_divisor`).

use anabranch_link::{Nanos, Rng};

use super::sender::Sender;
use crate::engine::timers::Lazy;

/// Segments at the start that are not paced.
const UNPACED: u64 = 10;
const BURST_SEGMENTS_MIN: u64 = 2;
const BURST_BYTES_MAX: u64 = 65_536;
/// Rate algorithms send single segments below this rate, as Linux's BBR does (1.2 Mbit/s).
const SINGLES_BELOW: u64 = 150_000;
const SECOND: u64 = 1_000_000_000;

/// State of one sending half. Rates count payload, in bytes per second.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// What the congestion control has asked for.
    pub(crate) set_rate: Option<u64>,
    /// What a rate algorithm draws from; a window algorithm has none.
    chance: Option<Rng>,
    /// Fires when the next burst may leave.
    pub(crate) timer: Lazy,
    /// When everything that has left would have left at the rate.
    next: Nanos,
    /// Segments of the current burst that have not left.
    burst_left: u64,
    /// Time before the current burst in which nothing was sent, as far as it is not used up.
    credit: Nanos,
}

impl Pacer {
    pub(crate) fn of_rate_algorithm(chance: Rng) -> Self {
        Self { chance: Some(chance), ..Self::default() }
    }

    /// A random number for a rate algorithm.
    pub(crate) fn toss(&mut self) -> u32 {
        self.chance.as_mut().map_or(0, |rng| rng.next_u64() as u32)
    }

    /// The subflow is opened again.
    pub(crate) fn restart(&mut self) {
        self.timer.disarm();
        *self = Self { timer: self.timer, chance: self.chance.take(), ..Self::default() };
    }

    /// When the next segment may leave; `None`: now.
    pub(crate) fn waits_until(&self, now: Nanos) -> Option<Nanos> {
        (now < self.next && self.burst_left == 0).then_some(self.next)
    }

    /// A segment of `bytes` leaves; `segment` is the size of a full one.
    pub(crate) fn sent(&mut self, now: Nanos, bytes: u16, segment: u16, sender: &Sender) {
        if sender.counters.packets <= UNPACED {
            return;
        }
        let Some(rate) = rate(Some(self), sender, segment) else { return };
        if now >= self.next {
            self.credit = now - self.next;
            self.next = now;
            let single = self.chance.is_some() && rate < SINGLES_BELOW;
            self.burst_left = if single { 1 } else { burst(rate, segment) };
        }
        self.burst_left = self.burst_left.saturating_sub(1);
        let length = u64::from(bytes) * SECOND / rate.max(1);
        let credited = self.credit.min(length / 2);
        self.credit -= credited;
        self.next += length - credited;
    }
}

/// The rate that a congestion control has set, else Linux's, in bytes per second; `None` before the first RTT sample.
pub(crate) fn rate(pacer: Option<&Pacer>, sender: &Sender, segment: u16) -> Option<u64> {
    pacer.and_then(|pacer| pacer.set_rate).or_else(|| window_rate(sender, segment))
}

/// Linux's rate for a window; `None` before the first RTT sample.
fn window_rate(sender: &Sender, segment: u16) -> Option<u64> {
    let percent = if sender.cwnd < sender.ssthresh / 2 { 200 } else { 120 };
    // Below 2^30 segments of 2^16 bytes times 8 x 10^6 x 200: it does not fit 64 bits.
    let bytes_8us = u128::from(sender.cwnd) * u128::from(segment) * 8_000_000 * percent / 100;
    let rate = bytes_8us.checked_div(u128::from(sender.rtt.srtt8_us))?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Segments of a burst, or of a super-packet of a sender that is not paced; the least before the first RTT sample.
pub(crate) fn burst_segments(sender: &Sender, segment: u16) -> u64 {
    window_rate(sender, segment).map_or(BURST_SEGMENTS_MIN, |rate| burst(rate, segment))
}

fn burst(rate: u64, segment: u16) -> u64 {
    ((rate / 1000).min(BURST_BYTES_MAX) / u64::from(segment)).max(BURST_SEGMENTS_MIN)
}

#[cfg(test)]
mod tests {
    use anabranch_link::Streams;

    use super::*;
    use crate::testing::transport;

    const MS: Nanos = 1_000_000;

    /// When segments leave a sender with data in plenty that has sent its first ones, in microseconds.
    fn departures(pacer: &mut Pacer, sender: &mut Sender, count: usize) -> Vec<u64> {
        let mut now = 0;
        sender.counters.packets = UNPACED;
        (0..count)
            .map(|_| {
                now = pacer.waits_until(now).unwrap_or(now);
                sender.counters.packets += 1;
                pacer.sent(now, 1000, 1000, sender);
                now / 1000
            })
            .collect()
    }

    fn sender(cwnd: u32, ssthresh: u32, rtt_us: u32) -> Sender {
        let mut sender = Sender::new(&transport());
        (sender.cwnd, sender.ssthresh) = (cwnd, ssthresh);
        sender.rtt.sample(rtt_us);
        sender
    }

    #[test]
    fn a_rate_that_is_set_gives_the_gaps_between_bursts_of_two() {
        let mut pacer = Pacer { set_rate: Some(100_000), ..Pacer::default() };
        let left = departures(&mut pacer, &mut sender(10, 5, 100_000), 7);
        assert_eq!(left, [0, 0, 20_000, 20_000, 40_000, 40_000, 60_000], "1000 bytes take 10 ms");
    }

    #[test]
    fn a_rate_algorithm_sends_single_segments_below_1200_kbit_per_s() {
        for (rate, left) in [(100_000, [0, 10_000, 20_000, 30_000]), (160_000, [0, 0, 12_500, 12_500])] {
            let chance = Streams::new(1).stream("congestion");
            let mut pacer = Pacer { set_rate: Some(rate), ..Pacer::of_rate_algorithm(chance) };
            assert_eq!(departures(&mut pacer, &mut sender(10, 5, 100_000), 4), left);
        }
    }

    #[test]
    fn a_burst_is_a_millisecond_at_the_rate_and_at_most_64_kib() {
        let mut pacer = Pacer { set_rate: Some(5_000_000), ..Pacer::default() };
        let left = departures(&mut pacer, &mut sender(10, 5, 100_000), 11);
        assert_eq!(left, [0, 0, 0, 0, 0, 1000, 1000, 1000, 1000, 1000, 2000]);
        assert_eq!(burst(10_000_000_000, 1000), 65);
    }

    #[test]
    fn the_windows_rate_is_twice_cwnd_per_rtt_in_slow_start_and_1_2_times_after() {
        // 20 segments of 1000 bytes per 100 ms are 200 kB/s.
        for (ssthresh, bytes_per_s) in [(1000, 400_000), (41, 240_000), (42, 400_000), (10, 240_000)] {
            assert_eq!(window_rate(&sender(20, ssthresh, 100_000), 1000), Some(bytes_per_s), "{ssthresh}");
        }
        assert_eq!(window_rate(&Sender::new(&transport()), 1000), None, "no RTT yet");
    }

    #[test]
    fn over_a_long_time_the_rate_is_kept() {
        let mut pacer = Pacer::default();
        let left = departures(&mut pacer, &mut sender(20, 10, 100_000), 1001);
        assert_eq!(left[1000], 1000 * 1000 * 1000 / 240, "a million bytes at 240 kB/s");
    }

    #[test]
    fn time_without_sending_is_credited_up_to_half_of_the_next_burst() {
        // Two segments of 10 ms each leave at 0, and two more after a pause beyond 20 ms.
        for (pause_ms, next_ms) in [(0, 20), (4, 16), (10, 10), (480, 10)] {
            let mut pacer = Pacer { set_rate: Some(100_000), ..Pacer::default() };
            let mut sender = sender(10, 5, 100_000);
            departures(&mut pacer, &mut sender, 2);
            let now = (20 + pause_ms) * MS;
            assert_eq!(pacer.waits_until(now), None);
            pacer.sent(now, 1000, 1000, &sender);
            pacer.sent(now, 1000, 1000, &sender);
            assert_eq!(pacer.waits_until(now), Some(now + next_ms * MS), "after {pause_ms} ms");
        }
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacer = Pacer { set_rate: Some(1000), ..Pacer::default() };
        let mut sender = sender(10, 5, 100_000);
        for _ in 0..UNPACED {
            assert_eq!(pacer.waits_until(0), None);
            sender.counters.packets += 1;
            pacer.sent(0, 1000, 1000, &sender);
        }
        assert_eq!(pacer.waits_until(0), None, "a burst begins");
    }
}
