//! How subflows end and begin again while a connection goes on, by events of the scenario or because the peer says so
//! (RFC 8684 sections 3.3.8, 3.4 and 3.6).
//!
//! A subflow that is opened again is a new one, with a window and an estimate of the round-trip time of its own; only its
//! counters go on. Its numbers go on too, with one left out, so that packets of before can be told from those of now as
//! a port of its own tells them in TCP.
//!
//! Left out: closing with FIN, which waits for what is under way; the keepalive by which a receiver of REMOVE_ADDR first
//! looks whether the path is really gone (section 3.4.2); and the end of a connection that has lost its last subflow: its
//! data waits for the next one. A reset, MP_PRIO and REMOVE_ADDR are sent once and may be lost, as RFC 8684 has no answer
//! to them: an end that has not heard of a reset is reset again when it sends something.

use anabranch_scenario::model::Action;

use super::{Phase, Side, World, build};
use crate::{
    engine::heads::Key,
    packet::{Packet, unwrap},
    signal::Signal,
};

impl<K: Key> World<'_, K> {
    /// An event of the scenario.
    pub(super) fn carry_out(&mut self, event: usize) {
        let event = self.scenario.events[event];
        let connection = &self.connections[event.connection];
        let index = connection.first as usize + 2 * event.subflow;
        let closed = self.endpoints[index].phase == Phase::Closed;
        // Until a second subflow may join, the first is the connection.
        let bound = event.subflow == 0 && !connection.joining;
        match event.action {
            _ if !connection.is_mptcp() => {}
            Action::Open => self.open_again(event.connection, event.subflow),
            Action::Close if closed || bound => {}
            Action::Close => {
                self.end_subflow(index);
                self.send_signal(index, Signal::Reset);
            }
            Action::Remove if bound => {}
            Action::Remove => self.remove_address(index),
            Action::Backup => self.set_priority(index, true),
            Action::Regular => self.set_priority(index, false),
        }
    }

    /// Opens a subflow that is closed, if the connection has come that far; else it is opened with the others.
    pub(super) fn open_again(&mut self, number: usize, subflow: usize) {
        let connection = &mut self.connections[number];
        connection.deferred &= !(1 << subflow);
        let index = connection.first as usize + 2 * subflow;
        let endpoint = &mut self.endpoints[index];
        endpoint.life.absent = false;
        if connection.joining && endpoint.phase == Phase::Closed {
            self.open_subflow(index);
        }
    }

    /// One end of a subflow is no more: what it has under way is for the others, and what it has learnt is forgotten.
    pub(super) fn end_subflow(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        let (number, subflow) = (endpoint.connection as usize, endpoint.subflow);
        let could_send = endpoint.phase == Phase::Established;
        endpoint.phase = Phase::Closed;
        let sender = &endpoint.sender;
        let Side { send: meta, mechanics, .. } = &mut self.connections[number].sides[index & 1];
        for segment in sender.una..sender.next {
            let data_seq = unwrap(sender.segments.get(segment).data_seq, meta.una);
            meta.take_back(data_seq, subflow);
        }
        if let Some(later) = mechanics.as_mut().and_then(|mechanics| mechanics.later.as_mut()) {
            later.take_back(subflow, meta);
        }
        if let Some(watchdog) = self.connections[number].sides[index & 1].watchdog() {
            watchdog.forget(subflow as usize);
        }
        if let Some(tuning) = self.connections[number].sides[index & 1].send_tuning() {
            tuning.forget(subflow as usize);
        }
        if could_send {
            self.end_congestion_control(index);
        }
        let model = &self.scenario.connections[number];
        let endpoint = &mut self.endpoints[index];
        endpoint.sender.restart(&model.transport);
        endpoint.receiver.restart(endpoint.receiver.next);
        endpoint.ecn.restart();
        endpoint.controller = build::controller(model, subflow as usize);
        if let Some(pacer) = &mut endpoint.pacer {
            pacer.restart();
        }
        endpoint.life.announces = false;
        endpoint.life.ended += 1;
        if self.connections[number].is_mptcp() {
            self.schedule(number, index & 1);
        }
        self.call_manager(number);
    }

    /// The address of a subflow is gone: it is dead at this end, and the others tell the peer.
    fn remove_address(&mut self, index: usize) {
        if self.endpoints[index].phase != Phase::Closed {
            self.end_subflow(index);
        }
        self.endpoints[index].life.absent = true;
        let (number, subflow) = (self.endpoints[index].connection as usize, self.endpoints[index].subflow);
        for other in self.connections[number].endpoints(index & 1) {
            if self.endpoints[other].phase == Phase::Established {
                self.send_signal(other, Signal::RemoveAddress(subflow));
            }
        }
    }

    /// This end makes a subflow a backup, or a regular one, and asks the peer for the same.
    pub(super) fn set_priority(&mut self, index: usize, backup: bool) {
        let endpoint = &mut self.endpoints[index];
        if std::mem::replace(&mut endpoint.backup, backup) == backup {
            return;
        }
        let number = endpoint.connection as usize;
        if endpoint.phase == Phase::Established {
            self.send_signal(index, Signal::Priority { backup });
        }
        self.schedule(number, index & 1);
    }

    /// A side announces the address that one of its endpoints has, again and again until the peer has heard it.
    pub(super) fn announce(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        endpoint.life.announces = true;
        let (number, subflow) = (endpoint.connection as usize, endpoint.subflow);
        let mut others = self.connections[number].endpoints(index & 1);
        if let Some(carrier) = others.find(|&other| self.endpoints[other].phase == Phase::Established) {
            self.send_signal(carrier, Signal::AddAddress(subflow));
        }
        self.arm_handshake(index);
    }

    /// The peer of an announcing endpoint has answered.
    pub(super) fn end_announcement(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        if std::mem::take(&mut endpoint.life.announces) {
            endpoint.sender.timer.disarm();
            endpoint.sender.rtt.end_back_off();
        }
    }

    /// A signal has come to an established endpoint; as an acknowledgement it has been taken already.
    pub(super) fn receive_signal(&mut self, index: usize, signal: Signal) {
        let number = self.endpoints[index].connection as usize;
        let side = index & 1;
        let first = self.connections[number].first as usize + side;
        match signal {
            Signal::Reset => {}
            Signal::Priority { backup } => {
                self.endpoints[index].backup = backup;
                self.schedule(number, side);
            }
            Signal::AddAddress(subflow) => {
                self.send_signal(index, Signal::AddAddressEcho(subflow));
                // A late copy must not open what has been closed since.
                if self.connections[number].manager.is_some() {
                    self.note_announcement(number, subflow as usize);
                } else if self.connections[number].deferred & 1 << subflow != 0 {
                    self.open_again(number, subflow as usize);
                }
            }
            Signal::AddAddressEcho(subflow) => self.end_announcement(first + 2 * subflow as usize),
            Signal::RemoveAddress(subflow) => {
                let gone = first + 2 * subflow as usize;
                if self.endpoints[gone].phase != Phase::Closed {
                    self.end_subflow(gone);
                }
            }
        }
    }

    /// A reset has come. It counts if it is of this subflow and not of one before it (RFC 9293 section 3.5.3).
    pub(super) fn receive_reset(&mut self, index: usize, packet: Packet) {
        let endpoint = &self.endpoints[index];
        let current = unwrap(packet.seq, endpoint.receiver.next) >= endpoint.receiver.next;
        let answers = match endpoint.phase {
            Phase::Closed => false,
            Phase::SynSent => unwrap(packet.ack, endpoint.sender.una) >= endpoint.sender.una,
            Phase::SynReceived | Phase::PreEstablished | Phase::Established => true,
        };
        if current && answers {
            self.end_subflow(index);
        }
    }
}
