//! What endpoints make of arriving data and acknowledgements.

use anabranch_cc::{CaState, Controller, Kind};

use super::World;
use crate::{
    engine::{heads::Key, timers::TimerKind},
    packet::{MAX_SACK_BLOCKS, NO_SACK, Packet, SackBlocks, flags, unwrap},
    tcp::{
        ack::{Absorbed, Ack, Verdict},
        receiver::{Arrival, Receiver},
        sender::{Method, Sender},
    },
};

impl<K: Key> World<'_, K> {
    /// A data packet at an established endpoint.
    pub(super) fn receive_data(&mut self, index: usize, packet: Packet) {
        let now = self.now;
        let endpoint = &mut self.endpoints[index];
        let connection = &mut self.connections[endpoint.connection as usize];
        let segment = unwrap(packet.seq, endpoint.receiver.next);
        let len = packet.bytes - connection.header_bytes;
        let meta = &mut connection.sides[index & 1].receive;
        let arrival =
            endpoint.receiver.accept(segment, len, packet.data_seq, packet.tsval, |data_seq, len| {
                meta.accept(unwrap(data_seq, meta.next), len, now);
            });
        let side = &connection.sides[index & 1];
        let number = endpoint.connection as usize;
        let heeded = side.receive.delivered_bytes >= side.notify_at;
        if heeded {
            self.keep_unread(number, index & 1);
        }
        if self.endpoints[index].sender.outstanding() > 0 {
            self.receive_ack(index, packet);
            if self.is_covered(index, arrival) {
                self.finish_covered(index, packet, arrival);
                if heeded {
                    self.delivered(number, index & 1);
                }
                return;
            }
        }
        let hurries = self.endpoints[index].receiver.timing.is_some() && self.hurries(index, packet, arrival);
        let endpoint = &mut self.endpoints[index];
        let delayed = self.connections[endpoint.connection as usize].delayed_ack;
        match (arrival, delayed) {
            (Arrival::InOrder, Some(delayed))
                if endpoint.receiver.unacknowledged < delayed.every && !hurries =>
            {
                let Receiver { delayed: timer, timing, .. } = &mut endpoint.receiver;
                if !timer.is_armed() {
                    let srtt_us = endpoint.sender.rtt.srtt8_us >> 3;
                    let delay =
                        timing.as_ref().map_or(delayed.timeout, |timing| timing.delay(srtt_us, &delayed));
                    timer.arm(now + delay, &mut self.timers, TimerKind::DelayedAck, index as u32);
                }
            }
            _ => self.send_ack(index),
        }
        if heeded {
            self.delivered(number, index & 1);
        }
    }

    /// Whether data that have just left have acknowledged a segment already.
    fn is_covered(&self, index: usize, arrival: Arrival) -> bool {
        let receiver = &self.endpoints[index].receiver;
        matches!(arrival, Arrival::InOrder | Arrival::FilledGap) && receiver.unacknowledged == 0
    }

    /// What is left to do for a segment that data have acknowledged.
    #[cold]
    fn finish_covered(&mut self, index: usize, packet: Packet, arrival: Arrival) {
        if self.endpoints[index].receiver.timing.is_some() {
            self.hurries(index, packet, arrival);
        }
    }

    /// What an arriving segment means for the window and for the time of its acknowledgement: whether that leaves
    /// at once though it might wait. Linux does so for quick ones, for segments that let the window grow, and for
    /// those after which its application has read everything.
    #[inline(never)]
    fn hurries(&mut self, index: usize, packet: Packet, arrival: Arrival) -> bool {
        let (now, now_us) = (self.now, self.now_us());
        let endpoint = &mut self.endpoints[index];
        let number = endpoint.connection as usize;
        let rto_us = u32::try_from(endpoint.sender.rtt.rto() / 1000).unwrap_or(u32::MAX);
        let Some(timing) = endpoint.receiver.timing.as_deref_mut() else { return false };
        timing.sample_rtt(now_us, packet.tsecr);
        let rtt_us = timing.rtt_us();
        let connection = &mut self.connections[number];
        let window = &mut connection.sides[index & 1].window;
        let round_may_be_over = window.round_is_over(now, u64::from(rtt_us) * 1000);
        let grows = arrival != Arrival::Duplicate && window.grow();
        let mut hurries = false;
        if let Some(rule) = connection.delayed_ack.filter(|rule| rule.quick > 0) {
            let segments = window.offered.map_or(u32::MAX, |bytes| bytes / u32::from(endpoint.segment_bytes));
            match arrival {
                Arrival::InOrder | Arrival::FilledGap => timing.arrived(now_us, rto_us, segments, &rule),
                Arrival::Duplicate => timing.hurry(segments, &rule),
                Arrival::OutOfOrder => {}
            }
            hurries = grows || timing.is_quick() || packet.has(flags::PUSH);
        }
        if round_may_be_over {
            self.end_round(number, index & 1);
        }
        hurries
    }

    /// Ends the round trip that the window of a side is measured by, if it is over on the slowest subflow.
    fn end_round(&mut self, number: usize, side: usize) {
        let now = self.now;
        let connection = &mut self.connections[number];
        let rtts_us = connection
            .endpoints(side)
            .filter_map(|index| self.endpoints[index].receiver.timing.as_ref().map(|timing| timing.rtt_us()));
        let slowest_us = rtts_us.max().unwrap_or(0);
        let side = &mut connection.sides[side];
        if side.window.round_is_over(now, u64::from(slowest_us) * 1000) {
            side.window.end_round(now, side.receive.delivered_bytes - side.window.unread());
        }
    }

    /// The timer of a delayed acknowledgement has expired.
    pub(super) fn delayed_acknowledgement(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        if let Some(timing) = &mut endpoint.receiver.timing {
            timing.expired(u32::try_from(endpoint.sender.rtt.rto() / 1000).unwrap_or(u32::MAX));
        }
        self.send_ack(index);
    }

    /// An acknowledgement at an established endpoint.
    #[inline]
    pub(super) fn receive_ack(&mut self, index: usize, packet: Packet) {
        let now = self.now;
        let now_us = self.now_us();
        let endpoint = &mut self.endpoints[index];
        let number = unwrap(packet.ack, endpoint.sender.una);
        assert!(number <= endpoint.sender.next, "an acknowledgement of what was never sent");
        let ranges;
        let sacks = if packet.sack == NO_SACK {
            &[]
        } else {
            let blocks = self.net.sacks.take(packet.sack);
            ranges = ranges_of(&blocks, endpoint.sender.una);
            &ranges[..usize::from(blocks.len)]
        };
        if packet.flags & (flags::DATA | flags::ABOUT_WINDOW) == 0 {
            endpoint.receiver.note_timestamp(packet.tsval);
        }
        // RFC 8684 section 3.4: a packet that signals something is no duplicate acknowledgement.
        let pure = packet.flags & (flags::DATA | flags::ABOUT_WINDOW | flags::SIGNAL) == 0;
        let ack = Ack { number, sacks, pure, echo_us: packet.tsecr, now_us };
        let mut absorbed = endpoint.sender.absorb(&ack);
        (absorbed.tsval_us, absorbed.tsecr_us) = (packet.tsval, packet.tsecr);
        absorbed.stamped = true;

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
                if matches!(sender.state, CaState::Recovery | CaState::Cwr) {
                    self.reduce(index, absorbed);
                }
            }
            verdict => self.follow(index, verdict, absorbed),
        }
    }

    #[inline(never)]
    fn follow(&mut self, index: usize, verdict: Verdict, absorbed: &mut Absorbed) {
        match verdict {
            Verdict::Continue => {}
            Verdict::Enter | Verdict::StartOver => {
                let sender = &self.endpoints[index].sender;
                // A mark of this window of data has reduced it already (RFC 3168 section 6.1.2).
                let ssthresh = match sender.state {
                    CaState::Cwr => sender.ssthresh,
                    _ => self.congestion(index, absorbed, None, Controller::loss),
                };
                self.endpoints[index].ecn.reduced();
                let stays = if verdict == Verdict::StartOver {
                    self.endpoints[index].sender.start_over(ssthresh);
                    self.congestion(index, absorbed, None, Controller::rto);
                    false
                } else {
                    self.change_state(index, |sender| sender.enter_recovery(ssthresh))
                };
                let sender = &mut self.endpoints[index].sender;
                // The retransmission needs a round trip of its own, as ns-2 and Linux allow it; RFC 6298 is
                // silent, and a steady RTT would else time out just before its acknowledgement.
                sender.restart_timer(self.now, &mut self.timers, index as u32);
                if !stays {
                    sender.reduce_window(absorbed);
                }
            }
            Verdict::Undo => {
                let window = self.congestion(index, absorbed, None, Controller::undo);
                self.endpoints[index].sender.undo(window);
                self.recover(index, absorbed);
            }
            Verdict::Repaired if self.endpoints[index].sender.state == CaState::Cwr => {
                self.reduce(index, absorbed);
            }
            Verdict::Repaired => {
                self.endpoints[index].ecn.reduced();
                let ssthresh = self.congestion(index, absorbed, None, Controller::loss);
                if !self.change_state(index, |sender| sender.note_repaired(ssthresh)) {
                    self.congestion(index, absorbed, None, Controller::recovery_exit);
                }
            }
            Verdict::Leave => {
                let was = self.endpoints[index].sender.state;
                let stays = self.change_state(index, Sender::leave_recovery);
                if was == CaState::Recovery && !stays {
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
                self.rate(index, absorbed, rtt_us);
            }
        }
    }

    #[inline]
    fn acknowledge_data(&mut self, index: usize, packet: Packet, absorbed: &Absorbed) {
        if packet.has(flags::DATA_ACK) {
            self.acknowledge_at_data_level(index, packet);
            return;
        }
        let endpoint = &self.endpoints[index];
        // One that has been overtaken counts its window from what it acknowledges, which lies behind.
        if packet.ack == endpoint.sender.una as u32 {
            let window = packet.has(flags::WINDOW).then_some(packet.wnd);
            let meta = &mut self.connections[endpoint.connection as usize].sides[index & 1].send;
            meta.acknowledged_bytes(u64::from(absorbed.acked), absorbed.acked_bytes, window);
        }
    }

    /// Takes a data acknowledgement into account, whichever subflow carries it (RFC 8684 section 3.3.2).
    #[inline]
    pub(super) fn acknowledge_at_data_level(&mut self, index: usize, packet: Packet) {
        let number = self.endpoints[index].connection as usize;
        let connection = &mut self.connections[number];
        let window = packet.has(flags::WINDOW).then_some(packet.wnd);
        let meta = &connection.sides[index & 1].send;
        let data_ack = unwrap(packet.data_ack, meta.una);
        if data_ack >= meta.una {
            if data_ack > meta.una
                && let Some(watchdog) = connection.sides[index & 1].watchdog()
            {
                watchdog.progress_at = self.now;
            }
            connection.sides[index & 1].send.acknowledged(data_ack, window);
        }
        // RFC 8684 section 3.1: the connection is fully established by the first data acknowledgement.
        if !connection.joining && data_ack > 0 {
            self.open_joins(number);
        }
    }
}

/// SACK blocks as ranges of segments, which are near `una`.
fn ranges_of(blocks: &SackBlocks, una: u64) -> [(u64, u64); MAX_SACK_BLOCKS] {
    blocks.blocks.map(|(from, to)| {
        let first = unwrap(from, una);
        (first, first + u64::from(to.wrapping_sub(from)))
    })
}
