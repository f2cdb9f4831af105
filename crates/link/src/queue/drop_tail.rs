//! First in, first out; a packet that finds the queue full is dropped.

use super::{Discipline, Fifo, Held};
use crate::{Frame, Limit, Nanos};

pub(super) struct DropTail<P> {
    fifo: Fifo<P>,
    limit: Limit,
}

impl<P: Frame> DropTail<P> {
    pub(super) fn new(limit: Limit) -> Self {
        Self { fifo: Fifo::new(), limit }
    }
}

impl<P: Frame> Discipline<P> for DropTail<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, sending: Held, gone: &mut dyn FnMut(P)) {
        if self.fifo.held().and(sending).leaves_no_room(self.limit, packet.bytes()) {
            gone(packet);
        } else {
            self.fifo.push(now, packet);
        }
    }

    fn dequeue(&mut self, _now: Nanos, _gone: &mut dyn FnMut(P)) -> Option<P> {
        self.fifo.pop().map(|(_, packet)| packet)
    }

    fn waiting(&self) -> Held {
        self.fifo.held()
    }

    fn clear(&mut self, gone: &mut dyn FnMut(P)) {
        self.fifo.clear(gone);
    }
}
