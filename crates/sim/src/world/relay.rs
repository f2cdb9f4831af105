//! Relays: gateways that read one connection and write to another (split TCP, RFC 3135 section 2.4).
//!
//! A relay reads what its input has delivered as long as there is room in its buffer, which holds what has been read and
//! not yet sent: bytes in processing, and bytes that lie with the output and have not been cut into a segment. What
//! it does not read fills the input's receive buffer, so that the window that is offered closes. A sender that finds
//! it closed probes (RFC 9293 section 3.8.6.1), and the receiver tells of a window that has opened by two segments or
//! half of its buffer (section 3.8.6.2.2).
//!
//! Left out: the SOCKS dialogue before the data, data in the other direction, and the closing of the output when the
//! input has ended. A probe carries no byte, so it cannot be accepted.

use std::collections::VecDeque;

use anabranch_link::Nanos;
use anabranch_scenario::model;

use super::{Phase, World};
use crate::{
    engine::{heads::Key, timers::TimerKind},
    packet::flags,
};

/// A relay at work.
pub(crate) struct Relay {
    pub(crate) input: u32,
    pub(crate) output: u32,
    buffer_bytes: u64,
    delay: Nanos,
    /// Bytes read so far.
    pub(crate) read: u64,
    /// Bytes that will be written, with their times.
    processing: VecDeque<(Nanos, u64)>,
    processing_bytes: u64,
    /// The most that was ever read and not yet sent.
    pub(crate) held_max: u64,
    /// Probes in a row that have not let anything through; `None`: no timer is running.
    probes: Option<u32>,
    /// What the input's sender knew to be delivered when it last probed.
    probed_at: u64,
    /// The timer has last found nothing wrong, and the window has not closed since.
    calm: bool,
}

impl Relay {
    pub(crate) fn new(model: &model::Relay) -> Self {
        Self {
            input: model.input as u32,
            output: model.output as u32,
            buffer_bytes: model.buffer_bytes,
            delay: model.delay,
            read: 0,
            processing: VecDeque::new(),
            processing_bytes: 0,
            held_max: 0,
            probes: None,
            probed_at: 0,
            calm: false,
        }
    }
}

impl<K: Key> World<'_, K> {
    /// Bytes that a relay has read and its output has not sent.
    pub(crate) fn held_by(&self, index: usize) -> u64 {
        let relay = &self.relays[index];
        relay.processing_bytes + self.connections[relay.output as usize].sides[0].send.unsent_bytes()
    }

    /// The input of a relay has been accepted: the relay opens its output.
    pub(super) fn open_output(&mut self, index: usize) {
        self.open(self.relays[index].output as usize);
    }

    /// Reads and passes on as much as there is room for, after something has changed at either connection.
    pub(super) fn relay(&mut self, index: usize) {
        loop {
            let held = self.held_by(index);
            let relay = &mut self.relays[index];
            let delivered = self.connections[relay.input as usize].sides[1].receive.delivered_bytes;
            let bytes = (delivered - relay.read).min(relay.buffer_bytes - held);
            if bytes == 0 {
                break;
            }
            relay.read += bytes;
            relay.held_max = relay.held_max.max(held + bytes);
            if relay.delay > 0 {
                relay.processing.push_back((self.now + relay.delay, bytes));
                relay.processing_bytes += bytes;
                self.timers.push(self.now + relay.delay, TimerKind::Application, self.timer_of(index));
            } else {
                self.pass_on(index, bytes);
            }
        }
        self.offer_window(index);
    }

    /// The timers of relays lie behind those of the connections: two of each, for its processing and for the probes of
    /// its input's sender.
    fn timer_of(&self, index: usize) -> u32 {
        (self.connections.len() + 2 * index) as u32
    }

    /// A timer of a relay has expired, given by its place behind those of the connections.
    pub(super) fn relay_timer(&mut self, place: usize) {
        let index = place / 2;
        if place % 2 == 1 {
            self.persist(index);
            return;
        }
        let relay = &mut self.relays[index];
        if let Some(&(at, bytes)) = relay.processing.front()
            && at <= self.now
        {
            relay.processing.pop_front();
            relay.processing_bytes -= bytes;
            self.pass_on(index, bytes);
            self.relay(index);
        }
    }

    fn pass_on(&mut self, index: usize, bytes: u64) {
        let output = self.relays[index].output as usize;
        self.write(output, 0, bytes);
    }

    /// What a window must hold at least to be told, or to do without probes: a sender waits until a whole segment fits.
    fn least_window(&self, input: usize) -> u64 {
        let transport = &self.scenario.connections[input].transport;
        let (segment, buffer) =
            (u64::from(transport.segment_bytes), transport.receive_buffer.unwrap_or(u64::MAX));
        (2 * segment).min((buffer / 2).max(segment))
    }

    /// What has just been delivered to a reader that may be slow takes room of its window until it is read.
    #[cold]
    pub(super) fn keep_unread(&mut self, number: usize, side: usize) {
        if let (1, Some(relay)) = (side, self.connections[number].feeds) {
            let side = &mut self.connections[number].sides[1];
            side.window.hold(side.receive.delivered_bytes - self.relays[relay as usize].read);
        }
    }

    /// Lets the input's window hold what has not been read.
    fn offer_window(&mut self, index: usize) {
        let Relay { input, read, probes, .. } = self.relays[index];
        let least = self.least_window(input as usize);
        let side = &mut self.connections[input as usize].sides[1];
        let unread = side.receive.delivered_bytes - read;
        let (before, after) = side.window.hold(unread);
        if before < least && after >= least {
            self.tell_window(input as usize, 1);
        }
        // What tells of an open window may be lost, so the timer runs from when it was closed on.
        if before.min(after) < least {
            self.relays[index].calm = false;
            if probes.is_none() {
                self.relays[index].probes = Some(0);
                self.wait_for_window(index);
            }
        }
    }

    /// Sends a packet without payload on every subflow of a side.
    fn tell_window(&mut self, connection: usize, side: usize) {
        for index in self.connections[connection].endpoints(side) {
            if self.endpoints[index].phase == Phase::Established {
                self.send_bare(index, flags::ACK | flags::ABOUT_WINDOW);
            }
        }
    }

    fn wait_for_window(&mut self, index: usize) {
        let Relay { input, probes, .. } = self.relays[index];
        let first = self.connections[input as usize].first as usize;
        let longest = self.scenario.connections[input as usize].transport.max_rto;
        let rto = self.endpoints[first].sender.rtt.rto();
        let wait = rto.saturating_mul(1 << probes.unwrap_or(0).min(16)).min(longest);
        self.timers.push(self.now + wait, TimerKind::Application, self.timer_of(index) + 1);
    }

    /// The persist timer of an input's sender (RFC 9293 section 3.8.6.1).
    fn persist(&mut self, index: usize) {
        let input = self.relays[index].input as usize;
        let connection = &self.connections[input];
        let meta = &connection.sides[0].send;
        let idle = connection.endpoints(0).all(|index| self.endpoints[index].sender.outstanding() == 0);
        let waiting = meta.has_more() && meta.next_len().is_none();
        let acknowledged = meta.una;
        let stuck = idle && waiting;
        let offered = connection.sides[1].window.offered.map_or(u64::MAX, u64::from);
        let closed = offered < self.least_window(input);
        if stuck {
            self.tell_window(input, 0);
        }
        // An acknowledgement that tells of a closed window may still be under way when the window is open again and the
        // packet that has told so is lost: the timer ends when all was well for a whole period.
        let relay = &mut self.relays[index];
        let well = !waiting && !closed;
        let ends = well && relay.calm;
        relay.calm = well;
        // What has been acknowledged since the last probe says that it was not in vain: the back-off begins anew.
        let in_vain = acknowledged == std::mem::replace(&mut relay.probed_at, acknowledged);
        let before = if in_vain { relay.probes.unwrap_or(0) } else { 0 };
        relay.probes = (!ends).then(|| before + u32::from(stuck));
        if !ends {
            self.wait_for_window(index);
        }
    }

    /// A packet about the window has been taken as an acknowledgement: an update at the sender, or a probe at the
    /// reader, who answers it.
    #[cold]
    pub(super) fn answer_about_window(&mut self, index: usize) {
        if index & 1 == 1 {
            self.send_bare(index, flags::ACK | flags::ABOUT_WINDOW);
        }
    }
}
