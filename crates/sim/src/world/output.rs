//! What endpoints send: data as windows and scheduler let it out, and acknowledgements.

use anabranch_link::Nanos;
use anabranch_policy::scheduler::{Candidate, Pick};

use super::{Connection, Endpoint, Phase, Side, World, connection::Jitter};
use crate::{
    engine::{heads::Key, timers::TimerKind},
    packet::{NO_SACK, Packet, flags},
    scheduler::Look,
    signal::Signal,
    tcp::{
        sack::Scoreboard,
        segments::Segment,
        sender::{Method, Next},
    },
};

impl<K: Key> World<'_, K> {
    /// Sends what the windows of an endpoint's connection allow, after something has changed at `index`.
    #[inline]
    pub(super) fn push(&mut self, index: usize) {
        if self.connections[self.endpoints[index].connection as usize].is_plain {
            self.push_single(index);
        } else {
            self.push_otherwise(index);
        }
    }

    /// MPTCP, and what a relay or a transfer writes to.
    #[inline(never)]
    fn push_otherwise(&mut self, index: usize) {
        let number = self.endpoints[index].connection as usize;
        self.push_alone(number, index);
        if let Some(feeder) = self.connections[number].fed_by {
            self.feed(feeder);
        }
    }

    /// Sends without asking a relay or a transfer for more.
    #[inline(always)]
    pub(super) fn push_alone(&mut self, number: usize, index: usize) {
        if self.connections[number].is_mptcp() {
            self.retransmit(index);
            self.schedule(number, index & 1);
        } else {
            self.push_fed(index);
        }
    }

    /// TCP that a relay or a transfer writes to.
    #[inline(never)]
    fn push_fed(&mut self, index: usize) {
        self.push_single(index);
    }

    /// TCP: the only subflow takes all.
    #[inline(always)]
    fn push_single(&mut self, index: usize) {
        loop {
            match self.endpoints[index].sender.next_to_send() {
                Next::Retransmit(_) if self.must_pause(index) => return,
                Next::Retransmit(number) => self.send_again(index, number),
                Next::New => {
                    let connection = self.endpoints[index].connection as usize;
                    let meta = &self.connections[connection].sides[index & 1].send;
                    let Some(len) = meta.next_len() else {
                        self.out_of_data(index);
                        return;
                    };
                    if self.must_pause(index) {
                        return;
                    }
                    let meta = &mut self.connections[connection].sides[index & 1].send;
                    let number = meta.next;
                    meta.sent(number, len, 0);
                    let last = !meta.has_more();
                    self.send_new(index, number, len, last);
                }
                Next::Wait => {
                    self.endpoints[index].sender.stopped(true);
                    return;
                }
            }
        }
    }

    /// Retransmissions of one subflow, as far as its window allows.
    fn retransmit(&mut self, index: usize) {
        while let Next::Retransmit(number) = self.endpoints[index].sender.next_to_send() {
            if self.must_pause(index) {
                return;
            }
            self.send_again(index, number);
        }
    }

    /// Whether the pacer of an endpoint that could send holds it back; it is then called when the time has come.
    #[inline]
    fn must_pause(&mut self, index: usize) -> bool {
        self.endpoints[index].pacer.is_some() && self.pauses(index)
    }

    #[cold]
    fn pauses(&mut self, index: usize) -> bool {
        let endpoint = &mut self.endpoints[index];
        let Some(pacer) = &mut endpoint.pacer else { return false };
        let Some(until) = pacer.waits_until(self.now) else { return false };
        pacer.timer.arm(until, &mut self.timers, TimerKind::Pace, index as u32);
        endpoint.sender.paused();
        true
    }

    /// MPTCP: the scheduler spreads reinjections and new data over the subflows.
    pub(super) fn schedule(&mut self, connection: usize, side: usize) {
        self.give_out(connection, side);
        if self.connections[connection].sides[side].mechanics.is_some() {
            self.attend(connection, side);
        }
        for index in self.connections[connection].endpoints(side) {
            if self.endpoints[index].phase == Phase::Established {
                let limited = self.endpoints[index].sender.next_to_send() == Next::Wait;
                if limited {
                    self.endpoints[index].sender.stopped(true);
                } else if !self.must_pause(index) {
                    self.out_of_data(index);
                }
            }
        }
    }

    /// What a side does when the scheduler has nothing to give out.
    #[inline(never)]
    fn attend(&mut self, connection: usize, side: usize) {
        if self.grow_send_buffer(connection, side) {
            self.give_out(connection, side);
        }
        if self.connections[connection].sides[side].later().is_some() {
            while self.send_queued(connection, side) {
                self.give_out(connection, side);
            }
            self.send_copies(connection, side);
        }
        if self.connections[connection].sides[side].remedy().is_some() {
            self.relieve(connection, side);
        }
        self.watch_waiting(connection, side);
    }

    /// Lets the send buffer of a side grow with the windows of its subflows; whether it has grown.
    fn grow_send_buffer(&mut self, connection: usize, side: usize) -> bool {
        let indices = self.connections[connection].endpoints(side);
        let side = &mut self.connections[connection].sides[side];
        let Some(tuning) = side.send_tuning() else { return false };
        for (subflow, index) in indices.enumerate() {
            let endpoint = &self.endpoints[index];
            if endpoint.phase == Phase::Established {
                tuning.note(subflow, endpoint.sender.cwnd);
            }
        }
        let limit = tuning.limit();
        side.send.resize_buffer(limit)
    }

    #[inline(always)]
    fn give_out(&mut self, connection: usize, side: usize) {
        let mut next = self.connections[connection].sides[side].send.candidate();
        if next.is_some() {
            self.survey(connection, side);
        }
        while let Some(segment) = next {
            self.mark_carriers(segment.carried_by);
            match self.pick(connection, side) {
                Pick::Subflow(subflow) => {
                    let index = self.connections[connection].first as usize + side + 2 * subflow;
                    let meta = &mut self.connections[connection].sides[side].send;
                    meta.sent(segment.number, segment.len, subflow as u32);
                    let (last, first) =
                        (!meta.has_more(), !segment.reinjection && segment.number == meta.una);
                    self.send_new(index, segment.number, segment.len, last);
                    if first {
                        self.watch_data(connection, side);
                    }
                    // What the others may send has not changed.
                    self.candidates[subflow] = candidate(&mut self.endpoints[index], self.now);
                }
                Pick::Queue(subflow) => {
                    self.queue(connection, side, subflow, (segment.number, segment.len));
                }
                Pick::Wait => break,
                Pick::AllCarried => self.connections[connection].sides[side].send.give_up_reinjection(),
            }
            next = self.connections[connection].sides[side].send.candidate();
        }
    }

    #[inline(always)]
    fn pick(&mut self, connection: usize, side: usize) -> Pick {
        let Self { connections, endpoints, candidates, now, .. } = self;
        let Connection { first, sides, .. } = &mut connections[connection];
        let Side { scheduler, send, mechanics, .. } = &mut sides[side];
        let look = Look {
            endpoints: &endpoints[*first as usize + side..],
            send,
            mechanics: mechanics.as_deref(),
            now: *now,
        };
        scheduler.pick(candidates, &look)
    }

    /// Sends on this subflow what is to be sent again and what waits for another one, which in the kernel has got it already,
    /// as far as its window lets it; what it has carried is left out.
    #[cold]
    pub(super) fn push_on(&mut self, connection: usize, side: usize, subflow: usize) {
        let index = self.connections[connection].first as usize + side + 2 * subflow;
        while candidate(&mut self.endpoints[index], self.now).has_room {
            let meta = &mut self.connections[connection].sides[side].send;
            let Some(segment) = meta.candidate() else { return };
            if segment.carried_by & (1 << subflow) != 0 {
                meta.give_up_reinjection();
                continue;
            }
            meta.sent(segment.number, segment.len, subflow as u32);
            let last = !meta.has_more();
            self.send_new(index, segment.number, segment.len, last);
        }
    }

    /// Puts the subflows of a side, as a scheduler sees them, into `candidates`.
    #[inline]
    pub(super) fn survey(&mut self, connection: usize, side: usize) {
        let subflows = self.connections[connection].endpoints(side);
        self.candidates.clear();
        self.candidates.extend(subflows.map(|index| candidate(&mut self.endpoints[index], self.now)));
    }

    /// The segment that is to be sent has been carried by these subflows, one bit each.
    #[inline]
    pub(super) fn mark_carriers(&mut self, carried_by: u32) {
        for (subflow, candidate) in self.candidates.iter_mut().enumerate() {
            candidate.carried = carried_by & (1 << subflow) != 0;
        }
    }

    /// The window has room but nothing is there to fill it.
    fn out_of_data(&mut self, index: usize) {
        if let Method::Sack(_) = self.endpoints[index].sender.method {
            while !self.must_pause(index)
                && let Some(number) = Scoreboard::last_resort(&mut self.endpoints[index].sender)
            {
                self.send_again(index, number);
            }
        }
        self.endpoints[index].sender.stopped(false);
    }

    #[inline]
    pub(super) fn send_new(&mut self, index: usize, data_seq: u64, len: u16, last: bool) {
        let number = self.endpoints[index].sender.next;
        let segment = Segment { data_seq: data_seq as u32, len, ..Segment::default() };
        let marked = last || self.endpoints[index].super_packet.is_some() && self.ends_super_packet(index);
        let ecn = self.endpoints[index].ecn.take_new();
        self.send_segment(index, number, segment, ecn | if marked { flags::PUSH } else { 0 });
    }

    #[cold]
    fn ends_super_packet(&mut self, index: usize) -> bool {
        let endpoint = &mut self.endpoints[index];
        let Some(filling) = &mut endpoint.super_packet else { return false };
        let more = endpoint.sender.in_flight() + 1 < endpoint.sender.cwnd;
        filling.ends_with(self.now, more, endpoint.segment_bytes, &endpoint.sender)
    }

    pub(super) fn send_again(&mut self, index: usize, number: u64) {
        let segment = self.endpoints[index].sender.segments.get(number);
        self.send_segment(index, number, segment, flags::RETRANSMIT);
    }

    #[inline]
    fn send_segment(&mut self, index: usize, number: u64, segment: Segment, extra_flags: u16) {
        let now = self.now;
        let now_us = self.now_us();
        let endpoint = &mut self.endpoints[index];
        let connection = &mut self.connections[endpoint.connection as usize];
        let bytes = connection.header_bytes + segment.len;
        let (level, wnd) = level(connection.is_mptcp(), connection.sides[index & 1].window.offered);
        let (route, ack) = (endpoint.route, endpoint.receiver.next as u32);
        let data_ack = connection.sides[index & 1].receive.next as u32;
        let tsecr = endpoint.receiver.acknowledged();
        let echo = endpoint.ecn.echo();
        let make = || Packet {
            route,
            seq: number as u32,
            ack,
            data_seq: segment.data_seq,
            data_ack,
            wnd,
            tsval: now_us,
            tsecr,
            sack: NO_SACK,
            bytes,
            flags: flags::DATA | flags::ACK | extra_flags | level | echo,
        };
        endpoint.sender.sent(number, segment, u32::from(bytes), now_us);
        if !endpoint.sender.timer.is_armed() {
            endpoint.sender.restart_timer(now, &mut self.timers, index as u32);
        }
        if endpoint.pacer.is_some() {
            note_paced(endpoint, now, segment.len);
        }
        let at = endpoint.jitter.as_mut().map_or(now, |jitter| jitter.delay(now));
        if let Method::Rack(rack) = &mut endpoint.sender.method {
            if extra_flags & flags::RETRANSMIT == 0 {
                rack.probe.restart(now);
            }
            self.time_by_rack(index);
        }
        self.emit(at, index, bytes, make);
    }

    /// An acknowledgement without payload.
    pub(super) fn send_ack(&mut self, index: usize) {
        self.send_bare(index, flags::ACK);
    }

    /// A packet without payload.
    pub(super) fn send_bare(&mut self, index: usize, flags: u16) {
        self.send_plain(index, flags, 0, 0, 0);
    }

    /// An acknowledgement that signals something.
    #[cold]
    pub(super) fn send_signal(&mut self, index: usize, signal: Signal) {
        let ip = self.scenario.connections[self.endpoints[index].connection as usize].ip_version;
        let flags = flags::ACK | flags::SIGNAL;
        // A reset is about the subflow that has ended, not about the next one.
        let back = u64::from(signal == Signal::Reset);
        self.send_plain(index, flags, back, signal.code(), signal.option_bytes(ip));
    }

    /// A packet without payload, with this in place of a data sequence number, longer by so much, and with the sequence
    /// number `back` before the next one.
    #[inline(always)]
    fn send_plain(&mut self, index: usize, flags: u16, back: u64, data_seq: u32, more_bytes: u16) {
        let now_us = self.now_us();
        let endpoint = &mut self.endpoints[index];
        let connection = &self.connections[endpoint.connection as usize];
        let (mut bytes, mut sack) = (connection.ack_bytes.saturating_add(more_bytes), NO_SACK);
        if endpoint.receiver.has_blocks() && endpoint.sender.uses_sack() {
            let blocks = endpoint.receiver.sack_blocks();
            // RFC 2018 section 3: 2 bytes, 8 per block, and two of padding.
            bytes = bytes.saturating_add(4 + 8 * u16::from(blocks.len));
            sack = self.net.sacks.put(blocks);
        }
        let window = connection.sides[index & 1].window.offered;
        let (level, wnd) = level(connection.is_mptcp() && flags & flags::SYN == 0, window);
        let seq = (endpoint.sender.next - back) as u32;
        let (route, ack) = (endpoint.route, endpoint.receiver.next as u32);
        let data_ack = connection.sides[index & 1].receive.next as u32;
        let tsecr = endpoint.receiver.acknowledged();
        let echo = endpoint.ecn.echo();
        let make = || Packet {
            route,
            seq,
            ack,
            data_seq,
            data_ack,
            wnd,
            tsval: now_us,
            tsecr,
            sack,
            bytes,
            flags: flags | level | echo,
        };
        self.emit(self.now, index, bytes, make);
    }

    #[inline(always)]
    fn emit(&mut self, at: Nanos, index: usize, bytes: u16, make: impl Fn() -> Packet) {
        if let Some(watch) = &mut self.watch {
            let sender = &self.endpoints[index];
            watch.sent((self.now, at), index, &make(), &self.net.sacks, sender);
        }
        self.net.send(at, self.endpoints[index].route, bytes, make);
    }
}

/// An endpoint as a scheduler sees it.
pub(super) fn candidate(endpoint: &mut Endpoint, now: Nanos) -> Candidate {
    let usable = endpoint.phase == Phase::Established && !endpoint.sender.is_stale();
    let pauses = endpoint.pacer.as_ref().is_some_and(|pacer| pacer.waits_until(now).is_some());
    Candidate {
        usable,
        has_room: usable && !pauses && endpoint.sender.can_send_new(),
        backup: endpoint.backup,
        carried: false,
        srtt8_us: endpoint.sender.rtt.srtt8_us,
    }
}

/// Flags and window of a packet that speaks for the data level and offers a window.
#[inline]
fn level(mptcp: bool, window: Option<u32>) -> (u16, u32) {
    let data_ack = if mptcp { flags::DATA_ACK } else { 0 };
    window.map_or((data_ack, 0), |window| (data_ack | flags::WINDOW, window))
}

#[cold]
fn note_paced(endpoint: &mut Endpoint, now: Nanos, len: u16) {
    if let Some(pacer) = &mut endpoint.pacer {
        pacer.sent(now, len, endpoint.segment_bytes, &endpoint.sender);
    }
}

impl Jitter {
    fn delay(&mut self, now: Nanos) -> Nanos {
        self.last = (now + self.rng.below(self.bound)).max(self.last);
        self.last
    }
}
