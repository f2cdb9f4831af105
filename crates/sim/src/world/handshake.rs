//! Opening connections and subflows: the TCP handshake, MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1, 3.2), and what
//! happens when a middlebox has removed these options: the connection falls back to TCP, or the join fails (section
//! 3.7).
//!
//! Left out: keys, tokens and HMACs (no attacker is simulated), simultaneous open, and fallback when options vanish
//! later on (MP_FAIL and the infinite mapping): a middlebox here removes them from the first packet on. A connection
//! that has fallen back keeps the size of its packets.

use anabranch_scenario::model::{Join, Protocol};

use super::{Phase, World};
use crate::{
    engine::heads::Key,
    packet::{Packet, flags, unwrap},
    signal::Signal,
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

    /// The further subflows of a connection are opened, but for those that wait for something.
    pub(super) fn open_joins(&mut self, connection: usize) {
        if std::mem::replace(&mut self.connections[connection].joining, true) {
            return;
        }
        if self.connections[connection].manager.is_some() {
            self.call_manager(connection);
            return;
        }
        for (subflow, index) in self.connections[connection].endpoints(0).enumerate().skip(1) {
            if self.connections[connection].deferred & 1 << subflow == 0 {
                self.open_subflow(index);
            }
        }
    }

    pub(super) fn open_subflow(&mut self, index: usize) {
        self.endpoints[index].phase = Phase::SynSent;
        self.send_syn(index);
        self.arm_handshake(index);
    }

    fn send_syn(&mut self, index: usize) {
        let offer = self.endpoints[index].ecn.offer();
        self.send_bare(index, flags::SYN | self.option(index) | offer);
    }

    /// The option that the handshake of a subflow carries; the first one joins too when it is opened again.
    fn option(&self, index: usize) -> u16 {
        let endpoint = &self.endpoints[index];
        let first = endpoint.subflow == 0 && endpoint.life.ended == 0;
        match (self.connections[endpoint.connection as usize].is_mptcp(), first) {
            (false, _) => 0,
            (true, true) => flags::MP_CAPABLE,
            (true, false) => flags::MP_JOIN,
        }
    }

    pub(super) fn arm_handshake(&mut self, index: usize) {
        let sender = &mut self.endpoints[index].sender;
        sender.restart_timer(self.now, &mut self.timers, index as u32);
    }

    /// The timer of an endpoint in its handshake has expired: it repeats its last packet. Only those have a timer
    /// whose peer might wait for ever otherwise: openers, and acceptors that may have to send first. That of a closed
    /// one may be the timer of its announcement.
    pub(super) fn repeat_handshake(&mut self, index: usize) {
        let (phase, announces) = (self.endpoints[index].phase, self.endpoints[index].life.announces);
        if phase == Phase::Established || phase == Phase::Closed && !announces {
            return;
        }
        self.endpoints[index].sender.rtt.back_off();
        match phase {
            Phase::SynSent => self.send_syn(index),
            Phase::PreEstablished => self.send_bare(index, flags::ACK | self.option(index)),
            Phase::SynReceived => self.send_answer(index),
            Phase::Closed | Phase::Established => return self.announce(index),
        }
        self.arm_handshake(index);
    }

    /// A packet that is part of a handshake, or that finds one unfinished.
    pub(super) fn receive_handshake(&mut self, index: usize, packet: Packet) {
        let opener = index & 1 == 0;
        if packet.has(flags::SYN) && !packet.has(flags::ACK) && !opener {
            self.receive_syn(index, packet);
            return;
        }
        let option = self.option(index);
        let endpoint = &self.endpoints[index];
        let phase = endpoint.phase;
        // What answers packets of a subflow that has ended does not open the next one.
        let answers = unwrap(packet.ack, endpoint.sender.una) >= endpoint.sender.una;
        match (phase, packet.has(flags::SYN), packet.has(flags::ACK)) {
            (Phase::SynSent, true, true) if answers => self.complete_opening(index, packet, option),
            // The third packet of the handshake was lost, or the fourth (RFC 8684 section 3.2).
            (Phase::PreEstablished | Phase::Established, true, true) if opener => {
                // The answer's second copy is what the peer measures by (RFC 7323 section 4.3).
                self.endpoints[index].receiver.note_timestamp(packet.tsval);
                self.send_bare(index, flags::ACK | option);
            }
            (Phase::SynReceived, false, true) if answers => {
                let rtt_us = self.now_us().wrapping_sub(packet.tsecr);
                self.endpoints[index].sender.rtt.sample(rtt_us);
                self.establish(index, packet);
                if packet.has(flags::DATA) {
                    self.receive_marked(index, packet);
                } else if packet.has(flags::MP_JOIN) {
                    self.send_ack(index);
                }
                self.push_waiting(index);
            }
            // The third packet again: the fourth was lost. Its sender may hold data out of order by now.
            (Phase::Established, false, true) => {
                self.net.sacks.take(packet.sack);
                self.send_ack(index);
            }
            (Phase::PreEstablished, false, true) if answers => {
                self.establish(index, packet);
                self.push(index);
                if packet.has(flags::DATA) {
                    self.receive_marked(index, packet);
                }
            }
            _ => {
                self.net.sacks.take(packet.sack);
                let life = self.endpoints[index].life;
                if phase == Phase::Closed && life.ended > 0 && !life.absent {
                    self.send_signal(index, Signal::Reset);
                }
            }
        }
    }

    /// The first packet of a handshake.
    fn receive_syn(&mut self, index: usize, packet: Packet) {
        let endpoint = &self.endpoints[index];
        let number = endpoint.connection as usize;
        let first_seq = unwrap(packet.seq, endpoint.receiver.next);
        if first_seq > endpoint.receiver.next {
            // The peer has ended the subflow, which may not have been heard of here, and opens it again.
            self.end_subflow(index);
            self.endpoints[index].receiver.restart(first_seq);
        } else if !matches!(endpoint.phase, Phase::Closed | Phase::SynReceived) {
            return;
        }
        if self.option(index) == flags::MP_CAPABLE && !packet.has(flags::MP_CAPABLE) {
            self.fall_back(number);
        }
        if self.option(index) == flags::MP_JOIN && !packet.has(flags::MP_JOIN) {
            // A host takes it for a connection of its own; the opener will see the difference.
            self.send_bare(index, flags::SYN | flags::ACK);
            return;
        }
        self.end_announcement(index);
        // MP_JOIN carries the bit B (RFC 8684 section 3.2).
        let backup = self.endpoints[index ^ 1].backup;
        let endpoint = &mut self.endpoints[index];
        endpoint.backup = backup;
        endpoint.phase = Phase::SynReceived;
        endpoint.receiver.note_timestamp(packet.tsval);
        endpoint.ecn.offered(packet.flags);
        self.send_answer(index);
        if self.repeats_answer(index) {
            self.arm_handshake(index);
        }
    }

    fn send_answer(&mut self, index: usize) {
        let answer = self.endpoints[index].ecn.answer();
        self.send_bare(index, flags::SYN | flags::ACK | self.option(index) | answer);
    }

    fn complete_opening(&mut self, index: usize, packet: Packet, option: u16) {
        let number = self.endpoints[index].connection as usize;
        if option == flags::MP_JOIN && !packet.has(flags::MP_JOIN) {
            self.connections[number].joins_refused += 1;
            self.end_subflow(index);
            self.send_signal(index, Signal::Reset);
            return;
        }
        let mut option = option;
        if option == flags::MP_CAPABLE && !packet.has(flags::MP_CAPABLE) {
            self.fall_back(number);
            option = 0;
        }
        let rtt_us = self.now_us().wrapping_sub(packet.tsecr);
        let endpoint = &mut self.endpoints[index];
        endpoint.sender.rtt.sample(rtt_us);
        endpoint.sender.timer.disarm();
        endpoint.ecn.answered(packet.flags);
        let first_seq = unwrap(packet.seq, endpoint.receiver.next);
        if first_seq != endpoint.receiver.next {
            endpoint.receiver.restart(first_seq);
        }
        endpoint.receiver.note_timestamp(packet.tsval);
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
        let (number, first) =
            (endpoint.connection as usize, endpoint.subflow == 0 && endpoint.life.ended == 0);
        let window = packet.has(flags::WINDOW).then_some(packet.wnd);
        self.connections[number].sides[index & 1].send.open_window(window);
        // The third packet of a join has no room for it (RFC 8684 section 3.2), the fourth tells of other subflows' data.
        if packet.has(flags::DATA_ACK) && !packet.has(flags::MP_JOIN) {
            self.acknowledge_at_data_level(index, packet);
        }
        self.begin_congestion_control(index);
        if first && index & 1 == 1 && self.connections[number].is_mptcp() {
            self.announce_all(number);
        }
        self.opened(index);
        self.call_manager(number);
    }

    /// Whether an accepting endpoint repeats its answer to a SYN. One that waits for data need not: they do for a lost
    /// third packet, and the opener of a join repeats that one (RFC 8684 section 3.2).
    pub(super) fn repeats_answer(&self, index: usize) -> bool {
        let endpoint = &self.endpoints[index];
        let first = endpoint.subflow == 0 && endpoint.life.ended == 0;
        first && self.connections[endpoint.connection as usize].acceptor_speaks_first
    }

    /// The side that was connected to has addresses of which the other side does not know.
    fn announce_all(&mut self, number: usize) {
        let model = &self.scenario.connections[number];
        let endpoints = self.connections[number].endpoints(1);
        for (at, (subflow, index)) in model.subflows.iter().zip(endpoints).enumerate() {
            let is_first =
                self.connections[number].manager.as_ref().is_none_or(|of| of.is_first_of_address(at));
            if subflow.announced && is_first && self.endpoints[index].phase == Phase::Closed {
                self.announce(index);
            }
        }
    }

    /// The peer does not speak MPTCP, or a middlebox has made it seem so: the connection is TCP from now on (section
    /// 3.7). Both ends are switched at once: the other one learns of it with the next packet, and sends nothing before.
    fn fall_back(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.protocol = Protocol::Tcp;
        connection.is_plain = connection.fed_by.is_none();
        connection.fell_back = true;
        for side in &mut connection.sides {
            side.send.fall_back();
        }
    }
}
