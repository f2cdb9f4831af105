//! Between applications and transport: who is told what, and what they write.

use anabranch_cc::{CaState, Controller};

use super::{Connection, Phase, World, transfer::Feeder};
use crate::{
    app::{Application, Io, NEVER},
    engine::{heads::Key, timers::TimerKind},
    tcp::ack::Absorbed,
};

impl Connection {
    /// Sets when a side is to be looked at next: when it has what its application waits for, and at its first byte if
    /// that is what opens the further subflows. A relay reads whatever comes.
    pub(super) fn listen(&mut self, side: usize) {
        let joins = side == 0 && self.is_mptcp() && !self.joining;
        self.sides[side].notify_at = match (side, self.feeds) {
            (1, Some(_)) => 0,
            _ if joins => 1,
            _ => self.wants[side],
        };
    }
}

impl<K: Key> World<'_, K> {
    /// An endpoint has been established. If it is the first one of its side, the application there may write from now
    /// on; a subflow that comes later, or again, is none of its business.
    pub(super) fn opened(&mut self, index: usize) {
        let number = self.endpoints[index].connection as usize;
        let connection = &mut self.connections[number];
        if std::mem::replace(&mut connection.is_open[index & 1], true) {
            return;
        }
        let feeds = connection.feeds;
        self.ask(number, |application, io| application.opened(index & 1, io));
        if let (1, Some(relay)) = (index & 1, feeds) {
            self.open_output(relay as usize);
        }
        if let Some(feeder @ Feeder::Transfer(_)) = self.connections[number].fed_by {
            self.feed(feeder);
        }
    }

    /// Sends what lay ready at an accepting side that has just been established.
    pub(super) fn push_waiting(&mut self, index: usize) {
        let number = self.endpoints[index].connection as usize;
        if self.connections[number].sides[index & 1].send.has_any() {
            self.push(index);
        }
    }

    /// A side has been delivered what it waits for, or its first byte.
    #[cold]
    #[inline(never)]
    pub(super) fn delivered(&mut self, number: usize, side: usize) {
        // RFC 8684 section 3.1: an opener that only receives is fully established by the first data with a data
        // acknowledgement.
        if side == 0 && self.connections[number].is_mptcp() {
            self.open_joins(number);
        }
        let connection = &mut self.connections[number];
        let bytes = connection.sides[side].receive.delivered_bytes;
        if bytes >= connection.wants[side] {
            connection.wants[side] = NEVER;
            if connection.application.is_some() {
                self.ask(number, |application, io| application.delivered(side, bytes, io));
            } else if let Some(share) = connection.delivers {
                self.chunk_delivered(share, bytes);
            } else if connection.wants == [NEVER; 2] {
                connection.completed_at = Some(self.now);
            }
        }
        self.connections[number].listen(side);
        if let (1, Some(relay)) = (side, self.connections[number].feeds) {
            self.relay(relay as usize);
        }
    }

    /// The time has come for which an application waits, or a relay or a transfer.
    pub(super) fn wake(&mut self, number: usize) {
        let Some(place) = number.checked_sub(self.connections.len()) else {
            self.ask(number, |application, io| application.woken(io));
            return;
        };
        match place.checked_sub(2 * self.relays.len()) {
            None => self.relay_timer(place),
            Some(place) => self.look_at_carrier(place),
        }
    }

    /// The connection that a timer of applications is about: behind those of the connections there are two for each relay,
    /// then one for each connection of a transfer.
    pub(super) fn connection_of_timer(&self, timer: usize) -> usize {
        let Some(place) = timer.checked_sub(self.connections.len()) else { return timer };
        match place.checked_sub(2 * self.relays.len()) {
            None => self.relays[place / 2].output as usize,
            Some(place) => {
                let share = self.share_at(place);
                self.transfers[share.transfer as usize].ways[share.carrier as usize].writes_to as usize
            }
        }
    }

    /// Tells an application something and does what it wants.
    fn ask(&mut self, number: usize, tell: impl FnOnce(&mut dyn Application, &mut Io)) {
        let connection = &mut self.connections[number];
        let Some(application) = connection.application.as_deref_mut() else { return };
        let mut io = Io { now: self.now, write: [0; 2], wants: connection.wants, wake_at: None };
        tell(application, &mut io);
        connection.wants = io.wants;
        for side in [0, 1] {
            connection.listen(side);
        }
        if let Some(at) = io.wake_at {
            self.timers.push(at, TimerKind::Application, number as u32);
        }
        for (side, bytes) in io.write.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0) {
            self.write(number, side, bytes);
        }
    }

    pub(super) fn write(&mut self, number: usize, side: usize, bytes: u64) {
        for index in self.connections[number].endpoints(side) {
            self.end_idleness(index);
        }
        let connection = &mut self.connections[number];
        let first = &self.endpoints[connection.first as usize + side];
        assert!(!first.life.only_listens, "an application writes where none was expected to");
        connection.wrote_at[side] = self.now;
        connection.sides[side].send.write_more(bytes);
        let mut endpoints = connection.endpoints(side);
        if let Some(index) = endpoints.find(|&index| self.endpoints[index].phase == Phase::Established) {
            self.push_alone(number, index);
        }
    }

    /// Before a sender that has nothing under way sends again: congestion control hears how long it was silent, and
    /// after more than a retransmission timeout the window is the initial one (RFC 5681 section 4.1). All of the window
    /// of data that a mark has reduced has been acknowledged, so that reduction must not set the window afterwards.
    fn end_idleness(&mut self, index: usize) {
        let endpoint = &self.endpoints[index];
        let sender = &endpoint.sender;
        if endpoint.phase != Phase::Established || sender.outstanding() > 0 || !sender.has_sent() {
            return;
        }
        let connection = &self.connections[endpoint.connection as usize];
        // The clock of microseconds turns round every 71 minutes.
        let silent_us = (self.now - connection.wrote_at[index & 1]) / 1000;
        let idle_us = match u32::try_from(silent_us) {
            Ok(_) => self.now_us().wrapping_sub(sender.silent_since_us()),
            Err(_) => u32::MAX,
        };
        let is_long = u64::from(idle_us) * 1000 > sender.rtt.rto();
        let reduces = sender.state == CaState::Cwr;
        let initial = self.scenario.connections[endpoint.connection as usize].transport.initial_window;
        if reduces {
            self.end_reduction(index);
        }
        let silence = Absorbed { idle_us, ..Absorbed::default() };
        self.congestion(index, &silence, None, Controller::idle_restart);
        let now_us = self.now_us();
        self.change_state(index, |sender| {
            sender.end_silence(now_us);
            if is_long {
                sender.cwnd = sender.cwnd.min(initial);
            }
        });
    }
}
