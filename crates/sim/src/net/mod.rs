//! The network: links, routes, and the packets on them.

pub(crate) mod build;
mod interfaces;

use anabranch_link::medium::{AirCounters, Delivery};
use anabranch_link::{Drop, Fate, Links, Nanos, Offer, Tally};
use anabranch_scenario::model::{Change, Scenario};

use crate::{
    engine::heads::{Heads, Key},
    packet::{Packet, SackPool},
};

/// A route entry with this bit ends the route: the rest is the sink's number.
const SINK: u32 = 1 << 31;

/// A station's transmitter on a medium.
#[derive(Clone, Copy)]
struct MediumHop {
    medium: u32,
    station: u32,
    /// The station that receives.
    to: u32,
}

/// All links and the packets on them.
pub(crate) struct Network<K> {
    links: Links<Packet>,
    medium_hops: Vec<MediumHop>,
    /// All routes, one after the other: hops, then the sink.
    routes: Vec<u32>,
    heads: Heads<K>,
    pub(crate) sacks: SackPool,
    /// Packets lost on their way to each sink.
    lost_to: Vec<u64>,
    /// Packets carried over one link.
    pub(crate) hops: u64,
    /// Scratch: packets that a link has just dropped or given up.
    gone: Vec<Packet>,
    log_drops: bool,
    drop_log: Vec<(Nanos, Packet)>,
    tally: Tally,
}

impl<K: Key> Network<K> {
    /// Time and link of the next event; the time is after the end of the run if there is none.
    #[inline]
    pub(crate) fn first(&self) -> (Nanos, usize) {
        self.heads.first()
    }

    /// Sends a packet of `bytes` on `route`, at or after the present.
    #[inline(always)]
    pub(crate) fn send(&mut self, at: Nanos, route: u32, bytes: u16, make: impl Fn() -> Packet) {
        self.enter(at, route, bytes, make);
    }

    /// Handles the next event of a link; a packet that has reached its sink comes back with the sink.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: Nanos, link: usize) -> Option<(u32, Packet)> {
        let Some(wire) = self.links.wires.get_mut(link) else { return self.advance_other(now, link) };
        let packet = *wire.front();
        let arrived = wire.pop();
        self.heads.set(link, wire.next_arrival());
        self.hops += 1;
        if !arrived {
            self.tally.lost_on_the_way(link, u32::from(packet.bytes));
            self.lose(now, packet);
            return None;
        }
        self.forward(now, packet)
    }

    #[inline(always)]
    fn forward(&mut self, now: Nanos, packet: Packet) -> Option<(u32, Packet)> {
        let route = packet.route + 1;
        let hop = self.routes[route as usize];
        if hop & SINK != 0 {
            return Some((hop & !SINK, packet));
        }
        self.enter(now, route, packet.bytes, || packet);
        None
    }

    #[inline(always)]
    fn enter(&mut self, now: Nanos, route: u32, bytes: u16, make: impl Fn() -> Packet) {
        let hop = self.routes[route as usize];
        let Some(wire) = self.links.wires.get_mut(hop as usize) else {
            self.enter_other(now, hop, Packet { route, ..make() });
            return;
        };
        let write = |slot: &mut Packet| {
            *slot = make();
            slot.route = route;
        };
        match wire.offer_made(now, u32::from(bytes), write) {
            Offer::Behind => {}
            Offer::First(arrives) => self.heads.set(hop as usize, arrives),
            Offer::Dropped(_) => self.lose(now, Packet { route, ..make() }),
        }
    }

    /// A packet comes to a link that is no plain wire.
    #[cold]
    fn enter_other(&mut self, now: Nanos, hop: u32, packet: Packet) {
        let place = hop as usize - self.links.wires.len();
        let Some(shaped) = self.links.shaped.get_mut(place) else {
            self.enter_medium(now, place - self.links.shaped.len(), packet);
            return;
        };
        let gone = &mut self.gone;
        shaped.offer(now, packet, |fate| gone.extend(dropped(fate)));
        let next = shaped.next_event();
        self.heads.set(hop as usize, next);
        self.lose_gone(now);
    }

    fn enter_medium(&mut self, now: Nanos, hop: usize, packet: Packet) {
        let MediumHop { medium, station, .. } = self.medium_hops[hop];
        let number = self.links.first_medium() + medium as usize;
        let channel = &mut self.links.media[medium as usize];
        let refused: Result<(), Drop> = channel.offer(now, station as usize, packet);
        let next = channel.next_event();
        self.heads.set(number, next);
        if refused.is_err() {
            self.lose(now, packet);
        }
    }

    #[cold]
    fn advance_other(&mut self, now: Nanos, link: usize) -> Option<(u32, Packet)> {
        let place = link - self.links.wires.len();
        let mut arrived = None;
        let (gone, tally) = (&mut self.gone, &mut self.tally);
        let is_medium = link >= self.links.first_medium();
        let next = if let Some(shaped) = self.links.shaped.get_mut(place) {
            shaped.advance(now, |fate| match fate {
                Fate::Arrived(packet) => arrived = Some(packet),
                Fate::Dropped(packet, why) => {
                    if why == Drop::Loss {
                        tally.lost_on_the_way(link, u32::from(packet.bytes));
                    }
                    gone.push(packet);
                }
            });
            shaped.next_event()
        } else {
            let channel = &mut self.links.media[place - self.links.shaped.len()];
            channel.advance(now, |delivery| match delivery {
                Delivery::Arrived(packet) => arrived = Some(packet),
                Delivery::GivenUp(packet) => gone.push(packet),
            });
            channel.next_event()
        };
        self.heads.set(link, next);
        if is_medium {
            for at in 0..self.gone.len() {
                self.tally_medium(self.gone[at], false);
            }
            if let Some(packet) = arrived {
                self.tally_medium(packet, true);
            }
        }
        self.lose_gone(now);
        self.hops += u64::from(arrived.is_some());
        arrived.and_then(|packet| self.forward(now, packet))
    }

    fn lose_gone(&mut self, now: Nanos) {
        while let Some(packet) = self.gone.pop() {
            self.lose(now, packet);
        }
    }

    #[cold]
    fn lose(&mut self, now: Nanos, packet: Packet) {
        let sink = self.sink_of(packet);
        self.lost_to[sink as usize] += 1;
        self.sacks.take(packet.sack);
        if self.log_drops {
            self.drop_log.push((now, packet));
        }
    }

    /// Where a packet is going.
    pub(crate) fn sink_of(&self, packet: Packet) -> u32 {
        let rest = &self.routes[packet.route as usize..];
        rest.iter().find(|&&hop| hop & SINK != 0).expect("every route ends in a sink") & !SINK
    }

    /// Packets lost so far on their way to a sink.
    pub(crate) fn lost_to(&self, sink: u32) -> u64 {
        self.lost_to[sink as usize]
    }

    /// Keeps a record of lost packets from now on.
    pub(crate) fn log_drops(&mut self) {
        self.log_drops = true;
    }

    /// Whether no packet is on any link.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Takes the record of lost packets.
    pub(crate) fn take_drops(&mut self) -> Vec<(Nanos, Packet)> {
        std::mem::take(&mut self.drop_log)
    }

    /// Carries out a change of the scenario.
    pub(crate) fn change(&mut self, now: Nanos, change: &Change, index: usize) {
        let mut gone = Vec::new();
        let heads = &mut self.heads;
        self.links.change(
            now,
            change,
            index,
            |packet, _| gone.push(packet),
            |link, next| heads.set(link, next),
        );
        for packet in gone {
            self.lose(now, packet);
        }
    }

    /// Packets in the queue of a direction, or in all queues of a medium.
    pub(crate) fn queued(&mut self, now: Nanos, link: LinkRef) -> u32 {
        match link {
            LinkRef::Wire(index) => self.links.queued(now, index),
            LinkRef::Medium(index) => self.links.media[index].queued(),
        }
    }

    /// Counters of a link.
    pub(crate) fn counters(&self, link: LinkRef) -> LinkCounters {
        match link {
            LinkRef::Wire(index) => {
                let c = self.links.counters(index);
                LinkCounters {
                    drops: c.dropped_queue + c.dropped_down,
                    losses: c.lost,
                    packets: c.delivered,
                    bytes: c.delivered_bytes,
                    marks: c.marked,
                    air: None,
                }
            }
            LinkRef::Medium(index) => {
                let c = self.links.media[index].counters();
                LinkCounters {
                    drops: c.dropped_queue + c.dropped_down,
                    losses: c.lost,
                    packets: c.delivered,
                    bytes: c.delivered_bytes,
                    marks: 0,
                    air: Some(c.airtime),
                }
            }
        }
    }
}

fn dropped(fate: Fate<Packet>) -> Option<Packet> {
    match fate {
        Fate::Dropped(packet, _) => Some(packet),
        Fate::Arrived(_) => None,
    }
}

/// A link as the measurement sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRef {
    Wire(usize),
    Medium(usize),
}

/// What a link has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkCounters {
    /// Dropped by the queue or a link that is down.
    pub(crate) drops: u64,
    /// Random loss, or given up.
    pub(crate) losses: u64,
    /// Packets that arrived.
    pub(crate) packets: u64,
    /// Bytes that arrived.
    pub(crate) bytes: u64,
    /// Packets marked instead of dropped.
    pub(crate) marks: u64,
    /// What happened on the air of a medium.
    pub(crate) air: Option<AirCounters>,
}

/// Whether the narrow key can order the events of a scenario.
pub(crate) fn narrow_fits(scenario: &Scenario) -> bool {
    Heads::<u64>::fits(Links::<Packet>::count(scenario), scenario.duration)
}
