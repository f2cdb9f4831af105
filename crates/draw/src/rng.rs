//! Random numbers by named streams, so that adding a consumer does not move another one's draws.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The streams of one seed.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of a scenario's seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of that name: independent of every other name's and seed's.
    pub fn stream(&self, name: &str) -> Rng {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(name.as_bytes());
        Rng(Xoshiro256PlusPlus::from_seed(*hasher.finalize().as_bytes()))
    }
}

/// One stream (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A uniform word.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, bound)`; 0 if the bound is 0. The bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `(0, 1]`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// True with the given probability.
    #[inline]
    pub fn chance(&mut self, probability: Probability) -> bool {
        (self.next_u64() >> 11) < probability.0
    }
}

/// A probability in units of 2^-53, so that a draw is an integer comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(1 << 53);

    /// From a real number.
    ///
    /// # Panics
    /// If it is not in `[0, 1]`.
    pub fn new(p: f64) -> Self {
        assert!((0.0..=1.0).contains(&p), "{p} is no probability");
        Self((p * (1_u64 << 53) as f64) as u64)
    }

    /// From units of 2^-53.
    pub const fn from_raw(units: u64) -> Self {
        Self(units)
    }

    /// In units of 2^-53.
    pub const fn raw(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_differ() {
        let draw = |seed, name| Streams::new(seed).stream(name).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn the_first_draws_of_a_stream_never_change() {
        let mut rng = Streams::new(42).stream("golden");
        let drawn = [rng.next_u64(), rng.below(1000), rng.below(7)];
        assert_eq!(drawn, [2_482_884_343_819_407_277, 298, 3], "a changed stream changes every result");
    }

    #[test]
    fn a_chance_comes_true_about_as_often_as_it_says() {
        let mut rng = Streams::new(7).stream("chance");
        let p = Probability::new(0.01);
        let hits = (0..1_000_000).filter(|_| rng.chance(p)).count();
        assert!((9_600..10_400).contains(&hits), "{hits} of 10,000 expected (4 standard deviations)");
        assert!(!rng.chance(Probability::ZERO));
        assert!(rng.chance(Probability::new(1.0)));
    }
}
