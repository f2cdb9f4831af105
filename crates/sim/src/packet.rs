//! What travels: one small copyable record, with rare extras kept aside.

use anabranch_link::Frame;

/// Control bits.
pub(crate) mod flags {
    /// Opens a subflow.
    pub(crate) const SYN: u16 = 1 << 0;
    /// The acknowledgement number counts.
    pub(crate) const ACK: u16 = 1 << 1;
    /// Carries payload.
    pub(crate) const DATA: u16 = 1 << 2;
    /// MP_CAPABLE (RFC 8684 section 3.1).
    pub(crate) const MP_CAPABLE: u16 = 1 << 3;
    /// MP_JOIN (RFC 8684 section 3.2).
    pub(crate) const MP_JOIN: u16 = 1 << 4;
    /// Carries a data acknowledgement (RFC 8684 section 3.3.2).
    pub(crate) const DATA_ACK: u16 = 1 << 5;
    /// `wnd` is a limit.
    pub(crate) const WINDOW: u16 = 1 << 6;
    /// Belongs to a datagram flow, whose index is in `ack`.
    pub(crate) const DATAGRAM: u16 = 1 << 7;
    /// Ends what the application has written (RFC 9293 section 3.9.1, PSH).
    pub(crate) const PUSH: u16 = 1 << 9;
    /// A window update or a probe: never a duplicate acknowledgement (RFC 5681 section 2, condition e).
    pub(crate) const ABOUT_WINDOW: u16 = 1 << 15;
    /// A retransmission (for traces; receivers do not look).
    pub(crate) const RETRANSMIT: u16 = 1 << 8;
    /// Of a transport that understands marks (RFC 3168 section 5, ECT).
    pub(crate) const ECT: u16 = 1 << 10;
    /// Marked by a queue (RFC 3168 section 5, CE).
    pub(crate) const CE: u16 = 1 << 11;
    /// Reports a mark (RFC 3168 section 6.1, ECE).
    pub(crate) const ECE: u16 = 1 << 12;
    /// Answers a report: the window has been reduced (RFC 3168 section 6.1, CWR).
    pub(crate) const CWR: u16 = 1 << 13;
    /// Carries a [`Signal`](crate::signal::Signal) in `data_seq`.
    pub(crate) const SIGNAL: u16 = 1 << 14;
    /// A packet with any of these is not a plain segment or acknowledgement.
    pub(crate) const RARE: u16 = SYN | MP_JOIN | CE | ECE | CWR | SIGNAL | ABOUT_WINDOW;
}

/// No SACK blocks.
pub(crate) const NO_SACK: u32 = u32::MAX;

/// A packet. Sequence numbers count segments, modulo 2^32, from 0 for the first segment with payload:
/// segments are cut once and never change, so their number says as much as their bytes would.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Position in the table of routes: the hop that it is on.
    pub(crate) route: u32,
    /// Number of this segment.
    pub(crate) seq: u32,
    /// Number of the next segment expected.
    pub(crate) ack: u32,
    /// Number of the data-level segment that is carried (RFC 8684 data sequence mapping).
    pub(crate) data_seq: u32,
    /// Next data-level segment expected.
    pub(crate) data_ack: u32,
    /// Receive window in bytes from the (data) acknowledgement on.
    pub(crate) wnd: u32,
    /// Sender's clock in microseconds (RFC 7323 TSval).
    pub(crate) tsval: u32,
    /// Echo of the peer's clock (RFC 7323 TSecr).
    pub(crate) tsecr: u32,
    /// Index of SACK blocks, or [`NO_SACK`].
    pub(crate) sack: u32,
    /// Size on the wire.
    pub(crate) bytes: u16,
    /// Control bits.
    pub(crate) flags: u16,
}

impl Frame for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }

    /// Every subflow and direction has a route of its own, and on one link every packet of it is at the same place.
    fn flow(&self) -> u64 {
        u64::from(self.route)
    }

    #[inline]
    fn is_ecn_capable(&self) -> bool {
        self.has(flags::ECT)
    }

    #[inline]
    fn mark(&mut self) {
        self.flags |= flags::CE;
    }
}

impl Packet {
    /// Whether all these bits are set.
    #[inline]
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// At most this many SACK blocks fit beside a timestamp (RFC 2018 section 3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;

/// SACK blocks of one acknowledgement: `[from, to)` in segment numbers, newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlocks {
    pub(crate) blocks: [(u32, u32); MAX_SACK_BLOCKS],
    pub(crate) len: u8,
}

impl SackBlocks {
    /// The blocks.
    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// SACK blocks of the packets in flight.
#[derive(Default)]
pub(crate) struct SackPool {
    slots: Vec<SackBlocks>,
    free: Vec<u32>,
}

impl SackPool {
    /// Keeps blocks until [`SackPool::take`].
    pub(crate) fn put(&mut self, blocks: SackBlocks) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = blocks;
                index
            }
            None => {
                self.slots.push(blocks);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// The blocks of a packet in flight.
    pub(crate) fn peek(&self, index: u32) -> SackBlocks {
        self.slots[index as usize]
    }

    /// Blocks that have been put and not taken.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes the blocks of a packet that has arrived or is lost.
    pub(crate) fn take(&mut self, index: u32) -> SackBlocks {
        if index == NO_SACK {
            return SackBlocks::default();
        }
        self.free.push(index);
        self.slots[index as usize]
    }
}

/// The full number whose low 32 bits are `low` and that is nearest to `near`.
#[inline]
pub(crate) fn unwrap(low: u32, near: u64) -> u64 {
    near.wrapping_add(low.wrapping_sub(near as u32) as i32 as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_forty_bytes() {
        assert_eq!(size_of::<Packet>(), 40);
    }

    #[test]
    fn numbers_unwrap_on_both_sides_of_the_wrap() {
        let near = (7 << 32) + 5;
        assert_eq!(unwrap(3, near), (7 << 32) + 3);
        assert_eq!(unwrap(9, near), (7 << 32) + 9);
        assert_eq!(unwrap(u32::MAX, near), (7 << 32) - 1);
    }

    #[test]
    fn the_pool_reuses_slots() {
        let mut pool = SackPool::default();
        let blocks = SackBlocks { blocks: [(1, 2), (0, 0), (0, 0)], len: 1 };
        let index = pool.put(blocks);
        assert_eq!(pool.take(index).as_slice(), [(1, 2)]);
        assert_eq!(pool.put(SackBlocks::default()), index);
        assert_eq!(pool.take(NO_SACK).as_slice(), []);
    }
}
