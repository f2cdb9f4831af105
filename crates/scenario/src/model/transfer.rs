//! Files that several connections carry together.

use super::{Direction, Nanos};

/// A file that several connections carry in chunks (MPTCP-IoT; `anabranch_policy::transfer` hands the chunks out).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Unique among connections, datagram flows, relays and transfers.
    pub name: String,
    /// Indices of the connections, whose traffic is [`Traffic::Transfer`](super::Traffic::Transfer).
    pub over: Vec<usize>,
    /// At least 1.
    pub size_bytes: u64,
    /// Bytes of every chunk but the last one.
    pub chunk_bytes: u64,
    /// When the connections are opened.
    pub start: Nanos,
    /// Up or down.
    pub direction: Direction,
    /// How long a connection with chunks to deliver may deliver nothing; `None`: for ever.
    pub give_up: Option<Nanos>,
}
