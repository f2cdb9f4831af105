//! Which subflows of a connection exist, and which of them are backups: path managers.
//!
//! A [`PathManager`] is told by its host what there is to see of a connection's paths (an [`Observation`]) and answers
//! with [`Decision`]s, each with its reason. It has no clock, no source of random numbers and does no input or output,
//! so that the simulator and a device run the same code. All arithmetic is of integers but for `energy`'s model.
//!
//! A path is a candidate: a pair of addresses over which a subflow may be opened, whether there is one or not. The list
//! of paths keeps its order while a connection lives and may grow at its end, when a host gets a further address; the first
//! path is the one that opens it.
//!
//! Left out, and who could notice: MP_FAIL and checksums; addresses that go for good (their paths stay in the list, without a
//! link); and what the peer's path manager does, which may close or re-rank subflows by itself.

mod cost;
mod dedicated;
mod energy;
mod failover;
mod fullmesh;
mod kept;
mod ndiffports;
mod observation;
pub mod pcdc;
mod priority;
mod reestablish;
mod registry;
mod reopen;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use crate::Reason;
pub use cost::CAP_REACHED;
pub use observation::{Action, Decision, Observation, Path, State};
pub use registry::{PATH_MANAGERS, PathManagerInfo, PathManagerParam, PathManagerUnit, find};
pub use reopen::DEAD;

/// Nanoseconds since the connection's host began to count.
pub type Nanos = u64;

/// Decides which subflows there are.
pub trait PathManager {
    /// Looks at the paths and appends what is to be done, in order. The result is the time at which to look again at the
    /// latest, above `seen.now`; `None`: when something has happened.
    ///
    /// The host calls this when the connection may have further subflows for the first time, whenever a path's state, its
    /// link, its `known` or its `timeouts` has changed, and at the time that the last call asked for. It carries out
    /// everything before it calls again. Numbers of paths are never those of others than `seen.paths`.
    fn decide(&mut self, seen: &Observation<'_>, decisions: &mut Vec<Decision>) -> Option<Nanos>;
}

/// The earlier of two times at which to look again.
fn sooner(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
