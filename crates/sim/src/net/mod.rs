//! The network: wires, media, routes, and the packets on them.

pub(crate) mod build;
mod interfaces;

use anabranch_link::{Drop, Medium, Nanos, Offer, Probability, Streams, Tally, Wire, medium::Delivery};
use anabranch_scenario::model::{Change, ChangeTarget, Loss, Scenario};

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
    /// Direction `2 * link` runs forward, `2 * link + 1` back.
    wires: Vec<Wire<Packet>>,
    media: Vec<Medium<Packet>>,
    medium_hops: Vec<MediumHop>,
    /// All routes, one after the other: hops, then the sink.
    routes: Vec<u32>,
    heads: Heads<K>,
    pub(crate) sacks: SackPool,
    /// Packets lost on their way to each sink.
    lost_to: Vec<u64>,
    /// Packets carried over one link.
    pub(crate) hops: u64,
    streams: Streams,
    /// Scratch: packets that a medium has just given up.
    given_up: Vec<Packet>,
    log_drops: bool,
    drop_log: Vec<(Nanos, Packet)>,
    tally: Tally,
}

impl<K: Key> Network<K> {
    /// Time and link of the next event.
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
        let Some(wire) = self.wires.get_mut(link) else { return self.advance_medium(now, link) };
        let packet = *wire.front();
        let arrived = wire.pop();
        self.heads.set(link, wire.next_arrival());
        self.hops += 1;
        if !arrived {
            self.tally.wire_lost(link, u32::from(packet.bytes));
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
        let Some(wire) = self.wires.get_mut(hop as usize) else {
            self.enter_medium(now, hop, Packet { route, ..make() });
            return;
        };
        match wire.offer_made(now, u32::from(bytes), &make) {
            Offer::Behind => wire.back_mut().route = route,
            Offer::First(arrives) => {
                wire.back_mut().route = route;
                self.heads.set(hop as usize, arrives);
            }
            Offer::Dropped(_) => self.lose(now, Packet { route, ..make() }),
        }
    }

    #[cold]
    fn enter_medium(&mut self, now: Nanos, hop: u32, packet: Packet) {
        let MediumHop { medium, station, .. } = self.medium_hops[hop as usize - self.wires.len()];
        let channel = &mut self.media[medium as usize];
        let refused: Result<(), Drop> = channel.offer(now, station as usize, packet);
        let next = channel.next_event();
        self.heads.set(self.wires.len() + medium as usize, next);
        if refused.is_err() {
            self.lose(now, packet);
        }
    }

    #[cold]
    fn advance_medium(&mut self, now: Nanos, link: usize) -> Option<(u32, Packet)> {
        let channel = &mut self.media[link - self.wires.len()];
        let mut arrived = None;
        let given_up = &mut self.given_up;
        channel.advance(now, |delivery| match delivery {
            Delivery::Arrived(packet) => arrived = Some(packet),
            Delivery::GivenUp(packet) => given_up.push(packet),
        });
        let next = channel.next_event();
        self.heads.set(link, next);
        while let Some(packet) = self.given_up.pop() {
            self.tally_medium(packet, false);
            self.lose(now, packet);
        }
        self.hops += u64::from(arrived.is_some());
        let packet = arrived?;
        self.tally_medium(packet, true);
        self.forward(now, packet)
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
        use anabranch_link::NEVER;
        self.wires.iter().all(|wire| wire.next_arrival() == NEVER)
            && self.media.iter().all(|medium| medium.next_event() == NEVER)
    }

    /// Takes the record of lost packets.
    pub(crate) fn take_drops(&mut self) -> Vec<(Nanos, Packet)> {
        std::mem::take(&mut self.drop_log)
    }

    /// Carries out a change of the scenario.
    pub(crate) fn change(&mut self, now: Nanos, change: &Change, index: usize) {
        match change.target {
            ChangeTarget::Link { link, forward, reverse } => {
                for (wire, wanted) in [(2 * link, forward), (2 * link + 1, reverse)] {
                    if wanted {
                        self.change_wire(now, wire, change, index);
                    }
                }
            }
            ChangeTarget::Medium(medium) => self.change_medium(now, medium, change),
        }
    }

    fn change_wire(&mut self, now: Nanos, index: usize, change: &Change, change_index: usize) {
        let wire = &mut self.wires[index];
        let mut gone = Vec::new();
        if let Some(rate_bps) = change.rate_bps {
            wire.set_rate(now, rate_bps);
        }
        if let Some(delay) = change.delay {
            wire.set_delay(now, delay);
        }
        if let Some(loss) = change.loss {
            let stream = self.streams.stream(&format!("change/{change_index}/wire/{index}"));
            wire.set_loss(probability(loss), stream);
        }
        if let Some(up) = change.up {
            wire.set_up(now, up, |packet| gone.push(packet));
        }
        let next = wire.next_arrival();
        self.heads.set(index, next);
        for packet in gone {
            self.lose(now, packet);
        }
    }

    fn change_medium(&mut self, now: Nanos, index: usize, change: &Change) {
        let medium = &mut self.media[index];
        let mut gone = Vec::new();
        if let Some(rate_bps) = change.rate_bps {
            medium.set_rate(rate_bps);
        }
        if let Some(delay) = change.delay {
            medium.set_delay(delay);
        }
        if let Some(loss) = change.loss {
            medium.set_loss(probability(loss));
        }
        if let Some(up) = change.up {
            medium.set_up(now, up, |packet| gone.push(packet));
        }
        let next = medium.next_event();
        self.heads.set(self.wires.len() + index, next);
        for packet in gone {
            self.lose(now, packet);
        }
    }

    /// Packets in each direction's queue and then in each medium's queues.
    pub(crate) fn queued(&mut self, now: Nanos, link: LinkRef) -> u32 {
        match link {
            LinkRef::Wire(index) => self.wires[index].queued(now),
            LinkRef::Medium(index) => self.media[index].queued(),
        }
    }

    /// Counters of a link.
    pub(crate) fn counters(&self, link: LinkRef) -> LinkCounters {
        match link {
            LinkRef::Wire(index) => {
                let c = self.wires[index].counters();
                LinkCounters {
                    drops: c.dropped_queue + c.dropped_down,
                    losses: c.lost,
                    packets: c.delivered,
                    bytes: c.delivered_bytes,
                }
            }
            LinkRef::Medium(index) => {
                let c = self.media[index].counters();
                LinkCounters {
                    drops: c.dropped_queue + c.dropped_down,
                    losses: c.lost,
                    packets: c.delivered,
                    bytes: c.delivered_bytes,
                }
            }
        }
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
    /// Full queue or link down.
    pub(crate) drops: u64,
    /// Random loss, or given up.
    pub(crate) losses: u64,
    /// Packets that arrived.
    pub(crate) packets: u64,
    /// Bytes that arrived.
    pub(crate) bytes: u64,
}

fn probability(loss: Loss) -> Probability {
    match loss {
        Loss::None => Probability::ZERO,
        Loss::Bernoulli(p) => Probability::new(p),
    }
}

/// Whether the narrow key can order the events of a scenario.
pub(crate) fn narrow_fits(scenario: &Scenario) -> bool {
    Heads::<u64>::fits(2 * scenario.links.len() + scenario.media.len(), scenario.duration)
}
