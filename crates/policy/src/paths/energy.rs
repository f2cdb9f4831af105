//! `energy`: the paths with the most rate per energy carry the data, the others wait as backups (EE-MPTCP, Electronics 2022,
//! 11(19), 3104, as a path manager), and dear radios are opened late (after eMPTCP, Lim et al., CoNEXT 2015).
//!
//! The choice is that of the scheduler `ee-mptcp` ([`crate::scheduler`]), with the same model of rounds, made here from what a
//! path manager sees. Paths that are not chosen become backups, as the paper's reconstruction has it: they drain and stay
//! open. While a path has no sample of its round-trip time, all are used.
//!
//! A path is dear if its radio's base power is above that of the first path's. It is opened when `late_bytes` have been
//! delivered; or `late_after` after it might have been, as soon as the connection has something to send or data come in. A
//! connection that ends before never wakes the radio.
//!
//! We differ in: no more choices while nothing is left to send; `hold`; eMPTCP opens late only if its regions of energy say
//! so, here the choice follows once there is a sample. Left out, and who could notice: promotions and tails (the linear
//! model has none), so that a radio in its tail is as dear as one asleep; and an opener that only receives knows nothing of
//! windows and losses: all it opens stays regular.
//!
//! Real numbers are compared; as in schedulers, only sums, differences, products and quotients are used, the same on every
//! machine.

use super::reopen::{Backoff, Reopen, close_dead};
use super::{Decision, Nanos, Observation, Path, PathManager, State, priority, sooner};
use crate::energy::Linear;
use crate::scheduler::{
    ee::Ee,
    subset::{self, Choose, Losses},
};

/// Distance of looks while nothing is left to send, or a dear path waits to be opened.
const LOOK_IDLE: Nanos = 100_000_000;
/// Least distance of two choices.
const CHOICE_MIN: Nanos = 1_000_000;
/// Paths that take part in a choice at most, the first ones: one bit each.
const PATHS_MAX: usize = 32;
/// Of a path without a radio: it costs nothing.
const NO_RADIO: Linear = Linear { b_mw_per_mbps: 0.0, theta_mw: 0.0 };

/// When to open paths that go by dear radios.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub(super) bytes: u64,
    pub(super) after: Nanos,
}

pub(super) struct Energy {
    rule: Ee,
    horizon: f64,
    hold: Nanos,
    dead_after: u32,
    reopen: Reopen,
    opening: Opening,
    losses: Vec<Losses>,
    /// The paths that the last choice was made of.
    of: Vec<usize>,
    /// Those among them that carry the data.
    chosen: Vec<usize>,
    /// What it was made from, in the order of `of`.
    facts: Vec<Facts>,
    code: &'static str,
    renew_at: Nanos,
}

type Facts = Vec<(&'static str, u64)>;

impl Energy {
    pub(super) fn new(
        rule: Ee,
        horizon: u64,
        hold: Nanos,
        late: Late,
        dead_after: u32,
        backoff: Backoff,
    ) -> Self {
        Self {
            rule,
            horizon: horizon as f64,
            hold,
            dead_after,
            reopen: Reopen::new(backoff),
            opening: Opening { late, is_over: false, at: None, delivered_bytes: 0 },
            losses: Vec::new(),
            of: Vec::new(),
            chosen: Vec::new(),
            facts: Vec::new(),
            code: "no-sample",
            renew_at: 0,
        }
    }

    /// Makes a choice if it is time for one; says when the next may be.
    fn look(&mut self, seen: &Observation<'_>) -> Nanos {
        let is_member = |path: &usize| seen.paths[*path].answers() && !seen.paths[*path].spare;
        let of: Vec<usize> = (0..seen.paths.len()).filter(is_member).take(PATHS_MAX).collect();
        let is_idle = seen.unsent_bytes == 0;
        if of != self.of || (seen.now >= self.renew_at && !is_idle) {
            self.of = of;
            self.choose(seen);
        }
        if is_idle { self.renew_at.max(seen.now + LOOK_IDLE) } else { self.renew_at }
    }

    fn choose(&mut self, seen: &Observation<'_>) {
        self.losses.resize(seen.paths.len(), Losses::default());
        let mut paths = Vec::with_capacity(self.of.len());
        for (index, &path) in self.of.iter().enumerate() {
            let (of, losses) = (&seen.paths[path], &mut self.losses[path]);
            losses.note(of.sent_packets, of.retransmits);
            paths.push(member(index, of, losses.share));
        }
        let segment_bytes = self.of.first().map_or(1, |&path| seen.paths[path].segment_bytes.max(1));
        let left = seen.unsent_bytes.div_ceil(segment_bytes.into()) as f64;
        let segments = left.clamp(1.0, self.horizon);
        let bits = if paths.is_empty() || paths.iter().any(|path| path.rtt_us == 0) {
            (self.code, self.facts) = ("no-sample", vec![]);
            u32::MAX
        } else {
            self.code = "rate-per-energy";
            let mut weighed = Vec::new();
            let bits = self.rule.choose(&paths, segments, &mut weighed);
            let values = subset::values(&self.rule, &weighed, bits);
            self.facts = paths.iter().map(|path| facts(path, segments, values.as_ref())).collect();
            bits
        };
        let is_chosen = |index: &usize| bits & 1 << index != 0;
        self.chosen = (0..self.of.len()).filter(is_chosen).map(|index| self.of[index]).collect();
        let round = self.chosen.iter().map(|&path| u64::from(seen.paths[path].srtt_us) * 1000).min();
        self.renew_at = seen.now + round.unwrap_or(0).max(self.hold).max(CHOICE_MIN);
    }
}

/// A path as the rule sees it.
fn member(index: usize, of: &Path, loss: f64) -> subset::Path {
    subset::Path {
        index,
        rtt_us: of.srtt_us.into(),
        window: of.cwnd_segments.max(1).into(),
        ssthresh: of.ssthresh_segments.into(),
        loss,
        segment_bits: f64::from(of.segment_bytes.max(1)) * 8.0,
        radio: of.radio.unwrap_or(NO_RADIO),
    }
}

/// The numbers that decide over a path, for the log.
fn facts(path: &subset::Path, segments: f64, values: Option<&subset::Values>) -> Facts {
    let mut facts = vec![
        ("energy_pj_per_bit", (path.energy_nj() * 1e3) as u64),
        ("rate_kbps", (path.rate_mbps() * 1e3) as u64),
        ("loss_ppm", (path.loss * 1e6) as u64),
        ("segments", segments as u64),
    ];
    facts.extend(values.map(|values| values.own));
    facts.extend(values.and_then(|values| values.other).map(|(_, value)| value));
    facts
}

/// Whether it is time for dear radios.
struct Opening {
    late: Late,
    /// It is, and stays so.
    is_over: bool,
    /// When it is, if the connection is not idle then.
    at: Option<Nanos>,
    /// What had been delivered at the last look.
    delivered_bytes: u64,
}

impl Opening {
    /// Says when to look again while it is not yet time.
    fn look(&mut self, seen: &Observation<'_>) -> Option<Nanos> {
        if self.is_over || !seen.may_join {
            return None;
        }
        let at = *self.at.get_or_insert(seen.now + self.late.after);
        let before = std::mem::replace(&mut self.delivered_bytes, seen.delivered_bytes);
        let is_busy = seen.unsent_bytes > 0 || seen.delivered_bytes > before;
        self.is_over = seen.delivered_bytes >= self.late.bytes || seen.now >= at && is_busy;
        let next = seen.now + LOOK_IDLE;
        (!self.is_over).then_some(if at > seen.now { next.min(at) } else { next })
    }

    /// Whether a path has to wait.
    fn holds_back(&self, seen: &Observation<'_>, path: usize) -> bool {
        let base_mw = |path: usize| seen.paths[path].radio.map_or(0.0, |radio| radio.theta_mw);
        !self.is_over && seen.paths[path].state == State::Closed && base_mw(path) > base_mw(0)
    }
}

impl PathManager for Energy {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        let mut look_at = sooner(Some(self.look(seen)), self.opening.look(seen));
        // Regular ones first: there is one at every moment.
        for backup in [false, true] {
            for (index, &path) in self.of.iter().enumerate() {
                if self.chosen.contains(&path) != backup {
                    let numbers = self.facts.get(index).map_or(&[][..], |facts| facts);
                    priority::set(seen, path, backup, self.code, numbers, decisions);
                }
            }
        }
        for (path, of) in seen.paths.iter().enumerate() {
            if of.spare {
                priority::set(seen, path, true, "configured", &[], decisions);
            }
            close_dead(seen, path, self.dead_after, decisions);
            if !self.opening.holds_back(seen, path) {
                look_at = sooner(look_at, self.reopen.look(seen, path, decisions));
            }
        }
        look_at.filter(|&at| at > seen.now)
    }
}
