//! Hosts and the network together: the event loop and what happens at the ends of the paths.

#[cfg(test)]
pub(crate) mod audit;
mod blocked;
mod build;
mod congestion;
mod connection;
mod handshake;
mod input;
mod lifecycle;
mod marks;
mod output;
mod timeouts;

use std::sync::atomic::Ordering;

use anabranch_link::{NEVER, Nanos};
use anabranch_scenario::model::Scenario;

pub(crate) use self::connection::{Connection, Endpoint, Phase};
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
    trace::Trace,
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
    pub(crate) meter: Meter,
    pub(crate) trace: Option<Trace>,
    /// Stands in for peers and words where nothing is coupled.
    idle: Box<Idle>,
}

impl<K: Key> World<'_, K> {
    /// Runs to the end of the scenario. Of events at one time, links come first, then timers by kind and
    /// index: this order is part of the results.
    pub(crate) fn run(&mut self, control: &Control) -> Result<(), Interrupted> {
        let end = self.scenario.duration;
        loop {
            if control.cancel.load(Ordering::Relaxed) {
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
                        self.receive(sink, packet);
                    }
                } else if timer <= end {
                    let (time, id) = self.timers.pop().expect("it has a first time");
                    self.now = time;
                    self.fire(time, id);
                } else {
                    self.now = end;
                    control.reached.store(end, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
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
            TimerKind::Datagram => self.send_datagram(index),
            TimerKind::Open => self.open(index),
            TimerKind::Stop => {
                self.connections[index].sides[0].send.stop();
            }
            TimerKind::Event => self.carry_out(index),
            TimerKind::Change => {
                let change = &self.scenario.changes[index];
                self.net.change(time, change, index);
            }
            TimerKind::Sample => self.sample(),
            TimerKind::Window => self.mark_window(),
        }
    }

    fn send_datagram(&mut self, index: usize) {
        let flow = &mut self.datagrams[index];
        let (packet, next) = flow.send(self.now, index as u32);
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
