//! How a transport behaves.

use super::Nanos;

/// How lost packets are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Jacobson 1988: a window of one packet and everything again, at the third duplicate as after a timeout.
    Tahoe,
    /// RFC 6582, by duplicate acknowledgements.
    NewReno,
    /// RFC 6675, by selective acknowledgements.
    Sack,
    /// RACK-TLP (RFC 8985), by selective acknowledgements and the time of sending.
    Rack,
}

impl Recovery {
    /// Whether the receiver reports what it has out of order, by selective acknowledgements (RFC 2018).
    pub fn is_selective(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// When the further subflows of an MPTCP connection are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Together with the first one (ns-2 patches do so).
    Immediately,
    /// When the connection is fully established, at the first data acknowledgement (RFC 8684 section 3.1).
    Established,
}

/// How the retransmission timeout is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// RFC 6298: `max(min_rto, srtt + max(G, 4 rttvar))`, G being the clock granularity.
    Rfc6298,
    /// Linux: `srtt + max(min_rto, 4 rttvar)`.
    Linux,
}

/// Delayed acknowledgements (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// At the latest after this long; with `timeout_max` above it, the least delay of an adaptive timer.
    pub timeout: Nanos,
    /// At the latest at this many full-sized segments.
    pub every: u32,
    /// Bound of the adaptive timer; at least `timeout`.
    pub timeout_max: Nanos,
    /// Segments acknowledged at once at the start, after a pause and after a duplicate; 0: none, and neither are
    /// those that let the window grow or end what the application has written.
    pub quick: u32,
}

/// Transport settings of one connection, after profile and overrides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// Headers of a data packet.
    pub header_bytes: u32,
    /// Size of a packet without payload.
    pub ack_bytes: u32,
    /// Initial congestion window in packets.
    pub initial_window: u32,
    /// Initial ssthresh in packets; `None`: unbounded.
    pub initial_ssthresh: Option<u32>,
    /// Upper bound of the congestion window in packets; `None`: unbounded.
    pub window_cap: Option<u32>,
    /// RTO before the first sample.
    pub initial_rto: Nanos,
    /// Lower bound of the RTO (see `rto_rule`).
    pub min_rto: Nanos,
    /// Clock granularity G of RFC 6298.
    pub rto_granularity: Nanos,
    /// Upper bound of the RTO.
    pub max_rto: Nanos,
    /// Formula.
    pub rto_rule: RtoRule,
    /// `None`: every data packet is acknowledged at once.
    pub delayed_ack: Option<DelayedAck>,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Proportional rate reduction (RFC 9937) in fast recovery; with selective acknowledgements only.
    pub prr: bool,
    /// Duplicates are reported (RFC 2883) and spurious recoveries undone (RFC 3522, RFC 4015); with selective
    /// acknowledgements only.
    pub undo: bool,
    /// Explicit congestion notification (RFC 3168): both ends ask for it, and new data may be marked.
    pub ecn: bool,
    /// Data that the receive window is full of is sent again on another subflow (Raiciu et al., NSDI 2012).
    pub opportunistic_retransmission: bool,
    /// The subflow that holds such data up halves its window, at most once per round trip (the same paper).
    pub penalisation: bool,
    /// Receive buffer in bytes, of the connection (shared by the subflows); `None`: unlimited.
    pub receive_buffer: Option<u64>,
    /// Whether the window offered grows up to `receive_buffer` with what the application reads.
    pub receive_buffer_tuning: bool,
    /// Send buffer in bytes, of the connection; `None`: unlimited.
    pub send_buffer: Option<u64>,
    /// Whether MPTCP may have only so much unacknowledged as Linux's send buffer would hold, which grows with the
    /// congestion windows; `send_buffer` is then the most that one subflow adds.
    pub send_buffer_tuning: bool,
    /// Periods of silence, while the data level makes no progress, that a subflow of MPTCP may have without being stale,
    /// until something is acknowledged on it; `None`: it is after a timeout, until its recovery is over.
    pub stale_after: Option<u32>,
    /// Whether data is paced by the window and the smoothed RTT.
    pub pacing: bool,
    /// Opening of further subflows.
    pub join: Join,
    /// A random processing time in `[0, send_jitter)` before each data packet of the sender, in order
    /// (ns-2's `overhead_`); breaks phase effects.
    pub send_jitter: Nanos,
}
