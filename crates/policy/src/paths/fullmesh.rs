//! `fullmesh`: a subflow for every pair of a local and a remote address (out-of-tree `mptcp_fullmesh.c`).
//!
//! Pairs are opened by remote address, in each by local address; at most eight addresses of either side count. A pair
//! whose local link is down cannot be reached: it is tried once more after a while, and again when the link returns. A
//! subflow that closes is not opened again before its link has gone and returned.
//!
//! Left out: the two lists by address family; `num_subflows` of the kernel module is how many paths a pair has in the
//! list.

use super::{Action, Decision, Nanos, Observation, PathManager, State, sooner};

/// Addresses of either side.
const ADDRESSES_MAX: usize = 8;

pub(super) struct Fullmesh {
    retry: Nanos,
    pairs: Vec<Pair>,
}

#[derive(Clone, Copy, Default)]
struct Pair {
    /// How often it has been tried since its link came up.
    tries: u32,
    tried_at: Nanos,
    was_up: bool,
}

impl Fullmesh {
    pub(super) fn new(retry: Nanos) -> Self {
        Self { retry, pairs: Vec::new() }
    }

    fn look(&mut self, seen: &Observation<'_>, path: usize, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        let (now, of) = (seen.now, &seen.paths[path]);
        let pair = &mut self.pairs[path];
        if !std::mem::replace(&mut pair.was_up, of.link_up) && of.link_up {
            pair.tries = 0;
        }
        if of.state != State::Closed {
            pair.tries = pair.tries.max(1);
        }
        if !of.known || of.state != State::Closed {
            return None;
        }
        let retry_at = pair.tried_at + self.retry;
        match pair.tries {
            0 => {}
            1 if of.link_up => return None,
            1 if now < retry_at => return Some(retry_at),
            1 => {}
            _ => return None,
        }
        pair.tries += 1;
        pair.tried_at = now;
        if of.link_up {
            let numbers = [("local", of.local.into()), ("remote", of.remote.into())];
            decisions.push(Decision::new(path, Action::Open, "pair", &numbers));
            return None;
        }
        (pair.tries == 1).then_some(now + self.retry)
    }
}

/// The first eight different values.
fn first_few(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut few = Vec::new();
    for value in values {
        if few.len() < ADDRESSES_MAX && !few.contains(&value) {
            few.push(value);
        }
    }
    few
}

impl PathManager for Fullmesh {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        self.pairs.resize(seen.paths.len(), Pair::default());
        if !seen.may_join {
            return None;
        }
        let locals = first_few(seen.paths.iter().map(|path| path.local));
        let remotes = first_few(seen.paths.iter().map(|path| path.remote));
        let mut look_at = None;
        for remote in remotes {
            for &local in &locals {
                for path in 0..seen.paths.len() {
                    if (seen.paths[path].local, seen.paths[path].remote) == (local, remote) {
                        look_at = sooner(look_at, self.look(seen, path, decisions));
                    }
                }
            }
        }
        look_at
    }
}
