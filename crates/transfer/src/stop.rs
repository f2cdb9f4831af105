//! A flag that says: end soon, and leave a state that can be resumed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Shared by all threads of a transfer, and with whoever handles signals. Clones are the same flag. Everything that waits looks at
/// it five times a second.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// The flag itself, for a handler of signals.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Raises it.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
