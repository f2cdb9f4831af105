//! Packets for the tests of the disciplines.

use crate::{Frame, Nanos};

use super::{Discipline, Held};

pub(super) const MS: Nanos = 1_000_000;

/// A packet that knows what has been done to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tagged {
    pub(super) flow: u64,
    pub(super) number: u64,
    pub(super) bytes: u32,
    pub(super) ecn_capable: bool,
    pub(super) marked: bool,
}

impl Frame for Tagged {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

pub(super) fn packet(flow: u64, number: u64, bytes: u32) -> Tagged {
    Tagged { flow, number, bytes, ..Tagged::default() }
}

/// Offers a packet to a queue on an idle link: what was dropped.
pub(super) fn enqueue(queue: &mut dyn Discipline<Tagged>, now: Nanos, packet: Tagged) -> Vec<Tagged> {
    let mut gone = Vec::new();
    queue.enqueue(now, packet, Held::default(), &mut |packet| gone.push(packet));
    gone
}

/// Takes the next packet: it, and what was dropped on the way to it.
pub(super) fn dequeue(queue: &mut dyn Discipline<Tagged>, now: Nanos) -> (Option<Tagged>, Vec<Tagged>) {
    let mut gone = Vec::new();
    let packet = queue.dequeue(now, &mut |packet| gone.push(packet));
    (packet, gone)
}
