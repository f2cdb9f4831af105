//! `pcdc`: only subflows that add to the throughput carry data (S4: Chen et al., LCN 2020).
//!
//! A measurement is a sequence of phases: all subflows, all but the first, all, all but the second, and so on, and all
//! at the end. A subflow is silenced by making it a backup: it stays open. Its impact factor compares the throughput without it with
//! the mean of the two baselines beside it, so that a slow drift of the network cancels. Then those with a positive factor are
//! regular and the others backups; when a regular one fails, the backup with the largest factor stands in until it answers
//! again.
//!
//! We differ from the paper in: baselines between all phases instead of one at the start; mean rates, since its sums have
//! unequal numbers of samples; a `settle` time at the beginning of each phase that does not count; MP_PRIO, where the paper
//! does not say how it silences. A measurement during which a subflow or its link fails is void and begins again. Subflows
//! that are closed when it begins have no factor and are backups.
//!
//! Left out: a measure of the noise of a factor (a single pair of phases is unreliable; who compares factors near 0 will
//! notice), and traffic that does not fill the paths, of which throughput without a subflow says nothing.

mod impact;

pub use impact::{ONE_PPM, impact_ppm, ranked, subset};

use super::reopen::{Backoff, Reopen, close_dead};
use super::{Action, Decision, Nanos, Observation, PathManager, Reason, State, priority, sooner};

pub(super) struct Pcdc {
    phase: Nanos,
    settle: Nanos,
    again_after: Nanos,
    dead_after: u32,
    reopen: Reopen,
    stage: Stage,
}

/// What is under way.
enum Stage {
    /// Subflows are opened, until all are there or this time.
    Gather(Option<Nanos>),
    Measure(Measurement),
    Use(Selection),
}

/// A measurement under way.
struct Measurement {
    /// Paths that take part.
    members: Vec<usize>,
    /// Throughputs of the phases that are over, in bytes per second.
    rates: Vec<u64>,
    begun: Nanos,
    /// Time and bytes when the beginning of the phase was over.
    counted_from: Option<(Nanos, u64)>,
}

/// What a measurement has led to.
struct Selection {
    /// Paths with a positive factor.
    used: Vec<usize>,
    /// The others by falling factor.
    standby: Vec<usize>,
    since: Nanos,
}

impl Measurement {
    fn new(members: Vec<usize>, now: Nanos) -> Self {
        Self { members, rates: Vec::new(), begun: now, counted_from: None }
    }

    /// The path that is silent in this phase; baselines have even numbers.
    fn silent(&self) -> Option<usize> {
        let phase = self.rates.len();
        (phase % 2 == 1).then(|| self.members[phase / 2])
    }

    fn is_over(&self) -> bool {
        self.rates.len() == 2 * self.members.len() + 1
    }

    /// Throughput without each member and with all, of twice the time.
    fn pairs(&self) -> Vec<(u64, u64)> {
        let around = self.rates.windows(3).step_by(2);
        around.map(|rates| (2 * rates[1], rates[0] + rates[2])).collect()
    }
}

impl Pcdc {
    pub(super) fn new(
        phase: Nanos,
        settle: Nanos,
        again_after: Nanos,
        dead_after: u32,
        backoff: Backoff,
    ) -> Self {
        let stage = Stage::Gather(None);
        Self { phase, settle, again_after, dead_after, reopen: Reopen::new(backoff), stage }
    }

    /// Moves on to the next stage or phase if it is time, and says when the present one ends.
    fn advance(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        let now = seen.now;
        match &mut self.stage {
            Stage::Gather(until) => {
                if !seen.may_join {
                    return None;
                }
                let until = *until.get_or_insert(now + self.phase);
                let present = |path: &usize| seen.paths[*path].state == State::Established;
                let members: Vec<usize> = (0..seen.paths.len()).filter(present).collect();
                if members.len() < seen.paths.len() && now < until {
                    return Some(until);
                }
                if members.len() < 2 {
                    self.stage = Stage::Gather(Some(now + self.phase));
                    return Some(now + self.phase);
                }
                self.stage = Stage::Measure(Measurement::new(members, now));
                Some(now + self.settle.max(1))
            }
            Stage::Measure(measurement) => {
                let lost = measurement.members.iter().find(|&&path| {
                    let of = &seen.paths[path];
                    of.state != State::Established || !of.link_up
                });
                if let Some(&path) = lost {
                    let phases = [("phases", measurement.rates.len() as u64)];
                    decisions.push(Decision::new(path, Action::Keep, "measurement-void", &phases));
                    self.stage = Stage::Gather(Some(now + self.phase));
                    return Some(now + self.phase);
                }
                let Some((from, bytes)) = measurement.counted_from else {
                    let settled = measurement.begun + self.settle;
                    if now < settled {
                        return Some(settled);
                    }
                    measurement.counted_from = Some((now, seen.delivered_bytes));
                    return Some(now + self.phase);
                };
                if now < from + self.phase {
                    return Some(from + self.phase);
                }
                let grown = u128::from(seen.delivered_bytes - bytes) * 1_000_000_000;
                measurement.rates.push((grown / u128::from(now - from)) as u64);
                (measurement.begun, measurement.counted_from) = (now, None);
                if measurement.is_over() {
                    self.stage = Stage::Use(select(measurement, seen, decisions));
                    return self.next_measurement(now);
                }
                Some(now + self.settle.max(1))
            }
            Stage::Use(selection) => {
                let since = selection.since;
                if self.again_after > 0 && now >= since + self.again_after {
                    self.stage = Stage::Gather(None);
                    return self.advance(seen, decisions);
                }
                self.next_measurement(since)
            }
        }
    }

    fn next_measurement(&self, since: Nanos) -> Option<Nanos> {
        (self.again_after > 0).then_some(since + self.again_after)
    }

    /// Which paths are backups now, and why.
    fn backups(&self, seen: &Observation<'_>) -> Vec<(bool, &'static str)> {
        let mut backups = vec![(false, "gather"); seen.paths.len()];
        match &self.stage {
            Stage::Gather(_) => {}
            Stage::Measure(measurement) => {
                let silent = measurement.silent();
                for (path, backup) in backups.iter_mut().enumerate() {
                    *backup = match silent {
                        _ if !measurement.members.contains(&path) => (true, "no-impact-factor"),
                        Some(silent) if silent == path => (true, "silence"),
                        _ => (false, "baseline"),
                    };
                }
            }
            Stage::Use(selection) => {
                let failed =
                    selection.used.iter().filter(|&&path| seen.paths[path].fails(self.dead_after)).count();
                let answering = selection.standby.iter().filter(|&&path| seen.paths[path].answers());
                let substitutes: Vec<usize> = answering.copied().take(failed).collect();
                for (path, backup) in backups.iter_mut().enumerate() {
                    *backup = if selection.used.contains(&path) {
                        (false, "selected")
                    } else if substitutes.contains(&path) {
                        (false, "stands-in")
                    } else {
                        (true, "standby")
                    };
                }
            }
        }
        backups
    }
}

/// The subset that a measurement leads to; tells every member's factor.
fn select(measurement: &Measurement, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Selection {
    let pairs = measurement.pairs();
    let impacts: Vec<i64> = pairs.iter().map(|&(without, with)| impact_ppm(without, with)).collect();
    let subset = subset(&impacts);
    for (at, &path) in measurement.members.iter().enumerate() {
        let code = if subset.contains(&at) { "impact-used" } else { "impact-standby" };
        let (without, with) = pairs[at];
        let numbers = vec![
            ("impact_ppm", impacts[at]),
            // Twice the bytes per second, as bits.
            ("without_bps", i64::try_from(without.saturating_mul(4)).unwrap_or(i64::MAX)),
            ("with_bps", i64::try_from(with.saturating_mul(4)).unwrap_or(i64::MAX)),
        ];
        decisions.push(Decision { path, action: Action::Keep, reason: Reason { code, numbers } });
    }
    let used: Vec<usize> = subset.iter().map(|&at| measurement.members[at]).collect();
    let by_impact = ranked(&impacts).into_iter().map(|at| measurement.members[at]);
    let mut standby: Vec<usize> = by_impact.filter(|path| !used.contains(path)).collect();
    standby.extend((0..seen.paths.len()).filter(|path| !measurement.members.contains(path)));
    Selection { used, standby, since: seen.now }
}

impl PathManager for Pcdc {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        let mut look_at = self.advance(seen, decisions);
        let backups = self.backups(seen);
        // Regular ones first: there is one at every moment.
        for wanted in [false, true] {
            for (path, &(backup, code)) in backups.iter().enumerate() {
                if backup == wanted {
                    priority::set(seen, path, backup, code, &[], decisions);
                }
            }
        }
        for path in 0..seen.paths.len() {
            close_dead(seen, path, self.dead_after, decisions);
            look_at = sooner(look_at, self.reopen.look(seen, path, decisions));
        }
        look_at.filter(|&at| at > seen.now)
    }
}
