//! Congestion marks (RFC 3168) as endpoints send, hear and follow them; the state is in `tcp/ecn.rs`.

use anabranch_cc::{CaState, Controller};

use super::World;
use crate::{
    engine::heads::Key,
    packet::{Packet, flags, unwrap},
    tcp::{ack::Absorbed, sender::Sender},
};

impl<K: Key> World<'_, K> {
    /// A packet of an established endpoint that is marked, or speaks of marks.
    pub(super) fn receive_marked(&mut self, index: usize, packet: Packet) {
        let data = packet.has(flags::DATA);
        let hurries = data && self.endpoints[index].ecn.arrived(packet.flags);
        let delivered = self.endpoints[index].sender.delivered;
        if packet.has(flags::ECE) && self.endpoints[index].ecn.is_agreed() {
            self.endpoints[index].ecn.echoed = true;
            self.hear_echo(index, packet);
        }
        if data {
            self.receive_data(index, packet);
        } else {
            self.receive_ack(index, packet);
        }
        let endpoint = &mut self.endpoints[index];
        if std::mem::take(&mut endpoint.ecn.echoed) {
            let fresh = (endpoint.sender.delivered - delivered) as u32;
            endpoint.ecn.delivered_marked = endpoint.ecn.delivered_marked.wrapping_add(fresh);
        }
        if hurries && endpoint.receiver.delayed.is_armed() {
            self.send_ack(index);
        }
    }

    /// The peer has seen a mark: the window is reduced, once per window of data (RFC 3168 section 6.1.2). A recovery has
    /// reduced it already.
    fn hear_echo(&mut self, index: usize, packet: Packet) {
        let sender = &self.endpoints[index].sender;
        if sender.outstanding() == 0 {
            return;
        }
        if sender.state == CaState::Cwr && unwrap(packet.ack, sender.una) > sender.recover {
            self.end_reduction(index);
        }
        let sender = &self.endpoints[index].sender;
        if !matches!(sender.state, CaState::Open | CaState::Disorder) {
            return;
        }
        let absorbed = Absorbed { prior_in_flight: sender.in_flight(), ..Absorbed::default() };
        let ssthresh = self.congestion(index, &absorbed, None, Controller::loss);
        self.change_state(index, |sender| sender.begin_cwr(ssthresh));
        self.congestion(index, &absorbed, None, Controller::ecn);
        self.endpoints[index].ecn.reduced();
    }

    /// An acknowledgement has come while the window is being reduced, after a loss or after a mark.
    #[inline(never)]
    pub(super) fn reduce(&mut self, index: usize, absorbed: &Absorbed) {
        if self.endpoints[index].sender.cwr_is_over() {
            self.end_reduction(index);
        } else {
            self.change_state(index, |sender| sender.reduce_window(absorbed));
        }
    }

    /// The reduction that a mark has begun is over.
    pub(super) fn end_reduction(&mut self, index: usize) {
        if !self.change_state(index, Sender::end_cwr) {
            self.congestion(index, &Absorbed::default(), None, Controller::recovery_exit);
        }
    }
}

#[cfg(test)]
mod tests;
