//! Relays between two connections.

use super::Nanos;

/// A gateway that ends one connection and begins another (split TCP): what the first delivers at its `to` is written
/// to the second, whose `from` is the same node.
#[derive(Clone, Debug, PartialEq)]
pub struct Relay {
    /// Unique among connections, datagram flows and relays.
    pub name: String,
    /// Index of the connection that is read.
    pub input: usize,
    /// Index of the connection that is written to; it is opened when the other one has been accepted.
    pub output: usize,
    /// The most that has been read and not yet sent.
    pub buffer_bytes: u64,
    /// From the reading of a byte to its writing.
    pub delay: Nanos,
}
