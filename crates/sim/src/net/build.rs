//! From a scenario to links and routes.

use std::collections::BTreeMap;

use anabranch_link::{Limit, Medium, MediumConfig, Streams, Tally, Wire, WireConfig};
use anabranch_scenario::model::{self, Hop, QueueLimit, Scenario};

use super::{Heads, Key, MediumHop, Network, SINK, probability};
use crate::packet::SackPool;

impl<K: Key> Network<K> {
    /// The links of a scenario, without packets, and `sinks` places for packets to go.
    pub(crate) fn new(scenario: &Scenario, streams: Streams, sinks: usize) -> Self {
        let wires = scenario
            .links
            .iter()
            .enumerate()
            .flat_map(|(index, link)| [(2 * index, &link.forward), (2 * index + 1, &link.reverse)])
            .map(|(index, wire)| Wire::new(wire_config(wire), streams.stream(&format!("wire/{index}"))))
            .collect();
        let media = scenario
            .media
            .iter()
            .enumerate()
            .map(|(index, medium)| {
                let rng = streams.stream(&format!("medium/{index}"));
                Medium::new(medium_config(medium), medium.stations.len(), rng)
            })
            .collect();
        Self {
            wires,
            media,
            medium_hops: Vec::new(),
            routes: Vec::new(),
            heads: Heads::new(2 * scenario.links.len() + scenario.media.len(), scenario.duration),
            sacks: SackPool::default(),
            lost_to: vec![0; sinks],
            hops: 0,
            streams,
            given_up: Vec::new(),
            log_drops: false,
            drop_log: Vec::new(),
            tally: Tally::new(2 * scenario.links.len(), scenario.media.iter().map(|of| of.stations.len())),
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
                Hop::Wire { link, forward } => 2 * link + usize::from(!forward),
                Hop::Medium { medium, from, to } => {
                    let next = (network.wires.len() + network.medium_hops.len()) as u32;
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
