//! Draws from exponential and Pareto distributions, with the same bits on every machine.
//!
//! Each inverts the distribution function at one uniform number, so that one value costs one draw of its stream.
//! Logarithm and power are those of the pure-Rust `libm`, for those of a platform differ from one to the next.
//! Values are whole: a nanosecond or a byte is the finest step. Left out: anything beyond 2^60, where draws end; a
//! Pareto distribution with an infinite mean could notice.

use crate::Rng;

/// The most that is drawn; sums of a few stay in 64 bits.
const MOST: u64 = 1 << 60;

/// To the nearest whole number.
fn whole(value: f64) -> u64 {
    ((value + 0.5) as u64).min(MOST)
}

/// A draw from the exponential distribution with this mean.
pub fn exponential(rng: &mut Rng, mean: u64) -> u64 {
    whole(-libm::log(rng.unit()) * mean as f64)
}

/// A Pareto distribution: values from `min` on, of which the share `(min / x)^shape` is above `x`; perhaps cut off
/// at a maximum, the shares below it scaled up (the bounded Pareto distribution).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    min: f64,
    shape: f64,
    /// Infinite without one.
    max: f64,
    /// Share of the whole distribution that lies below the maximum.
    kept: f64,
}

impl Pareto {
    /// With a given smallest value. `shape_thousandths` is the shape times 1000.
    ///
    /// # Panics
    /// If a parameter is 0 or `max` is not above `min`.
    pub fn with_min(min: u64, shape_thousandths: u32, max: Option<u64>) -> Self {
        assert!(min > 0 && shape_thousandths > 0, "a Pareto distribution is above 0");
        assert!(max.is_none_or(|max| max > min), "the maximum is above the minimum");
        Self::new(min as f64, f64::from(shape_thousandths) / 1000.0, max)
    }

    /// With a given mean, that of what is drawn: a maximum is allowed for.
    ///
    /// # Panics
    /// If a parameter is 0, `max` is not above `mean`, or there is no `max` and the shape is not above 1, where no
    /// mean exists.
    pub fn with_mean(mean: u64, shape_thousandths: u32, max: Option<u64>) -> Self {
        assert!(mean > 0 && shape_thousandths > 0, "a Pareto distribution is above 0");
        assert!(max.is_none_or(|max| max > mean), "the maximum is above the mean");
        let (mean, shape) = (mean as f64, f64::from(shape_thousandths) / 1000.0);
        if max.is_none() {
            assert!(shape_thousandths > 1000, "without a maximum, the mean needs a shape above 1");
            return Self::new(mean * (shape - 1.0) / shape, shape, None);
        }
        // The mean grows with the minimum; halving an interval 60 times leaves less than its last bits.
        let (mut low, mut high) = (0.0, mean);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if Self::new(middle, shape, max).mean() < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::new(high, shape, max)
    }

    fn new(min: f64, shape: f64, max: Option<u64>) -> Self {
        let max = max.map_or(f64::INFINITY, |max| max as f64);
        Self { min, shape, max, kept: 1.0 - libm::pow(min / max, shape) }
    }

    /// The mean in closed form; infinite without a maximum if the shape is not above 1.
    pub fn mean(&self) -> f64 {
        let (a, ratio) = (self.shape, self.min / self.max);
        if ratio == 0.0 {
            return if a > 1.0 { a * self.min / (a - 1.0) } else { f64::INFINITY };
        }
        if a == 1.0 {
            return -self.min * libm::log(ratio) / self.kept;
        }
        a * self.min * (1.0 - libm::pow(ratio, a - 1.0)) / ((a - 1.0) * self.kept)
    }

    /// A draw.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let above = 1.0 - (1.0 - rng.unit()) * self.kept;
        whole(self.min * libm::pow(above, -1.0 / self.shape))
    }
}

/// Where times and sizes come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always this.
    Fixed(u64),
    /// Exponential.
    Exponential {
        /// Mean.
        mean: u64,
    },
    /// Pareto.
    Pareto(Pareto),
}

impl Distribution {
    /// A draw; a fixed value takes none from the stream.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Distribution::Fixed(value) => *value,
            Distribution::Exponential { mean } => exponential(rng, *mean),
            Distribution::Pareto(pareto) => pareto.draw(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    const DRAWS: u32 = 200_000;

    fn rng() -> Rng {
        Streams::new(42).stream("draw")
    }

    /// Mean and its standard error.
    fn sampled(mut draw: impl FnMut(&mut Rng) -> u64) -> (f64, f64) {
        let mut rng = rng();
        let values: Vec<f64> = (0..DRAWS).map(|_| draw(&mut rng) as f64).collect();
        let n = f64::from(DRAWS);
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    }

    fn within_three_standard_errors((mean, error): (f64, f64), expected: f64) {
        assert!((mean - expected).abs() <= 3.0 * error, "{mean} +- {error}, expected {expected}");
    }

    #[test]
    fn the_mean_of_exponential_draws_is_the_given_one_within_three_standard_errors() {
        within_three_standard_errors(sampled(|rng| exponential(rng, 1_000_000)), 1e6);
    }

    #[test]
    fn the_share_of_exponential_draws_above_the_mean_is_1_over_e_within_three_standard_errors() {
        let mut rng = rng();
        let above = (0..DRAWS).filter(|_| exponential(&mut rng, 1_000_000) > 1_000_000).count();
        let (n, p) = (f64::from(DRAWS), (-1.0_f64).exp());
        let error = (p * (1.0 - p) / n).sqrt();
        within_three_standard_errors((above as f64 / n, error), p);
    }

    #[test]
    fn the_mean_of_pareto_draws_is_the_closed_form_within_three_standard_errors() {
        // A shape above 2, so that the variance exists; then a cut-off, with which it always does.
        let open = Pareto::with_mean(1_000_000, 3_000, None);
        within_three_standard_errors(sampled(|rng| open.draw(rng)), 1e6);
        for shape in [800, 1_000, 1_200, 1_500] {
            let bounded = Pareto::with_min(1_000, shape, Some(1_000_000));
            within_three_standard_errors(sampled(|rng| bounded.draw(rng)), bounded.mean());
        }
    }

    #[test]
    fn a_given_mean_is_that_of_what_is_drawn_with_a_maximum_too() {
        for shape in [500, 1_000, 1_200, 2_500] {
            let pareto = Pareto::with_mean(30_000, shape, Some(5_000_000));
            assert!((pareto.mean() / 30_000.0 - 1.0).abs() < 1e-9, "{}", pareto.mean());
            within_three_standard_errors(sampled(|rng| pareto.draw(rng)), 30_000.0);
        }
    }

    #[test]
    fn pareto_draws_stay_between_minimum_and_maximum() {
        let pareto = Pareto::with_min(1_000, 500, Some(20_000));
        let mut rng = rng();
        assert!((0..DRAWS).all(|_| (1_000..=20_000).contains(&pareto.draw(&mut rng))));
    }

    #[test]
    fn the_first_draws_are_the_same_on_every_machine() {
        let mut rng = rng();
        let pareto = Pareto::with_mean(1_000_000, 1_500, None);
        let drawn: Vec<u64> =
            (0..3).flat_map(|_| [exponential(&mut rng, 1_000_000_000), pareto.draw(&mut rng)]).collect();
        assert_eq!(
            drawn,
            [87_529_653, 688_252, 2_858_780_152, 343_578, 1_720_087_490, 496_463],
            "a changed draw changes every result"
        );
    }
}
