//! Writes journals while connections go on: whoever receives data does not wait for the disk.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use super::incoming::Incoming;

/// Files whose journal is due. One thread [works](Self::work) at them.
#[derive(Debug, Default)]
pub(super) struct Syncer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    files: VecDeque<Arc<Incoming>>,
    is_closed: bool,
}

impl Syncer {
    /// The journal of this file is to be written soon.
    pub(super) fn ask(&self, file: Arc<Incoming>) {
        self.lock().files.push_back(file);
        self.changed.notify_one();
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Writes journals until it is closed and all are written.
    pub(super) fn work(&self) {
        let mut queue = self.lock();
        loop {
            match queue.files.pop_front() {
                Some(file) => {
                    drop(queue);
                    file.sync_for_others();
                    queue = self.lock();
                }
                None if queue.is_closed => return,
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
