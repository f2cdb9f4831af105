//! A file that is sent.

use std::{
    fs::File,
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

use crate::{
    ChannelError, Stop,
    hash::hash_of,
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
    /// This end was told to stop.
    #[error("stopped")]
    Stopped,
}

/// What tells that a file is another one than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signs {
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Signs {
    fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Self {
            size_bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

/// An open file, of which the hash is known.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    signs: Signs,
    hash: [u8; HASH_BYTES],
    name: Vec<u8>,
}

impl Source {
    /// Opens a file and reads all of it once, for its hash.
    pub(super) fn open(path: &Path, stop: &Stop) -> Result<Self, SourceError> {
        // A pipe would be waited for.
        let file =
            File::options().read(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits()).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(SourceError::NotAFile);
        }
        let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        if !is_file_name(&name) {
            return Err(SourceError::Name);
        }
        let signs = Signs::of(&file)?;
        let size_bytes = signs.size_bytes;
        if size_bytes > FILE_BYTES_MAX {
            return Err(SourceError::TooLarge { size_bytes });
        }
        let mut tick = || if stop.is_raised() { Err(SourceError::Stopped) } else { Ok(()) };
        let hash = match hash_of(&file, size_bytes, &mut tick)? {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(SourceError::Changed),
            outcome => outcome?,
        };
        let source = Self { file, signs, hash, name };
        if source.has_changed() { Err(SourceError::Changed) } else { Ok(source) }
    }

    /// What is said of it to a receiver.
    pub(super) fn offer(&self, file: u32) -> Offer {
        let (modified_s, nanoseconds) = self.signs.modified;
        Offer {
            file,
            size_bytes: self.signs.size_bytes,
            modified_s,
            modified_ns: u32::try_from(nanoseconds).unwrap_or(0),
            grain_bytes: grain_bytes(self.signs.size_bytes),
            hash: self.hash,
            name: self.name.clone(),
        }
    }

    /// Whether it is another one than when it was opened, as far as length and dates tell. What they do not tell, the hash of the
    /// whole does, at the receiver.
    pub(super) fn has_changed(&self) -> bool {
        Signs::of(&self.file).map_or(true, |signs| signs != self.signs)
    }

    /// Reads a piece.
    pub(super) fn read(&self, piece: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(piece, offset)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.signs.size_bytes
    }

    pub(super) fn hash(&self) -> [u8; HASH_BYTES] {
        self.hash
    }
}

/// Why a piece of work on a connection ended before it was done.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection is of no further use.
    Channel(ChannelError),
    /// The receiver ends it, and says why.
    Told(String),
    /// The file is not any more what it was, in the middle of a chunk.
    Source,
}

impl From<ChannelError> for Broken {
    fn from(error: ChannelError) -> Self {
        Self::Channel(error)
    }
}
