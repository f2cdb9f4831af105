//! From a scenario to namespaces, interfaces, addresses and paths. Pure: nothing here touches the machine.
//!
//! Links and routers belong to the emulator, so a host needs one interface per link that its paths begin or end
//! with. The emulator knows a path by its pair of addresses: every subflow has a client address of its own, every
//! connection a server address. Answers leave the server by the interface of its address and take the scenario's
//! path whatever that interface is.

mod agents;
mod anabranchd;
mod endpoints;
mod individual;
mod layout;
mod refusals;
mod relays;
mod transport;

use std::net::IpAddr;

use anabranch_scenario::model::{Action, Hop, Nanos};

/// What is to be built for one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The seed of the draws.
    pub seed: u64,
    /// Nodes at which traffic begins or ends, in the scenario's order.
    pub hosts: Vec<Host>,
    /// Every path a packet can take, both directions; the pair of addresses is unique.
    pub paths: Vec<Path>,
    /// One per connection of the scenario, in its order.
    pub connections: Vec<ConnectionPlan>,
    /// One per datagram flow of the scenario, in its order.
    pub datagrams: Vec<DatagramPlan>,
    /// What happens to subflows while the run goes on, by time.
    pub events: Vec<EventPlan>,
    /// The device agents of hosts, in their order.
    pub agents: Vec<AgentPlan>,
    /// Congestion controls to load before, each once.
    pub algorithms: Vec<Algorithm>,
    /// What differs from the scenario on a kernel, one sentence each; goes into the manifest.
    pub notes: Vec<String>,
}

pub use anabranchd::plan_for_anabranchd;
pub use layout::plan;

/// Which code controls congestion on the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionSource {
    /// The files of `algorithms/`, as BPF: the same code as in the simulator.
    #[default]
    Bpf,
    /// The kernel's own control of the same name.
    Native,
}

/// A congestion control of the registry with its parameters as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// Name in the registry.
    pub name: String,
    /// In the registry's order.
    pub params: Vec<u32>,
}

/// One network namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Index of the node in the scenario.
    pub node: usize,
    /// Name of the node, from which the namespace's name follows.
    pub name: String,
    /// One per link or medium at which a path begins or ends, in the order of first use.
    pub interfaces: Vec<Interface>,
    /// Values for `/proc/sys`, by dotted name, set inside the namespace.
    pub sysctls: Vec<(String, String)>,
    /// Limits of the kernel's path manager: subflows that may be opened, addresses that are accepted.
    pub mptcp_limits: Option<(u8, u8)>,
}

/// One TUN device.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// `if0`, `if1`, ... in the namespace.
    pub name: String,
    /// Name of the link or medium, for messages, captures and `ip link`'s alias.
    pub link: String,
    /// Largest IP packet.
    pub mtu: u32,
    /// Each belongs to one path; packets from it leave by this interface.
    pub addresses: Vec<Address>,
}

/// A local address with its own routing table.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// Host address (prefix 32 or 128).
    pub ip: IpAddr,
    /// Number of the routing table that a rule `from ip` points to.
    pub table: u32,
    /// Attributes of the table's default route in the words of ip-route(8), such as `initcwnd 10 rto_min 200ms`.
    pub route_options: Vec<String>,
    /// An MPTCP endpoint on this address, if any.
    pub endpoint: Option<Endpoint>,
    /// Addresses of others to which packets have this one as their source, if the application does not say.
    pub reaches: Vec<IpAddr>,
}

/// An MPTCP endpoint of the kernel's path manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Identifier, at least 1.
    pub id: u8,
    /// Flag `backup`.
    pub backup: bool,
    /// What the path manager does with the address.
    pub role: Role,
    /// Whether it is there from the start, or an [event](EventPlan) brings it.
    pub present: bool,
}

/// What the kernel's path manager does with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Flag `subflow`: opens subflows from it.
    Subflow,
    /// The same, but it is the address from which connections are opened themselves.
    First,
    /// Flag `signal`: announces it to the peers of connections that are accepted.
    Signal,
}

/// Something that happens to the subflows from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlan {
    /// When.
    pub at: Nanos,
    /// Index into `Plan::hosts`.
    pub host: usize,
    /// A client's address, with an endpoint.
    pub address: IpAddr,
    /// What happens.
    pub action: Action,
}

/// A device agent and what it sees of the links.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPlan {
    /// Index into `Plan::hosts`.
    pub host: usize,
    /// Its configuration: the scenario's with the names and addresses of the bed.
    pub config: String,
    /// When interfaces lose their carrier or get it back, by time.
    pub carriers: Vec<CarrierPlan>,
}

/// A link goes down or comes up, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierPlan {
    /// When.
    pub at: Nanos,
    /// Index into the host's interfaces.
    pub interface: usize,
    /// Whether there is a carrier from then on.
    pub up: bool,
}

/// What the emulator does with packets from one address to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Source address.
    pub from: IpAddr,
    /// Destination address.
    pub to: IpAddr,
    /// Links in order.
    pub hops: Vec<Hop>,
    /// Where packets come in: indices into `hosts` and its `interfaces`.
    pub entry: (usize, usize),
    /// Where they go out.
    pub exit: (usize, usize),
}

/// The two ends of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionPlan {
    /// Index into `Plan::hosts` of the side that connects.
    pub client: usize,
    /// Index into `Plan::hosts` of the other side.
    pub server: usize,
    /// Local address of each subflow, in the scenario's order; the first opens the connection.
    pub client_addresses: Vec<IpAddr>,
    /// The server's address that the first subflow connects to (and the kernel's path manager, for the others).
    pub server_address: IpAddr,
    /// Port at the server; unique in the plan.
    pub port: u16,
    /// Index into `Plan::paths` of the way forth of each subflow; its way back is the next one.
    pub paths: Vec<usize>,
    /// The subflows that user space opens, where the kernel's path manager does not.
    pub joins: Vec<Join>,
    /// When the connection is opened, after the draw from the seed.
    pub open_at: Nanos,
    /// Name for `TCP_CONGESTION`.
    pub congestion: String,
    /// Whether the sockets pace.
    pub pacing: bool,
}

/// A subflow that user space opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Identifier of the address; 0 is the first subflow, which is there already and becomes a backup.
    pub id: u8,
    /// Local address.
    pub address: IpAddr,
    /// Flag `backup`.
    pub backup: bool,
}

/// The two ends of a UDP flow.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramPlan {
    /// Index into `Plan::hosts`.
    pub sender: usize,
    /// Index into `Plan::hosts`.
    pub receiver: usize,
    /// Addresses.
    pub from: IpAddr,
    /// Addresses.
    pub to: IpAddr,
    /// Port at the receiver; unique in the plan.
    pub port: u16,
    /// Payload of a packet, so that it has the scenario's size on the wire.
    pub payload_bytes: u32,
    /// Intervals `[start, end)` after the draws from the seed.
    pub on: Vec<(Nanos, Nanos)>,
    /// Index into `Plan::paths`.
    pub path: usize,
}
