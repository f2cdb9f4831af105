//! The agent's loop: one thread that waits for events of the kernel, signals and the time.
//!
//! Each look lists connections, subflows, links and addresses anew, so that events that were lost cost nothing but the addresses
//! that they announced. A look follows every event, what a policy has asked for, the next retransmission timeout of a managed
//! subflow (of which no event tells), and a second at the latest while a connection is managed.
//!
//! Left out, and who could notice: connections that this machine has accepted, and those that the kernel manages, are left alone;
//! the peer's announcements before the agent began are not known; a connection without any subflow when the agent begins is left
//! alone until it has one.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::AsFd as _,
};

use anabranch_netlink::{
    NetlinkError,
    diag::{Connection, SocketDiag, Subflow},
    mptcp::{self, PathManager, SubflowAddress, Token},
    rtnetlink,
};
use anabranch_policy::paths::{Nanos, State};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        time::TimeValLike as _,
    },
    time::{ClockId, clock_gettime},
};

use super::{
    Config,
    claim::Claim,
    control::{Control, Request},
    ledger::Ledger,
    log::{Line, Log},
    managed::Managed,
    network::Network,
    report::{Report, Subflows},
};
use crate::DeviceError;

pub(super) const MS: Nanos = 1_000_000;
/// Least distance of two looks.
const LOOK_MIN: Nanos = 5 * MS;
/// After a look for which the kernel could not list everything.
const LOOK_FAILED: Nanos = 100 * MS;
/// Events that the kernel may queue, in bytes of its bookkeeping.
const EVENT_BUFFER: u32 = 1 << 20;

/// Runs until a signal ends it (SIGINT, SIGTERM). Connections go on.
///
/// # Errors
/// [`DeviceError::Unavailable`] without Multipath TCP or the capability; [`DeviceError::Refused`] if another path manager or
/// another agent is at work; [`DeviceError::Netlink`], [`DeviceError::System`].
pub fn run(config: &Config, as_json: bool) -> Result<(), DeviceError> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().map_err(DeviceError::system("blocking signals"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals =
        SignalFd::with_flags(&signals, flags).map_err(DeviceError::system("waiting for signals"))?;
    let claim = Claim::make(config)?;
    let mut agent = Agent::open(config, as_json)?;
    agent.say(&Line::new("started", "").with("path_manager_before", claim.before()));
    let ended = agent.work(&signals, &claim.control);
    agent.say(&Line::new("ended", "").with("connections", agent.managed.len()));
    claim.release()?;
    ended
}

/// What the agent works with.
pub(super) struct Agent<'a> {
    config: &'a Config,
    log: Log,
    pub(super) manager: PathManager,
    diag: SocketDiag,
    events: mptcp::Events,
    changes: rtnetlink::Events,
    network: Network,
    ledger: Ledger,
    managed: BTreeMap<Token, Managed>,
    /// Connections that are left alone.
    others: BTreeSet<Token>,
    pub(super) report: Report,
    /// State of the random numbers for jitter.
    draws: u64,
    /// From `CLOCK_BOOTTIME` to the time of policies: `CLOCK_REALTIME` when the agent began, whatever becomes of that clock.
    offset: Nanos,
}

/// What the kernel lists.
struct Listed {
    connections: Vec<Connection>,
    subflows: Vec<Subflow>,
}

impl Listed {
    fn of(&self, token: Token) -> Vec<&Subflow> {
        self.subflows.iter().filter(|subflow| subflow.token == token).collect()
    }
}

fn clock(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("every Linux has this clock");
    u64::try_from(time.num_nanoseconds()).expect("the clock does not run before 1970")
}

impl<'a> Agent<'a> {
    fn open(config: &'a Config, as_json: bool) -> Result<Self, DeviceError> {
        let (events, changes) = (mptcp::Events::open()?, rtnetlink::Events::open()?);
        events.set_receive_buffer(EVENT_BUFFER)?;
        let (boot, real) = (clock(ClockId::CLOCK_BOOTTIME), clock(ClockId::CLOCK_REALTIME));
        Ok(Self {
            config,
            log: Log { as_json },
            manager: PathManager::open()?,
            diag: SocketDiag::open()?,
            events,
            changes,
            network: Network::open()?,
            ledger: Ledger::default(),
            managed: BTreeMap::new(),
            others: BTreeSet::new(),
            report: Report::default(),
            draws: real ^ u64::from(std::process::id()) << 32,
            offset: real.saturating_sub(boot),
        })
    }

    fn now(&self) -> Nanos {
        clock(ClockId::CLOCK_BOOTTIME) + self.offset
    }

    pub(super) fn say(&self, line: &Line) {
        self.log.say(clock(ClockId::CLOCK_REALTIME) / MS, line);
    }

    /// Says what happened to a managed connection, and keeps it.
    pub(super) fn say_of(&mut self, token: Token, line: &Line) {
        let at_ms = clock(ClockId::CLOCK_REALTIME) / MS;
        self.log.say(at_ms, line);
        self.report.keep(token, at_ms, line.text());
    }

    fn answer(&self, request: Request) -> String {
        match request {
            Request::Why(token) => self.report.why(token).unwrap_or_default(),
            Request::Metrics => {
                let mut subflows: BTreeMap<&str, Subflows> = BTreeMap::new();
                for managed in self.managed.values() {
                    for (pair, path) in managed.pairs.iter().zip(&managed.paths) {
                        let of = subflows.entry(&pair.dev).or_default();
                        let is_there = u64::from(path.state == State::Established);
                        *(if path.backup { &mut of.backup } else { &mut of.regular }) += is_there;
                    }
                }
                self.report.metrics(self.managed.len(), self.others.len(), &subflows)
            }
        }
    }

    fn work(&mut self, signals: &SignalFd, control: &Control) -> Result<(), DeviceError> {
        let (mut look_at, mut looked_at) = (Some(self.now()), 0);
        loop {
            let (is_told, now) = (self.hear()?, self.now());
            // Shortly after a look an event waits, so that many are one look.
            let soonest = now.max(looked_at + LOOK_MIN);
            if is_told {
                look_at = Some(look_at.map_or(soonest, |at| at.min(soonest)));
            }
            if look_at.is_some_and(|at| at <= now) {
                look_at = self.look_or_say()?;
                looked_at = self.now();
            }
            let wait = look_at.map(|at| at.max(looked_at + LOOK_MIN).saturating_sub(self.now()).div_ceil(MS));
            let timeout = match wait {
                Some(wait) => PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX),
                None => PollTimeout::NONE,
            };
            let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
            let mut sockets = [
                readable(self.events.as_fd()),
                readable(self.changes.as_fd()),
                readable(signals.as_fd()),
                readable(control.as_fd()),
            ];
            match poll(&mut sockets, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(DeviceError::system("waiting for events")(error)),
            }
            control.serve(|request| self.answer(request));
            match signals.read_signal() {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(()),
                Err(error) => return Err(DeviceError::system("reading signals")(error)),
            }
        }
    }

    /// Looks; what the kernel could not list this time is said and tried again.
    fn look_or_say(&mut self) -> Result<Option<Nanos>, DeviceError> {
        match self.look() {
            Err(DeviceError::Netlink(
                error @ (NetlinkError::Unsteady { .. } | NetlinkError::Malformed { .. }),
            )) => {
                self.say(&Line::new("look-failed", "").with("error", error.to_string()));
                Ok(Some(self.now() + LOOK_FAILED))
            }
            outcome => outcome,
        }
    }

    /// Takes in what events tell that no list does; whether there were any.
    fn hear(&mut self) -> Result<bool, DeviceError> {
        let mut is_told = false;
        while let Some(event) = self.events.next()? {
            is_told = true;
            self.take(&event);
        }
        while let Some(change) = self.changes.next()? {
            is_told = true;
            if change == rtnetlink::Event::Lost {
                self.lost("links");
            }
        }
        Ok(is_told)
    }

    fn lost(&mut self, of: &str) {
        self.report.lost_events += 1;
        self.say(&Line::new("events-lost", of));
    }

    fn take(&mut self, event: &mptcp::Event) {
        use mptcp::Event;
        match event {
            Event::Announced(announced) => {
                if let Some(managed) = self.managed.get_mut(&announced.token) {
                    managed.announced(announced.remote_id, announced.address, announced.port);
                    let line = Line::new("announced", announced.token);
                    self.say_of(
                        announced.token,
                        &line.with("address", announced.address.to_string()).with("id", announced.remote_id),
                    );
                }
            }
            Event::Removed { token, remote_id } => {
                if let Some(managed) = self.managed.get_mut(token) {
                    managed.removed(*remote_id);
                    self.say_of(*token, &Line::new("removed", token).with("id", *remote_id));
                }
            }
            Event::SubflowClosed(closed) if self.managed.contains_key(&closed.subflow.token) => {
                let subflow = &closed.subflow;
                let line =
                    Line::new("subflow-closed", subflow.token).with("subflow", subflow.address.to_string());
                let error = closed.error.map(|error| Errno::from_raw(error.into()).desc());
                let line = error.map_or(line.clone(), |error| line.with("error", error));
                let reason = closed.reset.map(|reset| reset.reason);
                self.say_of(
                    subflow.token,
                    &reason.map_or(line.clone(), |reason| line.with("reset_reason", reason)),
                );
            }
            Event::SubflowEstablished(subflow) if self.managed.contains_key(&subflow.token) => {
                let line = Line::new("subflow-established", subflow.token);
                self.say_of(subflow.token, &line.with("subflow", subflow.address.to_string()));
            }
            Event::Lost | Event::Unreadable => self.lost("connections"),
            _ => {}
        }
    }

    /// Lists everything, asks the policies and does what they decide; says when to look again.
    fn look(&mut self) -> Result<Option<Nanos>, DeviceError> {
        self.report.looks += 1;
        self.network.renew()?;
        let listed = Listed { connections: self.diag.connections()?, subflows: self.diag.subflows()? };
        let now = self.now();
        self.count(now);
        self.forget(&listed);
        self.adopt(&listed, now)?;
        let mut look_at = self.ledger.next_period();
        for connection in &listed.connections {
            // Taken out, so that the rest of the agent can be used meanwhile.
            let Some(mut managed) = self.managed.remove(&connection.token) else { continue };
            let subflows = listed.of(connection.token);
            managed.observe(now, self.config, &self.network, &self.ledger, &subflows);
            self.close_orphans(&mut managed)?;
            let draw = self.draw_permille();
            let decisions = managed.decide(now, connection, &subflows, draw);
            let next = self.carry_out(&mut managed, &decisions, now)?;
            look_at = [look_at, Some(next)].into_iter().flatten().min();
            self.managed.insert(connection.token, managed);
        }
        Ok(look_at)
    }

    /// Counts what interfaces with a cap have carried.
    fn count(&mut self, now: Nanos) {
        for period in self.config.periods() {
            for link in self.network.links() {
                let has_cap = self.config.interface(&link.name).is_some_and(|rule| rule.cap_bytes.is_some());
                if let (true, Some(counter)) = (has_cap, link.carried_bytes) {
                    self.ledger.count(link.index, counter, period, now);
                }
            }
        }
    }

    /// Drops the connections that are over.
    fn forget(&mut self, listed: &Listed) {
        let tokens: BTreeSet<Token> = listed
            .connections
            .iter()
            .filter(|connection| !connection.is_fallen_back)
            .map(|connection| connection.token)
            .collect();
        self.others.retain(|token| tokens.contains(token));
        let over: Vec<Token> = self.managed.keys().filter(|token| !tokens.contains(token)).copied().collect();
        for token in over {
            self.managed.remove(&token);
            self.report.forget(token);
            self.say(&Line::new("over", token));
        }
    }

    /// Takes over the connections that are new, or were there before the agent.
    fn adopt(&mut self, listed: &Listed, now: Nanos) -> Result<(), DeviceError> {
        for connection in &listed.connections {
            let token = connection.token;
            let is_known = self.managed.contains_key(&token) || self.others.contains(&token);
            if is_known || token.0 == 0 || connection.is_fallen_back || !connection.state.is_established() {
                continue;
            }
            let subflows = listed.of(token);
            if subflows.is_empty() {
                continue;
            }
            let is_accepted = !subflows.iter().any(|subflow| subflow.flags.is_opened_here());
            let remote = connection.address.remote;
            let policy = self.config.policy(remote.ip(), remote.port());
            let why = match policy {
                _ if is_accepted => Some("accepted"),
                None => Some("no-policy"),
                Some(_) if !self.is_ours(token)? => Some("managed-by-the-kernel"),
                Some(_) => None,
            };
            if let (None, Some(policy)) = (why, policy) {
                let managed = Managed::new(connection, policy, now);
                let line = Line::new("managed", token).with("policy", managed.policy_name());
                let line = line.with("to", managed.remote().to_string()).with("subflows", subflows.len());
                self.say_of(token, &line);
                self.managed.insert(token, managed);
            } else {
                self.others.insert(token);
                self.say(&Line::new("left-alone", token).with("why", why.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Whether user space manages a connection: closing a subflow that nobody can have (RFC 5737) is then refused for that
    /// reason alone.
    fn is_ours(&mut self, token: Token) -> Result<bool, DeviceError> {
        let end = |text: &str| text.parse().expect("it is an address");
        let nobodys = SubflowAddress { local: end("192.0.2.1:1"), remote: end("198.51.100.1:1") };
        match self.manager.destroy_subflow(token, nobodys) {
            Ok(()) => Ok(true),
            Err(error) => match error.errno() {
                Some(libc::ESRCH) => Ok(true),
                Some(libc::EPERM) => Err(error.into()),
                _ => Ok(false),
            },
        }
    }

    /// Even in 0 to 1000 (SplitMix64: Steele, Lea, Flood 2014).
    fn draw_permille(&mut self) -> u32 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % 1001) as u32
    }
}
