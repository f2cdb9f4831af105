//! What scenarios and links have in common: streams of random numbers, what is drawn from them, and how long bytes take.
//! All of it gives the same bits on every machine.

pub mod departures;
pub mod distribution;
mod rate;
mod rng;

pub use departures::{Departures, Pattern};
pub use distribution::Distribution;
pub use rate::ByteTime;
pub use rng::{Probability, Rng, Streams};

/// Time in nanoseconds.
pub type Nanos = u64;

/// The end of time: nothing is due.
pub const NEVER: Nanos = Nanos::MAX;
