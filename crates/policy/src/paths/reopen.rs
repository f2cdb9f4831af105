//! Opening paths, and opening them again: with exponential back-off and jitter, which the kernel does not do at all
//! (multipath-tcp/mptcp_net-next#440).
//!
//! The n-th try in a row without success comes `first * 2^(n-2)` after the one before it, at most `max`, and up to
//! `jitter_permille` thousandths later. A handshake that takes longer than that is given up for the next try. A subflow
//! that has been open for `first` was a success; so is the return of a link, after which the next try is at once.

use super::{Action, Decision, Nanos, Observation, State};

/// How often to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) first: Nanos,
    pub(super) max: Nanos,
    pub(super) jitter_permille: u64,
}

/// What has been tried so far on each path.
pub(super) struct Reopen {
    backoff: Backoff,
    tries: Vec<Try>,
}

#[derive(Clone, Copy, Default)]
struct Try {
    /// In a row, without success.
    count: u32,
    /// Not before.
    next: Nanos,
    /// When it was last established, until that has been judged.
    established: Option<Nanos>,
    was_up: bool,
}

impl Backoff {
    /// From try number `count` to the next.
    pub(super) fn delay(&self, count: u32, draw_permille: u32) -> Nanos {
        let doublings = count.saturating_sub(1).min(40);
        let delay = self.first.saturating_mul(1 << doublings).min(self.max.max(self.first));
        // At most 1000 * 1000 times the delay, in 128 bits.
        let jitter = u128::from(delay) * u128::from(self.jitter_permille) * u128::from(draw_permille);
        delay + (jitter / 1_000_000) as Nanos
    }
}

impl Reopen {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { backoff, tries: Vec::new() }
    }

    /// Opens a path if it is time for that; says when it will be.
    pub(super) fn look(
        &mut self,
        seen: &Observation<'_>,
        path: usize,
        decisions: &mut Vec<Decision>,
    ) -> Option<Nanos> {
        self.tries.resize(seen.paths.len(), Try::default());
        let (now, of, tried) = (seen.now, &seen.paths[path], &mut self.tries[path]);
        if !std::mem::replace(&mut tried.was_up, of.link_up) && of.link_up {
            (tried.count, tried.next) = (0, now);
        }
        if of.state == State::Established {
            tried.established = Some(of.since);
            return None;
        }
        if tried.established.take().is_some_and(|since| now >= since + self.backoff.first) {
            (tried.count, tried.next) = (0, now);
        }
        if !seen.may_join || !of.known || !of.link_up {
            return None;
        }
        if now < tried.next {
            return Some(tried.next);
        }
        tried.count += 1;
        let delay = self.backoff.delay(tried.count, seen.draw_permille);
        tried.next = now + delay;
        let numbers = [("try", tried.count.into()), ("next_ms", delay / 1_000_000)];
        if of.state == State::Opening {
            decisions.push(Decision::new(path, Action::Close, "no-answer", &numbers));
        }
        let code = if tried.count == 1 { "open" } else { "again" };
        decisions.push(Decision::new(path, Action::Open, code, &numbers));
        Some(tried.next)
    }
}

/// Why a subflow is closed that does not answer any more.
pub const DEAD: &str = "dead";

/// Closes a subflow that has met so many timeouts in a row, so that it can be opened anew.
pub(super) fn close_dead(
    seen: &Observation<'_>,
    path: usize,
    dead_after: u32,
    decisions: &mut Vec<Decision>,
) {
    let of = &seen.paths[path];
    if seen.may_join && of.state == State::Established && of.timeouts >= dead_after {
        let numbers = [("timeouts", of.timeouts.into())];
        decisions.push(Decision::new(path, Action::Close, DEAD, &numbers));
    }
}
