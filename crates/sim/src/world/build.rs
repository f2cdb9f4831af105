//! From a scenario to a world at time zero.

use anabranch_cc::{Algorithm, Conn, Controller, Coupling, Kind, MAX_PEERS, Peer};
use anabranch_link::Streams;
use anabranch_scenario::model::{self, Direction, Hop, IpVersion, Protocol, Scenario, Strips, Traffic};

use super::{
    Connection, Endpoint, Idle, Phase, World,
    connection::{Group, Jitter, Life, Mechanics, Side},
    paths::{Carriers, Manager},
    price::Price,
    relay::Relay,
    transfer::Feeder,
};
use crate::{
    app::{self, NEVER},
    datagram::DatagramFlow,
    engine::{
        heads::Key,
        timers::{TimerKind, Timers},
    },
    measure::Meter,
    mptcp::{
        later::Later, meta_receiver::MetaReceiver, meta_sender::MetaSender, remedy::Remedy,
        send_buffer::SendTuning, stale::Watchdog, window::Window,
    },
    net::{Network, build::Router},
    packet::flags,
    scheduler,
    tcp::{ecn::Ecn, pacer::Pacer, receiver::Receiver, sender::Sender},
};

/// The direction of traffic for which a side has nothing to send: the opener, then the other one.
const SILENT: [Direction; 2] = [Direction::Download, Direction::Upload];

impl<'s, K: Key> World<'s, K> {
    /// The world of a scenario with a seed, before its first event.
    pub(crate) fn new(scenario: &'s Scenario, seed: u64) -> Self {
        let streams = Streams::new(seed);
        let endpoints: usize =
            scenario.connections.iter().map(|connection| 2 * connection.subflows.len()).sum();
        let net = Network::new(scenario, streams, endpoints + scenario.datagrams.len());
        let mut world = Self {
            scenario,
            now: 0,
            net,
            timers: Timers::default(),
            endpoints: Vec::with_capacity(endpoints),
            connections: Vec::with_capacity(scenario.connections.len()),
            datagrams: Vec::with_capacity(scenario.datagrams.len()),
            carriers: Carriers::default(),
            relays: scenario.relays.iter().map(Relay::new).collect(),
            transfers: Vec::with_capacity(scenario.transfers.len()),
            meter: Meter::default(),
            watch: None,
            candidates: Vec::new(),
            idle: Box::new(Idle::default()),
            prices: Vec::new(),
        };
        let mut router = Router::default();
        for model in &scenario.connections {
            world.add_connection(model, &mut router, streams);
        }
        for (index, model) in scenario.datagrams.iter().enumerate() {
            let hops = model.hops.iter().copied();
            let route = router.add(&mut world.net, scenario, hops, (endpoints + index) as u32);
            let flow = DatagramFlow::new(model, route, streams);
            world.timers.push(flow.first(), TimerKind::Datagram, index as u32);
            world.datagrams.push(flow);
        }
        for (index, relay) in scenario.relays.iter().enumerate() {
            world.connections[relay.input].feeds = Some(index as u32);
            world.connections[relay.input].listen(1);
            world.connections[relay.output].fed_by = Some(Feeder::Relay(index as u32));
            world.connections[relay.output].is_plain = false;
            world.connections[relay.output].wants[1] = world.connections[relay.input].wants[1];
            world.connections[relay.output].listen(1);
        }
        world.add_transfers();
        for (index, change) in scenario.changes.iter().enumerate() {
            world.timers.push(change.at, TimerKind::Change, index as u32);
        }
        for (index, event) in scenario.events.iter().enumerate() {
            world.timers.push(event.at, TimerKind::Event, index as u32);
        }
        world.begin_measuring();
        world
    }

    fn add_connection(&mut self, model: &model::Connection, router: &mut Router, streams: Streams) {
        let number = self.connections.len() as u32;
        let first = self.endpoints.len() as u32;
        let head_of_line = self.scenario.measure.head_of_line;
        let mut sides = [(); 2].map(|()| side(self.scenario, model, head_of_line));
        for (subflow, path) in model.subflows.iter().enumerate() {
            let sinks = [self.endpoints.len() as u32 + 1, self.endpoints.len() as u32];
            let there = router.add(&mut self.net, self.scenario, path.hops.iter().copied(), sinks[0]);
            let back = path.hops.iter().rev().map(|hop: &Hop| hop.reversed());
            let back = router.add(&mut self.net, self.scenario, back, sinks[1]);
            for (side, route) in [there, back].into_iter().enumerate() {
                let index = self.endpoints.len() as u32;
                let couples = coupling_algorithm(model, subflow);
                let only_listens = couples.is_some() && model.traffic.direction() == SILENT[side];
                let coupled = couples
                    .filter(|_| !only_listens)
                    .map(|algorithm| join_group(&mut sides[side].groups, algorithm, index));
                let sends = side == 0 || model.traffic.direction() != Direction::Upload;
                let jitter = (sends && model.transport.send_jitter > 0).then(|| {
                    let way = if side == 0 { "" } else { "/down" };
                    Box::new(Jitter {
                        bound: model.transport.send_jitter,
                        rng: streams.stream(&format!("jitter/{}/{subflow}{way}", model.name)),
                        last: 0,
                    })
                });
                let mut endpoint = endpoint(model, number, subflow, route, coupled, jitter);
                endpoint.stripped = stripped(self.scenario, &path.hops);
                endpoint.life.only_listens = only_listens;
                if endpoint.controller.kind() == Kind::Rate {
                    let name = format!("congestion/{}/{subflow}/{side}", model.name);
                    endpoint.pacer = Some(Box::new(Pacer::of_rate_algorithm(streams.stream(&name))));
                }
                self.endpoints.push(endpoint);
                if !self.scenario.interfaces.is_empty() {
                    self.prices.push(Price::of(self.scenario, &path.hops));
                }
            }
        }
        let (ready, wants) = match model.traffic {
            Traffic::Ftp { .. } => (None, NEVER),
            Traffic::File { bytes, .. } => (Some(bytes), bytes),
            _ => (Some(0), NEVER),
        };
        let direction = model.traffic.direction();
        let wants = [direction != Direction::Upload, direction != Direction::Download]
            .map(|receives| if receives { wants } else { NEVER });
        for (side, silent) in SILENT.into_iter().enumerate() {
            if direction != silent {
                sides[side].send.write(ready);
            }
        }
        let start = model.traffic.start();
        let open = start.draw(|bound| streams.stream(&format!("start/{}", model.name)).below(bound));
        if model.traffic != Traffic::Relayed {
            self.timers.push(open, TimerKind::Open, number);
        }
        if let Traffic::Ftp { stop: Some(stop), .. } = model.traffic {
            self.timers.push(stop, TimerKind::Stop, number);
        }
        let transport = &model.transport;
        self.connections.push(Connection {
            protocol: model.protocol,
            is_plain: model.protocol == Protocol::Tcp,
            feeds: None,
            fed_by: None,
            delivers: None,
            first,
            subflows: model.subflows.len() as u32,
            sides,
            header_bytes: small(transport.header_bytes),
            ack_bytes: small(transport.ack_bytes),
            delayed_ack: transport.delayed_ack,
            join: transport.join,
            joining: false,
            deferred: deferred(model),
            fell_back: false,
            joins_refused: 0,
            opened_at: open,
            completed_at: None,
            wants,
            wrote_at: [0; 2],
            application: app::make(self.scenario, model, streams),
            acceptor_speaks_first: model.traffic.acceptor_speaks_first(),
            is_open: [false; 2],
            data_side: model.traffic.data_side() as u8,
            manager: Manager::new(self.scenario, model, streams),
        });
        for side in [0, 1] {
            self.connections[number as usize].listen(side);
        }
    }
}

fn side(scenario: &Scenario, model: &model::Connection, head_of_line: bool) -> Side {
    Side {
        send: MetaSender::new(
            small(model.transport.segment_bytes),
            model.transport.send_buffer,
            model.protocol == Protocol::Mptcp,
        ),
        receive: MetaReceiver::new(head_of_line && model.protocol == Protocol::Mptcp),
        notify_at: NEVER,
        window: Window::new(&model.transport),
        groups: Vec::new(),
        scheduler: scheduler::make(scenario, model),
        mechanics: mechanics(model),
    }
}

fn mechanics(model: &model::Connection) -> Option<Box<Mechanics>> {
    let (watchdog, send_tuning, remedy) = (watchdog(model), send_tuning(model), Remedy::new(model));
    let later = Later::new(scheduler::info(model).sends, model.subflows.len());
    let any = watchdog.is_some() || send_tuning.is_some() || remedy.is_some() || later.is_some();
    any.then(|| Box::new(Mechanics { watchdog, send_tuning, remedy, later }))
}

fn send_tuning(model: &model::Connection) -> Option<Box<SendTuning>> {
    let transport = &model.transport;
    if !transport.send_buffer_tuning || model.protocol != Protocol::Mptcp {
        return None;
    }
    let fixed = match model.ip_version {
        IpVersion::V4 => 40,
        IpVersion::V6 => 60,
    };
    let maximum = u64::from((transport.segment_bytes + transport.header_bytes).saturating_sub(fixed));
    Some(Box::new(SendTuning::new(transport, maximum, model.subflows.len())))
}

fn watchdog(model: &model::Connection) -> Option<Box<Watchdog>> {
    let after = model.transport.stale_after.filter(|_| model.protocol == Protocol::Mptcp)?;
    Some(Box::new(Watchdog::new(after, model.subflows.len())))
}

fn endpoint(
    model: &model::Connection,
    connection: u32,
    subflow: usize,
    route: u32,
    coupled: Option<(u32, u8)>,
    jitter: Option<Box<Jitter>>,
) -> Endpoint {
    let controller = controller(model, subflow);
    Endpoint {
        connection,
        route,
        subflow: subflow as u32,
        phase: Phase::Closed,
        backup: model.subflows[subflow].backup,
        segment_bytes: small(model.transport.segment_bytes),
        sender: Sender::new(&model.transport),
        receiver: Receiver::new(&model.transport, model.ip_version),
        controller,
        ecn: Ecn::new(model.transport.ecn),
        life: Life::default(),
        stripped: 0,
        coupled,
        last_ack_us: 0,
        jitter,
        pacer: model.transport.pacing.then(Box::default),
        super_packet: model.transport.delayed_ack.is_some_and(|rule| rule.quick > 0).then(Box::default),
    }
}

/// The congestion control of a subflow, as it begins.
pub(super) fn controller(model: &model::Connection, subflow: usize) -> Controller {
    let congestion = &model.subflows[subflow].congestion;
    let algorithm = anabranch_cc::find(&congestion.name).expect("the scenario checked the name");
    Controller::new(algorithm, &congestion.params)
}

/// One bit per subflow that is not opened with the others.
fn deferred(model: &model::Connection) -> u32 {
    let subflows = model.subflows.iter().enumerate();
    let waiting = subflows.filter(|(_, subflow)| subflow.start.is_some() || subflow.announced);
    waiting.map(|(at, _)| 1 << at).sum()
}

/// The flags that middleboxes remove on a path. With MP_CAPABLE gone there is no MPTCP, and nothing else to remove.
fn stripped(scenario: &Scenario, hops: &[Hop]) -> u16 {
    let of_hop = |hop: &Hop| match *hop {
        Hop::Wire { link, .. } => match scenario.links[link].strips {
            Strips::Nothing => 0,
            Strips::Joins => flags::MP_JOIN,
            Strips::Mptcp => flags::MP_CAPABLE | flags::MP_JOIN,
        },
        Hop::Medium { .. } => 0,
    };
    hops.iter().fold(0, |all, hop| all | of_hop(hop))
}

/// The algorithm of a subflow, if it couples; over TCP it is coupled with itself alone.
fn coupling_algorithm(model: &model::Connection, subflow: usize) -> Option<&'static Algorithm> {
    let wanted = &model.subflows[subflow].congestion.name;
    let algorithm = anabranch_cc::find(wanted).expect("the scenario checked the name");
    (algorithm.coupling() != Coupling::Single).then_some(algorithm)
}

/// The group and slot of a subflow: with the first eight of its algorithm, or alone.
fn join_group(groups: &mut Vec<Group>, algorithm: &'static Algorithm, endpoint: u32) -> (u32, u8) {
    let name = algorithm.name();
    let shared = groups.iter().position(|group| group.algorithm == name);
    let group = match shared {
        Some(group) if groups[group].members.len() < MAX_PEERS => group,
        _ => {
            groups.push(Group {
                algorithm: name,
                peers: [Peer::default(); MAX_PEERS],
                words: Conn::default(),
                members: Vec::with_capacity(1),
            });
            groups.len() - 1
        }
    };
    let members = &mut groups[group].members;
    members.push(endpoint);
    (group as u32, members.len() as u8 - 1)
}

fn small(bytes: u32) -> u16 {
    u16::try_from(bytes).expect("the scenario checked the sizes")
}
