//! Waking those who wait, and nobody else.

use std::{
    sync::{
        Condvar, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// A condition variable that is not rung where nobody listens: the standard library's asks the kernel in any case.
///
/// It goes with one mutex, which is held while it is rung after a change.
#[derive(Debug, Default)]
pub(super) struct Bell {
    condvar: Condvar,
    waiting: AtomicUsize,
}

impl Bell {
    /// Waits until it is rung, or so long, or without a reason.
    pub(super) fn wait<T>(&self, guard: MutexGuard<'_, T>, time: Duration) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Whoever panicked while holding the mutex is looked after by who takes it next.
        drop(self.condvar.wait_timeout(guard, time));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes all who wait.
    pub(super) fn ring(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }
}
