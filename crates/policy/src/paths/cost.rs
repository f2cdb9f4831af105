//! `cost`: paths with a data cap per period. House definition, after what users of metered links ask for ("20 GB billed
//! for 10 GB").
//!
//! What a path has carried since the period began counts, both directions, headers included. At the cap its subflow is
//! closed until the next period (`hard`), or made a backup, which still carries data when nothing else can. Periods begin
//! at multiples of their length. Looks come more often the nearer a cap is: each after half the time that the rest lasts at
//! the highest rate that the path has shown, and at 100 Mbit/s if that was less: a path that has been silent does not run
//! past its cap between two looks, unless it is suddenly twice as fast as that.
//!
//! A hard cap can leave a connection without any subflow: then its data wait for the next period.

use super::reopen::{Backoff, Reopen, close_dead};
use super::{Action, Decision, Nanos, Observation, PathManager, State, priority, sooner};

/// Why a path is closed, or made a backup, that has carried what it may: whoever carries that out lets it send no more.
pub const CAP_REACHED: &str = "cap-reached";

/// Shortest and longest distance of two looks at a path with a cap.
const LOOK_MIN: Nanos = 1_000_000;
const LOOK_MAX: Nanos = 1_000_000_000;
/// A rate is measured over at least this long: single packets are none.
const RATE_OVER: Nanos = 50_000_000;
/// Bytes per second that a path may have at any time.
const RATE_MIN: u64 = 12_500_000;

pub(super) struct Cost {
    period: Nanos,
    hard: bool,
    dead_after: u32,
    reopen: Reopen,
    /// The number of the period, from 0.
    number: u64,
    used: Vec<Used>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    /// What it had carried when the period began.
    before: u64,
    /// Time, and what it had carried, at the beginning of the present measurement of its rate.
    measured_from: (Nanos, u64),
    /// Highest rate so far, in bytes per second.
    rate_max: u64,
}

impl Cost {
    pub(super) fn new(period: Nanos, hard: bool, dead_after: u32, backoff: Backoff) -> Self {
        Self { period, hard, dead_after, reopen: Reopen::new(backoff), number: 0, used: Vec::new() }
    }

    /// When to look again at a path that may still carry `left` bytes.
    fn next_look(used: &mut Used, now: Nanos, carried: u64, left: u64) -> Nanos {
        let (from, bytes) = used.measured_from;
        if now >= from + RATE_OVER {
            let rate = u128::from(carried - bytes) * 1_000_000_000 / u128::from(now - from);
            used.rate_max = used.rate_max.max(rate as u64);
            used.measured_from = (now, carried);
        }
        let lasts = u128::from(left) * 1_000_000_000 / u128::from(used.rate_max.max(RATE_MIN)) / 2;
        now + (lasts.min(LOOK_MAX.into()) as Nanos).max(LOOK_MIN)
    }
}

impl PathManager for Cost {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        self.used.resize(seen.paths.len(), Used::default());
        let number = seen.now / self.period;
        if std::mem::replace(&mut self.number, number) != number {
            for (used, of) in self.used.iter_mut().zip(seen.paths) {
                used.before = of.carried_bytes;
            }
        }
        let mut look_at = None;
        for (path, of) in seen.paths.iter().enumerate() {
            let used = &mut self.used[path];
            let carried = of.carried_bytes - used.before;
            let left = of.cap_bytes.map(|cap| cap.saturating_sub(carried));
            let numbers =
                [("used_bytes", carried), ("cap_bytes", of.cap_bytes.unwrap_or(0)), ("period", number)];
            if let Some(left) = left.filter(|&left| left > 0) {
                look_at = sooner(look_at, Some(Self::next_look(used, seen.now, of.carried_bytes, left)));
            }
            let is_full = left == Some(0);
            if is_full {
                look_at = sooner(look_at, Some((number + 1) * self.period));
            }
            if is_full && self.hard {
                if of.state != State::Closed && seen.may_join {
                    decisions.push(Decision::new(path, Action::Close, CAP_REACHED, &numbers));
                }
                continue;
            }
            let code = if is_full { CAP_REACHED } else { "within-cap" };
            priority::set(seen, path, of.spare || is_full, code, &numbers, decisions);
            close_dead(seen, path, self.dead_after, decisions);
            look_at = sooner(look_at, self.reopen.look(seen, path, decisions));
        }
        look_at
    }
}
