//! Hosts and the network together: the event loop and what happens at the ends of the paths.

mod applications;
#[cfg(test)]
pub(crate) mod audit;
mod blocked;
mod build;
mod congestion;
mod connection;
mod handshake;
mod input;
mod later;
mod lifecycle;
mod marks;
mod output;
mod paths;
mod price;
mod relay;
mod stale;
mod timeouts;
mod transfer;

use std::sync::atomic::Ordering;

use anabranch_link::{NEVER, Nanos};
use anabranch_policy::scheduler::Candidate;
use anabranch_scenario::model::Scenario;

pub(crate) use self::connection::{Connection, Endpoint, Mechanics, Phase, Side};
use self::paths::Carriers;
use self::relay::Relay;
use self::transfer::Transfer;
use crate::{
    Control, Interrupted,
    datagram::DatagramFlow,
    engine::{
        heads::Key,
        timers::{TimerId, TimerKind, Timers},
    },
    measure::Meter,
    net::Network,
    packet::{Packet, flags},
    signal::Signal,
    watch::Watch,
};
use congestion::Idle;

/// Events between two looks at [`Control`].
const EVENTS_PER_LOOK: u32 = 1 << 14;

/// The state of a run.
pub(crate) struct World<'s, K> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) now: Nanos,
    pub(crate) net: Network<K>,
    pub(crate) timers: Timers,
    /// Subflow `s` has the endpoints `2 s` (the side that opened) and `2 s + 1`.
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) datagrams: Vec<DatagramFlow>,
    pub(crate) relays: Vec<Relay>,
    pub(crate) transfers: Vec<Transfer>,
    carriers: Carriers,
    pub(crate) meter: Meter,
    pub(crate) watch: Option<Box<Watch>>,
    /// Scratch: the subflows as a scheduler sees them.
    candidates: Vec<Candidate>,
    /// Stands in for peers and words where nothing is coupled.
    idle: Box<Idle>,
    /// What a bit costs, by endpoint; empty in a scenario without radios.
    prices: Vec<Option<price::Price>>,
}

impl<K: Key> World<'_, K> {
    /// Runs to the end of the scenario. Of events at one time, links come first, then timers by kind and
    /// index: this order is part of the results.
    pub(crate) fn run(&mut self, control: &Control) -> Result<(), Interrupted> {
        match self.watch {
            None => self.run_to_end::<false>(control),
            Some(_) => self.run_to_end::<true>(control),
        }
    }

    // Whatever its callers hold would take registers from the loop.
    #[inline(never)]
    fn run_to_end<const WATCHED: bool>(&mut self, control: &Control) -> Result<(), Interrupted> {
        let end = self.scenario.duration;
        loop {
            if control.cancel.load(Ordering::Relaxed) || WATCHED && self.watchers_have_failed() {
                return Err(Interrupted);
            }
            control.reached.store(self.now, Ordering::Relaxed);
            for _ in 0..EVENTS_PER_LOOK {
                let (time, link) = self.net.first();
                let timer = self.timers.first();
                if time <= timer {
                    if time > end {
                        self.now = end;
                        control.reached.store(end, Ordering::Relaxed);
                        return Ok(());
                    }
                    self.now = time;
                    if let Some((sink, packet)) = self.net.advance(time, link) {
                        if WATCHED {
                            self.show_arrival(sink, &packet);
                        }
                        self.receive(sink, packet);
                        if WATCHED {
                            self.show_changes(sink as usize);
                        }
                    }
                } else if timer <= end {
                    let (time, id) = self.timers.pop().expect("it has a first time");
                    self.now = time;
                    self.fire(time, id);
                    if WATCHED {
                        self.show_changes_of(id);
                    }
                } else {
                    self.now = end;
                    control.reached.store(end, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
    }

    #[cold]
    fn show_arrival(&mut self, sink: u32, packet: &Packet) {
        if let Some(watch) = &mut self.watch {
            watch.arrived(self.now, sink, packet, &self.net.sacks);
        }
    }

    /// Shows what an event has changed at the connection that sink belongs to, if it is no datagram flow's, and at
    /// those that relays and transfers tie to it.
    #[cold]
    fn show_changes(&mut self, sink: usize) {
        let Some(endpoint) = self.endpoints.get(sink) else { return };
        for number in self.tied_to(endpoint.connection as usize) {
            self.show_changes_at(number);
        }
    }

    fn show_changes_at(&mut self, number: usize) {
        let connection = &self.connections[number];
        let (first, is_mptcp) = (connection.first as usize, connection.is_mptcp());
        for index in first..first + 2 * connection.subflows as usize {
            if let Some(watch) = &mut self.watch {
                watch.look(self.now, index, &self.endpoints[index], is_mptcp);
            }
        }
    }

    #[cold]
    fn show_changes_of(&mut self, id: TimerId) {
        let index = id.index as usize;
        let connection = match id.kind {
            TimerKind::Retransmit | TimerKind::DelayedAck | TimerKind::Pace => {
                return self.show_changes(index);
            }
            TimerKind::Open | TimerKind::Stop | TimerKind::Paths => index,
            TimerKind::Application => self.connection_of_timer(index),
            TimerKind::Event => self.scenario.events[index].connection,
            TimerKind::Data => index / 2,
            TimerKind::Datagram
            | TimerKind::Change
            | TimerKind::Sample
            | TimerKind::EnergyBin
            | TimerKind::Window => return,
        };
        self.show_changes(self.connections[connection].first as usize);
    }

    #[cold]
    fn watchers_have_failed(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_failed())
    }

    #[inline(never)]
    fn receive(&mut self, sink: u32, packet: Packet) {
        if packet.has(flags::DATAGRAM) {
            self.datagrams[packet.ack as usize].arrived(packet.bytes);
            return;
        }
        let endpoint = sink as usize;
        if packet.flags & flags::RARE != 0 || self.endpoints[endpoint].phase != Phase::Established {
            self.receive_rare(endpoint, packet);
        } else if packet.has(flags::DATA) {
            self.receive_data(endpoint, packet);
        } else {
            self.receive_ack(endpoint, packet);
        }
    }

    #[inline(never)]
    fn receive_rare(&mut self, endpoint: usize, packet: Packet) {
        if Signal::of(&packet) == Some(Signal::Reset) {
            self.net.sacks.take(packet.sack);
            self.receive_reset(endpoint, packet);
            return;
        }
        let packet = Packet { flags: packet.flags & !self.endpoints[endpoint].stripped, ..packet };
        let signal = Signal::of(&packet);
        let handshake = packet.flags & (flags::SYN | flags::MP_JOIN) != 0;
        if handshake || self.endpoints[endpoint].phase != Phase::Established {
            self.receive_handshake(endpoint, packet);
            return;
        }
        self.receive_marked(endpoint, packet);
        if let Some(signal) = signal {
            self.receive_signal(endpoint, signal);
        }
        if packet.has(flags::ABOUT_WINDOW) {
            self.answer_about_window(endpoint);
        }
    }

    #[inline(never)]
    fn fire(&mut self, time: Nanos, id: TimerId) {
        let index = id.index as usize;
        match id.kind {
            TimerKind::Retransmit => {
                if self.endpoints[index].sender.timer.fires(time, &mut self.timers, id) {
                    self.loss_timer(index);
                }
            }
            TimerKind::DelayedAck => {
                if self.endpoints[index].receiver.delayed.fires(time, &mut self.timers, id) {
                    self.delayed_acknowledgement(index);
                }
            }
            TimerKind::Pace => {
                let pacer = self.endpoints[index].pacer.as_deref_mut();
                if pacer.is_some_and(|pacer| pacer.timer.fires(time, &mut self.timers, id)) {
                    self.push(index);
                }
            }
            TimerKind::Data => {
                let (number, side) = (index / 2, index & 1);
                let watchdog = self.connections[number].sides[side].watchdog();
                if watchdog.is_some_and(|watchdog| watchdog.timer.fires(time, &mut self.timers, id)) {
                    self.data_timer(number, side);
                }
            }
            TimerKind::Datagram => self.send_datagram(index),
            TimerKind::Open => self.open(index),
            TimerKind::Stop => {
                for side in &mut self.connections[index].sides {
                    side.send.stop();
                }
            }
            TimerKind::Application => self.wake(index),
            TimerKind::Event => self.carry_out(index),
            TimerKind::Paths => self.manage_paths(index),
            TimerKind::Change => {
                let change = &self.scenario.changes[index];
                self.net.change(time, change, index);
                self.note_carrier(change);
            }
            TimerKind::Sample => self.sample(),
            TimerKind::EnergyBin => self.end_energy_bin(),
            TimerKind::Window => self.mark_window(),
        }
    }

    fn send_datagram(&mut self, index: usize) {
        let flow = &mut self.datagrams[index];
        let (packet, next) = flow.send(index as u32);
        if let Some(watch) = &mut self.watch {
            watch.datagram_sent(self.now, index, &packet);
        }
        self.net.send(self.now, packet.route, packet.bytes, || packet);
        if next != NEVER {
            self.timers.push(next, TimerKind::Datagram, index as u32);
        }
    }

    /// The clock of timestamps and of congestion control.
    #[inline]
    pub(crate) fn now_us(&self) -> u32 {
        (self.now / 1000) as u32
    }
}
