//! `default`: only the subflow that opens the connection, and those that the peer opens (algorithms: the `default`
//! path manager of the out-of-tree kernel).

use super::{Decision, Nanos, Observation, PathManager};

/// Does nothing.
pub(super) struct Kept;

impl PathManager for Kept {
    fn decide(&mut self, _: &Observation<'_>, _: &mut Vec<Decision>) -> Option<Nanos> {
        None
    }
}
