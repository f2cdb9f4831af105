//! `reestablish`: every path of the list, each as the configuration ranks it, opened again whenever it has closed or
//! does not answer any more. House definition, after what users of the kernel ask for (multipath-tcp/mptcp_net-next#440).

use super::reopen::{Backoff, Reopen, close_dead};
use super::{Decision, Nanos, Observation, PathManager, priority, sooner};

pub(super) struct Reestablish {
    dead_after: u32,
    reopen: Reopen,
}

impl Reestablish {
    pub(super) fn new(dead_after: u32, backoff: Backoff) -> Self {
        Self { dead_after, reopen: Reopen::new(backoff) }
    }
}

impl PathManager for Reestablish {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        let mut look_at = None;
        for (path, of) in seen.paths.iter().enumerate() {
            priority::set(seen, path, of.spare, "configured", &[], decisions);
            close_dead(seen, path, self.dead_after, decisions);
            look_at = sooner(look_at, self.reopen.look(seen, path, decisions));
        }
        look_at
    }
}
