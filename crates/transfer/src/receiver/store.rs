//! Which files are being received, and by whose connections.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    folder::{Existing, Folder, Refusal, taken},
    incoming::Incoming,
};
use crate::{
    hash::complete,
    security::Fingerprint,
    tree::Tree,
    wire::{Code, HASH_BYTES, Offer},
};

/// Files at once, of all senders: each holds two file descriptors.
const FILES_MAX: usize = 512;

/// Files under way, by their names.
#[derive(Debug, Default)]
pub(super) struct Store {
    files: Mutex<BTreeMap<Vec<u8>, Entry>>,
    senders: Mutex<BTreeMap<Option<Fingerprint>, u16>>,
}

#[derive(Debug)]
struct Entry {
    file: Arc<Incoming>,
    owner: Option<Fingerprint>,
    connections: usize,
}

/// What an offer has come to.
pub(super) enum Offered {
    /// The file is there already.
    There,
    /// There is one of its name and length: the hash tells whether it is the same ([`Store::settle`]).
    Alike,
    /// It is wanted, or what is missing of it.
    Wanted(Arc<Incoming>),
}

impl Store {
    /// One more connection carries a file. Another of its name is in the way, unless it may be replaced.
    pub(super) fn offer(
        &self,
        folder: &Arc<Folder>,
        overwrite: bool,
        owner: Option<Fingerprint>,
        offer: &Offer,
    ) -> Result<Offered, Refusal> {
        if !self.lock().contains_key(&offer.name) {
            match folder.existing(&offer.name)? {
                Existing::Nothing => {}
                Existing::File { size_bytes } if size_bytes == offer.size_bytes => return Ok(Offered::Alike),
                Existing::File { .. } | Existing::Other if overwrite => {}
                Existing::File { .. } | Existing::Other => return Err(taken()),
            }
        }
        self.join(folder, owner, offer).map(Offered::Wanted)
    }

    /// What an offer has come to that was of a file alike, now that its hash is known.
    ///
    /// `tick` is called now and then, as looking at a large file takes its time; if it fails, so does this.
    pub(super) fn settle<E>(
        &self,
        folder: &Arc<Folder>,
        overwrite: bool,
        owner: Option<Fingerprint>,
        (offer, hash): (&Offer, [u8; HASH_BYTES]),
        tick: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Result<Offered, Refusal>, E> {
        let is_same = match folder.read(&offer.name) {
            Ok(file) if matches!(file.metadata(), Ok(data) if data.len() == offer.size_bytes) => {
                let mut tree = Tree::new(offer.grains().count());
                matches!(complete(&file, offer.grains(), &mut tree, tick)?, Ok(found) if found == hash)
            }
            Ok(_) => false,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(self.join(folder, owner, offer).map(Offered::Wanted));
            }
            Err(error) => return Ok(Err(Refusal::storage("reading the file of that name", error))),
        };
        Ok(match (is_same, overwrite) {
            (true, _) => Ok(Offered::There),
            (false, true) => self.join(folder, owner, offer).map(Offered::Wanted),
            (false, false) => Err(taken()),
        })
    }

    fn join(
        &self,
        folder: &Arc<Folder>,
        owner: Option<Fingerprint>,
        offer: &Offer,
    ) -> Result<Arc<Incoming>, Refusal> {
        let mut files = self.lock();
        let is_full = files.len() >= FILES_MAX;
        if let Some(entry) = files.get_mut(&offer.name) {
            if entry.owner != owner {
                return Err(Refusal::new(Code::Name, "another sender is sending a file of that name"));
            }
            if entry.file.is_of(offer) && !entry.file.is_dropped() {
                entry.connections += 1;
                return Ok(entry.file.clone());
            }
            // The sender's file has changed since it was offered, and it has come again: the old one is not wanted.
            entry.file.discard();
            files.remove(&offer.name);
        } else if is_full {
            return Err(Refusal::new(Code::Busy, "too many files are under way"));
        }
        let file = Arc::new(Incoming::open(folder.clone(), offer.clone())?);
        files.insert(offer.name.clone(), Entry { file: file.clone(), owner, connections: 1 });
        Ok(file)
    }

    /// A connection does not carry a file any more. The last one makes what there is permanent.
    pub(super) fn leave(&self, file: &Arc<Incoming>) {
        let is_last = {
            let mut files = self.lock();
            match files.get_mut(&file.offer().name) {
                Some(entry) if Arc::ptr_eq(&entry.file, file) => {
                    entry.connections -= 1;
                    entry.connections == 0
                }
                _ => false,
            }
        };
        if is_last {
            // Whatever is not in the journal comes again: nothing is lost but time.
            let _ = file.sync(true);
            let mut files = self.lock();
            let is_unused = |entry: &Entry| Arc::ptr_eq(&entry.file, file) && entry.connections == 0;
            if files.get(&file.offer().name).is_some_and(is_unused) {
                files.remove(&file.offer().name);
            }
        }
    }

    /// A file has its name, or is given up: whoever offers it next begins anew.
    pub(super) fn forget(&self, file: &Arc<Incoming>) {
        let mut files = self.lock();
        if files.get(&file.offer().name).is_some_and(|entry| Arc::ptr_eq(&entry.file, file)) {
            files.remove(&file.offer().name);
        }
    }

    /// One more connection of a sender, if it has fewer than so many.
    pub(super) fn enter(&self, who: Option<Fingerprint>, limit: u16) -> bool {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        let count = senders.entry(who).or_insert(0);
        let has_room = *count < limit;
        *count += u16::from(has_room);
        has_room
    }

    /// One less.
    pub(super) fn exit(&self, who: Option<Fingerprint>) {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = senders.get_mut(&who) {
            *count -= 1;
            if *count == 0 {
                senders.remove(&who);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Entry>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
