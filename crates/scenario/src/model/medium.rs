//! What stations of a shared medium send with, and how they share it.

use super::{Loss, Nanos, QueueLimit};

/// An 802.11-like shared half-duplex medium: one frame at a time, contention by backoff.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// Unique among links and media.
    pub name: String,
    /// Indices of the nodes that share it, at least two.
    pub stations: Vec<usize>,
    /// Data rate of a frame's body, bits per second, where the stations do not differ.
    pub rate_bps: u64,
    /// What each of `stations` sends with.
    pub transmitters: Vec<Transmitter>,
    /// When stations change their rate; `None`: never.
    pub fallback: Option<Fallback>,
    /// Rate of RTS, CTS and link-layer acknowledgements, bits per second.
    pub basic_rate_bps: u64,
    /// Lowest rate that every station understands, bits per second.
    pub lowest_rate_bps: u64,
    /// Propagation delay, after the frame has ended.
    pub delay: Nanos,
    /// Queue limit of each station.
    pub queue: QueueLimit,
    /// Loss of link-layer acknowledgements.
    pub ack_loss: Loss,
    /// Length of a slot.
    pub slot: Nanos,
    /// Short interframe space.
    pub sifs: Nanos,
    /// What surrounds a frame's bits.
    pub framing: Framing,
    /// MAC header and checksum in bytes.
    pub mac_header_bytes: u32,
    /// Smallest contention window minus one is drawn from (15 or 31 in 802.11).
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Failed transmissions (or RTS) of one frame before it is given up, at least 1.
    pub retry_limit: u32,
    /// Failed transmissions of one frame after an answered RTS before it is given up, at least 1.
    pub long_retry_limit: u32,
    /// Frames longer than this are announced by RTS and CTS; `None`: never.
    pub rts_threshold_bytes: Option<u32>,
    /// What follows a frame that was not acknowledged.
    pub after_failure: AfterFailure,
    /// A frame that finds the medium busy begins with a backoff.
    pub backoff_when_busy: bool,
}

/// What one station sends with.
#[derive(Clone, Debug, PartialEq)]
pub struct Transmitter {
    /// Its rates, ascending, at least one.
    pub rates: Vec<RateStep>,
    /// Index of the rate it begins with.
    pub start: usize,
}

/// A rate of a frame's body, and what noise does to a frame sent so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// Bits per second, above 0.
    pub rate_bps: u64,
    /// Frame loss by noise; a frame so lost is retried. In bursts, it is that of every rate of every station.
    pub loss: Loss,
}

/// Automatic rate fallback (Kamerman and Monteban 1997).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Failures in a row before a step down, at least 1.
    pub down: u32,
    /// Successes in a row before a step up, at least 1.
    pub up: u32,
}

/// What surrounds a frame's bits on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Preamble and PHY header before a data frame.
    pub preamble: Nanos,
    /// The same before RTS, CTS and acknowledgements.
    pub control_preamble: Nanos,
    /// Length of an OFDM symbol; `None`: DSSS.
    pub symbol: Option<Nanos>,
    /// Silence that belongs to every frame.
    pub extension: Nanos,
}

/// How long stations wait after a frame that was not acknowledged, before DIFS and their backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// All as long as an acknowledgement at the basic rate would have taken.
    Acknowledgement,
    /// Not at all, as in Bianchi's model of the DCF.
    Nothing,
    /// As IEEE 802.11-2020 sections 10.3.2.3.7 and 10.3.2.11 have it: the senders for the acknowledgement timeout,
    /// the others for an acknowledgement at the lowest rate (with DIFS that makes EIFS). Slots of the two do not
    /// begin together then, and stations that become ready within one slot time collide.
    Extended,
}
