//! From a scenario to links and routes.

use std::collections::BTreeMap;

use anabranch_link::{Links, Place, Streams};
use anabranch_scenario::model::{Hop, Scenario};

use super::{Heads, Key, MediumHop, Network, SINK};
use crate::packet::SackPool;

impl<K: Key> Network<K> {
    /// The links of a scenario, without packets, and `sinks` places for packets to go.
    pub(crate) fn new(scenario: &Scenario, streams: Streams, sinks: usize) -> Self {
        let links = Links::new(scenario, streams);
        let tally = links.tally(scenario);
        Self {
            heads: Heads::new(links.first_medium() + links.media.len(), scenario.duration),
            links,
            medium_hops: Vec::new(),
            routes: Vec::new(),
            sacks: SackPool::default(),
            lost_to: vec![0; sinks],
            hops: 0,
            gone: Vec::new(),
            log_drops: false,
            drop_log: Vec::new(),
            tally,
        }
    }
}

/// Adds routes to a network; finds the same hop of a medium again.
#[derive(Default)]
pub(crate) struct Router {
    stations: BTreeMap<(usize, usize, usize), u32>,
}

impl Router {
    /// Adds a route and returns its position.
    pub(crate) fn add<K: Key>(
        &mut self,
        network: &mut Network<K>,
        scenario: &Scenario,
        hops: impl Iterator<Item = Hop>,
        sink: u32,
    ) -> u32 {
        let position = u32::try_from(network.routes.len()).expect("fewer than 2^32 route entries");
        for hop in hops {
            let code = match hop {
                Hop::Wire { link, forward } => match network.links.place(2 * link + usize::from(!forward)) {
                    Place::Wire(index) => index,
                    Place::Shaped(index) => network.links.wires.len() + index,
                },
                Hop::Medium { medium, from, to } => {
                    let next = (network.links.first_medium() + network.medium_hops.len()) as u32;
                    *self.stations.entry((medium, from, to)).or_insert_with(|| {
                        let stations = &scenario.media[medium].stations;
                        let station_of = |wanted| {
                            let station = stations.iter().position(|&node| node == wanted);
                            station.expect("the scenario checked the stations") as u32
                        };
                        network.medium_hops.push(MediumHop {
                            medium: medium as u32,
                            station: station_of(from),
                            to: station_of(to),
                        });
                        next
                    }) as usize
                }
            };
            network.routes.push(u32::try_from(code).expect("fewer than 2^31 links"));
        }
        network.routes.push(SINK | sink);
        position
    }
}
