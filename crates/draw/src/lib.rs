//! Streams of random numbers, and what is drawn from them: the same bits on every machine.

mod rng;

pub use rng::{Probability, Rng, Streams};

/// Time in nanoseconds.
pub type Nanos = u64;

/// The end of time: nothing is due.
pub const NEVER: Nanos = Nanos::MAX;
