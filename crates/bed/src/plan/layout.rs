//! Hosts, interfaces, addresses and paths of a scenario.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use anabranch_cc::Hosts;
use anabranch_link::Streams;
use anabranch_scenario::model::{self, Hop, IpVersion, Protocol, Scenario, Traffic};

use super::{
    Address, Algorithm, CongestionSource, ConnectionPlan, DatagramPlan, Endpoint, Host, Interface, Path,
    Plan, agents, endpoints, individual, refusals, relays,
    transport::{self, KernelTransport},
};
use crate::BedError;

/// `10.64.0.0/10`, a quarter of the private block: the third byte and the low bits of the second are the host.
const NETWORK: u32 = (10 << 24) | (64 << 16);
/// `fd00:ab::`, a unique local prefix (RFC 4193): the last word but one is the host.
const NETWORK6: [u16; 8] = [0xfd00, 0xab, 0, 0, 0, 0, 0, 0];
const HOSTS_MAX: usize = 500;
const ADDRESSES_MAX: usize = 254;
const FLOWS_MAX: usize = 10_000;
const CONNECTION_PORTS: u16 = 10_001;
const DATAGRAM_PORTS: u16 = 30_001;
/// Routing tables below this are left alone: 253 to 255 have meanings.
const FIRST_TABLE: u32 = 1_000;
/// IPv4 or IPv6, and UDP.
const UDP_HEADERS: u32 = 28;
const UDP_HEADERS6: u32 = 48;

/// What is to be built for a scenario, whose workloads are connections (`anabranch_scenario::workload`), and a seed.
///
/// # Errors
/// [`BedError::Input`] for what a kernel cannot do, with what to change.
///
/// # Panics
/// If a workload is among the connections.
pub fn plan(scenario: &Scenario, seed: u64, source: CongestionSource) -> Result<Plan, BedError> {
    let flows = scenario.connections.len().max(scenario.datagrams.len());
    if flows > FLOWS_MAX {
        return Err(refuse(format!("{flows} flows; the test bed takes {FLOWS_MAX}")));
    }
    if let Some(what) = refusals::mechanics(scenario) {
        return Err(refuse(what));
    }
    agents::check(scenario)?;
    let individual = individual::nodes(scenario);
    let mut layout = Layout { plan: Plan { seed, ..Plan::default() }, individual, ..Layout::default() };
    for (index, connection) in scenario.connections.iter().enumerate() {
        layout.connection(scenario, index, connection, seed, source)?;
    }
    for (index, datagram) in scenario.datagrams.iter().enumerate() {
        layout.datagram(scenario, index, datagram, seed)?;
    }
    if scenario.measure.scheduling {
        let note = "measure.scheduling: the kernel does not tell what its scheduler gives to subflows";
        layout.plan.notes.push(note.to_owned());
    }
    layout.agents(scenario);
    Ok(layout.finish())
}

pub(super) fn refuse(text: String) -> BedError {
    BedError::Input(format!("--engine kernel: {text}"))
}

/// A plan in the making.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) plan: Plan,
    /// By node.
    pub(super) hosts: BTreeMap<usize, HostInMaking>,
    /// The first connection that fixed a setting: by node and name.
    sysctls: BTreeMap<(usize, &'static str), (String, String)>,
    /// The MPTCP connection whose subflows a client node's path manager opens.
    pub(super) mptcp_clients: BTreeMap<usize, usize>,
    /// Nodes at which MPTCP connections are accepted, with the first of them.
    pub(super) mptcp_servers: BTreeMap<usize, usize>,
    /// Nodes whose path manager is in user space.
    pub(super) individual: BTreeSet<usize>,
    params: BTreeMap<String, (Vec<u32>, String)>,
}

#[derive(Default)]
pub(super) struct HostInMaking {
    /// Index into `Plan::hosts`.
    pub(super) index: usize,
    interfaces: BTreeMap<(bool, usize), usize>,
    addresses: usize,
}

/// The link or medium of a hop, as a key.
fn link_of(hop: Hop) -> (bool, usize) {
    match hop {
        Hop::Wire { link, .. } => (false, link),
        Hop::Medium { medium, .. } => (true, medium),
    }
}

impl Layout {
    fn connection(
        &mut self,
        scenario: &Scenario,
        index: usize,
        model: &model::Connection,
        seed: u64,
        source: CongestionSource,
    ) -> Result<(), BedError> {
        let is_workload = matches!(model.traffic, Traffic::Flows(_));
        assert!(!is_workload, "workloads are connections before a plan is made");
        let congestion = self.congestion(model, source)?;
        let transport = KernelTransport::new(model);
        let (client, server) = (self.host(scenario, model.from)?, self.host(scenario, model.to)?);
        for node in [model.from, model.to] {
            self.settle(scenario, node, index, &transport)?;
        }
        self.plan.notes.extend(transport.notes.iter().cloned());
        if source == CongestionSource::Native {
            self.plan.notes.extend(transport::not_native(model));
        }
        let shared = match model.protocol {
            // All flows of a workload take the same paths.
            Protocol::Tcp => index.checked_sub(1).filter(|&last| {
                model.member_of.is_some() && scenario.connections[last].member_of == model.member_of
            }),
            Protocol::Mptcp => self.shared_endpoints(scenario, index, model)?,
        };
        let is_first = shared.is_none();
        let (server_address, client_addresses, paths) = match shared {
            Some(other) => {
                let other = &self.plan.connections[other];
                (other.server_address, other.client_addresses.clone(), other.paths.clone())
            }
            None => self.paths(scenario, model, &transport)?,
        };
        let joins = self.joins(scenario, model, &client_addresses);
        let start = model.traffic.start();
        let mut stream = Streams::new(seed).stream(&format!("start/{}", model.name));
        self.plan.connections.push(ConnectionPlan {
            client,
            server,
            client_addresses,
            server_address,
            port: CONNECTION_PORTS + index as u16,
            paths,
            joins,
            open_at: start.draw(|bound| stream.below(bound)),
            congestion,
            pacing: model.transport.pacing && model.protocol == Protocol::Tcp,
        });
        if is_first {
            self.events(scenario, index);
        }
        Ok(())
    }

    /// The kernel's name of a connection's congestion control, which will be loaded if it is ours.
    fn congestion(
        &mut self,
        model: &model::Connection,
        source: CongestionSource,
    ) -> Result<String, BedError> {
        let congestion = &model.subflows[0].congestion;
        if model.subflows.iter().any(|subflow| subflow.congestion != *congestion) {
            return Err(refuse(format!(
                "connection {}: its subflows differ in congestion control; a socket of the kernel has one",
                model.name
            )));
        }
        if source == CongestionSource::Native {
            return Ok(congestion.name.clone());
        }
        let algorithm = anabranch_cc::find(&congestion.name).expect("the scenario checked the name");
        if algorithm.hosts() != Hosts::Both {
            let name = &congestion.name;
            return Err(refuse(format!("connection {}: {name} runs in the simulator only", model.name)));
        }
        let (params, first) = self
            .params
            .entry(congestion.name.clone())
            .or_insert_with(|| (congestion.params.clone(), model.name.clone()));
        if *params != congestion.params {
            return Err(refuse(format!(
                "connections {first} and {} give {} different parameters; the kernel holds one set per algorithm",
                model.name, congestion.name
            )));
        }
        Ok(anabranch_kernel::kernel_name(algorithm))
    }

    /// The host of a node.
    fn host(&mut self, scenario: &Scenario, node: usize) -> Result<usize, BedError> {
        if let Some(host) = self.hosts.get(&node) {
            return Ok(host.index);
        }
        let index = self.plan.hosts.len();
        if index == HOSTS_MAX {
            return Err(refuse(format!(
                "traffic begins or ends at more than {HOSTS_MAX} nodes, the most of the test bed"
            )));
        }
        self.hosts.insert(node, HostInMaking { index, ..HostInMaking::default() });
        self.plan.hosts.push(Host {
            node,
            name: scenario.nodes[node].name.clone(),
            interfaces: Vec::new(),
            sysctls: Vec::new(),
            mptcp_limits: None,
        });
        Ok(index)
    }

    /// Notes the settings of a host; connections that meet there must agree about them.
    fn settle(
        &mut self,
        scenario: &Scenario,
        node: usize,
        index: usize,
        transport: &KernelTransport,
    ) -> Result<(), BedError> {
        let model = &scenario.connections[index];
        for (&name, value) in &transport.sysctls {
            if relays::is_idle(scenario, index, node, name) {
                continue;
            }
            let entry = self.sysctls.entry((node, name));
            let (first, by) = entry.or_insert_with(|| (value.clone(), model.name.clone()));
            if first != value {
                let node = &scenario.nodes[node].name;
                return Err(refuse(format!(
                    "connections {by} and {} meet at node {node} and want {name} = {first} and {value}; that is a \
                     setting of the whole host: give them nodes of their own",
                    model.name
                )));
            }
        }
        if model.protocol == Protocol::Mptcp {
            self.limit(scenario, node, model)?;
        }
        Ok(())
    }

    /// Addresses and paths of a connection; those of subflows that wait for an announcement lead to an address of their own.
    fn paths(
        &mut self,
        scenario: &Scenario,
        model: &model::Connection,
        transport: &KernelTransport,
    ) -> Result<(IpAddr, Vec<IpAddr>, Vec<usize>), BedError> {
        let (version, options) = (model.ip_version, &transport.route_options);
        let last = *model.subflows[0].hops.last().expect("a path has hops");
        let server_at = self.interface(scenario, model.to, last, transport.mtu);
        let first_server_address = self.address(scenario, model.to, server_at, version, options, None)?;
        let endpoints = if self.individual.contains(&model.from) {
            vec![[None, None]; model.subflows.len()]
        } else {
            endpoints::of(scenario, model)
        };
        let (mut addresses, mut paths) = (Vec::new(), Vec::new());
        for (number, subflow) in model.subflows.iter().enumerate() {
            let (first, last) = (subflow.hops[0], *subflow.hops.last().expect("a path has at least one hop"));
            let client_at = self.interface(scenario, model.from, first, transport.mtu);
            let server_at = self.interface(scenario, model.to, last, transport.mtu);
            let [client_endpoint, server_endpoint] = endpoints[number].clone();
            let address = match self.agents_address(scenario, model, client_at, options)? {
                Some(address) => address,
                None => self.address(scenario, model.from, client_at, version, options, client_endpoint)?,
            };
            let server_address = match server_endpoint {
                None => first_server_address,
                announced => {
                    let announced =
                        self.address(scenario, model.to, server_at, version, options, announced)?;
                    self.reach(model.from, client_at, address, announced);
                    announced
                }
            };
            let (client, server) = (self.hosts[&model.from].index, self.hosts[&model.to].index);
            addresses.push(address);
            paths.push(self.plan.paths.len());
            self.plan.paths.push(Path {
                from: address,
                to: server_address,
                hops: subflow.hops.clone(),
                entry: (client, client_at),
                exit: (server, server_at),
            });
            self.plan.paths.push(Path {
                from: server_address,
                to: address,
                hops: subflow.hops.iter().rev().map(|hop| hop.reversed()).collect(),
                entry: (server, server_at),
                exit: (client, client_at),
            });
        }
        Ok((first_server_address, addresses, paths))
    }

    /// Lets packets to `there` go out from `here` even where nobody has chosen the source.
    fn reach(&mut self, node: usize, interface: usize, here: IpAddr, there: IpAddr) {
        let host = &mut self.plan.hosts[self.hosts[&node].index];
        let mut addresses = host.interfaces[interface].addresses.iter_mut();
        addresses.find(|address| address.ip == here).expect("it has been made").reaches.push(there);
    }

    fn datagram(
        &mut self,
        scenario: &Scenario,
        index: usize,
        model: &model::Datagram,
        seed: u64,
    ) -> Result<(), BedError> {
        let headers = match model.ip_version {
            IpVersion::V4 => UDP_HEADERS,
            IpVersion::V6 => UDP_HEADERS6,
        };
        let Some(payload_bytes) = model.packet_bytes.checked_sub(headers) else {
            return Err(refuse(format!(
                "datagram flow {}: packets of {} B; IP and UDP headers take {headers} B",
                model.name, model.packet_bytes
            )));
        };
        let (sender, receiver) = (self.host(scenario, model.from)?, self.host(scenario, model.to)?);
        let (first, last) = (model.hops[0], *model.hops.last().expect("a path has hops"));
        let mtu = model.packet_bytes;
        let entry = self.interface(scenario, model.from, first, mtu);
        let exit = self.interface(scenario, model.to, last, mtu);
        let from = self.address(scenario, model.from, entry, model.ip_version, &[], None)?;
        let to = self.address(scenario, model.to, exit, model.ip_version, &[], None)?;
        let path = self.plan.paths.len();
        self.plan.paths.push(Path {
            from,
            to,
            hops: model.hops.clone(),
            entry: (sender, entry),
            exit: (receiver, exit),
        });
        let mut stream = Streams::new(seed).stream(&format!("datagram/{}", model.name));
        self.plan.datagrams.push(DatagramPlan {
            sender,
            receiver,
            from,
            to,
            port: DATAGRAM_PORTS + index as u16,
            payload_bytes,
            on: model.intervals(|bound| stream.below(bound)).collect(),
            path,
        });
        Ok(())
    }

    /// The interface of a node at a hop, for packets of `mtu` bytes at least.
    fn interface(&mut self, scenario: &Scenario, node: usize, hop: Hop, mtu: u32) -> usize {
        let host = self.hosts.get_mut(&node).expect("the host has been made");
        let interfaces = &mut self.plan.hosts[host.index].interfaces;
        let index = *host.interfaces.entry(link_of(hop)).or_insert_with(|| {
            let link = match hop {
                Hop::Wire { link, .. } => &scenario.links[link].name,
                Hop::Medium { medium, .. } => &scenario.media[medium].name,
            };
            let name = format!("if{}", interfaces.len());
            interfaces.push(Interface { name, link: link.clone(), mtu, addresses: Vec::new() });
            interfaces.len() - 1
        });
        interfaces[index].mtu = interfaces[index].mtu.max(mtu);
        index
    }

    /// A new address on an interface.
    fn address(
        &mut self,
        scenario: &Scenario,
        node: usize,
        interface: usize,
        version: IpVersion,
        route_options: &[String],
        endpoint: Option<Endpoint>,
    ) -> Result<IpAddr, BedError> {
        let host = self.hosts.get_mut(&node).expect("the host has been made");
        if host.addresses == ADDRESSES_MAX {
            let name = &scenario.nodes[node].name;
            return Err(refuse(format!(
                "node {name} has more than {ADDRESSES_MAX} ends of paths, the most of the test bed; spread them \
                 over several nodes"
            )));
        }
        host.addresses += 1;
        let ip = match version {
            IpVersion::V4 => {
                Ipv4Addr::from_bits(NETWORK + ((host.index as u32) << 8) + host.addresses as u32).into()
            }
            IpVersion::V6 => {
                let mut words = NETWORK6;
                words[6..].copy_from_slice(&[host.index as u16, host.addresses as u16]);
                Ipv6Addr::from(words).into()
            }
        };
        self.plan.hosts[host.index].interfaces[interface].addresses.push(Address {
            ip,
            table: FIRST_TABLE + host.addresses as u32,
            route_options: route_options.to_vec(),
            endpoint,
            reaches: Vec::new(),
        });
        Ok(ip)
    }

    fn finish(mut self) -> Plan {
        for ((node, name), (value, _)) in self.sysctls {
            let host = self.hosts[&node].index;
            self.plan.hosts[host].sysctls.push((name.to_owned(), value));
        }
        for node in self.individual {
            let sysctls = &mut self.plan.hosts[self.hosts[&node].index].sysctls;
            sysctls.push(("net.mptcp.pm_type".to_owned(), "1".to_owned()));
        }
        self.plan.algorithms =
            self.params.into_iter().map(|(name, (params, _))| Algorithm { name, params }).collect();
        self.plan.events.sort_by_key(|event| event.at);
        self.plan.notes.sort();
        self.plan.notes.dedup();
        self.plan
    }
}
