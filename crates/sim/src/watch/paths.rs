//! From where to where packets go: addresses, ports and names of the paths that captures and logs speak of.
//!
//! Addresses are those of the test bed's blocks, one per host and link; a connection is opened to one address of its
//! server, and each subflow comes from the address of the link by which it leaves; one that is announced goes to an address
//! of its own. A subflow that is opened again comes from another port.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use anabranch_scenario::model::{Hop, IpVersion, Scenario};

/// `10.64.0.0/10`: 14 bits for the host and 8 for its link.
const NETWORK: u32 = (10 << 24) | (64 << 16);
/// `fd00:ab::`, a unique local prefix (RFC 4193).
const NETWORK6: [u16; 8] = [0xfd00, 0xab, 0, 0, 0, 0, 0, 0];
const HOSTS: usize = 1 << 14;
const LINKS: usize = 254;
/// Of servers, by connection.
const SERVER_PORTS: std::ops::Range<u16> = 10_001..30_001;
/// Of clients, by subflow.
const CLIENT_PORTS: std::ops::Range<u16> = 32_768..60_999;
/// Of datagram flows, at both ends.
const DATAGRAM_PORTS: std::ops::Range<u16> = 30_001..60_001;

/// One direction of a subflow, or a datagram flow.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Host and link at either end, the addresses, the flow.
    pub(super) name: String,
}

/// The paths of a scenario.
pub(super) struct Paths {
    /// By the endpoint that sends.
    pub(super) endpoints: Vec<Path>,
    pub(super) datagrams: Vec<Path>,
}

impl Paths {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut hosts = Hosts::default();
        let mut endpoints = Vec::new();
        for (index, connection) in scenario.connections.iter().enumerate() {
            let opened_to = last(&connection.subflows[0].hops);
            let server = hosts.address(connection.to, opened_to, connection.ip_version);
            let server = SocketAddr::new(server, port(SERVER_PORTS, index));
            for (number, subflow) in connection.subflows.iter().enumerate() {
                // One that is announced leads to a further address, even over the same link.
                let server = if subflow.announced {
                    let place = (last(&subflow.hops), number);
                    let further = hosts.further_address(connection.to, place, connection.ip_version);
                    SocketAddr::new(further, server.port())
                } else {
                    server
                };
                let client = hosts.address(connection.from, subflow.hops[0], connection.ip_version);
                let client = SocketAddr::new(client, port(CLIENT_PORTS, endpoints.len() / 2));
                let ends = [
                    (client, place(scenario, connection.from, subflow.hops[0])),
                    (server, place(scenario, connection.to, last(&subflow.hops))),
                ];
                let flow = format!("{}/{}", connection.name, subflow.name);
                endpoints.push(path(&ends[0], &ends[1], &flow));
                endpoints.push(path(&ends[1], &ends[0], &flow));
            }
        }
        let datagrams = scenario.datagrams.iter().enumerate().map(|(index, flow)| {
            let (first, last) = (flow.hops[0], last(&flow.hops));
            let port = port(DATAGRAM_PORTS, index);
            let from = SocketAddr::new(hosts.address(flow.from, first, flow.ip_version), port);
            let to = SocketAddr::new(hosts.address(flow.to, last, flow.ip_version), port);
            let places = [place(scenario, flow.from, first), place(scenario, flow.to, last)];
            let [there, here] = places;
            path(&(from, there), &(to, here), &flow.name)
        });
        let datagrams = datagrams.collect();
        Self { endpoints, datagrams }
    }
}

fn path(from: &(SocketAddr, String), to: &(SocketAddr, String), flow: &str) -> Path {
    let name = format!("{} to {}, {} to {}, {flow}", from.1, to.1, from.0.ip(), to.0.ip());
    Path { from: from.0, to: to.0, name }
}

/// The client's port in a later life of a subflow, given that of its first one, when there are so many subflows in all.
pub(super) fn later_port(first: u16, life: usize, subflows: usize) -> u16 {
    port(CLIENT_PORTS, usize::from(first - CLIENT_PORTS.start) + life * subflows)
}

fn last(hops: &[Hop]) -> Hop {
    *hops.last().expect("a path has hops")
}

fn port(range: std::ops::Range<u16>, index: usize) -> u16 {
    range.start + (index % usize::from(range.end - range.start)) as u16
}

/// Host and link, as the test bed's captures name them.
fn place(scenario: &Scenario, node: usize, hop: Hop) -> String {
    let link = match hop {
        Hop::Wire { link, .. } => &scenario.links[link].name,
        Hop::Medium { medium, .. } => &scenario.media[medium].name,
    };
    format!("{}/{link}", scenario.nodes[node].name)
}

/// Hosts in the order of their first use, each with its links in theirs.
#[derive(Default)]
struct Hosts(BTreeMap<usize, (usize, Vec<Place>)>);

/// Whether it is a medium, its number, and which of the addresses there.
type Place = (bool, usize, usize);

impl Hosts {
    fn address(&mut self, node: usize, hop: Hop, version: IpVersion) -> IpAddr {
        self.further_address(node, (hop, 0), version)
    }

    /// The address at a link with this number.
    fn further_address(&mut self, node: usize, (hop, which): (Hop, usize), version: IpVersion) -> IpAddr {
        let link = match hop {
            Hop::Wire { link, .. } => (false, link, which),
            Hop::Medium { medium, .. } => (true, medium, which),
        };
        let hosts = self.0.len();
        let (host, links) = self.0.entry(node).or_insert_with(|| (hosts, Vec::new()));
        let number = links.iter().position(|&known| known == link).unwrap_or_else(|| {
            links.push(link);
            links.len() - 1
        });
        let (host, number) = (*host % HOSTS, number % LINKS + 1);
        match version {
            IpVersion::V4 => Ipv4Addr::from_bits(NETWORK + (host << 8 | number) as u32).into(),
            IpVersion::V6 => {
                let mut words = NETWORK6;
                words[6..].copy_from_slice(&[host as u16, number as u16]);
                Ipv6Addr::from(words).into()
            }
        }
    }
}
