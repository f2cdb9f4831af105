//! A thread that does things, each at its time on the run's clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{BedError, Nanos, clock};

/// The end of a run is seen at the latest after this.
const ATTENTION: Nanos = 50_000_000;

/// Such a thread; dropping it ends it.
pub(super) struct Timeline {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Nanos, BedError>>>,
}

impl Timeline {
    /// Begins, with the scenario's time 0 at `zero` of `CLOCK_MONOTONIC`. `steps` come in the order of their times.
    ///
    /// # Errors
    /// [`BedError::System`] if there can be no further thread.
    pub(super) fn start<T: Send + 'static>(
        name: &str,
        steps: Vec<(Nanos, T)>,
        zero: Nanos,
        mut act: impl FnMut(T) -> Result<(), BedError> + Send + 'static,
    ) -> Result<Self, BedError> {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let work = move || {
            let mut latest = 0;
            for (at, step) in steps {
                let due = zero.saturating_add(at);
                if !wait_until(due, &seen) {
                    break;
                }
                act(step)?;
                latest = latest.max(clock::monotonic() - due);
            }
            Ok(latest)
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        let thread = thread.map_err(BedError::system(format!("starting a thread for {name}")))?;
        Ok(Self { ended, thread: Some(thread) })
    }

    /// Ends it; how long after its time the latest step had been done.
    ///
    /// # Errors
    /// Of a step.
    ///
    /// # Panics
    /// If a step did.
    pub(super) fn end(mut self) -> Result<Nanos, BedError> {
        self.ended.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is ended once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Nobody asked for the result.
            let _ = thread.join();
        }
    }
}

/// Whether the time has come before the end.
fn wait_until(due: Nanos, ended: &AtomicBool) -> bool {
    loop {
        if ended.load(Ordering::Acquire) {
            return false;
        }
        let now = clock::monotonic();
        if now >= due {
            return true;
        }
        clock::sleep_until(due.min(now + ATTENTION));
    }
}
