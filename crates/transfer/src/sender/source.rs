//! A file that is sent.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anabranch_policy::transfer::Chunks;

use crate::{
    hash::complete,
    tree::{Subtree, Tree, Value},
    wire::{FILE_BYTES_MAX, HASH_BYTES, Offer, grain_bytes, is_file_name},
};

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be opened or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is a folder, a device, a pipe.
    #[error("not a regular file")]
    NotAFile,
    /// A receiver would not take its name.
    #[error("its name cannot be sent: names that begin with .anabranch- are the receiver's own")]
    Name,
    /// It is too large.
    #[error("it has {size_bytes} bytes; {FILE_BYTES_MAX} can be sent")]
    TooLarge {
        /// Its length.
        size_bytes: u64,
    },
    /// It is not any more what it was.
    #[error("it has changed while it was being sent")]
    Changed,
}

/// What tells that a file is another one than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signs {
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Signs {
    fn of(data: &Metadata) -> Self {
        Self {
            size_bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

/// An open file, whose hash comes together while it is sent.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    signs: Signs,
    tree: Mutex<Tree>,
    name: Vec<u8>,
}

impl Source {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Self, SourceError> {
        // A pipe would be waited for.
        let file =
            File::options().read(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits()).open(path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(SourceError::NotAFile);
        }
        let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        if !is_file_name(&name) {
            return Err(SourceError::Name);
        }
        let signs = Signs::of(&data);
        let size_bytes = signs.size_bytes;
        if size_bytes > FILE_BYTES_MAX {
            return Err(SourceError::TooLarge { size_bytes });
        }
        let chunks = Chunks::new(size_bytes, u64::from(grain_bytes(size_bytes)));
        Ok(Self { file, signs, tree: Mutex::new(Tree::new(chunks.count())), name })
    }

    /// What is said of it to a receiver.
    pub(super) fn offer(&self, file: u32) -> Offer {
        let (modified_s, nanoseconds) = self.signs.modified;
        Offer {
            file,
            size_bytes: self.signs.size_bytes,
            modified_s,
            modified_ns: u32::try_from(nanoseconds).unwrap_or(0),
            grain_bytes: self.grain_bytes(),
            name: self.name.clone(),
        }
    }

    /// Whether it is another one than when it was opened, as far as length and dates tell: that of its last change (`st_ctime`) is
    /// one that no program can set.
    pub(super) fn has_changed(&self) -> bool {
        self.file.metadata().map_or(true, |data| Signs::of(&data) != self.signs)
    }

    /// Reads a piece.
    pub(super) fn read(&self, piece: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(piece, offset)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.signs.size_bytes
    }

    /// How it is cut.
    pub(super) fn grains(&self) -> Chunks {
        Chunks::new(self.size_bytes(), u64::from(self.grain_bytes()))
    }

    pub(super) fn grain_bytes(&self) -> u32 {
        grain_bytes(self.size_bytes())
    }

    /// These parts of it have been read, and are that.
    pub(super) fn note(&self, values: Vec<(Subtree, Value)>) {
        let mut tree = self.tree();
        for (subtree, value) in values {
            tree.insert(subtree, value);
        }
    }

    /// The hash of all of it: of what has been sent as it was then, of the rest as it is now. `tick` is called every two seconds;
    /// if it fails, so does this.
    pub(super) fn complete_hash<E>(
        &self,
        tick: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<io::Result<[u8; HASH_BYTES]>, E> {
        let chunks = self.grains();
        // Nobody sends of it meanwhile, so nobody waits.
        complete(&self.file, chunks, &mut self.tree(), tick)
    }

    /// The hash of all of it, if all has been read, and nobody is reading.
    pub(super) fn hash(&self) -> Option<[u8; HASH_BYTES]> {
        self.tree.try_lock().ok()?.root()
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
