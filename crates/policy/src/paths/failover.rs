//! `failover`: preferred paths carry the data, a spare one takes over when they fail, and hands back when one of them
//! has answered for a while. House definition, after multipath-tcp/mptcp_net-next#554 (quick handover) and #581 (data
//! stay on the cellular path when Wi-Fi has returned).
//!
//! Preferred are the paths that the configuration does not call backups; if it calls none so, the first. They fail when
//! each has lost its link, or its subflow, or has met `dead_after` timeouts in a row; then the spare that answers with the
//! least round-trip time becomes regular, and they become backups. A subflow that met so many timeouts is closed and opened
//! anew, with back-off: its handshake is the probe that finds the path again. The data go back when one preferred path has
//! answered for `hold` without a break. A path that comes and goes faster is never taken back: hysteresis.

use super::reopen::{Backoff, Reopen, close_dead};
use super::{Action, Decision, Nanos, Observation, PathManager, priority, sooner};

pub(super) struct Failover {
    dead_after: u32,
    hold: Nanos,
    reopen: Reopen,
    /// Since when each path has answered without a break.
    good_since: Vec<Option<Nanos>>,
    /// The spare that carries the data.
    active: Option<usize>,
}

impl Failover {
    pub(super) fn new(dead_after: u32, hold: Nanos, backoff: Backoff) -> Self {
        Self { dead_after, hold, reopen: Reopen::new(backoff), good_since: Vec::new(), active: None }
    }

    fn is_preferred(seen: &Observation<'_>, path: usize) -> bool {
        if seen.paths.iter().any(|of| of.spare) { !seen.paths[path].spare } else { path == 0 }
    }

    fn note_answers(&mut self, seen: &Observation<'_>) {
        self.good_since.resize(seen.paths.len(), None);
        for (good_since, of) in self.good_since.iter_mut().zip(seen.paths) {
            if of.answers() {
                good_since.get_or_insert(seen.now);
            } else if of.fails(self.dead_after) {
                *good_since = None;
            }
        }
    }

    /// The preferred path that has answered longest, and since when.
    fn longest(&self, seen: &Observation<'_>) -> Option<(usize, Nanos)> {
        let answering =
            self.good_since.iter().enumerate().filter(|&(path, _)| Self::is_preferred(seen, path));
        answering
            .filter_map(|(path, since)| Some((path, (*since)?)))
            .min_by_key(|&(path, since)| (since, path))
    }

    /// The spare with the least round-trip time, of those that answer and are not `failed`.
    fn best_spare(seen: &Observation<'_>) -> Option<usize> {
        let spares = (0..seen.paths.len()).filter(|&path| !Self::is_preferred(seen, path));
        let answering = spares.filter(|&path| seen.paths[path].answers());
        answering.min_by_key(|&path| (seen.paths[path].srtt_us.wrapping_sub(1), path))
    }

    /// Which spare carries the data from now on, with the reason.
    fn choose(&mut self, seen: &Observation<'_>) -> (&'static str, Vec<(&'static str, u64)>, Option<Nanos>) {
        let preferred = (0..seen.paths.len()).filter(|&path| Self::is_preferred(seen, path));
        let all_fail = preferred.clone().all(|path| seen.paths[path].fails(self.dead_after));
        let timeouts = preferred.map(|path| seen.paths[path].timeouts).max().unwrap_or(0);
        let failed = vec![("timeouts", timeouts.into()), ("dead_after", self.dead_after.into())];
        let hold_ms = self.hold / 1_000_000;
        match self.active {
            None if all_fail => {
                self.active = Self::best_spare(seen);
                ("preferred-failed", failed, None)
            }
            None => ("preferred", Vec::new(), None),
            Some(spare) => match self.longest(seen) {
                Some((_, since)) if seen.now >= since + self.hold => {
                    self.active = None;
                    let answered = ("answered_ms", (seen.now - since) / 1_000_000);
                    ("preferred-returned", vec![answered, ("hold_ms", hold_ms)], None)
                }
                returning => {
                    if seen.paths[spare].fails(self.dead_after) {
                        self.active = match (Self::best_spare(seen), returning) {
                            (None, Some(_)) => None,
                            (other, _) => other.or(Some(spare)),
                        };
                    }
                    ("spare-failed", failed, returning.map(|(_, since)| since + self.hold))
                }
            },
        }
    }
}

impl PathManager for Failover {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        self.note_answers(seen);
        let before = self.active;
        let (code, numbers, mut look_at) = self.choose(seen);
        // Regular ones first: there is one at every moment.
        for backup in [false, true] {
            for path in 0..seen.paths.len() {
                let carries = match self.active {
                    Some(spare) => path == spare,
                    None => Self::is_preferred(seen, path),
                };
                if carries != backup {
                    priority::set(seen, path, backup, code, &numbers, decisions);
                }
            }
        }
        if before != self.active
            && let Some(spare) = self.active.filter(|&spare| !seen.paths[spare].backup)
        {
            decisions.push(Decision::new(spare, Action::Keep, code, &numbers));
        }
        for path in 0..seen.paths.len() {
            close_dead(seen, path, self.dead_after, decisions);
            look_at = sooner(look_at, self.reopen.look(seen, path, decisions));
        }
        look_at.filter(|&at| at > seen.now)
    }
}
