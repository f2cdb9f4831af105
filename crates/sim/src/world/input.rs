//! What endpoints make of arriving data and acknowledgements.

use anabranch_cc::{CaState, Controller, Kind};

use super::World;
use crate::{
    engine::{heads::Key, timers::TimerKind},
    packet::{MAX_SACK_BLOCKS, Packet, flags, unwrap},
    tcp::{
        ack::{Absorbed, Ack, Verdict},
        receiver::Arrival,
        sender::Method,
    },
};

impl<K: Key> World<'_, K> {
    /// A data packet at an established endpoint.
    pub(super) fn receive_data(&mut self, index: usize, packet: Packet) {
        let now = self.now;
        let endpoint = &mut self.endpoints[index];
        let connection = &mut self.connections[endpoint.connection as usize];
        let number = unwrap(packet.seq, endpoint.receiver.next);
        let len = packet.bytes - connection.header_bytes;
        let meta = &mut connection.sides[index & 1].receive;
        let arrival =
            endpoint.receiver.accept(number, len, packet.data_seq, packet.tsval, |data_seq, len| {
                meta.accept(unwrap(data_seq, meta.next), len);
            });
        if let Some(bytes) = connection.file_bytes
            && connection.completed_at.is_none()
            && connection.sides[index & 1].receive.delivered_bytes == bytes
        {
            connection.completed_at = Some(now);
        }
        if endpoint.sender.outstanding() > 0 {
            self.receive_ack(index, packet);
        }
        let endpoint = &mut self.endpoints[index];
        let delayed = self.connections[endpoint.connection as usize].delayed_ack;
        match (arrival, delayed) {
            (Arrival::InOrder, Some(delayed)) if endpoint.receiver.unacknowledged < delayed.every => {
                if !endpoint.receiver.delayed.is_armed() {
                    let deadline = now + delayed.timeout;
                    let timer = &mut endpoint.receiver.delayed;
                    timer.arm(deadline, &mut self.timers, TimerKind::DelayedAck, index as u32);
                }
            }
            _ => self.send_ack(index),
        }
    }

    /// An acknowledgement at an established endpoint.
    #[inline]
    pub(super) fn receive_ack(&mut self, index: usize, packet: Packet) {
        let now = self.now;
        let now_us = self.now_us();
        let endpoint = &mut self.endpoints[index];
        let number = unwrap(packet.ack, endpoint.sender.una);
        assert!(number <= endpoint.sender.next, "an acknowledgement of what was never sent");
        let mut ranges = [(0, 0); MAX_SACK_BLOCKS];
        let blocks = self.net.sacks.take(packet.sack);
        for (range, &(from, to)) in ranges.iter_mut().zip(blocks.as_slice()) {
            let from = unwrap(from, endpoint.sender.una);
            *range = (from, from + u64::from(to.wrapping_sub((from) as u32)));
        }
        let sacks = &ranges[..usize::from(blocks.len)];
        let pure = !packet.has(flags::DATA);
        let ack = Ack { number, sacks, pure, echo_us: packet.tsecr, now_us };
        let mut absorbed = endpoint.sender.absorb(&ack);
        absorbed.owd_us = packet.tsval.wrapping_sub(packet.tsecr);
        absorbed.owd_valid = true;

        // RFC 7323 section 4.1: only an acknowledgement of new data gives a sample.
        let rtt_us = (absorbed.acked > 0).then(|| now_us.wrapping_sub(packet.tsecr));
        if let Some(rtt_us) = rtt_us {
            endpoint.sender.rtt.sample(rtt_us);
            if endpoint.controller.handles_rtt_sample() {
                self.congestion(index, &absorbed, Some(rtt_us), Controller::rtt_sample);
            }
        }
        self.recover(index, &mut absorbed);
        self.grow(index, &absorbed, rtt_us);

        let endpoint = &mut self.endpoints[index];
        let sender = &mut endpoint.sender;
        if absorbed.acked > 0 {
            endpoint.last_ack_us = now_us;
            if sender.outstanding() == 0 {
                sender.timer.disarm();
            } else if sender.restarts_timer() {
                sender.restart_timer(now, &mut self.timers, index as u32);
            }
            if let Method::Rack(rack) = &mut sender.method {
                rack.probe.restart(now);
            }
        }
        self.acknowledge_data(index, packet, &absorbed);
        self.push(index);
        self.time_by_rack(index);
    }

    /// Does what recovery makes of an acknowledgement, or of the end of a reordering window.
    #[inline(always)]
    pub(super) fn recover(&mut self, index: usize, absorbed: &mut Absorbed) {
        let sender = &mut self.endpoints[index].sender;
        match sender.judge(absorbed, self.now) {
            Verdict::Continue => {
                if sender.state == CaState::Recovery {
                    sender.reduce_window(absorbed);
                }
            }
            verdict => self.follow(index, verdict, absorbed),
        }
    }

    #[inline(never)]
    fn follow(&mut self, index: usize, verdict: Verdict, absorbed: &mut Absorbed) {
        match verdict {
            Verdict::Continue => {}
            Verdict::Enter => {
                let ssthresh = self.congestion(index, absorbed, None, Controller::loss);
                let sender = &mut self.endpoints[index].sender;
                sender.enter_recovery(ssthresh);
                // The retransmission needs a round trip of its own, as ns-2 and Linux allow it; RFC 6298 is
                // silent, and a steady RTT would else time out just before its acknowledgement.
                sender.restart_timer(self.now, &mut self.timers, index as u32);
                sender.reduce_window(absorbed);
            }
            Verdict::Undo => {
                let window = self.congestion(index, absorbed, None, Controller::undo);
                self.endpoints[index].sender.undo(window);
                self.recover(index, absorbed);
            }
            Verdict::Repaired => {
                let ssthresh = self.congestion(index, absorbed, None, Controller::loss);
                self.endpoints[index].sender.note_repaired(ssthresh);
                self.congestion(index, absorbed, None, Controller::recovery_exit);
            }
            Verdict::Leave => {
                let was = self.endpoints[index].sender.state;
                self.endpoints[index].sender.leave_recovery();
                if was == CaState::Recovery {
                    self.congestion(index, absorbed, None, Controller::recovery_exit);
                }
                // What was sent in this recovery may be known to be lost: that is the next one.
                if let Method::Rack(_) = self.endpoints[index].sender.method {
                    self.recover(index, absorbed);
                }
            }
        }
    }

    #[inline]
    fn grow(&mut self, index: usize, absorbed: &Absorbed, rtt_us: Option<u32>) {
        let endpoint = &self.endpoints[index];
        match endpoint.controller.kind() {
            Kind::Window if absorbed.acked > 0 && endpoint.sender.may_grow() => {
                self.congestion(index, absorbed, rtt_us, Controller::ack);
            }
            Kind::Window => {}
            Kind::Rate => {
                self.congestion(index, absorbed, rtt_us, Controller::rate);
            }
        }
    }

    #[inline]
    fn acknowledge_data(&mut self, index: usize, packet: Packet, absorbed: &Absorbed) {
        let window = packet.has(flags::WINDOW).then_some(packet.wnd);
        let endpoint = &self.endpoints[index];
        let number = endpoint.connection as usize;
        let connection = &mut self.connections[number];
        let meta = &mut connection.sides[index & 1].send;
        if !packet.has(flags::DATA_ACK) {
            meta.acknowledged_bytes(u64::from(absorbed.acked), absorbed.acked_bytes, window);
            return;
        }
        let data_ack = unwrap(packet.data_ack, meta.una);
        if data_ack >= meta.una {
            meta.acknowledged(data_ack, window);
        }
        // RFC 8684 section 3.1: the connection is fully established by the first data acknowledgement.
        if !connection.joining && data_ack > 0 {
            self.open_joins(number);
        }
    }
}
