//! Figures of times that are all kept: how long answers took, how long flows took.

use anabranch_link::Nanos;
use anabranch_record::quantile;

use super::seconds;

/// Names of the mean, the quantiles and the maximum of a time.
pub(super) struct Names {
    pub(super) mean: &'static str,
    /// By per cent, ascending.
    pub(super) quantiles: [(u32, &'static str); 3],
    pub(super) max: &'static str,
}

pub(super) const LATENCY: Names = Names {
    mean: "latency_mean_s",
    quantiles: [(50, "latency_p50_s"), (95, "latency_p95_s"), (99, "latency_p99_s")],
    max: "latency_max_s",
};

pub(super) const COMPLETION: Names = Names {
    mean: "completion_mean_s",
    quantiles: [(50, "completion_p50_s"), (95, "completion_p95_s"), (99, "completion_p99_s")],
    max: "completion_max_s",
};

impl Names {
    /// The figures of some times; none if there are no times.
    pub(super) fn of(&self, times: &[Nanos], mut figure: impl FnMut(&'static str, f64)) {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let Some(&max) = sorted.last() else { return };
        let sum: u128 = sorted.iter().map(|&time| u128::from(time)).sum();
        figure(self.mean, sum as f64 / sorted.len() as f64 / 1e9);
        for (percent, name) in self.quantiles {
            figure(name, seconds(quantile::nearest_rank(&sorted, percent)));
        }
        figure(self.max, seconds(max));
    }
}
