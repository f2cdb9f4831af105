//! One file that is being received, by however many connections.

use std::{
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anabranch_policy::transfer::Bitmap;
use nix::fcntl::Flock;

use super::{
    folder::{Existing, Folder, Refusal, taken},
    journal,
};
use crate::{
    clock,
    hash::hash_of,
    wire::{Code, Have, Offer},
};

/// The journal is written when so much has arrived since it was,
const BATCH_BYTES: u64 = 8 << 20;
/// or so long ago.
const BATCH_TIME: Duration = Duration::from_secs(1);

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
    end: Mutex<End>,
    /// Held while the whole is read again.
    finishing: Mutex<()>,
    is_dropped: AtomicBool,
}

#[derive(Debug)]
struct Progress {
    map: Bitmap,
    unsynced: Vec<Range<u64>>,
    unsynced_bytes: u64,
    synced_at: Instant,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
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

impl Incoming {
    /// Begins to receive a file, or goes on with what is there of it.
    pub(super) fn open(folder: Arc<Folder>, offer: Offer) -> Result<Self, Refusal> {
        let [part_name, journal_name] =
            ["part", "journal"].map(|ending| Folder::own_name(&offer.name, ending));
        let part = folder.open_own(&part_name)?;
        let grains = offer.grains().count();
        let storage = |error| Refusal::storage("preparing the partial file", error);
        let has_length = part.metadata().map_err(storage)?.len() == offer.size_bytes;
        let known = if has_length { Self::known(&folder, &journal_name, &offer)? } else { None };
        let map = match &known {
            Some((map, _)) => map.clone(),
            None => {
                // What there is belongs to another file, or there is nothing that says what it is.
                folder.remove_own(&journal_name);
                part.set_len(0).map_err(storage)?;
                part.set_len(offer.size_bytes).map_err(storage)?;
                Bitmap::new(grains)
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
        let progress = Progress { map, unsynced: Vec::new(), unsynced_bytes: 0, synced_at: clock::now() };
        Ok(Self {
            folder,
            offer,
            part_name,
            journal_name,
            part,
            progress: Mutex::new(progress),
            journal: Mutex::new(known.map(|(_, file)| file)),
            end: Mutex::new(End::Open),
            finishing: Mutex::new(()),
            is_dropped: AtomicBool::new(false),
        })
    }

    /// What the journal says, and the journal, ready to be appended to.
    fn known(folder: &Folder, name: &str, offer: &Offer) -> Result<Option<(Bitmap, File)>, Refusal> {
        let storage = |error| Refusal::storage("reading the journal", error);
        let Some(mut file) = folder.open_journal(name).map_err(storage)? else { return Ok(None) };
        let mut bytes = Vec::new();
        (&file).take(journal::BYTES_MAX).read_to_end(&mut bytes).map_err(storage)?;
        let Some((map, believed)) = journal::read(&journal::head(offer), &bytes, offer.grains().count())
        else {
            return Ok(None);
        };
        file.set_len(believed as u64).map_err(storage)?;
        file.seek(std::io::SeekFrom::End(0)).map_err(storage)?;
        Ok(Some((map, file)))
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
        if *lock(&self.end) == End::Published {
            return Have { file, is_done: true, map: Vec::new() };
        }
        Have::of(file, &lock(&self.progress).map)
    }

    /// How many of its bytes there are, counted in whole grains.
    pub(super) fn arrived_bytes(&self) -> u64 {
        (lock(&self.progress).map.set_count() * u64::from(self.offer.grain_bytes)).min(self.offer.size_bytes)
    }

    /// Writes a piece of a chunk.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Refusal> {
        if self.is_dropped.load(Ordering::Relaxed) {
            return Err(Refusal::new(Code::Name, "another version of this file is being sent"));
        }
        if *lock(&self.end) != End::Open {
            // It is whole: what comes again is the same, as the hash of the whole says.
            return Ok(());
        }
        self.part.write_all_at(bytes, offset).map_err(|error| Refusal::storage("writing", error))
    }

    /// These grains have been written, and were right.
    pub(super) fn arrived(&self, grains: Range<u64>) -> Result<(), Refusal> {
        let mut progress = lock(&self.progress);
        let new = grains.clone().filter(|grain| progress.map.insert(*grain)).count() as u64;
        if new == 0 {
            return Ok(());
        }
        progress.unsynced_bytes += new * u64::from(self.offer.grain_bytes);
        match progress.unsynced.last_mut() {
            Some(last) if last.end == grains.start => last.end = grains.end,
            Some(last) if grains.end == last.start => last.start = grains.start,
            _ => progress.unsynced.push(grains),
        }
        let is_due = progress.unsynced_bytes >= BATCH_BYTES
            || clock::now().duration_since(progress.synced_at) >= BATCH_TIME;
        drop(progress);
        if is_due { self.sync() } else { Ok(()) }
    }

    /// Makes what has arrived permanent, and then says so in the journal.
    pub(super) fn sync(&self) -> Result<(), Refusal> {
        let Ok(mut journal) = self.journal.try_lock() else {
            // Another connection is at it; what has arrived since is for the next batch.
            return Ok(());
        };
        if *lock(&self.end) == End::Published || self.is_dropped.load(Ordering::Relaxed) {
            return Ok(());
        }
        let grains = {
            let mut progress = lock(&self.progress);
            progress.unsynced_bytes = 0;
            progress.synced_at = clock::now();
            std::mem::take(&mut progress.unsynced)
        };
        if grains.is_empty() {
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
        bytes.extend(grains.iter().flat_map(|run| journal::record(&head, run)));
        file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(storage)
    }

    /// The sender says that all has arrived: looks whether it has, and whether it is what was offered.
    ///
    /// `tick` is called now and then, as a large file takes its time; if it fails, so does this.
    pub(super) fn finish<E>(
        &self,
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
        if *lock(&self.end) != End::Open {
            return Ok(Ok(Finish::Verified));
        }
        if !lock(&self.progress).map.is_full() {
            return Ok(Ok(Finish::Incomplete));
        }
        let hash = match hash_of(&self.part, self.offer.size_bytes, tick)? {
            Ok(hash) => hash,
            Err(error) => return Ok(Err(Refusal::storage("reading the file again", error))),
        };
        if hash != self.offer.hash {
            self.is_dropped.store(true, Ordering::Relaxed);
            return Ok(Err(Refusal::new(Code::WrongHash, "the whole has another hash than was offered")));
        }
        *lock(&self.end) = End::Verified;
        Ok(Ok(Finish::Verified))
    }

    /// Makes a verified file's data permanent; not needed after [`Folder::sync_everything`].
    pub(super) fn sync_data(&self) -> Result<(), Refusal> {
        self.part.sync_all().map_err(|error| Refusal::storage("writing", error))
    }

    /// Gives a verified file, whose data is permanent, its name and date.
    pub(super) fn publish(&self, overwrite: bool) -> Result<(), Refusal> {
        let mut end = lock(&self.end);
        if *end == End::Published {
            return Ok(());
        }
        assert_eq!(*end, End::Verified, "only what is right gets its name");
        if let Some(date) = clock::date(self.offer.modified_s, self.offer.modified_ns) {
            // A file system that cannot hold the date keeps the file with another.
            let _ = self.part.set_modified(date);
        }
        if !overwrite && !matches!(self.folder.existing(&self.offer.name)?, Existing::Nothing) {
            return Err(taken());
        }
        self.folder.publish(&self.part_name, &self.offer.name, overwrite)?;
        self.folder.remove_own(&self.journal_name);
        *end = End::Published;
        Ok(())
    }

    /// Removes what there is of it. Connections that still carry it are told so with their next chunk.
    pub(super) fn discard(&self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        if *lock(&self.end) != End::Published {
            self.folder.remove_own(&self.journal_name);
            self.folder.remove_own(&self.part_name);
        }
    }

    /// Whether it has been given up.
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}

/// A thread that panicked while it held the lock has left nothing half done: all are single assignments.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
