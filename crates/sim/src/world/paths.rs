//! Path managers: what the opener of a connection sees of its paths, and how the decisions of a policy of
//! `anabranch_policy::paths` are carried out.
//!
//! Where a device agent manages the connection (`model::Connection::agent`), spare paths and radios are those of its configuration.
//!
//! A manager looks when something has happened that it could see (the connection may have further subflows, a subflow
//! was established, ended or met a timeout, an address was announced, a local link came or went), when its policy asked
//! for that, and every 100 ms while a subflow of its is in timeouts, for their end is no event.
//!
//! A local link is seen to go when a change takes both of its directions down; what happens behind it, or to one direction
//! alone, is not seen. Left out: what a path has carried, and what has been delivered, is counted at both ends, so the opener
//! knows it half a round trip early; and addresses: an ADD_ADDR makes all pairs with that address of the peer known.

use std::collections::BTreeSet;

use anabranch_link::{NEVER, Nanos, Rng, Streams};
use anabranch_policy::paths::{self, Action, Decision, Observation, Path, PathManager, Reason, State};
use anabranch_scenario::model::{self, Change, ChangeTarget, Hop, Scenario};

use super::{Connection, Phase, World};
use crate::{
    engine::{heads::Key, timers::TimerKind},
    signal::Signal,
};

/// Distance of looks while a subflow is in timeouts.
const TIMEOUTS_LOOK: Nanos = 100_000_000;

/// The path manager of a connection.
pub(crate) struct Manager {
    policy: Box<dyn PathManager + Send>,
    draws: Rng,
    /// When it looks next; timers of other times are stale.
    look_at: Nanos,
    /// What the scenario says of each path, and its state at the last look.
    paths: Vec<Path>,
    /// Decisions carried out.
    pub(crate) decisions: u64,
    /// Subflows whose link is down are closed once another path answers, as the device agent does whatever its policy.
    leaves_dead_links: bool,
}

impl Manager {
    pub(super) fn new(scenario: &Scenario, model: &model::Connection, streams: Streams) -> Option<Box<Self>> {
        let wanted = model.path_manager.as_ref()?;
        let info = paths::find(&wanted.name).expect("the scenario checked the name");
        let of_subflow = |(number, subflow): (usize, &model::Subflow)| {
            let by_agent = model.agent.as_ref().map(|paths| paths[number]);
            Path {
                local: interface(subflow.hops.first().expect("a path has a hop")),
                remote: interface(subflow.hops.last().expect("a path has a hop")),
                spare: by_agent.map_or(subflow.backup, |path| path.spare),
                cap_bytes: subflow.cap_bytes,
                radio: match by_agent {
                    Some(path) => path.radio,
                    None => scenario.radio_of(model, subflow).map(|radio| radio.linear),
                },
                ..Path::default()
            }
        };
        Some(Box::new(Self {
            policy: info.make(&wanted.params),
            draws: streams.stream(&format!("path_manager/{}", model.name)),
            look_at: NEVER,
            paths: model.subflows.iter().enumerate().map(of_subflow).collect(),
            decisions: 0,
            leaves_dead_links: model.agent.is_some(),
        }))
    }

    /// Whether no path before it leads to the same address of the peer: that is announced once.
    pub(super) fn is_first_of_address(&self, path: usize) -> bool {
        self.paths[..path].iter().all(|of| of.remote != self.paths[path].remote)
    }
}

/// The number of the interface at the end of a link or medium.
fn interface(hop: &Hop) -> u32 {
    match *hop {
        Hop::Wire { link, .. } => 2 * link as u32,
        Hop::Medium { medium, .. } => 2 * medium as u32 + 1,
    }
}

/// Interfaces whose link is down.
#[derive(Default)]
pub(crate) struct Carriers {
    down: BTreeSet<u32>,
}

impl<K: Key> World<'_, K> {
    /// The path manager of a connection, if it has one, looks at once.
    #[cold]
    #[inline(never)]
    pub(super) fn call_manager(&mut self, number: usize) {
        self.look_later(number, self.now);
    }

    fn look_later(&mut self, number: usize, at: Nanos) {
        let Some(manager) = &mut self.connections[number].manager else { return };
        if at < manager.look_at {
            manager.look_at = at;
            self.timers.push(at, TimerKind::Paths, number as u32);
        }
    }

    /// A change of the scenario that takes a link down or up.
    #[cold]
    #[inline(never)]
    pub(super) fn note_carrier(&mut self, change: &Change) {
        let Some(up) = change.up else { return };
        let interface = match change.target {
            ChangeTarget::Link { link, forward: true, reverse: true } => 2 * link as u32,
            ChangeTarget::Link { .. } => return,
            ChangeTarget::Medium(medium) => 2 * medium as u32 + 1,
        };
        if up {
            self.carriers.down.remove(&interface);
        } else {
            self.carriers.down.insert(interface);
        }
        for number in 0..self.connections.len() {
            self.call_manager(number);
        }
    }

    /// The peer has announced the address that a subflow leads to: its pairs with all local addresses are known.
    pub(super) fn note_announcement(&mut self, number: usize, subflow: usize) {
        let connection = &mut self.connections[number];
        let Some(manager) = &connection.manager else { return };
        let remote = manager.paths[subflow].remote;
        for (path, of) in manager.paths.iter().enumerate() {
            if of.remote == remote {
                connection.deferred &= !(1 << path);
            }
        }
        self.call_manager(number);
    }

    /// The timer of a manager.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_paths(&mut self, number: usize) {
        let is_due = |manager: &Manager| manager.look_at == self.now;
        if !self.connections[number].manager.as_deref().is_some_and(is_due) {
            return;
        }
        let Some(mut manager) = self.connections[number].manager.take() else { return };
        manager.look_at = NEVER;
        self.observe(number, &mut manager);
        if !self.connections[number].is_mptcp() {
            self.connections[number].manager = Some(manager);
            return;
        }
        if manager.leaves_dead_links {
            self.leave_dead_links(number, &mut manager);
        }
        let connection = &self.connections[number];
        let seen = Observation {
            now: self.now,
            may_join: connection.joining,
            delivered_bytes: connection.sides.iter().map(|side| side.receive.delivered_bytes).sum(),
            unsent_bytes: connection.sides[0].send.unsent_bytes(),
            draw_permille: manager.draws.below(1001) as u32,
            paths: &manager.paths,
        };
        let mut decisions = Vec::new();
        let asked = manager.policy.decide(&seen, &mut decisions);
        let in_timeouts = manager.paths.iter().any(|path| path.timeouts > 0);
        let poll = in_timeouts.then_some(self.now + TIMEOUTS_LOOK);
        let mut again = false;
        for decision in &decisions {
            let is_done = self.carry_out_decision(number, decision);
            again |= is_done;
            manager.decisions += u64::from(is_done);
            if is_done || decision.action == Action::Keep {
                self.show_decision(number, decision);
            }
        }
        self.connections[number].manager = Some(manager);
        let next = asked.into_iter().chain(poll).chain(again.then_some(self.now)).min();
        self.look_later(number, next.unwrap_or(NEVER));
    }

    /// Brings the paths up to date.
    fn observe(&self, number: usize, manager: &mut Manager) {
        let connection = &self.connections[number];
        for (subflow, index) in connection.endpoints(0).enumerate() {
            let (endpoint, peer) = (&self.endpoints[index], &self.endpoints[index ^ 1]);
            let path = &mut manager.paths[subflow];
            let state = match endpoint.phase {
                Phase::Closed => State::Closed,
                Phase::Established => State::Established,
                Phase::SynSent | Phase::SynReceived | Phase::PreEstablished => State::Opening,
            };
            let sender = &endpoint.sender;
            let rtt = &sender.rtt;
            *path = Path {
                known: is_known(connection, subflow),
                link_up: !self.carriers.down.contains(&path.local) && !endpoint.life.absent,
                since: if state == path.state { path.since } else { self.now },
                state,
                backup: endpoint.backup,
                timeouts: if state == State::Established { rtt.expiries() } else { 0 },
                srtt_us: rtt.srtt8_us / 8,
                carried_bytes: sender.counters.bytes + peer.sender.counters.bytes,
                cwnd_segments: sender.cwnd,
                ssthresh_segments: sender.ssthresh,
                segment_bytes: endpoint.segment_bytes.into(),
                sent_packets: sender.counters.packets,
                retransmits: sender.counters.retransmits,
                ..*path
            };
        }
    }

    /// Closes the subflows whose link is down if another path answers: what they have under way goes over that one at once.
    fn leave_dead_links(&mut self, number: usize, manager: &mut Manager) {
        if !manager.paths.iter().any(Path::answers) {
            return;
        }
        for path in 0..manager.paths.len() {
            let of = &mut manager.paths[path];
            if of.link_up || of.state == State::Closed {
                continue;
            }
            let reason = Reason { code: "link-down", numbers: Vec::new() };
            let decision = Decision { path, action: Action::Close, reason };
            if self.carry_out_decision(number, &decision) {
                (of.state, of.since, of.timeouts) = (State::Closed, self.now, 0);
                manager.decisions += 1;
                self.show_decision(number, &decision);
            }
        }
    }

    /// Does what a policy has decided; says whether that changed anything. The subflow that the connection still depends on
    /// is not closed, and the priority of one in its handshake is set after that.
    fn carry_out_decision(&mut self, number: usize, decision: &Decision) -> bool {
        let connection = &self.connections[number];
        let (joining, index) = (connection.joining, connection.first as usize + 2 * decision.path);
        let phase = self.endpoints[index].phase;
        match decision.action {
            Action::Open if joining && phase == Phase::Closed => {
                self.open_subflow(index);
                true
            }
            Action::Close if joining && phase != Phase::Closed => {
                self.end_subflow(index);
                self.send_signal(index, Signal::Reset);
                true
            }
            Action::Backup | Action::Regular if matches!(phase, Phase::Closed | Phase::Established) => {
                let backup = decision.action == Action::Backup;
                let changes = self.endpoints[index].backup != backup;
                self.set_priority(index, backup);
                changes
            }
            _ => false,
        }
    }

    #[cold]
    fn show_decision(&mut self, number: usize, decision: &Decision) {
        let index = self.connections[number].first as usize + 2 * decision.path;
        if let Some(watch) = &mut self.watch {
            watch.decided(self.now, index, decision);
        }
    }
}

/// Whether the address that a subflow leads to is known: it was not to be announced, or was.
fn is_known(connection: &Connection, subflow: usize) -> bool {
    connection.deferred & 1 << subflow == 0
}
