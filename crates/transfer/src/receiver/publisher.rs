//! Makes verified files permanent and gives them their names, while connections go on.
//!
//! A disk takes as long for many small files as for one, if they are made permanent together. So all that has come while it was at
//! the ones before is the next batch: their data first, then their names, then the folder. And where the disk is faster than files come,
//! a batch waits a moment for more, unless a connection has nothing else to do.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::Duration,
};

use nix::sys::eventfd::EventFd;

use super::{
    folder::{Folder, Refusal},
    incoming::Incoming,
};

/// How long a batch waits for more.
const LINGER: Duration = Duration::from_millis(10);
/// A batch of so many waits for no more: half of what a sender has under way at once.
const BATCH_FILES: usize = 64;

/// A verified file that wants its name.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) file: Arc<Incoming>,
    /// What its connection calls it.
    pub(super) number: u32,
    /// Who is told what has become of it.
    pub(super) reply: Reply,
}

/// The way back to a connection, which waits at its socket and at the event.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) outcomes: Sender<Published>,
    pub(super) event: Arc<EventFd>,
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
    /// Somebody waits for what there is.
    is_urgent: bool,
    is_closed: bool,
}

impl Publisher {
    /// A file is to be published soon; its connection is told when that has been done.
    pub(super) fn ask(&self, finished: Finished) {
        let mut queue = self.lock();
        queue.finished.push(finished);
        // To be woken for each file of a batch takes longer than the file.
        if matches!(queue.finished.len(), 1 | BATCH_FILES) {
            self.changed.notify_one();
        }
    }

    /// Nothing else comes for now from a connection that waits for its files.
    pub(super) fn hurry(&self) {
        let mut queue = self.lock();
        if !queue.finished.is_empty() {
            queue.is_urgent = true;
            self.changed.notify_one();
        }
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Publishes files until it is closed and all are published.
    pub(super) fn work(&self, folder: &Folder, overwrite: bool) {
        while let Some(batch) = self.batch() {
            let outcomes = publish(folder, overwrite, &batch);
            let mut batch = batch.into_iter().zip(outcomes).peekable();
            while let Some((finished, outcome)) = batch.next() {
                let Finished { file, number, reply } = finished;
                // A connection waits for what it has asked for, whatever else becomes of it.
                let _ = reply.outcomes.send((number, file, outcome));
                if !batch.peek().is_some_and(|(next, _)| Arc::ptr_eq(&next.reply.event, &reply.event)) {
                    reply.event.write(1).expect("the count of an event does not reach its end");
                }
            }
        }
    }

    /// What is published together; none when it is closed and nothing is left.
    fn batch(&self) -> Option<Vec<Finished>> {
        let mut queue = self.lock();
        while queue.finished.is_empty() {
            if queue.is_closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let waits =
            |queue: &mut Queue| !queue.is_closed && !queue.is_urgent && queue.finished.len() < BATCH_FILES;
        let waited = self.changed.wait_timeout_while(queue, LINGER, waits);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.is_urgent = false;
        Some(std::mem::take(&mut queue.finished))
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::wire::Offer;

    #[test]
    fn files_that_have_come_are_one_batch_and_their_connection_is_woken_once() {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(place.path()).unwrap());
        let (outcomes, told) = mpsc::channel();
        let reply = Reply { outcomes, event: Arc::new(EventFd::new().unwrap()) };
        let publisher = Publisher::default();
        for number in 0..3 {
            let name = format!("{number}").into_bytes();
            let (size_bytes, modified_s, modified_ns, grain_bytes) = (0, 5, 6, 16 << 10);
            let offer = Offer { file: number, size_bytes, modified_s, modified_ns, grain_bytes, name };
            let file = Arc::new(Incoming::open(folder.clone(), offer).unwrap());
            let empty = *blake3::hash(&[]).as_bytes();
            assert!(file.finish(empty, &mut || Ok::<(), ()>(())).unwrap().is_ok());
            publisher.ask(Finished { file, number, reply: reply.clone() });
        }
        publisher.close();
        publisher.work(&folder, false);
        let told: Vec<_> = told.try_iter().map(|(number, _, outcome)| (number, outcome)).collect();
        assert_eq!(told, [(0, Ok(())), (1, Ok(())), (2, Ok(()))]);
        assert_eq!(reply.event.read(), Ok(1), "the count of what was written to it");
        assert!((0..3).all(|number| place.path().join(number.to_string()).exists()));
        assert!(publisher.batch().is_none());
    }
}
