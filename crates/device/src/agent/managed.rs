//! A connection that the agent manages: its paths, what its policy sees of them, and what it decides.
//!
//! A path is an interface and an address of the peer. The list grows when an interface gets its first address of the peer's family or
//! the peer announces an address; nothing leaves it.

use std::net::{IpAddr, SocketAddr};

use anabranch_netlink::{
    diag::{Connection, Figures, Subflow},
    mptcp::{SubflowAddress, Token},
};
use anabranch_policy::{
    paths::{DEAD, Decision, Nanos, Observation, Path, PathManager, State},
    scheduler::SSTHRESH_INFINITE,
};

use super::{
    Config, Policy, Role, keepalive::Keepalive, ledger::Ledger, network::Network, probe::Probes,
    timeouts::Timeout,
};

/// An end of the peer.
#[derive(Clone, Copy, Debug)]
struct Remote {
    /// The identifier that the peer gave it; none for the end that the connection was opened to.
    id: Option<u8>,
    end: SocketAddr,
    is_known: bool,
}

/// A pair of an interface and an end of the peer.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// Number of the interface.
    pub(super) interface: u32,
    /// Its name when the pair was made.
    pub(super) dev: String,
    /// The peer's end.
    pub(super) remote: SocketAddr,
    /// The local address of its last or next subflow.
    pub(super) local: Option<IpAddr>,
    /// Subflows that are there, whose handshake may be under way.
    pub(super) subflows: Vec<SubflowAddress>,
    /// All local addresses that it has had: those of subflows whose address is gone.
    locals: Vec<IpAddr>,
    counted: Counted,
    /// What its interface had carried when the period began in which the pair was made; wrapped if that is below zero.
    before_bytes: u64,
}

/// What the subflows of a pair have carried, those that are over too.
#[derive(Clone, Debug, Default)]
struct Counted {
    over: Counts,
    current: Vec<(SubflowAddress, Counts)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bytes: u64,
    packets: u64,
    retransmits: u64,
}

impl Counts {
    fn of(figures: &Figures) -> Self {
        Self {
            bytes: figures.sent_bytes.saturating_add(figures.received_bytes),
            packets: figures.data_segments_sent.into(),
            retransmits: figures.retransmits.into(),
        }
    }

    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.retransmits += other.retransmits;
    }
}

impl Counted {
    /// Takes the figures of the subflows that there are; the sum so far.
    fn take(&mut self, subflows: &[&Subflow]) -> Counts {
        for (address, counts) in std::mem::take(&mut self.current) {
            if subflows.iter().all(|subflow| subflow.address != address) {
                self.over.add(counts);
            }
        }
        self.current = subflows.iter().map(|of| (of.address, Counts::of(&of.figures))).collect();
        let mut sum = self.over;
        self.current.iter().for_each(|(_, counts)| sum.add(*counts));
        sum
    }
}

/// A connection with its policy.
pub(super) struct Managed {
    pub(super) token: Token,
    first: SubflowAddress,
    policy: Box<dyn PathManager + Send>,
    name: &'static str,
    knows_cost: bool,
    /// Where the policy's time begins, and its periods if it has any.
    epoch: Nanos,
    period: Option<Nanos>,
    remotes: Vec<Remote>,
    /// By path, as `paths`.
    pub(super) pairs: Vec<Pair>,
    /// What the policy has seen last.
    pub(super) paths: Vec<Path>,
    /// When it wants to look again.
    pub(super) look_at: Option<Nanos>,
    /// Further subflows may be opened; once they may, they may after the last one has gone, too.
    may_join: bool,
    /// Never less than before, whatever is told.
    delivered_bytes: u64,
    /// Subflows that nothing can answer, and why: to be closed, whatever the policy.
    pub(super) orphans: Vec<(SubflowAddress, &'static str)>,
    /// Subflows that do not answer and that the policy has closed: kept until there is another, since a connection without any
    /// ends after `net.mptcp.close_timeout`. For the policy they are over.
    parked: Vec<SubflowAddress>,
    keepalive: Keepalive,
    /// The timeout that was told last: its subflow, and how many in a row.
    timed_out: Option<(SubflowAddress, u32)>,
    /// Timeouts in a row of any subflow.
    pub(super) has_timeouts: bool,
    /// Until the next retransmission timeout.
    pub(super) timeout_in_ms: Option<u32>,
}

impl Managed {
    pub(super) fn new(connection: &Connection, policy: &Policy, now: Nanos) -> Self {
        let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let SubflowAddress { local, remote } = connection.address;
        let first = SubflowAddress { local: canonical(local), remote: canonical(remote) };
        let period = policy.period();
        Self {
            token: connection.token,
            first,
            policy: policy.info.make(&policy.values),
            name: policy.info.name,
            knows_cost: policy.knows_cost(),
            epoch: period.map_or(0, |period| now - now % period),
            period,
            remotes: vec![Remote { id: None, end: first.remote, is_known: true }],
            pairs: Vec::new(),
            paths: Vec::new(),
            look_at: None,
            may_join: false,
            delivered_bytes: 0,
            orphans: Vec::new(),
            parked: Vec::new(),
            keepalive: Keepalive::default(),
            timed_out: None,
            has_timeouts: false,
            timeout_in_ms: None,
        }
    }

    pub(super) fn policy_name(&self) -> &'static str {
        self.name
    }

    /// The end that the connection was opened to.
    pub(super) fn remote(&self) -> SocketAddr {
        self.first.remote
    }

    /// The peer has announced an address.
    pub(super) fn announced(&mut self, id: u8, address: IpAddr, port: Option<u16>) {
        let end = SocketAddr::new(address.to_canonical(), port.unwrap_or(self.first.remote.port()));
        match self.remotes.iter_mut().find(|remote| remote.end == end) {
            Some(remote) => (remote.id, remote.is_known) = (Some(id), true),
            None => self.remotes.push(Remote { id: Some(id), end, is_known: true }),
        }
    }

    /// The peer has taken an address back.
    pub(super) fn removed(&mut self, id: u8) {
        self.remotes
            .iter_mut()
            .filter(|remote| remote.id == Some(id))
            .for_each(|remote| remote.is_known = false);
    }

    /// The identifier that local addresses have towards the peer: 0 is that of the first subflow (RFC 8684 section 3.2), others
    /// follow from the interface, so that an agent that begins anew gives the same.
    pub(super) fn id_of(&self, pair: &Pair, local: IpAddr) -> u8 {
        if local == self.first.local.ip() {
            return 0;
        }
        let number = (pair.interface.wrapping_sub(1) % 120) as u8;
        1 + 2 * number + u8::from(local.is_ipv6())
    }

    /// Appends the pairs that are new: first that of the first subflow, then by end of the peer, and there as the configuration lists
    /// the interfaces.
    fn grow(&mut self, config: &Config, network: &Network, ledger: &Ledger) {
        let mut interfaces: Vec<(usize, u32, &str)> = Vec::new();
        for link in network.links() {
            if let Some(place) = config.place(&link.name) {
                interfaces.push((place, link.index, &link.name));
            }
        }
        interfaces.sort_unstable();
        let own = network.interface_of(self.first.local.ip());
        let is_own = |interface: u32| Some(interface) == own;
        interfaces.sort_by_key(|&(_, interface, _)| !is_own(interface));
        for remote in &self.remotes {
            for &(_, interface, name) in &interfaces {
                let is_there = |pair: &Pair| {
                    pair.interface == interface && pair.remote == remote.end && pair.dev == name
                };
                if self.pairs.iter().any(is_there) {
                    continue;
                }
                let Some(local) = network.local(interface, remote.end, self.first.local.ip()) else {
                    continue;
                };
                let (dev, remote) = (name.to_owned(), remote.end);
                self.pairs.push(Pair {
                    interface,
                    dev,
                    remote,
                    local: Some(local),
                    subflows: Vec::new(),
                    locals: vec![local],
                    counted: Counted::default(),
                    before_bytes: self
                        .period
                        .map_or(0, |length| ledger.before_period_bytes(interface, length)),
                });
                let rule = config.interface(name).expect("it has a place");
                let spare = match rule.role {
                    Role::Primary => false,
                    Role::Backup => true,
                    Role::Metered => !self.knows_cost,
                };
                let number =
                    self.remotes.iter().position(|other| other.end == remote).expect("it is one of them");
                self.paths.push(Path {
                    local: interface,
                    remote: number as u32,
                    spare,
                    backup: spare,
                    cap_bytes: rule.cap_bytes,
                    radio: rule.radio,
                    ..Path::default()
                });
            }
        }
    }

    /// Brings the paths up to date. `subflows` are those of this connection.
    pub(super) fn observe(
        &mut self,
        now: Nanos,
        config: &Config,
        network: &Network,
        probes: &Probes,
        ledger: &Ledger,
        subflows: &[&Subflow],
    ) {
        self.grow(config, network, ledger);
        (self.has_timeouts, self.timeout_in_ms) = (false, None);
        self.unpark(subflows);
        let mut strays = Vec::new();
        for (pair, path) in self.pairs.iter_mut().zip(&mut self.paths) {
            let mut own: Vec<&Subflow> =
                subflows.iter().copied().filter(|subflow| pair.carries(subflow, network)).collect();
            own.retain(|subflow| {
                let is_orphan = network.interface_of(subflow.address.local.ip().to_canonical()).is_none();
                if is_orphan && is_open(subflow) {
                    strays.push(subflow.address);
                }
                !is_orphan
            });
            pair.local =
                network.local(pair.interface, pair.remote, pair.local.unwrap_or(self.first.local.ip()));
            if let Some(local) = pair.local.filter(|local| !pair.locals.contains(local)) {
                pair.locals.push(local);
            }
            let counts = pair.counted.take(&own);
            let open =
                own.iter().filter(|subflow| is_open(subflow) && !self.parked.contains(&subflow.address));
            let best = open.clone().max_by_key(|subflow| (subflow.state.is_established(), subflow.address));
            pair.subflows = open.map(|subflow| subflow.address).collect();
            let state = match best {
                None => State::Closed,
                Some(subflow) if subflow.state.is_opening() => State::Opening,
                Some(_) => State::Established,
            };
            let figures = best.map(|subflow| subflow.figures).unwrap_or_default();
            let carried = match path.cap_bytes.and(self.period) {
                Some(_) => ledger.total_bytes(pair.interface).wrapping_sub(pair.before_bytes),
                None => counts.bytes,
            };
            let is_known = |remote: &Remote| remote.end == pair.remote && remote.is_known;
            *path = Path {
                known: self.remotes.iter().any(is_known),
                link_up: network.is_up(pair.interface)
                    && pair.local.is_some()
                    && probes.is_good(pair.interface),
                since: if state == path.state { path.since } else { now - self.epoch },
                state,
                backup: best.map_or(path.backup, |subflow| subflow.flags.is_backup_here()),
                timeouts: if state == State::Established { figures.timeouts.into() } else { 0 },
                srtt_us: figures.srtt_us,
                carried_bytes: carried,
                cwnd_segments: figures.cwnd_segments,
                ssthresh_segments: figures.ssthresh_segments.unwrap_or(SSTHRESH_INFINITE),
                segment_bytes: figures.mss_bytes,
                sent_packets: counts.packets,
                retransmits: counts.retransmits,
                ..*path
            };
            self.has_timeouts |= path.timeouts > 0;
            let timers = own.iter().filter_map(|subflow| subflow.retransmit_in_ms);
            self.timeout_in_ms = timers.chain(self.timeout_in_ms).min();
        }
        self.leave_dead_links(now, network);
        if self.paths.iter().any(|path| path.state == State::Established) {
            self.orphans.extend(strays.into_iter().map(|subflow| (subflow, "address-gone")));
            self.orphans.extend(self.parked.drain(..).map(|subflow| (subflow, DEAD)));
        }
    }

    /// Takes back those that are parked and answer again, and forgets those that are over.
    fn unpark(&mut self, subflows: &[&Subflow]) {
        self.parked.retain(|&parked| {
            let found = subflows.iter().find(|subflow| subflow.address == parked);
            found.is_some_and(|subflow| is_open(subflow) && subflow.figures.timeouts > 0)
        });
    }

    /// Whether no path but this one has a subflow that is established.
    pub(super) fn is_last(&self, path: usize) -> bool {
        let established = |(other, of): (usize, &Path)| other != path && of.state == State::Established;
        !self.paths.iter().enumerate().any(established)
    }

    /// Keeps the subflows of a path and tells the policy that they are over.
    pub(super) fn park(&mut self, path: usize) {
        self.parked.append(&mut self.pairs[path].subflows);
        self.paths[path].state = State::Closed;
    }

    /// A timeout of one of its subflows; which one, if it is news.
    pub(super) fn times_out(&mut self, timeout: Timeout) -> Option<SubflowAddress> {
        let ports = (timeout.local_port, timeout.remote_port);
        let mut subflows = self.pairs.iter().flat_map(|pair| &pair.subflows);
        let found = *subflows.find(|of| (of.local.port(), of.remote.port()) == ports)?;
        let news = Some((found, timeout.timeouts));
        (std::mem::replace(&mut self.timed_out, news) != news).then_some(found)
    }

    /// Subflows that are to send something to be kept alive, with their rank, and when the next will be.
    pub(super) fn silent(
        &mut self,
        now: Nanos,
        config: &Config,
        subflows: &[&Subflow],
    ) -> (Vec<(SubflowAddress, bool)>, Option<Nanos>) {
        let pairs = &self.pairs;
        let every = |subflow: &Subflow| {
            let pair = pairs.iter().find(|pair| pair.subflows.contains(&subflow.address))?;
            config.interface(&pair.dev)?.keepalive
        };
        let (silent, next) = self.keepalive.look(now, subflows, every);
        let rank = |address: SubflowAddress| {
            let of = subflows.iter().find(|subflow| subflow.address == address);
            (address, of.is_some_and(|subflow| subflow.flags.is_backup_here()))
        };
        (silent.into_iter().map(rank).collect(), next)
    }

    /// What has been sent over a link that is down would wait for a retransmission timeout; once its subflow is closed, it goes over
    /// the others at once. The last subflow is kept: the link may return.
    fn leave_dead_links(&mut self, now: Nanos, network: &Network) {
        if !self.paths.iter().any(Path::answers) {
            return;
        }
        for (pair, path) in self.pairs.iter_mut().zip(&mut self.paths) {
            if !network.is_up(pair.interface) && !pair.subflows.is_empty() {
                self.orphans.extend(pair.subflows.drain(..).map(|subflow| (subflow, "link-down")));
                (path.state, path.since, path.timeouts) = (State::Closed, now - self.epoch, 0);
            }
        }
    }

    /// Asks the policy.
    pub(super) fn decide(
        &mut self,
        now: Nanos,
        connection: &Connection,
        subflows: &[&Subflow],
        draw_permille: u32,
    ) -> Vec<Decision> {
        let mut decisions = Vec::new();
        if self.paths.is_empty() {
            self.look_at = None;
            return decisions;
        }
        self.may_join |=
            connection.has_remote_key && subflows.iter().any(|subflow| subflow.flags.is_fully_established());
        let by_figures = subflows.iter().map(|of| of.figures.acked_bytes + of.figures.received_bytes).sum();
        let delivered = connection.acked_bytes.zip(connection.received_bytes);
        let delivered = delivered.map_or(by_figures, |(acked, received)| acked + received);
        self.delivered_bytes = self.delivered_bytes.max(delivered);
        let seen = Observation {
            now: now - self.epoch,
            may_join: self.may_join,
            delivered_bytes: self.delivered_bytes,
            unsent_bytes: connection.unacked_bytes,
            draw_permille,
            paths: &self.paths,
        };
        self.look_at = self.policy.decide(&seen, &mut decisions).map(|at| at + self.epoch);
        decisions
    }
}

/// Whether a subflow's handshake is under way or over, and nobody has begun to close it.
fn is_open(subflow: &Subflow) -> bool {
    subflow.state.is_opening() || subflow.state.is_established()
}

impl Pair {
    fn carries(&self, subflow: &Subflow, network: &Network) -> bool {
        let SubflowAddress { local, remote } = subflow.address;
        let local = local.ip().to_canonical();
        let by_address =
            network.interface_of(local).map_or(self.locals.contains(&local), |found| found == self.interface);
        let is_by_it = subflow.interface.map_or(by_address, |interface| interface == self.interface);
        is_by_it && remote.ip().to_canonical() == self.remote.ip() && remote.port() == self.remote.port()
    }
}
