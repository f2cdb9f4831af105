//! Links as pure state machines: the clock and the random numbers are arguments.
//!
//! A [`Wire`] is one direction of a cable: a drop-tail queue, a transmitter of constant rate and a
//! propagation delay. A [`Shaped`] link is one with a queue discipline, a rate trace, losses in bursts or a
//! varying delay. A [`Medium`] is a half-duplex channel that stations share by the distributed
//! coordination function of 802.11. [`Links`] holds those of a scenario. The simulator drives them in virtual
//! time, the test bed in real time; nothing here knows which clock it is on.
//!
//! Because a packet's departure is known when it is accepted, a wire needs one event per packet: its
//! arrival at the far end. All times are nanoseconds.

mod counters;
mod from_scenario;
mod jitter;
mod loss;
pub mod medium;
pub mod queue;
pub mod shaped;
mod tally;
mod trace;
pub mod wire;

pub use anabranch_draw::{ByteTime, NEVER, Nanos, Probability, Rng, Streams};
pub use counters::LinkCounters;
pub use from_scenario::{Links, Place, wire_config};
pub use jitter::{JitterConfig, JitterDistribution};
pub use loss::{GilbertElliott, Loss};
pub use medium::{Medium, MediumConfig};
pub use shaped::{Fate, Rate, Shaped, ShapedConfig};
pub use tally::Tally;
pub use wire::{Limit, Offer, Wire, WireConfig};

/// What a link carries.
pub trait Frame: Copy + Default + Send + 'static {
    /// Size on the wire.
    fn bytes(&self) -> u32;

    /// Which flow it belongs to, for queues that tell flows apart.
    fn flow(&self) -> u64 {
        0
    }

    /// Whether it may be marked instead of dropped (ECT, RFC 3168 section 5).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Marks it (CE, RFC 3168 section 5).
    fn mark(&mut self) {}
}

/// Why a packet is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The queue was full, or its discipline dropped it.
    Queue,
    /// The link was down.
    Down,
    /// Random loss, or a frame retried too often.
    Loss,
}
