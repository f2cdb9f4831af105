//! Delay that varies from packet to packet.
//!
//! Each packet is delayed further by an independent draw. Where order is kept, a packet that would overtake arrives
//! together with its predecessor: the k-th arrives at `max(t_1 + x_1, …, t_k + x_k)`, so the mean of the further delay
//! lies above that of the draws as soon as packets come closer than the range. Where it is not kept, packets overtake.
//!
//! Left out: correlation between successive draws. Who measures how fast a delay can change would notice.

use crate::{Nanos, Rng};

/// How the further delay is distributed. The mean is half of the range with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform in `[0, range)`.
    Uniform,
    /// Exponential: not bounded by the range.
    Exponential,
    /// Normal with a standard deviation of a sixth of the range, cut at 0 and at the range.
    Normal,
}

/// Settings of the variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterConfig {
    /// Twice the mean of the further delay.
    pub range: Nanos,
    /// How it is distributed.
    pub distribution: JitterDistribution,
    /// Whether packets may overtake.
    pub reorder: bool,
}

impl JitterConfig {
    /// The further delay of one packet. Logarithm and cosine are those of `libm`: the same bits everywhere.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Nanos {
        let range = self.range as f64;
        match self.distribution {
            JitterDistribution::Uniform => rng.below(self.range),
            JitterDistribution::Exponential => (-libm::log(rng.unit()) * range / 2.0) as Nanos,
            JitterDistribution::Normal => {
                // Box and Muller (1958).
                let radius = (-2.0 * libm::log(rng.unit())).sqrt();
                let standard = radius * libm::cos(std::f64::consts::TAU * rng.unit());
                (range / 2.0 + standard * range / 6.0).clamp(0.0, range) as Nanos
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    const RANGE: Nanos = 6_000_000;
    const DRAWS: u32 = 200_000;

    /// Mean and standard deviation of the draws, in ranges.
    fn moments(distribution: JitterDistribution) -> (f64, f64) {
        let jitter = JitterConfig { range: RANGE, distribution, reorder: false };
        let mut rng = Streams::new(21).stream("jitter");
        let draws: Vec<f64> = (0..DRAWS).map(|_| jitter.draw(&mut rng) as f64 / RANGE as f64).collect();
        let n = f64::from(DRAWS);
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }

    #[test]
    fn the_mean_is_half_of_the_range_within_four_standard_errors() {
        let deviations = [
            (JitterDistribution::Uniform, 1.0 / 12.0_f64.sqrt()),
            (JitterDistribution::Exponential, 0.5),
            (JitterDistribution::Normal, 1.0 / 6.0),
        ];
        for (distribution, deviation) in deviations {
            let (mean, measured) = moments(distribution);
            let allowed = 4.0 * deviation / f64::from(DRAWS).sqrt();
            assert!((mean - 0.5).abs() < allowed, "{distribution:?}: {mean}");
            // Cutting the normal distribution at three deviations takes 1.3 % off its deviation.
            assert!((measured / deviation - 1.0).abs() < 0.02, "{distribution:?}: {measured}");
        }
    }

    #[test]
    fn uniform_and_normal_draws_stay_in_the_range() {
        let mut rng = Streams::new(22).stream("jitter");
        for distribution in [JitterDistribution::Uniform, JitterDistribution::Normal] {
            let jitter = JitterConfig { range: 1000, distribution, reorder: false };
            assert!((0..DRAWS).all(|_| jitter.draw(&mut rng) <= 1000), "{distribution:?}");
        }
    }

    #[test]
    fn the_first_draws_never_change() {
        let draws = |distribution| {
            let jitter = JitterConfig { range: RANGE, distribution, reorder: false };
            let mut rng = Streams::new(42).stream("golden");
            [jitter.draw(&mut rng), jitter.draw(&mut rng)]
        };
        let all = [JitterDistribution::Uniform, JitterDistribution::Exponential, JitterDistribution::Normal]
            .map(draws);
        assert_eq!(
            all,
            [[807_584, 1_793_570], [6_016_400, 3_622_654], [2_393_961, 1_817_663]],
            "a changed draw changes every result"
        );
    }
}
