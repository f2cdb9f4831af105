//! `ndiffports`: several subflows over the first pair of addresses, by ports of their own (out-of-tree
//! `mptcp_ndiffports.c`). One that closes is not opened again.

use super::{Action, Decision, Nanos, Observation, PathManager};

pub(super) struct Ndiffports {
    num_subflows: usize,
    /// Paths that have been opened.
    opened: Vec<bool>,
}

impl Ndiffports {
    pub(super) fn new(num_subflows: u64) -> Self {
        Self { num_subflows: num_subflows as usize, opened: Vec::new() }
    }
}

impl PathManager for Ndiffports {
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos> {
        self.opened.resize(seen.paths.len(), false);
        if !seen.may_join {
            return None;
        }
        let first = seen.paths[0];
        let same =
            |path: usize| (seen.paths[path].local, seen.paths[path].remote) == (first.local, first.remote);
        let pair: Vec<usize> = (0..seen.paths.len()).filter(|&path| same(path)).collect();
        for (number, &path) in pair.iter().enumerate().take(self.num_subflows).skip(1) {
            if !std::mem::replace(&mut self.opened[path], true) {
                let numbers = [("subflow", number as u64 + 1), ("of", self.num_subflows as u64)];
                decisions.push(Decision::new(path, Action::Open, "port", &numbers));
            }
        }
        None
    }
}
