//! The right to use this host as a test bed, and the duty to leave it as it was.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use super::{
    ledger::{Ledger, Leftover, is_staging},
    lock::Lock,
    namespace, requirements,
};
use crate::BedError;

/// Where lock and ledger are kept while a bed runs.
const FOLDER: &str = "/run/anabranch";

/// This host as a test bed: nobody else uses it as one, nothing is left of earlier ones, and what is noted is
/// removed at the end, or by a later session if this one does not get to its end. Clones share one session,
/// which ends with the last of them.
#[derive(Clone, Debug)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ledger: Mutex<Ledger>,
    removed: Vec<String>,
    // Declared last, for fields are dropped in order: the lock is let go when all is done.
    _lock: Lock,
}

impl Session {
    /// Checks what a bed needs of the machine, takes the host's lock, and removes what crashed beds have left.
    ///
    /// # Errors
    /// [`BedError::Unavailable`] if machine or process lack something; [`BedError::Busy`], which names the
    /// holder, if another bed runs; [`BedError::System`] if leftovers cannot be removed.
    pub fn begin() -> Result<Self, BedError> {
        requirements::check()?;
        requirements::raise_descriptor_limit()?;
        Self::begin_in(Path::new(FOLDER))
    }

    /// The same, but waits for the end of other beds, at most `patience`: for tests, which run side by side.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn begin_within(patience: Duration) -> Result<Self, BedError> {
        const STEP: Duration = Duration::from_millis(50);
        let mut waited = Duration::ZERO;
        loop {
            match Self::begin() {
                Err(BedError::Busy(_)) if waited < patience => thread::sleep(STEP),
                result => return result,
            }
            waited += STEP;
        }
    }

    fn begin_in(folder: &Path) -> Result<Self, BedError> {
        let lock = Lock::take(folder)?;
        let removed = remove_leftovers(folder)?;
        let ledger = Mutex::new(Ledger::new(folder));
        Ok(Self { inner: Arc::new(Inner { ledger, removed, _lock: lock }) })
    }

    /// What was left of crashed beds, and has been removed: one phrase each.
    pub fn removed(&self) -> &[String] {
        &self.inner.removed
    }

    /// Writes into the ledger what is about to be made, or has just been started.
    ///
    /// # Errors
    /// [`BedError::System`] if the ledger cannot be written: then it must not be made.
    ///
    /// # Panics
    /// On a namespace whose name does not begin with [`namespace::PREFIX`], and on a folder that is not that of
    /// an unfinished run.
    pub fn note(&self, leftover: Leftover) -> Result<(), BedError> {
        self.note_all([leftover])
    }

    /// Strikes off the ledger what has been removed.
    ///
    /// # Errors
    /// [`BedError::System`] if the ledger cannot be written.
    pub fn forget(&self, leftover: &Leftover) -> Result<(), BedError> {
        self.forget_all(std::slice::from_ref(leftover))
    }

    pub(super) fn note_all(&self, leftovers: impl IntoIterator<Item = Leftover>) -> Result<(), BedError> {
        self.inner.ledger().note(leftovers.into_iter().inspect(|leftover| match leftover {
            Leftover::Namespace(name) => assert!(name.starts_with(namespace::PREFIX), "{name} is not ours"),
            Leftover::Folder(path) => assert!(is_staging(path), "{path:?} is not an unfinished run"),
            Leftover::Process { .. } => {}
        }))
    }

    pub(super) fn forget_all(&self, leftovers: &[Leftover]) -> Result<(), BedError> {
        self.inner.ledger().forget(leftovers)
    }
}

impl Inner {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A panic elsewhere must not keep the rest from being removed; every change of the ledger is whole.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What cannot be removed stays in the ledger for the next session, which reports it.
        let _ = self.ledger().work_off();
    }
}

/// Removes what crashed beds have left on this host, and says what that was: one phrase each.
///
/// # Errors
/// [`BedError::Unavailable`] without the rights, [`BedError::Busy`] while a bed runs, [`BedError::System`] if
/// something cannot be removed; the rest is.
pub fn clean() -> Result<Vec<String>, BedError> {
    requirements::check()?;
    let folder = PathBuf::from(FOLDER);
    let _lock = Lock::take(&folder)?;
    remove_leftovers(&folder)
}

/// To be called with the lock held, when every namespace of our prefix is a leftover.
fn remove_leftovers(folder: &Path) -> Result<Vec<String>, BedError> {
    let mut ledger = Ledger::left_in(folder);
    let unlisted = namespace::ours().map_err(BedError::system("listing network namespaces"))?;
    ledger.note(unlisted.into_iter().map(Leftover::Namespace))?;
    ledger.work_off()
}
