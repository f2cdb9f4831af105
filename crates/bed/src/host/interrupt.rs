//! The wish of user or system that a run ends early.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use nix::sys::signal::Signal;

use crate::BedError;

/// A flag that signals raise and the work looks at, often enough that it can end within a second. Clones share
/// one flag. It is never lowered.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// Number of the signal that has raised the flag, the last one if there were several.
    pub fn signal(&self) -> Option<i32> {
        let signal = self.signal.load(Ordering::Relaxed);
        (signal != 0).then(|| i32::try_from(signal).expect("signals are small numbers"))
    }

    /// The flag alone, for threads that need not know the signal.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Whether to end.
    pub fn is_raised(&self) -> bool {
        self.signal().is_some()
    }

    /// For the `?` operator at places where the work can end.
    ///
    /// # Errors
    /// [`BedError::Interrupted`] if the flag is raised.
    pub fn check(&self) -> Result<(), BedError> {
        self.signal().map_or(Ok(()), |signal| Err(BedError::Interrupted { signal }))
    }

    /// Raises the flag as if `signal` had arrived.
    pub fn raise(&self, signal: Signal) {
        self.signal.store(signal as usize, Ordering::Relaxed);
        self.flag.store(true, Ordering::Release);
    }

    /// From now on `signal` raises the flag instead of ending the process.
    pub(super) fn raise_on(&self, signal: Signal) -> io::Result<()> {
        signal_hook::flag::register_usize(signal as i32, Arc::clone(&self.signal), signal as usize)?;
        signal_hook::flag::register(signal as i32, Arc::clone(&self.flag)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_flag_ends_the_work_of_every_clone_with_its_signal() {
        let interrupt = Interrupt::default();
        let other = interrupt.clone();
        assert!(other.check().is_ok() && !other.is_raised());
        interrupt.raise(Signal::SIGTERM);
        assert!(matches!(other.check(), Err(BedError::Interrupted { signal: libc::SIGTERM })));
    }
}
