//! What the measuring thread hands over each time: what sockets, applications and emulator tell at one moment.

use super::Sample;
use crate::Nanos;

/// Everything that is read at one moment. Counters count from the beginning of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// One per connection of the scenario, in its order.
    pub connections: Vec<ConnectionReading>,
    /// One per datagram flow of the scenario, in its order.
    pub datagrams: Vec<DatagramReading>,
    /// One per direction of a link (`2 * link + direction`, forward being 0), then one per medium.
    pub links: Vec<LinkReading>,
    /// Packets lost on each path, in the plan's order, for whatever reason.
    pub lost_on_paths: Vec<u64>,
}

/// A connection at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionReading {
    /// The client's socket, as long as it is open.
    pub sender: Option<Sample>,
    /// Bytes that the applications have got, in order.
    pub delivered_bytes: u64,
    /// When the client began to connect.
    pub opened_at: Option<Nanos>,
    /// When the last byte of a file was delivered.
    pub completed_at: Option<Nanos>,
    /// [`ConnectionMemory::send_bytes`](super::ConnectionMemory::send_bytes) of the client.
    pub send_memory_bytes: Option<u64>,
    /// [`ConnectionMemory::receive_bytes`](super::ConnectionMemory::receive_bytes) of the server.
    pub receive_memory_bytes: Option<u64>,
}

/// A datagram flow at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramReading {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Bytes received, headers included, as on the wire.
    pub received_bytes: u64,
}

/// One direction of a link, or a medium, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkReading {
    /// Packets in the queue now, the one in transmission included.
    pub queued: u32,
    /// Packets dropped because the queue was full or the link down.
    pub drops: u64,
    /// Packets lost to noise.
    pub losses: u64,
    /// Packets carried.
    pub packets: u64,
    /// Bytes carried.
    pub bytes: u64,
}
