//! Events: which comes next.

pub(crate) mod heads;
pub(crate) mod timers;
