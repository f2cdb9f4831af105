//! When the packets of a flow leave that is not always on: the same schedule in virtual and in real time.
//!
//! A source sends one packet per `gap` while it is on, the first when it is switched on. What switches it on and off:
//!
//! - [`Pattern::Cbr`]: nothing within an interval.
//! - [`Pattern::OnOff`]: times drawn anew for each burst and each pause, as ns-2's exponential and Pareto on/off
//!   sources. An interval begins with a pause. Time that a burst leaves over counts for the next one (ns-2 rounds a
//!   burst to whole packets instead), so that the mean rate is exactly rate x on / (on + off).
//! - [`Pattern::Poisson`]: nothing; the distances of packets are exponential with the mean `gap`.
//!
//! Left out: packets of varying size, and rates that vary while a source is on.

use std::collections::VecDeque;

use crate::{Distribution, NEVER, Nanos, Rng, distribution::exponential};

/// How a flow's packets lie within the intervals in which it is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One per gap.
    Cbr,
    /// One per gap during bursts.
    OnOff {
        /// Length of a burst.
        on: Distribution,
        /// Length of a pause.
        off: Distribution,
    },
    /// At exponential distances whose mean is the gap.
    Poisson,
}

/// The departures of a flow, in order.
#[derive(Clone, Debug)]
pub struct Departures {
    gap: Nanos,
    next: Nanos,
    /// End of the present burst; with [`Pattern::Poisson`] 0, as if every packet ended one.
    ends: Nanos,
    /// Intervals to come.
    intervals: VecDeque<(Nanos, Nanos)>,
    varying: Option<Box<Varying>>,
}

/// What patterns but the constant one need.
#[derive(Clone, Debug)]
struct Varying {
    pattern: Pattern,
    rng: Rng,
    /// End of the present interval.
    until: Nanos,
}

impl Departures {
    /// During `intervals`, `[start, end)` each, disjoint and ascending; `rng` is for patterns that draw.
    ///
    /// # Panics
    /// If the gap is 0.
    pub fn new(
        intervals: impl IntoIterator<Item = (Nanos, Nanos)>,
        gap: Nanos,
        pattern: Pattern,
        rng: impl FnOnce() -> Rng,
    ) -> Self {
        assert!(gap > 0, "packets have a distance");
        let varying = (pattern != Pattern::Cbr).then(|| Box::new(Varying { pattern, rng: rng(), until: 0 }));
        let intervals = intervals.into_iter().filter(|(start, end)| start < end).collect();
        let mut this = Self { gap, next: 0, ends: 0, intervals, varying };
        match this.varying {
            None => this.begin_interval(),
            Some(_) => this.vary(0, 0),
        }
        this
    }

    /// When the next packet leaves; [`NEVER`]: there is none.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.next
    }

    /// The packet that was due has left.
    #[inline]
    pub fn advance(&mut self) {
        self.next += self.gap;
        if self.next >= self.ends {
            self.turn();
        }
    }

    #[cold]
    fn turn(&mut self) {
        match self.varying.as_ref().map(|varying| varying.pattern) {
            None | Some(Pattern::Cbr) => self.begin_interval(),
            Some(Pattern::Poisson) => self.vary(self.next - self.gap, 0),
            Some(Pattern::OnOff { .. }) => self.vary(self.ends, self.next - self.ends),
        }
    }

    fn begin_interval(&mut self) {
        (self.next, self.ends) = self.intervals.pop_front().unwrap_or((NEVER, NEVER));
    }

    /// The last burst ended at `since`, and the next packet leaves when the source has been on for `left` more.
    fn vary(&mut self, mut since: Nanos, mut left: Nanos) {
        let Some(Varying { pattern, rng, until }) = self.varying.as_deref_mut() else { return };
        loop {
            match pattern {
                Pattern::Cbr | Pattern::Poisson => {
                    let next = since.saturating_add(exponential(rng, self.gap));
                    if next < *until {
                        (self.next, self.ends) = (next, 0);
                        return;
                    }
                }
                Pattern::OnOff { on, off } => {
                    let starts = since.saturating_add(off.draw(rng));
                    if starts < *until {
                        since = starts.saturating_add(on.draw(rng)).min(*until);
                        let burst = since - starts;
                        if left < burst {
                            (self.next, self.ends) = (starts + left, since);
                            return;
                        }
                        left -= burst;
                        continue;
                    }
                }
            }
            let Some((start, end)) = self.intervals.pop_front() else {
                (self.next, self.ends) = (NEVER, NEVER);
                return;
            };
            (since, left, *until) = (start, 0, end);
        }
    }
}

impl Iterator for Departures {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let due = self.due();
        (due != NEVER).then(|| {
            self.advance();
            due
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Streams, distribution::Pareto};

    const MS: Nanos = 1_000_000;
    const SECOND: Nanos = 1_000 * MS;

    fn departures(intervals: Vec<(Nanos, Nanos)>, gap: Nanos, pattern: Pattern) -> Departures {
        Departures::new(intervals, gap, pattern, || Streams::new(3).stream("departures"))
    }

    /// Packets per second of `seconds`.
    fn counts(departures: Departures, seconds: usize) -> Vec<f64> {
        let mut counts = vec![0.0; seconds];
        for at in departures {
            counts[(at / SECOND) as usize] += 1.0;
        }
        counts
    }

    /// Mean and variance.
    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0))
    }

    #[test]
    fn a_constant_flow_begins_each_interval_with_a_packet() {
        let sent: Vec<Nanos> = departures(vec![(5, 25), (30, 30), (100, 101)], 8, Pattern::Cbr).collect();
        assert_eq!(sent, [5, 13, 21, 100]);
    }

    #[test]
    fn counts_of_poisson_arrivals_have_equal_mean_and_variance_within_three_standard_errors() {
        let seconds = 20_000;
        let flow = departures(vec![(0, seconds * SECOND)], 50 * MS, Pattern::Poisson);
        let (mean, variance) = moments(&counts(flow, seconds as usize));
        // 20 a second; the variance of the sample variance of a Poisson variable is (m + 2 m^2) / n.
        let (m, n) = (20.0, seconds as f64);
        assert!((mean - m).abs() <= 3.0 * (m / n).sqrt(), "{mean}");
        assert!((variance - m).abs() <= 3.0 * ((m + 2.0 * m * m) / n).sqrt(), "{variance}");
    }

    #[test]
    fn the_mean_rate_of_on_off_sources_is_rate_times_on_over_on_plus_off_within_three_standard_errors() {
        let exponential = |mean| Distribution::Exponential { mean };
        let pareto = |mean| Distribution::Pareto(Pareto::with_mean(mean, 2_500, None));
        // The gap is as long as a burst in the last case: packets are rare but as frequent as they must be.
        for (on, off, gap) in [
            (exponential(500 * MS), exponential(500 * MS), 10 * MS),
            (pareto(500 * MS), pareto(1_500 * MS), 10 * MS),
            (exponential(10 * MS), exponential(30 * MS), 10 * MS),
        ] {
            let mean = |distribution: Distribution| match distribution {
                Distribution::Exponential { mean } => mean as f64,
                Distribution::Pareto(pareto) => pareto.mean(),
                Distribution::Fixed(value) => value as f64,
            };
            let expected = mean(on) / (mean(on) + mean(off)) / (gap as f64 / SECOND as f64);
            // Blocks of 100 s, long beside bursts and pauses, so that they are nearly independent.
            let blocks = 400;
            let flow = departures(vec![(0, blocks * 100 * SECOND)], gap, Pattern::OnOff { on, off });
            let seconds = counts(flow, blocks as usize * 100);
            let rates: Vec<f64> =
                seconds.chunks(100).map(|block| block.iter().sum::<f64>() / 100.0).collect();
            let (rate, variance) = moments(&rates);
            let error = (variance / blocks as f64).sqrt();
            assert!((rate - expected).abs() <= 3.0 * error, "{rate} +- {error}, expected {expected}");
        }
    }

    #[test]
    fn packets_of_a_burst_keep_their_distance() {
        let on_off = Pattern::OnOff { on: Distribution::Fixed(25 * MS), off: Distribution::Fixed(100 * MS) };
        let sent: Vec<Nanos> = departures(vec![(0, 300 * MS)], 10 * MS, on_off).collect();
        // The second burst owes the 5 ms that the first one left over.
        assert_eq!(sent, [100, 110, 120, 230, 240].map(|ms| ms * MS));
    }

    #[test]
    fn nothing_leaves_outside_of_the_intervals() {
        let on_off = Pattern::OnOff {
            on: Distribution::Exponential { mean: 20 * MS },
            off: Distribution::Exponential { mean: 5 * MS },
        };
        let intervals = [(10 * MS, 200 * MS), (300 * MS, 450 * MS)];
        for pattern in [Pattern::Poisson, on_off] {
            let sent: Vec<Nanos> = departures(intervals.to_vec(), 2 * MS, pattern).collect();
            assert!(sent.len() > 50, "{}", sent.len());
            assert!(sent.is_sorted());
            assert!(sent.iter().all(|at| intervals.iter().any(|(start, end)| (start..end).contains(&at))));
        }
    }

    #[test]
    fn the_draws_depend_on_the_seed() {
        let flow = |seed| {
            let stream = move || Streams::new(seed).stream("flow");
            Departures::new([(0, SECOND)], MS, Pattern::Poisson, stream).collect::<Vec<_>>()
        };
        assert_eq!(flow(1), flow(1));
        assert_ne!(flow(1), flow(2));
    }
}
