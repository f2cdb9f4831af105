//! The emulated network without a clock: links, routes and changes, driven by the times they are given.
//!
//! The order of events is the simulator's: by time, at one time by the number of the link (see
//! [`anabranch_link::Links`]), and changes after links. Whoever drives the network offers packets at times that do not go back,
//! and takes all events up to a time before offering a packet at that time.

use anabranch_link::{Drop, Fate, Frame, Links, NEVER, Offer, Place, Streams, Tally, medium::Delivery};
use anabranch_scenario::model::{Change, Hop, Interface, Scenario, Strips};

use super::{
    counters::{Counters, InterfaceCounters, LinkCounters, RouteCounters},
    headers::Headers,
    middlebox,
};
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
    /// What its headers say of it.
    pub(crate) headers: Headers,
    /// It has been marked on its way; its bytes have not.
    pub(crate) marked: bool,
}

impl Frame for Parcel {
    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u64 {
        self.headers.flow
    }

    fn is_ecn_capable(&self) -> bool {
        self.headers.ecn_capable
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

/// Where a route leads next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Wire(usize),
    Shaped(usize),
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

/// Links and routes, with the packets on them.
pub(crate) struct Network {
    links: Links<Parcel>,
    /// Time of the next event of each link, by its number.
    heads: Vec<Nanos>,
    /// All routes, one after the other: hops, then the exit.
    steps: Vec<Step>,
    /// Position of the first step of each route.
    starts: Vec<u32>,
    changes: Vec<Change>,
    next_change: usize,
    /// Time of the scenario's beginning on the clock of the driver.
    zero: Nanos,
    routes: Vec<RouteCounters>,
    /// Lost packets that have not been handed out yet.
    gone: Vec<Parcel>,
    interfaces: Vec<Interface>,
    tally: Tally,
    /// What middleboxes remove on each route.
    strips: Vec<Strips>,
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
        let links = Links::new(scenario, Streams::new(seed));
        let tally = links.tally(scenario);
        let (mut steps, mut starts, mut strips) = (Vec::new(), Vec::new(), Vec::new());
        for (hops, exit) in routes {
            assert!(!hops.is_empty(), "a route has at least one hop");
            starts.push(u32::try_from(steps.len()).expect("fewer than 2^32 hops"));
            steps.extend(hops.iter().map(|&hop| step(scenario, &links, hop)));
            steps.push(Step::Exit(exit));
            strips.push(middlebox::on_path(&scenario.links, hops));
        }
        Self {
            heads: vec![NEVER; links.first_medium() + links.media.len()],
            links,
            routes: vec![RouteCounters::default(); starts.len()],
            steps,
            starts,
            changes: scenario.changes.clone(),
            next_change: 0,
            zero: 0,
            gone: Vec::new(),
            interfaces: scenario.interfaces.clone(),
            tally,
            strips,
        }
    }

    /// What middleboxes remove from the packets of a route.
    pub(crate) fn strips(&self, route: u32) -> Strips {
        self.strips[route as usize]
    }

    /// Sets the time at which the scenario begins; its changes and traces are counted from there.
    pub(crate) fn begin_at(&mut self, zero: Nanos) {
        self.zero = zero;
        self.links.begin_at(zero);
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
    pub(crate) fn offer(&mut self, now: Nanos, route: usize, buffer: u32, bytes: u32, headers: Headers) {
        self.routes[route].packets_in += 1;
        let step = self.starts[route];
        let parcel = Parcel { route: route as u32, step, buffer, bytes, headers, marked: false };
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
        let Some(wire) = self.links.wires.get_mut(link) else { return self.advance_other(now, link) };
        let parcel = *wire.front();
        let arrived = wire.pop();
        self.heads[link] = wire.next_arrival();
        if !arrived {
            self.tally.lost_on_the_way(link, parcel.bytes);
            self.lose(parcel, Drop::Loss);
            return None;
        }
        self.enter(now, Parcel { step: parcel.step + 1, ..parcel })
    }

    fn advance_other(&mut self, now: Nanos, link: usize) -> Option<Outcome> {
        let place = link - self.links.wires.len();
        let mut arrived = None;
        let (gone, routes) = (&mut self.gone, &mut self.routes);
        let (tally, steps) = (&mut self.tally, &self.steps);
        let mut lose = |parcel: Parcel, why| {
            routes[parcel.route as usize].count(why);
            gone.push(parcel);
        };
        self.heads[link] = if let Some(shaped) = self.links.shaped.get_mut(place) {
            shaped.advance(now, |fate| match fate {
                Fate::Arrived(parcel) => arrived = Some(parcel),
                Fate::Dropped(parcel, why) => {
                    if why == Drop::Loss {
                        tally.lost_on_the_way(link, parcel.bytes);
                    }
                    lose(parcel, why);
                }
            });
            shaped.next_event()
        } else {
            let medium = &mut self.links.media[place - self.links.shaped.len()];
            medium.advance(now, |delivery| match delivery {
                Delivery::Arrived(parcel) => {
                    tally_medium(tally, steps[parcel.step as usize], parcel, true);
                    arrived = Some(parcel);
                }
                Delivery::GivenUp(parcel) => {
                    tally_medium(tally, steps[parcel.step as usize], parcel, false);
                    lose(parcel, Drop::Loss);
                }
            });
            medium.next_event()
        };
        arrived.and_then(|parcel| self.enter(now, Parcel { step: parcel.step + 1, ..parcel }))
    }

    /// Takes the step that a parcel has come to.
    fn enter(&mut self, now: Nanos, parcel: Parcel) -> Option<Outcome> {
        match self.steps[parcel.step as usize] {
            Step::Wire(index) => match self.links.wires[index].offer(now, parcel) {
                Offer::Behind => {}
                Offer::First(arrives) => self.heads[index] = arrives,
                Offer::Dropped(why) => self.lose(parcel, why),
            },
            Step::Shaped(index) => {
                let (gone, routes) = (&mut self.gone, &mut self.routes);
                let link = &mut self.links.shaped[index];
                link.offer(now, parcel, |fate| {
                    let Fate::Dropped(parcel, why) = fate else {
                        unreachable!("packets arrive when the link is advanced")
                    };
                    routes[parcel.route as usize].count(why);
                    gone.push(parcel);
                });
                self.heads[self.links.wires.len() + index] = link.next_event();
            }
            Step::Medium { medium, station, .. } => {
                let refused = self.links.media[medium].offer(now, station, parcel);
                self.heads[self.links.first_medium() + medium] = self.links.media[medium].next_event();
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
        let (gone, routes, heads) = (&mut self.gone, &mut self.routes, &mut self.heads);
        self.links.change(
            now,
            &change,
            index,
            |parcel: Parcel, why| {
                routes[parcel.route as usize].count(why);
                gone.push(parcel);
            },
            |link, next| heads[link] = next,
        );
    }

    /// Writes the counters of links, routes and interfaces at `now`, to which the network has been brought.
    pub(crate) fn count(&mut self, now: Nanos, counters: &mut Counters) {
        counters.links.clear();
        for direction in 0..self.links.wires.len() {
            let c = self.links.counters(direction);
            counters.links.push(LinkCounters {
                queued: self.links.queued(now, direction),
                packets: c.delivered,
                bytes: c.delivered_bytes,
                dropped_queue: c.dropped_queue,
                dropped_down: c.dropped_down,
                lost: c.lost,
                marked: c.marked,
                air: None,
            });
        }
        counters.links.extend(self.links.media.iter().map(|medium| {
            let c = medium.counters();
            LinkCounters {
                queued: medium.queued(),
                packets: c.delivered,
                bytes: c.delivered_bytes,
                dropped_queue: c.dropped_queue,
                dropped_down: c.dropped_down,
                lost: c.lost,
                marked: 0,
                air: Some(c.airtime),
            }
        }));
        counters.routes.clone_from(&self.routes);
        counters.interfaces.clear();
        counters.interfaces.extend(self.interfaces.iter().map(|interface| {
            let (up_bytes, down_bytes) = self.links.carried_by(&self.tally, interface);
            InterfaceCounters { up_bytes, down_bytes }
        }));
    }
}

/// A packet has left its station on a medium, and arrived at the other unless it was given up.
fn tally_medium(tally: &mut Tally, step: Step, parcel: Parcel, has_arrived: bool) {
    let Step::Medium { medium, station, to } = step else {
        unreachable!("a packet on a medium is at such a step")
    };
    tally.medium_carried(medium, station, has_arrived.then_some(to), parcel.bytes);
}

fn step(scenario: &Scenario, links: &Links<Parcel>, hop: Hop) -> Step {
    match hop {
        Hop::Wire { link, forward } => {
            assert!(link < scenario.links.len(), "the scenario has no link {link}");
            match links.place(2 * link + usize::from(!forward)) {
                Place::Wire(index) => Step::Wire(index),
                Place::Shaped(index) => Step::Shaped(index),
            }
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

#[cfg(test)]
mod tests;
