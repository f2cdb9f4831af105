//! Figures of times that are all kept: how long answers took, how long flows took.

use crate::quantile::nearest_rank;

/// Names of the mean, the quantiles and the maximum of a time.
pub struct TimeFigures {
    mean: &'static str,
    /// By per cent, ascending.
    quantiles: [(u32, &'static str); 3],
    max: &'static str,
}

/// How long answers took.
pub const LATENCY: TimeFigures = TimeFigures {
    mean: "latency_mean_s",
    quantiles: [(50, "latency_p50_s"), (95, "latency_p95_s"), (99, "latency_p99_s")],
    max: "latency_max_s",
};

/// How long flows took.
pub const COMPLETION: TimeFigures = TimeFigures {
    mean: "completion_mean_s",
    quantiles: [(50, "completion_p50_s"), (95, "completion_p95_s"), (99, "completion_p99_s")],
    max: "completion_max_s",
};

impl TimeFigures {
    /// The figures of some times in nanoseconds; none if there are no times.
    pub fn of(&self, times: &[u64], mut figure: impl FnMut(&'static str, f64)) {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let Some(&max) = sorted.last() else { return };
        let sum: u128 = sorted.iter().map(|&time| u128::from(time)).sum();
        let seconds = |time: u64| time as f64 / 1e9;
        figure(self.mean, sum as f64 / sorted.len() as f64 / 1e9);
        for (percent, name) in self.quantiles {
            figure(name, seconds(nearest_rank(&sorted, percent)));
        }
        figure(self.max, seconds(max));
    }
}
