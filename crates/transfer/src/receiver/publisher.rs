//! Makes verified files permanent and gives them their names, while connections go on.
//!
//! A disk takes as long for many small files as for one, if they are made permanent together. So all that has come while it was at
//! the ones before is the next batch: their data first, then their names, then the folder.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::Sender};

use super::{
    folder::{Folder, Refusal},
    incoming::Incoming,
};

/// A verified file that wants its name.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) file: Arc<Incoming>,
    /// What its connection calls it.
    pub(super) number: u32,
    /// Who is told what has become of it.
    pub(super) reply: Sender<Published>,
}

/// What has become of a verified file: it has its name for good, or why not.
pub(super) type Published = (u32, Arc<Incoming>, Result<(), Refusal>);

/// Verified files. One thread [works](Self::work) at them.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    finished: Vec<Finished>,
    is_closed: bool,
}

impl Publisher {
    /// A file is to be published soon; its connection is told when that has been done.
    pub(super) fn ask(&self, finished: Finished) {
        self.lock().finished.push(finished);
        self.changed.notify_one();
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Publishes files until it is closed and all are published.
    pub(super) fn work(&self, folder: &Folder, overwrite: bool) {
        loop {
            let batch = {
                let mut queue = self.lock();
                while queue.finished.is_empty() {
                    if queue.is_closed {
                        return;
                    }
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                std::mem::take(&mut queue.finished)
            };
            let outcomes = publish(folder, overwrite, &batch);
            for (finished, outcome) in batch.into_iter().zip(outcomes) {
                // A connection waits for what it has asked for, whatever else becomes of it.
                let _ = finished.reply.send((finished.number, finished.file, outcome));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn publish(folder: &Folder, overwrite: bool, batch: &[Finished]) -> Vec<Result<(), Refusal>> {
    let synced = match batch {
        [only] => only.file.sync_data(),
        _ => folder.sync_everything().map_err(|error| Refusal::storage("writing", error)),
    };
    let named = batch.iter().map(|finished| synced.clone().and_then(|()| finished.file.publish(overwrite)));
    let named: Vec<_> = named.collect();
    let permanent = match named.iter().any(Result::is_ok) {
        true => folder.sync_names().map_err(|error| Refusal::storage("making names permanent", error)),
        false => Ok(()),
    };
    named.into_iter().map(|outcome| outcome.and_then(|()| permanent.clone())).collect()
}
