//! What a path will deliver: the Markov model of TCP's rounds in EE-MPTCP (Electronics 2022, 11(19), 3104), in expected
//! values.
//!
//! A round begins with a window of w segments, of which each is lost with probability p. None lost: the window doubles below
//! ssthresh and grows by one above. So many lost that fewer than four are left: a timeout, and the window is the initial one.
//! Else fast retransmit, and the window halves. The next window is the mean of the three, and so is the threshold.
//!
//! We differ in: the mean threshold, which the paper does not define after a round with mixed outcomes; a largest window
//! ([`Start::most`]), for without losses the model grows without bound; p of at most one half; and beyond [`ROUNDS`]
//! rounds every one delivers what the last of them does. Left out, and who could notice: losses come one by one (bursts of a
//! full queue make the model pessimistic), and a round trip does not grow with the queue (it is optimistic where windows are
//! larger than the path holds).

use crate::energy::Linear;

/// Rounds that are reckoned one by one.
pub const ROUNDS: u32 = 256;
/// Rounds of the slowest path after which an estimate gives up.
const MOST_ROUNDS: u64 = 1 << 20;
/// The largest probability of loss.
const MOST_LOSS: f64 = 0.5;

/// A path at the beginning of its first round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Round-trip time in microseconds, at least 1.
    pub rtt_us: u64,
    /// Congestion window in segments.
    pub window: f64,
    /// Slow-start threshold in segments.
    pub ssthresh: f64,
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Window after a timeout in segments, the paper's CW(0).
    pub initial: f64,
    /// Largest window in segments.
    pub most: f64,
    /// Bits of payload in a segment.
    pub segment_bits: f64,
}

/// Expected window and threshold of the next round.
pub fn step(window: f64, ssthresh: f64, loss: f64, initial: f64) -> (f64, f64) {
    // The binomials take a whole number of segments.
    let whole = (window + 0.5).max(1.0) as u32;
    let none_lost = power(1.0 - loss, whole);
    let timeout = timeout(whole, loss, none_lost);
    let halved = (1.0 - none_lost - timeout).max(0.0);
    let grown = if window >= ssthresh { window + 1.0 } else { 2.0 * window };
    (
        none_lost * grown + timeout * initial + halved * window / 2.0,
        none_lost * ssthresh + (1.0 - none_lost) * (window / 2.0).max(2.0),
    )
}

/// The probability that of `window` segments all, or all but one to three, are lost: eq. (11), printed border.
fn timeout(window: u32, loss: f64, none_lost: f64) -> f64 {
    if window <= 4 {
        return 1.0 - none_lost;
    }
    let (n, kept) = (f64::from(window), 1.0 - loss);
    // C(n, k) p^(n-k) (1-p)^k for k = 0..=3.
    let ways = [1.0, n, n * (n - 1.0) / 2.0, n * (n - 1.0) * (n - 2.0) / 6.0];
    let terms = (0..).zip(ways).map(|(k, ways)| ways * power(loss, window - k) * power(kept, k));
    terms.sum()
}

/// `base` to a whole power, by squaring: the same on every machine.
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// What a path delivers, round after round.
#[derive(Clone, Debug)]
pub struct Rounds {
    start: Start,
    window: f64,
    ssthresh: f64,
    /// Segments delivered in the first round, in the first two, and so on.
    sums: Vec<f64>,
}

impl Rounds {
    /// Of a path from its state now.
    pub fn new(start: Start) -> Self {
        let start = Start { loss: start.loss.clamp(0.0, MOST_LOSS), ..start };
        Self { start, window: start.window.min(start.most), ssthresh: start.ssthresh, sums: Vec::new() }
    }

    /// Segments expected to be delivered in so many rounds.
    pub fn delivered(&mut self, rounds: u64) -> f64 {
        while (self.sums.len() as u64) < rounds.min(u64::from(ROUNDS)) {
            if !self.sums.is_empty() {
                let Start { loss, initial, most, .. } = self.start;
                let (window, ssthresh) = step(self.window, self.ssthresh, loss, initial);
                (self.window, self.ssthresh) = (window.min(most), ssthresh);
            }
            self.sums.push(self.sum(self.sums.len()) + self.window * (1.0 - self.start.loss));
        }
        let reckoned = rounds.min(self.sums.len() as u64) as usize;
        let last = self.sum(reckoned) - self.sum(reckoned.saturating_sub(1));
        self.sum(reckoned) + (rounds - reckoned as u64) as f64 * last
    }

    fn sum(&self, rounds: usize) -> f64 {
        rounds.checked_sub(1).map_or(0.0, |last| self.sums[last])
    }
}

/// When the paths together have delivered everything, and at what rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// In microseconds.
    pub time_us: u64,
    /// Mean rate of each path in Mbit/s of payload, in the order of the paths.
    pub rates_mbps: Vec<f64>,
}

/// The paper's first algorithm: the smallest whole number of rounds of the slowest path after which so many segments are
/// delivered. A faster path has as many rounds in that time as fit.
pub fn estimate(paths: &mut [Rounds], segments: f64) -> Estimate {
    let slowest_us = paths.iter().map(|path| path.start.rtt_us).max().unwrap_or(1);
    let delivered = |paths: &mut [Rounds], rounds: u64| -> f64 {
        paths.iter_mut().map(|path| path.delivered(rounds * slowest_us / path.start.rtt_us)).sum()
    };
    let mut enough = 1;
    while enough < MOST_ROUNDS && delivered(paths, enough) < segments {
        enough *= 2;
    }
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let middle = u64::midpoint(too_few, enough);
        if delivered(paths, middle) < segments {
            too_few = middle;
        } else {
            enough = middle;
        }
    }
    let rate = |path: &mut Rounds| {
        let rounds = enough * slowest_us / path.start.rtt_us;
        // Bits per microsecond are Mbit/s.
        path.delivered(rounds) * path.start.segment_bits / (rounds * path.start.rtt_us) as f64
    };
    let rates_mbps = paths.iter_mut().map(rate).collect();
    Estimate { time_us: enough * slowest_us, rates_mbps }
}

/// What EE-MPTCP maximises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Rate per energy: `sum X / (T sum P)`, Mbit/s per mJ.
    PerEnergy,
    /// Bits per power: `sum X T / sum P`, the other reading of the paper's eq. (1).
    PerPower,
}

impl Objective {
    /// Its value for a set of paths that take `time_s` at these rates in Mbit/s.
    pub fn value(self, paths: &[(f64, Linear)], time_s: f64) -> f64 {
        let rate: f64 = paths.iter().map(|path| path.0).sum();
        let power: f64 = paths.iter().map(|(rate, radio)| radio.power_mw(*rate)).sum();
        match self {
            Self::PerEnergy => rate / (time_s * power),
            Self::PerPower => rate * time_s / power,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
    }

    fn start(rtt_ms: u64, window: f64, ssthresh: f64, loss: f64) -> Start {
        let (initial, most, segment_bits) = (1.0, 1e9, 1460.0 * 8.0);
        Start { rtt_us: 1000 * rtt_ms, window, ssthresh, loss, initial, most, segment_bits }
    }

    #[test]
    fn c8_5_checks_1_to_4_to_the_printed_digits() {
        near(power(0.99, 8), 0.922745, 5e-7);
        near(timeout(8, 0.01, power(0.99, 8)), 5.46e-9, 5e-12);
        let windows = [(8.0, 64.0, 0.01), (10.0, 8.0, 0.01), (10.0, 8.0, 0.0), (4.0, 64.0, 0.01)]
            .map(|(window, ssthresh, loss)| step(window, ssthresh, loss, 1.0).0);
        for (window, expected) in windows.into_iter().zip([15.0729, 10.42629, 11.0, 7.72417]) {
            near(window, expected, 5e-5);
        }
    }

    #[test]
    fn the_three_outcomes_of_a_round_are_all_there_are() {
        // With p = 1/2 of a window of 5: C(5, l) / 32 summed over l = 2..=5, and l = 1 halves.
        near(timeout(5, 0.5, power(0.5, 5)), 26.0 / 32.0, 1e-15);
        near(timeout(3, 0.5, power(0.5, 3)), 7.0 / 8.0, 1e-15);
        let (window, ssthresh) = step(5.0, 2.0, 0.5, 1.0);
        near(window, (6.0 + 26.0 + 5.0 * 2.5) / 32.0, 1e-15);
        near(ssthresh, (2.0 + 31.0 * 2.5) / 32.0, 1e-15);
    }

    #[test]
    fn h1_what_is_delivered_in_the_first_rounds() {
        let sums = |path: Start| [1, 2, 3, 4].map(|rounds| Rounds::new(path).delivered(rounds));
        assert_eq!(sums(start(100, 10.0, 1e9, 0.0))[..3], [10.0, 30.0, 70.0]);
        for (sum, expected) in
            sums(start(100, 10.0, 20.0, 0.01)).into_iter().zip([9.9, 28.2801, 60.2477, 88.5371])
        {
            near(sum, expected, 5e-5);
        }
    }

    #[test]
    fn h1_sixty_segments_over_one_path_take_three_rounds() {
        let estimate = estimate(&mut [Rounds::new(start(100, 10.0, 1e9, 0.0))], 60.0);
        assert_eq!(estimate.time_us, 300_000);
        near(estimate.rates_mbps[0], 2.7253, 5e-5);
    }

    #[test]
    fn figure_1_of_ee_mptcp_11_and_5_packets_are_in_order_without_loss_and_not_with() {
        let paths = |loss: f64| [start(30, 5.0, 5.0, loss), start(60, 5.0, 5.0, 0.0)].map(Rounds::new);
        // Packets 1 to 11 fit two rounds of the 30 ms path, 12 to 16 one of the 60 ms path: all end at 60 ms.
        let mut without = paths(0.0);
        assert_eq!((without[0].delivered(2), without[1].delivered(1)), (11.0, 5.0));
        assert_eq!(estimate(&mut without, 16.0).time_us, 60_000);
        // With losses some of the first eleven come a round later than 12 to 16.
        let mut with = paths(0.05);
        assert!(with[0].delivered(2) < 10.0, "{}", with[0].delivered(2));
        assert_eq!(with[1].delivered(1), 5.0);
        assert_eq!(estimate(&mut with, 16.0).time_us, 120_000);
    }

    #[test]
    fn ee5_both_paths_by_rate_per_energy_and_lte_alone_by_bits_per_power() {
        let (wifi, lte) = ((8.0, Linear::WIFI), (18.0, Linear::LTE));
        let values = |of: Objective| [of.value(&[lte], 80.0 / 18.0), of.value(&[lte, wifi], 80.0 / 26.0)];
        for (value, expected) in values(Objective::PerEnergy).into_iter().zip([1.8210e-3, 2.4472e-3]) {
            near(value, expected, 5e-8);
        }
        for (value, expected) in values(Objective::PerPower).into_iter().zip([0.035971, 0.023169]) {
            near(value, expected, 5e-7);
        }
    }

    #[test]
    fn far_rounds_deliver_what_the_last_reckoned_one_does_and_windows_stay_below_their_limit() {
        let mut capped = Rounds::new(Start { most: 30.0, ..start(100, 10.0, 1e9, 0.0) });
        assert_eq!(capped.delivered(1), 10.0);
        assert_eq!(
            capped.delivered(u64::from(ROUNDS) + 1000),
            30.0 + 30.0 * f64::from(ROUNDS - 2) + 30_000.0
        );
        let all_lost = estimate(&mut [Rounds::new(start(100, 1.0, 2.0, 1.0))], 1000.0);
        assert!(all_lost.time_us > 100_000_000, "{}", all_lost.time_us);
    }
}
