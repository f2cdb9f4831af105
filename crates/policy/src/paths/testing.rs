//! A host for tests: paths whose links fail and return, with subflows that open, meet timeouts and recover.
//!
//! A handshake takes one round trip over a link that is up. Where a link is down, or dead without saying so, a subflow
//! meets timeouts 200, 400, 800 ms … apart; its first answer comes with the first retransmission after the return.

use super::{Action, Decision, Nanos, Observation, Path, PathManager, PathManagerInfo, State};

pub(super) const MS: Nanos = 1_000_000;
pub(super) const S: Nanos = 1_000 * MS;
const RTT: Nanos = 40 * MS;
const RTO: Nanos = 200 * MS;

/// A path and what the observer cannot see.
pub(super) struct Link {
    pub(super) seen: Path,
    /// Nothing gets through, and nobody says so.
    pub(super) silent: bool,
    /// Bits per second of the data that flow over it while it is a regular path in use.
    pub(super) rate_bps: u64,
    /// The end of the handshake or the next timeout.
    next: Option<Nanos>,
}

pub(super) struct Host {
    pub(super) now: Nanos,
    pub(super) links: Vec<Link>,
    pub(super) may_join: bool,
    /// What the application still has to send.
    pub(super) unsent_bytes: u64,
    delivered_bytes: u64,
    manager: Box<dyn PathManager + Send>,
    look_at: Option<Nanos>,
    /// Everything decided so far, with its time.
    pub(super) log: Vec<(Nanos, Decision)>,
    /// Looked at after each decision that is carried out.
    pub(super) harm: u32,
    draws: u64,
}

/// A path over interfaces of its own.
pub(super) fn path(number: u32) -> Path {
    Path { local: number, remote: number, known: true, link_up: true, ..Path::default() }
}

fn with_link(seen: Path) -> Link {
    Link { seen, silent: false, rate_bps: 1_000_000, next: None }
}

impl Host {
    /// The first path is open, the others are not.
    pub(super) fn new(info: &PathManagerInfo, values: &[u64], paths: Vec<Path>) -> Self {
        let mut host = Self {
            now: 0,
            links: paths.into_iter().map(with_link).collect(),
            may_join: true,
            unsent_bytes: u64::MAX,
            delivered_bytes: 0,
            manager: info.make(values),
            look_at: None,
            log: Vec::new(),
            harm: 0,
            draws: 1,
        };
        host.links[0].seen.state = State::Established;
        host.look();
        host
    }

    /// A path that was not there at the beginning.
    pub(super) fn add(&mut self, path: Path) {
        self.links.push(with_link(path));
        self.look();
    }

    pub(super) fn answering(&self) -> usize {
        self.links.iter().filter(|link| link.seen.answers() && !link.silent).count()
    }

    /// A link comes or goes, or dies in silence.
    pub(super) fn set(&mut self, path: usize, up: bool, silent: bool) {
        let link = &mut self.links[path];
        link.silent = silent;
        if link.seen.link_up != up {
            link.seen.link_up = up;
        }
        if link.seen.state == State::Established && link.next.is_none() {
            link.next = Some(self.now + RTO);
        }
        self.look();
    }

    /// A reset comes from the peer.
    pub(super) fn reset(&mut self, path: usize) {
        self.close(path);
        self.look();
    }

    fn close(&mut self, path: usize) {
        let (now, link) = (self.now, &mut self.links[path]);
        (link.seen.state, link.seen.since, link.seen.timeouts, link.next) = (State::Closed, now, 0, None);
    }

    /// Lets time pass.
    pub(super) fn run_until(&mut self, end: Nanos) {
        loop {
            let events = self.links.iter().filter_map(|link| link.next).chain(self.look_at);
            let next = events.min().unwrap_or(end).min(end);
            self.flow(next);
            self.now = next;
            let happened =
                (0..self.links.len()).map(|path| self.happen(path)).fold(false, |any, one| any | one);
            if happened || self.look_at.is_some_and(|at| at <= next) {
                self.look();
            }
            if next == end {
                return;
            }
        }
    }

    /// What is due on a path.
    fn happen(&mut self, path: usize) -> bool {
        let (now, link) = (self.now, &mut self.links[path]);
        if link.next.is_none_or(|next| next > now) {
            return false;
        }
        let gets_through = link.seen.link_up && !link.silent;
        match (link.seen.state, gets_through) {
            (State::Opening, true) => {
                (link.seen.state, link.seen.since, link.next) = (State::Established, now, None);
            }
            (State::Opening, false) => link.next = Some(now + S),
            (_, true) => (link.seen.timeouts, link.next) = (0, None),
            (_, false) => {
                link.seen.timeouts += 1;
                link.next = Some(now + (RTO << link.seen.timeouts.min(8)));
            }
        }
        true
    }

    /// Data flow until then: over regular paths, over backups if there is no regular one.
    fn flow(&mut self, until: Nanos) {
        let usable = |link: &Link| link.seen.answers() && !link.silent;
        let regular = self.links.iter().any(|link| usable(link) && !link.seen.backup);
        for link in self.links.iter_mut().filter(|link| usable(link) && link.seen.backup != regular) {
            let bytes = link.rate_bps / 8 * (until - self.now) / S;
            link.seen.carried_bytes += bytes;
            self.delivered_bytes += bytes;
        }
    }

    /// The manager looks, and again until it has nothing more to say.
    pub(super) fn look(&mut self) {
        for _ in 0..100 {
            let paths: Vec<Path> = self.links.iter().map(|link| link.seen).collect();
            self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let seen = Observation {
                now: self.now,
                may_join: self.may_join,
                delivered_bytes: self.delivered_bytes,
                unsent_bytes: self.unsent_bytes,
                draw_permille: (self.draws >> 33) as u32 % 1001,
                paths: &paths,
            };
            let before = self.answering();
            let mut decisions = Vec::new();
            self.look_at = self.manager.decide(&seen, &mut decisions);
            assert!(self.look_at.is_none_or(|at| at > self.now), "a look in the past");
            let idle = decisions.iter().all(|decision| decision.action == Action::Keep);
            for decision in decisions {
                self.carry_out(&decision);
                self.log.push((self.now, decision));
                self.harm += u32::from(before > 0 && self.answering() == 0);
            }
            if idle {
                return;
            }
        }
        panic!("the manager is never content: {:?}", self.log.last());
    }

    fn carry_out(&mut self, decision: &Decision) {
        let (now, link) = (self.now, &mut self.links[decision.path]);
        match decision.action {
            Action::Open => {
                assert_eq!(link.seen.state, State::Closed, "{decision:?}");
                (link.seen.state, link.seen.since, link.next) = (State::Opening, now, Some(now + RTT));
            }
            Action::Close => {
                assert_ne!(link.seen.state, State::Closed, "{decision:?}");
                self.close(decision.path);
            }
            Action::Backup | Action::Regular => {
                let backup = decision.action == Action::Backup;
                assert_ne!(link.seen.backup, backup, "{decision:?} changes nothing");
                link.seen.backup = backup;
            }
            Action::Keep => {}
        }
    }

    /// Paths and codes of all decisions of a kind, in order.
    pub(super) fn all(&self, action: Action) -> Vec<(usize, &'static str)> {
        let of_kind = self.log.iter().filter(|(_, decision)| decision.action == action);
        of_kind.map(|(_, decision)| (decision.path, decision.reason.code)).collect()
    }

    /// The time of the first decision of that code at or after a time.
    pub(super) fn when(&self, code: &str, from: Nanos) -> Option<Nanos> {
        self.log.iter().find(|(at, decision)| *at >= from && decision.reason.code == code).map(|(at, _)| *at)
    }
}
