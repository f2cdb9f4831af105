//! The lock that makes bed runs serial on a host.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process,
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};

use crate::BedError;

const FILE: &str = "bed.lock";

/// An exclusive lock, held until dropped or until the process dies. While it is held, the file `bed.lock` says
/// who holds it; afterwards it is gone.
#[derive(Debug)]
pub(super) struct Lock {
    folder: PathBuf,
    _file: Flock<File>,
}

impl Lock {
    /// Takes the lock in `folder`, which is made if need be.
    ///
    /// # Errors
    /// [`BedError::Busy`] if someone else holds it, [`BedError::Unavailable`] if the folder cannot be written.
    pub(super) fn take(folder: &Path) -> Result<Self, BedError> {
        // A holder removes file and folder before it lets go, so that either may vanish under our hands.
        for _ in 0..100 {
            match Self::attempt(folder) {
                Ok(Some(file)) => return Ok(Self { folder: folder.to_owned(), _file: file }),
                Ok(None) => {}
                Err(BedError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(busy(folder))
    }

    fn attempt(folder: &Path) -> Result<Option<Flock<File>>, BedError> {
        let path = folder.join(FILE);
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(unwritable(folder))?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(&path)
            .map_err(unwritable(folder))?;
        let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Err(busy(folder)),
            Err((_, errno)) => {
                return Err(BedError::system(format!("locking {}", path.display()))(errno.into()));
            }
        };
        let system = |source| BedError::system(format!("locking {}", path.display()))(source);
        let here = fs::metadata(&path).map_err(system)?;
        if here.ino() != file.metadata().map_err(system)?.ino() {
            return Ok(None);
        }
        file.set_len(0).map_err(system)?;
        writeln!(file, "process {}: {}", process::id(), command_line()).map_err(system)?;
        Ok(Some(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(FILE));
        // Refused while it holds anything, such as a ledger that could not be worked off.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn busy(folder: &Path) -> BedError {
    let mut holder = String::new();
    let read = File::open(folder.join(FILE)).and_then(|mut file| file.read_to_string(&mut holder));
    let who = match holder.lines().next() {
        Some(line) if read.is_ok() => format!(" ({line})"),
        _ => String::new(),
    };
    BedError::Busy(format!(
        "another bed runs on this host{who}; bed runs are serial because they share the processor; wait for it"
    ))
}

fn unwritable(folder: &Path) -> impl FnOnce(io::Error) -> BedError {
    let what = format!("the test bed keeps its lock in {}, which it must be able to write", folder.display());
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            BedError::Unavailable(format!("{what} ({source}); run it as root of the host"))
        }
        _ => BedError::System { what, source },
    }
}

/// How this process was started, with the program's name instead of its path.
fn command_line() -> String {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().replace(char::is_control, " ")).collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or_default().to_owned();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_the_lock_and_the_other_is_told_who() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("anabranch");
        let held = Lock::take(&place).unwrap();
        let BedError::Busy(text) = Lock::take(&place).unwrap_err() else { panic!("it is busy") };
        let me = format!("another bed runs on this host (process {}: ", process::id());
        assert!(text.starts_with(&me), "{text}");
        let reason = "); bed runs are serial because they share the processor; wait for it";
        assert!(text.ends_with(reason), "{text}");
        drop(held);
        drop(Lock::take(&place).unwrap());
    }

    #[test]
    fn a_lock_let_go_leaves_neither_file_nor_folder() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("anabranch");
        drop(Lock::take(&place).unwrap());
        assert!(!place.exists());
    }

    #[test]
    fn a_file_left_by_a_holder_that_died_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "process 1: anabranch-bed run x.toml\n").unwrap();
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn threads_that_contend_hold_the_lock_one_at_a_time() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("anabranch");
        let (inside, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 200 {
                        let Ok(_held) = Lock::take(&place) else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        taken.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
