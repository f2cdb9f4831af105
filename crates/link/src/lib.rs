//! Links as pure state machines: the clock and the random numbers are arguments.
//!
//! A [`Wire`] is one direction of a cable: a drop-tail queue, a transmitter of constant rate and a
//! propagation delay. A [`Medium`] is a half-duplex channel that stations share by the distributed
//! coordination function of 802.11. The simulator drives both in virtual time; nothing here knows which
//! clock it is on.
//!
//! Because a packet's departure is known when it is accepted, a wire needs one event per packet: its
//! arrival at the far end. All times are nanoseconds.

pub mod medium;
mod rate;
pub mod rng;
pub mod wire;

pub use medium::{Medium, MediumConfig};
pub use rate::ByteTime;
pub use rng::{Probability, Rng, Streams};
pub use wire::{Limit, Offer, Wire, WireConfig};

/// Time in nanoseconds.
pub type Nanos = u64;

/// The end of time: no event is due.
pub const NEVER: Nanos = Nanos::MAX;

/// What a link carries.
pub trait Frame: Copy + Default {
    /// Size on the wire.
    fn bytes(&self) -> u32;

    /// Which flow it belongs to, for queues that tell flows apart.
    fn flow(&self) -> u64 {
        0
    }

    /// Whether a queue may mark it in place of dropping it (ECT, RFC 3168 section 5).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Marks it: congestion has been experienced (CE, RFC 3168 section 5).
    fn mark(&mut self) {}
}

/// Why a packet is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The queue was full.
    Queue,
    /// The link was down.
    Down,
    /// Random loss, or a frame retried too often.
    Loss,
}
