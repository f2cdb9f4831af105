//! The emulated network without a clock: wires, media, routes and changes, driven by the times they are given.
//!
//! The order of events is the simulator's: by time, at one time by the number of the link (wires first, then
//! media), and changes after links. Whoever drives the network offers packets at times that do not go back,
//! and takes all events up to a time before offering a packet at that time.

use anabranch_link::{
    Drop, Frame, Limit, Medium, MediumConfig, NEVER, Offer, Probability, Streams, Tally, Wire,
};
use anabranch_link::{WireConfig, medium::Delivery};
use anabranch_scenario::model::{
    self, Attachment, Change, ChangeTarget, Hop, Interface, Loss, QueueLimit, Scenario,
};

use super::counters::{Counters, InterfaceCounters, LinkCounters, RouteCounters};
use crate::Nanos;

/// A packet on its way: where it is, and which buffer holds its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parcel {
    /// Index of its route.
    pub(crate) route: u32,
    /// Position in the table of steps.
    step: u32,
    /// Number of the buffer, of no concern to the network.
    pub(crate) buffer: u32,
    /// Size of the whole IP packet.
    pub(crate) bytes: u32,
}

impl Frame for Parcel {
    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// Where a route leads next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Wire(usize),
    Medium { medium: usize, station: usize, to: usize },
    Exit(usize),
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has reached the end of its route.
    Delivered {
        /// When it got there, which may be before the time the network has been brought to.
        due: Nanos,
        /// The device by which it leaves.
        exit: usize,
        /// The packet.
        parcel: Parcel,
    },
    /// It is lost, and has been counted.
    Lost(Parcel),
}

/// Wires, media and routes, with the packets on them.
pub(crate) struct Network {
    /// Direction `2 * link` runs forward, `2 * link + 1` back.
    wires: Vec<Wire<Parcel>>,
    media: Vec<Medium<Parcel>>,
    /// Time of the next event of each wire, then of each medium.
    heads: Vec<Nanos>,
    /// All routes, one after the other: hops, then the exit.
    steps: Vec<Step>,
    /// Position of the first step of each route.
    starts: Vec<u32>,
    changes: Vec<Change>,
    next_change: usize,
    /// Time of the scenario's beginning on the clock of the driver.
    zero: Nanos,
    streams: Streams,
    routes: Vec<RouteCounters>,
    /// Lost packets that have not been handed out yet.
    gone: Vec<Parcel>,
    interfaces: Vec<Interface>,
    tally: Tally,
}

impl Network {
    /// The links of a scenario, without packets. A route is its hops and the device by which it leaves.
    ///
    /// # Panics
    /// If a route has no hops, or one names a link or a station that the scenario does not have.
    pub(crate) fn new<'a>(
        scenario: &Scenario,
        seed: u64,
        routes: impl IntoIterator<Item = (&'a [Hop], usize)>,
    ) -> Self {
        let streams = Streams::new(seed);
        let wires: Vec<_> = scenario
            .links
            .iter()
            .flat_map(|link| [&link.forward, &link.reverse])
            .enumerate()
            .map(|(index, wire)| Wire::new(wire_config(wire), streams.stream(&format!("wire/{index}"))))
            .collect();
        let media: Vec<_> = scenario
            .media
            .iter()
            .enumerate()
            .map(|(index, medium)| {
                let rng = streams.stream(&format!("medium/{index}"));
                Medium::new(medium_config(medium), medium.stations.len(), rng)
            })
            .collect();
        let (mut steps, mut starts) = (Vec::new(), Vec::new());
        for (hops, exit) in routes {
            assert!(!hops.is_empty(), "a route has at least one hop");
            starts.push(u32::try_from(steps.len()).expect("fewer than 2^32 hops"));
            steps.extend(hops.iter().map(|&hop| step(scenario, hop)));
            steps.push(Step::Exit(exit));
        }
        Self {
            heads: vec![NEVER; wires.len() + media.len()],
            wires,
            media,
            routes: vec![RouteCounters::default(); starts.len()],
            steps,
            starts,
            changes: scenario.changes.clone(),
            next_change: 0,
            zero: 0,
            streams,
            gone: Vec::new(),
            interfaces: scenario.interfaces.clone(),
            tally: Tally::new(2 * scenario.links.len(), scenario.media.iter().map(|of| of.stations.len())),
        }
    }

    /// Sets the time at which the scenario begins; its changes are counted from there.
    pub(crate) fn begin_at(&mut self, zero: Nanos) {
        self.zero = zero;
    }

    /// Time of the next event, [`NEVER`] if none is to come.
    pub(crate) fn next_event(&self) -> Nanos {
        if self.gone.is_empty() { self.next_link().0.min(self.next_change_at()) } else { 0 }
    }

    /// The earliest event of a link; of equals, the one of the lowest number.
    fn next_link(&self) -> (Nanos, usize) {
        let mut first = (NEVER, 0);
        for (link, &time) in self.heads.iter().enumerate() {
            if time < first.0 {
                first = (time, link);
            }
        }
        first
    }

    fn next_change_at(&self) -> Nanos {
        self.changes.get(self.next_change).map_or(NEVER, |change| self.zero.saturating_add(change.at))
    }

    /// A packet enters its route at `now`, to which the network has been brought by [`Network::advance`].
    pub(crate) fn offer(&mut self, now: Nanos, route: usize, buffer: u32, bytes: u32) {
        self.routes[route].packets_in += 1;
        let parcel = Parcel { route: route as u32, step: self.starts[route], buffer, bytes };
        let outcome = self.enter(now, parcel);
        assert!(outcome.is_none(), "no link takes a packet to its exit at once: {outcome:?}");
    }

    /// The next packet that has come to its end at or before `until`; `None` once all that happens up to then
    /// has happened.
    pub(crate) fn advance(&mut self, until: Nanos) -> Option<Outcome> {
        loop {
            if let Some(parcel) = self.gone.pop() {
                return Some(Outcome::Lost(parcel));
            }
            let ((time, link), change_at) = (self.next_link(), self.next_change_at());
            if time.min(change_at) > until || time.min(change_at) == NEVER {
                return None;
            }
            let delivered = if time <= change_at {
                self.advance_link(time, link)
            } else {
                self.carry_out_change(change_at);
                None
            };
            if delivered.is_some() {
                return delivered;
            }
        }
    }

    fn advance_link(&mut self, now: Nanos, link: usize) -> Option<Outcome> {
        let Some(wire) = self.wires.get_mut(link) else { return self.advance_medium(now, link) };
        let parcel = *wire.front();
        let arrived = wire.pop();
        self.heads[link] = wire.next_arrival();
        if !arrived {
            self.tally.wire_lost(link, parcel.bytes);
            self.lose(parcel, Drop::Loss);
            return None;
        }
        self.enter(now, Parcel { step: parcel.step + 1, ..parcel })
    }

    fn advance_medium(&mut self, now: Nanos, link: usize) -> Option<Outcome> {
        let medium = &mut self.media[link - self.wires.len()];
        let mut arrived = None;
        let (gone, routes, tally) = (&mut self.gone, &mut self.routes, &mut self.tally);
        let steps = &self.steps;
        medium.advance(now, |delivery| match delivery {
            Delivery::Arrived(parcel) => {
                tally_medium(tally, steps[parcel.step as usize], parcel, true);
                arrived = Some(parcel);
            }
            Delivery::GivenUp(parcel) => {
                tally_medium(tally, steps[parcel.step as usize], parcel, false);
                routes[parcel.route as usize].count(Drop::Loss);
                gone.push(parcel);
            }
        });
        self.heads[link] = medium.next_event();
        arrived.and_then(|parcel| self.enter(now, Parcel { step: parcel.step + 1, ..parcel }))
    }

    /// Takes the step that a parcel has come to.
    fn enter(&mut self, now: Nanos, parcel: Parcel) -> Option<Outcome> {
        match self.steps[parcel.step as usize] {
            Step::Wire(index) => match self.wires[index].offer(now, parcel) {
                Offer::Behind => {}
                Offer::First(arrives) => self.heads[index] = arrives,
                Offer::Dropped(why) => self.lose(parcel, why),
            },
            Step::Medium { medium, station, .. } => {
                let refused = self.media[medium].offer(now, station, parcel);
                self.heads[self.wires.len() + medium] = self.media[medium].next_event();
                if let Err(why) = refused {
                    self.lose(parcel, why);
                }
            }
            Step::Exit(exit) => {
                let route = &mut self.routes[parcel.route as usize];
                route.packets_out += 1;
                route.bytes_out += u64::from(parcel.bytes);
                return Some(Outcome::Delivered { due: now, exit, parcel });
            }
        }
        None
    }

    fn lose(&mut self, parcel: Parcel, why: Drop) {
        self.routes[parcel.route as usize].count(why);
        self.gone.push(parcel);
    }

    /// The kernel has refused a packet that had been delivered.
    pub(crate) fn refuse(&mut self, parcel: Parcel) {
        let route = &mut self.routes[parcel.route as usize];
        route.packets_out -= 1;
        route.bytes_out -= u64::from(parcel.bytes);
        route.refused += 1;
    }

    fn carry_out_change(&mut self, now: Nanos) {
        let index = self.next_change;
        self.next_change += 1;
        let change = self.changes[index];
        match change.target {
            ChangeTarget::Link { link, forward, reverse } => {
                for (wire, wanted) in [(2 * link, forward), (2 * link + 1, reverse)] {
                    if wanted {
                        self.change_wire(now, wire, &change, index);
                    }
                }
            }
            ChangeTarget::Medium(medium) => self.change_medium(now, medium, &change),
        }
    }

    fn change_wire(&mut self, now: Nanos, index: usize, change: &Change, change_index: usize) {
        let wire = &mut self.wires[index];
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
            let (gone, routes) = (&mut self.gone, &mut self.routes);
            wire.set_up(now, up, |parcel| {
                routes[parcel.route as usize].count(Drop::Down);
                gone.push(parcel);
            });
        }
        self.heads[index] = wire.next_arrival();
    }

    fn change_medium(&mut self, now: Nanos, index: usize, change: &Change) {
        let medium = &mut self.media[index];
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
            let (gone, routes) = (&mut self.gone, &mut self.routes);
            medium.set_up(now, up, |parcel| {
                routes[parcel.route as usize].count(Drop::Down);
                gone.push(parcel);
            });
        }
        self.heads[self.wires.len() + index] = medium.next_event();
    }

    /// What an interface has carried, as the simulator counts it: its node has sent what its link has transmitted, lost
    /// or not, and received what has arrived at it.
    fn carried_by(&self, interface: &Interface) -> InterfaceCounters {
        let (up_bytes, down_bytes) = match interface.attachment {
            Attachment::Link { link, sends_forward } => {
                let (up, down) =
                    (2 * link + usize::from(!sends_forward), 2 * link + usize::from(sends_forward));
                let arrived = |wire: usize| self.wires[wire].counters().delivered_bytes;
                (arrived(up) + self.tally.lost_by(up), arrived(down))
            }
            Attachment::Medium { medium, station } => self.tally.of_station(medium, station),
        };
        InterfaceCounters { up_bytes, down_bytes }
    }

    /// Writes the counters of links, routes and interfaces at `now`, to which the network has been brought.
    pub(crate) fn count(&mut self, now: Nanos, counters: &mut Counters) {
        counters.links.clear();
        counters.links.extend(self.wires.iter_mut().map(|wire| {
            let queued = wire.queued(now);
            let c = wire.counters();
            LinkCounters {
                queued,
                packets: c.delivered,
                bytes: c.delivered_bytes,
                dropped_queue: c.dropped_queue,
                dropped_down: c.dropped_down,
                lost: c.lost,
            }
        }));
        counters.links.extend(self.media.iter().map(|medium| {
            let c = medium.counters();
            LinkCounters {
                queued: medium.queued(),
                packets: c.delivered,
                bytes: c.delivered_bytes,
                dropped_queue: c.dropped_queue,
                dropped_down: c.dropped_down,
                lost: c.lost,
            }
        }));
        counters.routes.clone_from(&self.routes);
        counters.interfaces.clear();
        counters.interfaces.extend(self.interfaces.iter().map(|of| self.carried_by(of)));
    }
}

/// A packet has left its station on a medium, and arrived at the other unless it was given up.
fn tally_medium(tally: &mut Tally, step: Step, parcel: Parcel, has_arrived: bool) {
    let Step::Medium { medium, station, to } = step else {
        unreachable!("a packet on a medium is at such a step")
    };
    tally.medium_carried(medium, station, has_arrived.then_some(to), parcel.bytes);
}

fn step(scenario: &Scenario, hop: Hop) -> Step {
    match hop {
        Hop::Wire { link, forward } => {
            assert!(link < scenario.links.len(), "the scenario has no link {link}");
            Step::Wire(2 * link + usize::from(!forward))
        }
        Hop::Medium { medium, from, to } => {
            let stations = &scenario.media[medium].stations;
            let station_of = |wanted| {
                let station = stations.iter().position(|&node| node == wanted);
                station.expect("the scenario checked the stations")
            };
            Step::Medium { medium, station: station_of(from), to: station_of(to) }
        }
    }
}

fn wire_config(wire: &model::Wire) -> WireConfig {
    WireConfig {
        rate_bps: wire.rate_bps,
        delay: wire.delay,
        limit: limit(wire.queue),
        loss: probability(wire.loss),
    }
}

fn medium_config(medium: &model::Medium) -> MediumConfig {
    MediumConfig {
        rate_bps: medium.rate_bps,
        basic_rate_bps: medium.basic_rate_bps,
        delay: medium.delay,
        limit: limit(medium.queue),
        loss: probability(medium.loss),
        slot: medium.slot,
        sifs: medium.sifs,
        preamble: medium.preamble,
        mac_header_bytes: medium.mac_header_bytes,
        cw_min: medium.cw_min,
        cw_max: medium.cw_max,
        retry_limit: medium.retry_limit,
    }
}

fn limit(queue: QueueLimit) -> Limit {
    match queue {
        QueueLimit::Unlimited => Limit::Unlimited,
        QueueLimit::Packets(packets) => Limit::Packets(packets),
        QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
    }
}

fn probability(loss: Loss) -> Probability {
    match loss {
        Loss::None => Probability::ZERO,
        Loss::Bernoulli(p) => Probability::new(p),
    }
}

#[cfg(test)]
mod tests;
