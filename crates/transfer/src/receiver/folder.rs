//! The folder that files are received into. Nothing outside of it is ever opened: names are single names of files
//! ([`is_file_name`]), looked up in a folder that stays open, and no symbolic link is followed.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, Flock, FlockArg, OFlag, RenameFlags, openat, renameat, renameat2},
    sys::{
        stat::{Mode, SFlag, fstatat},
        statvfs::fstatvfs,
    },
    unistd::{UnlinkatFlags, fsync, syncfs, unlinkat},
};

use crate::wire::{Code, OWN_PREFIX, is_file_name};

/// Why a file is not taken, as the sender is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// What kind of reason.
    pub code: Code,
    /// For people.
    pub text: String,
}

impl Refusal {
    pub(super) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// What the system said, while doing that.
    pub(super) fn storage(what: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let is_full = [Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG].map(|errno| Some(errno as i32));
        let code = if is_full.contains(&error.raw_os_error()) { Code::DiskFull } else { Code::Storage };
        Self::new(code, format!("{what}: {error}"))
    }
}

/// What is there under a name.
pub(super) enum Existing {
    Nothing,
    /// A file with this length.
    File {
        size_bytes: u64,
    },
    /// A folder, a link, a device.
    Other,
}

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
}

impl Folder {
    /// Opens a folder that is there.
    ///
    /// # Errors
    /// If it is not there, or no folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
        Ok(Self { fd: openat(AT_FDCWD, path, flags, Mode::empty())? })
    }

    /// What the receiver calls what belongs to a file that is not whole: long names stay within what a folder can hold.
    pub(super) fn own_name(name: &[u8], ending: &str) -> String {
        format!("{OWN_PREFIX}{}.{ending}", &blake3::hash(name).to_hex()[..32])
    }

    /// Opens one of the receiver's own files for reading and writing, and locks it: another receiver may have the folder, too.
    pub(super) fn open_own(&self, name: &str) -> Result<Flock<File>, Refusal> {
        assert!(name.starts_with(OWN_PREFIX), "{name}");
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o644);
        let fd = openat(&self.fd, name, flags, mode);
        let file = File::from(fd.map_err(|error| Refusal::storage("opening the partial file", error))?);
        Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| Refusal::new(Code::Name, "another receiver is writing this file"))
    }

    /// Opens a journal for reading and appending, if it is there.
    pub(super) fn open_journal(&self, name: &str) -> io::Result<Option<File>> {
        self.journal(name, OFlag::empty())
    }

    /// Begins a journal.
    pub(super) fn create_journal(&self, name: &str) -> io::Result<File> {
        let created = self.journal(name, OFlag::O_CREAT | OFlag::O_TRUNC)?;
        created.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn journal(&self, name: &str, more: OFlag) -> io::Result<Option<File>> {
        assert!(name.starts_with(OWN_PREFIX), "{name}");
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | more;
        match openat(&self.fd, name, flags, Mode::from_bits_truncate(0o644)) {
            Ok(fd) => Ok(Some(fd.into())),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn existing(&self, name: &[u8]) -> Result<Existing, Refusal> {
        assert!(is_file_name(name), "the reader of the protocol has looked");
        match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found)
                if SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG =>
            {
                Ok(Existing::File { size_bytes: u64::try_from(found.st_size).unwrap_or(0) })
            }
            Ok(_) => Ok(Existing::Other),
            Err(Errno::ENOENT) => Ok(Existing::Nothing),
            Err(error) => Err(Refusal::storage("looking for the file", error)),
        }
    }

    /// Opens a file for reading, which must be no link.
    pub(super) fn read(&self, name: &[u8]) -> io::Result<File> {
        assert!(is_file_name(name), "the reader of the protocol has looked");
        // Without waiting, in case it has just become a pipe.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        Ok(openat(&self.fd, name, flags, Mode::empty())?.into())
    }

    /// Gives a partial file its name, at once or not at all.
    pub(super) fn publish(&self, own: &str, name: &[u8], overwrite: bool) -> Result<(), Refusal> {
        assert!(is_file_name(name) && own.starts_with(OWN_PREFIX), "{own}");
        let outcome = match overwrite {
            true => renameat(&self.fd, own, &self.fd, name),
            false => match renameat2(&self.fd, own, &self.fd, name, RenameFlags::RENAME_NOREPLACE) {
                // A file system that cannot say "if there is none": look, and then rename.
                Err(Errno::EINVAL) if matches!(self.existing(name)?, Existing::Nothing) => {
                    renameat(&self.fd, own, &self.fd, name)
                }
                outcome => outcome,
            },
        };
        match outcome {
            Err(Errno::EEXIST | Errno::EINVAL) => Err(taken()),
            outcome => outcome.map_err(|error| Refusal::storage("giving the file its name", error)),
        }
    }

    /// Removes one of the receiver's own files, if it is there.
    pub(super) fn remove_own(&self, own: &str) {
        assert!(own.starts_with(OWN_PREFIX), "{own}");
        // It may never have been made; and if it stays, the next transfer of that name replaces it.
        let _ = unlinkat(&self.fd, own, UnlinkatFlags::NoRemoveDir);
    }

    /// Makes names that have been given permanent.
    pub(super) fn sync_names(&self) -> io::Result<()> {
        Ok(fsync(&self.fd)?)
    }

    /// Makes everything permanent that has been written to this file system: one wait for many small files.
    pub(super) fn sync_everything(&self) -> io::Result<()> {
        Ok(syncfs(&self.fd)?)
    }

    /// How much more can be written, in bytes.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let found = fstatvfs(self.fd.as_fd())?;
        Ok(found.blocks_available().saturating_mul(found.fragment_size()))
    }
}

/// There is another file of that name.
pub(super) fn taken() -> Refusal {
    Refusal::new(Code::Name, "there is another file of that name; `receive --overwrite` would replace it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_way_is_neither_followed_nor_written_through() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let own = Folder::own_name(b"a", "part");
        for name in [own.as_str(), "a"] {
            std::os::unix::fs::symlink(&victim, inside.path().join(name)).unwrap();
        }
        assert_eq!(folder.open_own(&own).unwrap_err().code, Code::Storage);
        assert!(folder.read(b"a").is_err());
        assert!(matches!(folder.existing(b"a"), Ok(Existing::Other)));

        folder.remove_own(&own);
        drop(folder.open_own(&own).unwrap());
        assert_eq!(folder.publish(&own, b"a", false), Err(taken()));
        folder.publish(&own, b"a", true).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "the link was replaced");
        assert_eq!(std::fs::read_to_string(inside.path().join("a")).unwrap(), "");
    }

    #[test]
    fn two_receivers_cannot_write_the_same_partial_file() {
        let place = tempfile::tempdir().unwrap();
        let own = Folder::own_name(&[b'x'; 255], "part");
        let folder = Folder::open(place.path()).unwrap();
        let held = folder.open_own(&own).unwrap();
        assert_eq!(folder.open_own(&own).unwrap_err().code, Code::Name);
        drop(held);
        assert!(folder.open_own(&own).is_ok());
    }
}
