//! One file that is being received, by however many connections.
//!
//! Its hash comes together while its chunks are written. A grain that two connections have written, one of which was given up perhaps, is
//! read again at the end: the hash is of what was written last.

use std::{
    fs::File,
    io::Seek as _,
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anabranch_policy::transfer::Bitmap;
use nix::fcntl::Flock;

use super::{
    folder::{Folder, Refusal},
    journal::{self, Known},
};
use crate::{
    clock,
    hash::complete,
    tree::{Subtree, Tree, Value},
    wire::{Code, HASH_BYTES, Have, Held, Offer},
};

/// The journal is written when so much has arrived since it was,
const BATCH_BYTES: u64 = 8 << 20;
/// or so long ago.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// A longer file has its journal from the beginning: when the disk is full, there would be no room for one.
const JOURNAL_LATER_BYTES: u64 = 1 << 20;

/// A file that is not whole yet: its data in a partial file, what of it can be relied upon in a journal.
#[derive(Debug)]
pub(super) struct Incoming {
    folder: Arc<Folder>,
    offer: Offer,
    part_name: String,
    journal_name: String,
    part: Flock<File>,
    progress: Mutex<Progress>,
    /// Held while the journal is written, so that one writes at a time and the others go on.
    journal: Mutex<Option<File>>,
    /// Held for reading while data is written, so that nothing is when the hash is looked at.
    end: RwLock<End>,
    /// Held while the whole is looked at.
    finishing: Mutex<()>,
    is_dropped: AtomicBool,
    /// Somebody has been asked to write the journal.
    is_due: AtomicBool,
    /// What went wrong when the journal was written while nobody waited for it.
    failed: Mutex<Option<Refusal>>,
}

#[derive(Debug)]
struct Progress {
    map: Bitmap,
    tree: Tree,
    /// Chunks that are being written, by which the values of their grains are lost when another has written them, too.
    writing: Vec<Range<u64>>,
    unsynced: Vec<Range<u64>>,
    unsynced_bytes: u64,
    synced_at: Instant,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// The hash is being looked at, and nothing is written any more.
    Verifying,
    /// The whole has the right hash.
    Verified,
    /// The file has its name.
    Published,
}

/// What a finish has come to.
pub(super) enum Finish {
    /// Something is missing.
    Incomplete,
    /// It has the right hash, and can be published.
    Verified,
}

/// A chunk that is being written. Dropped before it has [arrived](Self::arrived), nobody knows what is there.
pub(super) struct Writing<'a> {
    incoming: &'a Incoming,
    grains: Range<u64>,
    /// Somebody else writes some of its grains, or has.
    is_second: bool,
    has_arrived: bool,
}

impl Incoming {
    /// Begins to receive a file, or goes on with what is there of it.
    pub(super) fn open(folder: Arc<Folder>, offer: Offer) -> Result<Self, Refusal> {
        let [part_name, journal_name] =
            ["part", "journal"].map(|ending| Folder::own_name(&offer.name, ending));
        let part = folder.open_own(&part_name)?;
        let grains = offer.grains().count();
        let storage = |error| Refusal::storage("preparing the partial file", error);
        let length = part.metadata().map_err(storage)?.len();
        let is_new = length == 0;
        let known =
            if length == offer.size_bytes { Self::known(&folder, &journal_name, &offer)? } else { None };
        let (map, tree, journal) = match known {
            Some((known, journal)) => (known.map, known.tree, Some(journal)),
            None => {
                // What there is belongs to another file, or there is nothing that says what it is.
                if !is_new {
                    part.set_len(0).map_err(storage)?;
                }
                folder.remove_own(&journal_name);
                part.set_len(offer.size_bytes).map_err(storage)?;
                (Bitmap::new(grains), Tree::new(grains), None)
            }
        };
        let missing = offer.size_bytes.saturating_sub(map.set_count() * u64::from(offer.grain_bytes));
        let free = folder.free_bytes().map_err(|error| Refusal::storage("asking for free space", error))?;
        if missing > free {
            if map.set_count() == 0 {
                folder.remove_own(&part_name);
            }
            let text = format!("{missing} bytes are to come and {free} are free");
            return Err(Refusal::new(Code::DiskFull, text));
        }
        let journal = match journal {
            None if offer.size_bytes > JOURNAL_LATER_BYTES => {
                let mut journal = folder.create_journal(&journal_name).map_err(storage)?;
                std::io::Write::write_all(&mut journal, &journal::head(&offer)).map_err(storage)?;
                Some(journal)
            }
            journal => journal,
        };
        let progress = Progress {
            map,
            tree,
            writing: Vec::new(),
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            synced_at: clock::now(),
        };
        Ok(Self {
            folder,
            offer,
            part_name,
            journal_name,
            part,
            progress: Mutex::new(progress),
            journal: Mutex::new(journal),
            end: RwLock::new(End::Open),
            finishing: Mutex::new(()),
            is_dropped: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            failed: Mutex::new(None),
        })
    }

    /// What the journal says, and the journal, ready to be appended to.
    fn known(folder: &Folder, name: &str, offer: &Offer) -> Result<Option<(Known, File)>, Refusal> {
        let storage = |error| Refusal::storage("reading the journal", error);
        let Some(mut file) = folder.open_journal(name).map_err(storage)? else { return Ok(None) };
        let known = journal::read(&journal::head(offer), &file, offer.grains().count()).map_err(storage)?;
        let Some(known) = known else { return Ok(None) };
        file.set_len(known.believed).map_err(storage)?;
        file.seek(std::io::SeekFrom::End(0)).map_err(storage)?;
        Ok(Some((known, file)))
    }

    /// Whether it is the same file, whatever number the sender has given it.
    pub(super) fn is_of(&self, offer: &Offer) -> bool {
        Offer { file: offer.file, ..self.offer.clone() } == *offer
    }

    pub(super) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// What there is of it, in answer to whom calls it by that number.
    pub(super) fn have(&self, file: u32) -> Have {
        if *self.end() == End::Published {
            return Have { file, held: Held::Whole, map: Vec::new() };
        }
        Have::of(file, &lock(&self.progress).map)
    }

    /// How many of its bytes there are, counted in whole grains.
    pub(super) fn arrived_bytes(&self) -> u64 {
        (lock(&self.progress).map.set_count() * u64::from(self.offer.grain_bytes)).min(self.offer.size_bytes)
    }

    /// A chunk of these grains begins to come; none: it has come before.
    pub(super) fn begin(&self, grains: Range<u64>) -> Option<Writing<'_>> {
        let mut progress = lock(&self.progress);
        let there = grains.clone().filter(|grain| progress.map.contains(*grain)).count();
        if there as u64 == grains.end - grains.start {
            return None;
        }
        let overlaps = |other: &Range<u64>| other.start < grains.end && grains.start < other.end;
        let is_second = there > 0 || progress.writing.iter().any(overlaps);
        progress.writing.push(grains.clone());
        Some(Writing { incoming: self, grains, is_second, has_arrived: false })
    }

    /// Whether the journal is to be written, which whoever hears it first sees to.
    fn has_become_due(&self, progress: &Progress) -> bool {
        let is_due = progress.unsynced_bytes >= BATCH_BYTES
            || clock::now().duration_since(progress.synced_at) >= BATCH_TIME;
        is_due && !self.is_due.swap(true, Ordering::Relaxed)
    }

    /// As [`sync`](Self::sync), when nobody waits for it: who comes next is told what went wrong.
    pub(super) fn sync_for_others(&self) {
        self.is_due.store(false, Ordering::Relaxed);
        if let Err(refusal) = self.sync(true) {
            *lock(&self.failed) = Some(refusal);
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.is_dropped() {
            return Err(Refusal::new(Code::Name, "another version of this file is being sent"));
        }
        lock(&self.failed).clone().map_or(Ok(()), Err)
    }

    /// Makes what has arrived permanent, and then says so in the journal. `waits`: even if another is at it just now.
    pub(super) fn sync(&self, waits: bool) -> Result<(), Refusal> {
        let mut journal = match self.journal.try_lock() {
            Ok(journal) => journal,
            Err(TryLockError::Poisoned(journal)) => journal.into_inner(),
            Err(TryLockError::WouldBlock) if waits => lock(&self.journal),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        if matches!(*self.end(), End::Verified | End::Published) || self.is_dropped() {
            return Ok(());
        }
        let known = {
            let mut progress = lock(&self.progress);
            progress.unsynced_bytes = 0;
            progress.synced_at = clock::now();
            let grains = std::mem::take(&mut progress.unsynced);
            grains.iter().flat_map(|run| journal::known(&progress.tree, run)).collect::<Vec<_>>()
        };
        if known.is_empty() {
            return Ok(());
        }
        let storage = |error| Refusal::storage("writing the journal", error);
        self.part.sync_data().map_err(|error| Refusal::storage("writing", error))?;
        let head = journal::head(&self.offer);
        let mut bytes = Vec::new();
        let file = match &mut *journal {
            Some(file) => file,
            none => {
                bytes.extend_from_slice(&head);
                none.insert(self.folder.create_journal(&self.journal_name).map_err(storage)?)
            }
        };
        bytes.extend(known.iter().flat_map(|(run, value)| journal::record(&head, run, *value)));
        std::io::Write::write_all(file, &bytes).and_then(|()| file.sync_data()).map_err(storage)
    }

    /// The sender says that all has been sent, and has this hash: looks whether it has arrived, and whether it is that.
    ///
    /// `tick` is called now and then, as reading again what is not known takes its time; if it fails, so does this.
    pub(super) fn finish<E>(
        &self,
        hash: [u8; HASH_BYTES],
        tick: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Result<Finish, Refusal>, E> {
        let _turn = loop {
            match self.finishing.try_lock() {
                Ok(turn) => break turn,
                Err(TryLockError::Poisoned(turn)) => break turn.into_inner(),
                // Another connection has asked, too, and perhaps failed since.
                Err(TryLockError::WouldBlock) => {
                    tick()?;
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
        };
        if *self.end() != End::Open {
            return Ok(Ok(Finish::Verified));
        }
        if let Err(refusal) = self.check() {
            return Ok(Err(refusal));
        }
        if !lock(&self.progress).map.is_full() {
            return Ok(Ok(Finish::Incomplete));
        }
        *self.end_mut() = End::Verifying;
        let mut tree = {
            let mut progress = lock(&self.progress);
            for grains in std::mem::take(&mut progress.writing) {
                progress.tree.forget(grains);
            }
            progress.tree.clone()
        };
        let found = complete(&self.part, self.offer.grains(), &mut tree, tick);
        *self.end_mut() =
            if matches!(found, Ok(Ok(found)) if found == hash) { End::Verified } else { End::Open };
        Ok(match found? {
            Ok(found) if found == hash => Ok(Finish::Verified),
            Ok(_) => {
                self.is_dropped.store(true, Ordering::Relaxed);
                Err(Refusal::new(Code::WrongHash, "what has arrived has another hash than what was sent"))
            }
            Err(error) => Err(Refusal::storage("reading the file again", error)),
        })
    }

    /// Makes a verified file's data permanent; not needed after [`Folder::sync_everything`].
    pub(super) fn sync_data(&self) -> Result<(), Refusal> {
        self.part.sync_all().map_err(|error| Refusal::storage("writing", error))
    }

    /// Gives a verified file, whose data is permanent, its name and date.
    pub(super) fn publish(&self, overwrite: bool) -> Result<(), Refusal> {
        // Nobody writes to the journal any more that is removed.
        let journal = lock(&self.journal);
        let mut end = self.end_mut();
        if *end == End::Published {
            return Ok(());
        }
        assert_eq!(*end, End::Verified, "only what is right gets its name");
        if let Some(date) = clock::date(self.offer.modified_s, self.offer.modified_ns) {
            // A file system that cannot hold the date keeps the file with another.
            let _ = self.part.set_modified(date);
        }
        self.folder.publish(&self.part_name, &self.offer.name, overwrite)?;
        if journal.is_some() {
            self.folder.remove_own(&self.journal_name);
        }
        *end = End::Published;
        Ok(())
    }

    /// Removes what there is of it. Connections that still carry it are told so with their next chunk.
    pub(super) fn discard(&self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        let _journal = lock(&self.journal);
        if *self.end() != End::Published {
            self.folder.remove_own(&self.journal_name);
            self.folder.remove_own(&self.part_name);
        }
    }

    /// Whether it has been given up.
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }

    fn end(&self) -> RwLockReadGuard<'_, End> {
        self.end.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_mut(&self) -> RwLockWriteGuard<'_, End> {
        self.end.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing<'_> {
    /// Writes a piece of the chunk.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Refusal> {
        let incoming = self.incoming;
        incoming.check()?;
        let end = incoming.end();
        if *end != End::Open {
            // All of it has come otherwise.
            return Ok(());
        }
        incoming.part.write_all_at(bytes, offset).map_err(|error| Refusal::storage("writing", error))
    }

    /// All of it has been written, was right, and has these values. Whether the journal is to be written now.
    pub(super) fn arrived(mut self, values: Vec<(Subtree, Value)>) -> bool {
        self.has_arrived = true;
        let incoming = self.incoming;
        let mut progress = lock(&incoming.progress);
        let there = progress.map.set_count();
        for grain in self.grains.clone() {
            progress.map.insert(grain);
        }
        let new = progress.map.set_count() - there;
        self.is_second |= new < self.grains.end - self.grains.start;
        if !self.is_second {
            for (subtree, value) in values {
                progress.tree.insert(subtree, value);
            }
        }
        progress.unsynced_bytes += new * u64::from(incoming.offer.grain_bytes);
        let grains = self.grains.clone();
        match progress.unsynced.last_mut() {
            Some(last) if last.end == grains.start => last.end = grains.end,
            Some(last) if grains.end == last.start => last.start = grains.start,
            _ => progress.unsynced.push(grains),
        }
        incoming.has_become_due(&progress)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut progress = lock(&self.incoming.progress);
        if let Some(at) = progress.writing.iter().position(|grains| *grains == self.grains) {
            progress.writing.swap_remove(at);
        }
        // What was broken off has no values yet, unless somebody else has written the same.
        if self.is_second || !self.has_arrived {
            progress.tree.forget(self.grains.clone());
            let rewritten: Vec<_> =
                self.grains.clone().filter(|grain| progress.map.contains(*grain)).collect();
            progress.unsynced.extend(rewritten.into_iter().map(|grain| grain..grain + 1));
        }
    }
}

/// A thread that panicked while it held the lock has left nothing half done: all are single assignments.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
