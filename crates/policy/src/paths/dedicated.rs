//! `dedicated-backup`: the first path carries the data, all others are there and wait (MPTCP-IoT's sockets). House
//! definition beyond that: subflows that have closed or do not answer are opened again.
//!
//! Data moves to a backup and back by the rule of the scheduler, which takes backups when no regular subflow is usable.

use super::reopen::{Backoff, Reopen, close_dead};
use super::{Decision, Nanos, Observation, PathManager, priority, sooner};

pub(super) struct Dedicated {
    dead_after: u32,
    reopen: Reopen,
}

impl Dedicated {
    pub(super) fn new(dead_after: u32, backoff: Backoff) -> Self {
        Self { dead_after, reopen: Reopen::new(backoff) }
    }
}

impl PathManager for Dedicated {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        let mut look_at = None;
        for path in 0..seen.paths.len() {
            let code = if path == 0 { "dedicated" } else { "standby" };
            priority::set(seen, path, path > 0, code, &[], decisions);
            close_dead(seen, path, self.dead_after, decisions);
            look_at = sooner(look_at, self.reopen.look(seen, path, decisions));
        }
        look_at
    }
}
