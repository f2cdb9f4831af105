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
    fs,
    os::fd::AsFd as _,
};

use anabranch_netlink::{
    NetlinkError,
    diag::{Connection, SocketDiag, Subflow},
    mptcp::{self, PathManager, SubflowAddress, Token, keeper},
    rtnetlink,
};
use anabranch_policy::paths::{Nanos, State};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng as _, SeedableRng as _},
};

use super::{
    Config,
    claim::Claim,
    clock::Clock,
    control::{Control, Request},
    ledger::{Kept, Ledger},
    log::{Line, Log},
    managed::Managed,
    network::Network,
    probe::Probes,
    report::{Report, Subflows},
    timeouts::{Timeout, Timeouts},
};
use crate::DeviceError;

pub(super) const MS: Nanos = 1_000_000;
/// Least distance of two looks.
const LOOK_MIN: Nanos = 5 * MS;
/// After a look for which the kernel could not list everything.
const LOOK_FAILED: Nanos = 100 * MS;
/// Names the present boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How often the ledger is written: what a loss of power can lose.
const KEEP_EVERY: Nanos = 60_000 * MS;
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
    let line = Line::new("started", "").with("path_manager_before", claim.before());
    let line = line.with("timeouts", if agent.timeouts.why_not().is_none() { "told" } else { "looked-for" });
    agent.say(&agent.timeouts.why_not().map_or(line.clone(), |why| line.with("why", why)));
    let ended = agent.work(&signals, &claim.control);
    agent.keep();
    agent.say(&Line::new("ended", "").with("connections", agent.managed.len()));
    claim.release()?;
    ended
}

/// What the agent works with.
pub(super) struct Agent<'a> {
    config: &'a Config,
    log: Log,
    pub(super) manager: PathManager,
    pub(super) diag: SocketDiag,
    events: mptcp::Events,
    changes: rtnetlink::Events,
    pub(super) timeouts: Timeouts,
    probes: Probes,
    network: Network,
    ledger: Ledger,
    boot_id: String,
    /// When the ledger was written last.
    kept_at: Nanos,
    managed: BTreeMap<Token, Managed>,
    /// Connections that are left alone.
    others: BTreeSet<Token>,
    pub(super) report: Report,
    /// State of the random numbers for jitter.
    draws: SplitMix64,
    clock: Clock,
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

impl<'a> Agent<'a> {
    fn open(config: &'a Config, as_json: bool) -> Result<Self, DeviceError> {
        let (events, changes) = (mptcp::Events::open()?, rtnetlink::Events::open()?);
        events.set_receive_buffer(EVENT_BUFFER)?;
        let clock = Clock::begin();
        Ok(Self {
            config,
            log: Log { as_json },
            manager: PathManager::open()?,
            diag: SocketDiag::open()?,
            events,
            changes,
            timeouts: Timeouts::open(config.bpf),
            probes: Probes::default(),
            network: Network::open()?,
            ledger: Ledger::with(config.state.as_deref().map(Kept::read).transpose()?.unwrap_or_default()),
            boot_id: fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned(),
            kept_at: 0,
            managed: BTreeMap::new(),
            others: BTreeSet::new(),
            report: Report::default(),
            draws: SplitMix64::seed_from_u64(clock.of_day() ^ u64::from(std::process::id()) << 32),
            clock,
        })
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    pub(super) fn say(&self, line: &Line) {
        self.log.say(self.clock.of_day() / MS, line);
    }

    /// Says what happened to a managed connection, and keeps it.
    pub(super) fn say_of(&mut self, token: Token, line: &Line) {
        let at_ms = self.clock.of_day() / MS;
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
            let mut sockets = vec![
                readable(self.events.as_fd()),
                readable(self.changes.as_fd()),
                readable(signals.as_fd()),
                readable(control.as_fd()),
            ];
            sockets.extend(self.timeouts.descriptor().map(readable));
            let others = sockets.len();
            sockets.extend(self.probes.descriptors().map(|fd| PollFd::new(fd, PollFlags::POLLOUT)));
            match poll(&mut sockets, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(DeviceError::system("waiting for events")(error)),
            }
            if sockets[others..].iter().any(|socket| socket.any().unwrap_or(true)) {
                self.probe(self.now());
                look_at = Some(self.now());
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
        for timeout in self.timeouts.take()? {
            is_told |= self.hear_timeout(timeout);
        }
        Ok(is_told)
    }

    /// Whether it is of a connection that is managed.
    fn hear_timeout(&mut self, timeout: Timeout) -> bool {
        let Some(managed) = self.managed.get_mut(&timeout.token) else { return false };
        if let Some(subflow) = managed.times_out(timeout) {
            let line = Line::new("timeout", timeout.token).with("subflow", subflow.to_string());
            self.say_of(timeout.token, &line.with("timeouts", timeout.timeouts));
        }
        true
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
        self.probe(now);
        let mut look_at = [self.ledger.next_period(), self.probes.next()].into_iter().flatten().min();
        for connection in &listed.connections {
            // Taken out, so that the rest of the agent can be used meanwhile.
            let Some(mut managed) = self.managed.remove(&connection.token) else { continue };
            let subflows = listed.of(connection.token);
            managed.observe(now, self.config, &self.network, &self.probes, &self.ledger, &subflows);
            self.close_orphans(&mut managed)?;
            let kept_at = self.keep_alive(&mut managed, &subflows, now)?;
            let draw = self.draw_permille();
            let decisions = managed.decide(now, connection, &subflows, draw);
            let next = self.carry_out(&mut managed, &decisions, now)?;
            look_at = [look_at, Some(next), kept_at].into_iter().flatten().min();
            self.managed.insert(connection.token, managed);
        }
        Ok(look_at)
    }

    /// Probes links while a connection is managed.
    fn probe(&mut self, now: Nanos) {
        if self.managed.is_empty() {
            self.probes.rest();
            return;
        }
        for line in self.probes.work(now, self.config, &self.network) {
            self.say(&line);
        }
    }

    /// Has silent subflows send something; says when to look again for that.
    fn keep_alive(
        &mut self,
        managed: &mut Managed,
        subflows: &[&Subflow],
        now: Nanos,
    ) -> Result<Option<Nanos>, DeviceError> {
        let (silent, next) = managed.silent(now, self.config, subflows);
        for (subflow, backup) in silent {
            match self.manager.set_subflow_backup(managed.token, subflow, backup) {
                Err(error) if error.errno() == Some(libc::EPERM) => return Err(error.into()),
                Err(_) => self.report.refusals += 1,
                Ok(()) => self.report.count("keepalive", "silent"),
            }
        }
        Ok(next)
    }

    /// Counts what interfaces with a cap have carried.
    fn count(&mut self, now: Nanos) {
        for period in self.config.periods() {
            for link in self.network.links() {
                let has_cap = self.config.interface(&link.name).is_some_and(|rule| rule.cap_bytes.is_some());
                if let (true, Some(counter)) = (has_cap, link.carried_bytes) {
                    self.ledger.count(&self.boot_id, (link.index, &link.name), counter, period, now);
                }
            }
        }
        if now >= self.kept_at + KEEP_EVERY {
            self.kept_at = now;
            self.keep();
        }
    }

    /// Writes what interfaces with a cap have carried, for the next agent.
    fn keep(&self) {
        let Some(file) = &self.config.state else { return };
        if let Err(error) = self.ledger.kept(&self.boot_id).write(file) {
            self.say(&Line::new("keep-failed", file.display()).with("error", error.to_string()));
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
                Some(_) if is_kept(connection) => Some("managed-by-its-program"),
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

    /// Even in 0 to 1000. Not by the streams of `crates/draw`, which hash their names by BLAKE3, whose C and assembly a cross build of
    /// the agent would need a compiler for.
    fn draw_permille(&mut self) -> u32 {
        (self.draws.next_u64() % 1001) as u32
    }
}

/// Whether the program that has opened a connection manages it itself.
fn is_kept(connection: &Connection) -> bool {
    keeper(connection.address.local).is_some_and(|user| user == 0 || user == connection.user)
}
