//! Opening connections and subflows: the TCP handshake, MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1, 3.2).
//!
//! Left out: keys, tokens and HMACs (no attacker is simulated), fallback by middleboxes, and simultaneous
//! open.

use anabranch_scenario::model::Join;

use super::{Phase, World};
use crate::{
    engine::heads::Key,
    packet::{Packet, flags},
};

impl<K: Key> World<'_, K> {
    /// The application opens its connection.
    pub(super) fn open(&mut self, connection: usize) {
        self.connections[connection].opened_at = self.now;
        let first = self.connections[connection].first as usize;
        self.open_subflow(first);
        if self.connections[connection].join == Join::Immediately {
            self.open_joins(connection);
        }
    }

    /// The further subflows of a connection are opened.
    pub(super) fn open_joins(&mut self, connection: usize) {
        if std::mem::replace(&mut self.connections[connection].joining, true) {
            return;
        }
        for index in self.connections[connection].endpoints(0).skip(1) {
            self.open_subflow(index);
        }
    }

    fn open_subflow(&mut self, index: usize) {
        self.endpoints[index].phase = Phase::SynSent;
        self.send_bare(index, flags::SYN | self.option(index));
        self.arm_handshake(index);
    }

    fn option(&self, index: usize) -> u16 {
        let endpoint = &self.endpoints[index];
        match (self.connections[endpoint.connection as usize].is_mptcp(), endpoint.subflow) {
            (false, _) => 0,
            (true, 0) => flags::MP_CAPABLE,
            (true, _) => flags::MP_JOIN,
        }
    }

    fn arm_handshake(&mut self, index: usize) {
        let sender = &mut self.endpoints[index].sender;
        sender.restart_timer(self.now, &mut self.timers, index as u32);
    }

    /// The timer of an endpoint in its handshake has expired: it repeats its last packet. Only those have a timer
    /// whose peer might wait for ever otherwise: openers, and acceptors that may have to send first.
    pub(super) fn repeat_handshake(&mut self, index: usize) {
        let option = self.option(index);
        let flags = match self.endpoints[index].phase {
            Phase::SynSent => flags::SYN | option,
            Phase::PreEstablished => flags::ACK | option,
            Phase::SynReceived => flags::SYN | flags::ACK | option,
            Phase::Closed | Phase::Established => return,
        };
        self.endpoints[index].sender.rtt.back_off();
        self.send_bare(index, flags);
        self.arm_handshake(index);
    }

    /// A packet that is part of a handshake, or that finds one unfinished.
    pub(super) fn receive_handshake(&mut self, index: usize, packet: Packet) {
        if packet.has(flags::ABOUT_WINDOW) {
            if self.endpoints[index].phase == Phase::Established {
                self.receive_about_window(index, packet);
            }
            return;
        }
        let option = self.option(index);
        let opener = index & 1 == 0;
        let phase = self.endpoints[index].phase;
        match (phase, packet.has(flags::SYN), packet.has(flags::ACK)) {
            (Phase::Closed | Phase::SynReceived, true, false) => {
                self.endpoints[index].phase = Phase::SynReceived;
                self.note_timestamp(index, packet);
                self.send_bare(index, flags::SYN | flags::ACK | option);
                if self.repeats_answer(index) {
                    self.arm_handshake(index);
                }
            }
            (Phase::SynSent, true, true) => self.complete_opening(index, packet, option),
            // The third packet of the handshake was lost, or the fourth (RFC 8684 section 3.2).
            (Phase::PreEstablished | Phase::Established, true, true) if opener => {
                self.send_bare(index, flags::ACK | option);
            }
            (Phase::SynReceived, false, true) => {
                let rtt_us = self.now_us().wrapping_sub(packet.tsecr);
                self.endpoints[index].sender.rtt.sample(rtt_us);
                self.establish(index, packet);
                if packet.has(flags::DATA) {
                    self.receive_data(index, packet);
                } else if packet.has(flags::MP_JOIN) {
                    self.send_ack(index);
                }
                self.push_waiting(index);
            }
            // The third packet again: the fourth was lost.
            (Phase::Established, false, true) => self.send_ack(index),
            (Phase::PreEstablished, false, true) => {
                self.establish(index, packet);
                self.push(index);
                if packet.has(flags::DATA) {
                    self.receive_data(index, packet);
                }
            }
            _ => {
                self.net.sacks.take(packet.sack);
            }
        }
    }

    fn complete_opening(&mut self, index: usize, packet: Packet, option: u16) {
        let rtt_us = self.now_us().wrapping_sub(packet.tsecr);
        self.endpoints[index].sender.rtt.sample(rtt_us);
        self.endpoints[index].sender.timer.disarm();
        self.note_timestamp(index, packet);
        if option == flags::MP_JOIN {
            self.endpoints[index].phase = Phase::PreEstablished;
            self.send_bare(index, flags::ACK | option);
            self.arm_handshake(index);
        } else {
            self.send_bare(index, flags::ACK | option);
            self.establish(index, packet);
            self.push(index);
        }
    }

    fn establish(&mut self, index: usize, packet: Packet) {
        let endpoint = &mut self.endpoints[index];
        endpoint.phase = Phase::Established;
        endpoint.sender.timer.disarm();
        endpoint.sender.rtt.end_back_off();
        let window = packet.has(flags::WINDOW).then_some(packet.wnd);
        self.connections[endpoint.connection as usize].sides[index & 1].send.open_window(window);
        self.begin_congestion_control(index);
        self.opened(index);
    }

    /// Whether an accepting endpoint repeats its answer to a SYN. One that waits for data need not: they do for a lost
    /// third packet, and the opener of a join repeats that one (RFC 8684 section 3.2).
    pub(super) fn repeats_answer(&self, index: usize) -> bool {
        let endpoint = &self.endpoints[index];
        self.connections[endpoint.connection as usize].acceptor_speaks_first && endpoint.subflow == 0
    }

    fn note_timestamp(&mut self, index: usize, packet: Packet) {
        self.endpoints[index].receiver.note_timestamp(packet.tsval);
    }
}
