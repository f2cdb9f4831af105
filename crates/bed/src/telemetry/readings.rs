//! What the measuring thread hands over each time: what sockets, applications and emulator tell at one moment.

use anabranch_link::medium::AirCounters;

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
    /// The socket of the end that sends (of two the one that sends more), as long as it is open.
    pub sender: Option<Sample>,
    /// Bytes that the applications have got, in order.
    pub delivered_bytes: u64,
    /// Of these, the ones that the client has got.
    pub downloaded_bytes: u64,
    /// When the client began to connect.
    pub opened_at: Option<Nanos>,
    /// When the last byte of a file was delivered.
    pub completed_at: Option<Nanos>,
    /// What is held at the client and at the server, as far as their sockets tell.
    pub memory: [Option<EndMemory>; 2],
}

/// What one end of a connection holds in its buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndMemory {
    /// [`ConnectionMemory::send_bytes`](super::ConnectionMemory::send_bytes).
    pub send_bytes: u64,
    /// [`ConnectionMemory::receive_bytes`](super::ConnectionMemory::receive_bytes).
    pub receive_bytes: u64,
}

impl ConnectionReading {
    /// What is held at both ends together, as far as their sockets tell.
    pub fn memory_of_both_ends(&self) -> Option<EndMemory> {
        self.memory.into_iter().flatten().reduce(|one, other| EndMemory {
            send_bytes: one.send_bytes + other.send_bytes,
            receive_bytes: one.receive_bytes + other.receive_bytes,
        })
    }
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
    /// Packets dropped by the queue or because the link was down.
    pub drops: u64,
    /// Packets lost to noise.
    pub losses: u64,
    /// Packets carried.
    pub packets: u64,
    /// Bytes carried.
    pub bytes: u64,
    /// Packets that the queue marked instead of dropping them.
    pub marks: u64,
    /// What happened on the air of a medium.
    pub air: Option<AirCounters>,
}
