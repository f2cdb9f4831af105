//! Named network namespaces, as ip-netns(8) has them, so that a user can look into a running bed with
//! `ip netns exec`.

use std::{
    fs::{self, File},
    io,
    path::Path,
    thread,
};

use nix::{
    errno::Errno,
    mount::{MntFlags, umount2},
    sched::{CloneFlags, setns},
};

use super::tool::{ip, run};
use crate::BedError;

/// All of our namespaces' names begin with this; `clean` goes by it.
pub const PREFIX: &str = "anabranch-";

/// Where ip-netns(8) keeps the names.
const FOLDER: &str = "/run/netns";

/// A network namespace, deleted when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Makes the namespace `anabranch-<role>`, with its loopback device up.
    ///
    /// # Errors
    /// [`BedError::Failed`] if `ip` refuses, for example because the name is taken.
    pub fn new(role: &str) -> Result<Self, BedError> {
        let mut made = Self::new_all(&[format!("{PREFIX}{role}")])?;
        let namespace = made.pop().expect("one was asked for");
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Makes namespaces of these whole names, all or none; their loopback devices are down.
    pub(super) fn new_all(names: &[String]) -> Result<Vec<Self>, BedError> {
        if let Some(taken) = names.iter().find(|name| Path::new(FOLDER).join(name).exists()) {
            return Err(BedError::Failed(format!(
                "network namespace {taken} exists already; if no bed runs, remove it with `anabranch-bed clean`"
            )));
        }
        let batch: String = names.iter().map(|name| format!("netns add {name}\n")).collect();
        let made = run("ip", &["-batch", "-"], Some(&batch));
        let open = |name: &String| {
            let file = File::open(Path::new(FOLDER).join(name));
            file.map(|file| Self { name: name.clone(), file })
                .map_err(BedError::system(format!("opening network namespace {name}")))
        };
        made.and_then(|_| names.iter().map(open).collect()).inspect_err(|_| {
            for name in names {
                // The first failure is the one to tell.
                let _ = remove(name);
            }
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in a thread of its own that has moved into the namespace; what it opens stays there.
    ///
    /// # Errors
    /// [`BedError::System`] if the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, BedError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| self.move_this_thread().map(|()| work()));
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A further handle, for a thread that outlives this one's borrow; it does not delete the namespace.
    ///
    /// # Errors
    /// [`BedError::System`] if the process has too many descriptors.
    pub fn handle(&self) -> Result<Handle, BedError> {
        let what = || format!("duplicating the descriptor of {}", self.name);
        let file = self.file.try_clone().map_err(BedError::system(what()))?;
        Ok(Handle { name: self.name.clone(), file })
    }

    /// Moves the calling thread into the namespace, for good.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub fn move_this_thread(&self) -> Result<(), BedError> {
        enter(&self.name, &self.file)
    }
}

/// A network namespace that belongs to somebody else.
#[derive(Debug)]
pub struct Handle {
    name: String,
    file: File,
}

impl Handle {
    /// Moves the calling thread into the namespace, for good.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub fn move_this_thread(&self) -> Result<(), BedError> {
        enter(&self.name, &self.file)
    }
}

fn enter(name: &str, file: &File) -> Result<(), BedError> {
    setns(file, CloneFlags::CLONE_NEWNET)
        .map_err(io::Error::from)
        .map_err(BedError::system(format!("entering network namespace {name}")))
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the next start cleans what is left.
        let _ = remove(&self.name);
    }
}

/// Takes a namespace's name away, as `ip netns delete` does; the kernel ends the namespace itself when the last
/// process, thread and descriptor have left it. Returns whether the name was there.
pub(super) fn remove(name: &str) -> io::Result<bool> {
    assert!(name.starts_with(PREFIX) && !name.contains('/'), "{name:?} is not a namespace of ours");
    let path = Path::new(FOLDER).join(name);
    match umount2(&path, MntFlags::MNT_DETACH) {
        // EINVAL: a file that nothing is mounted on, left by an `ip netns add` that did not get to its end.
        Ok(()) | Err(Errno::EINVAL) => {}
        Err(Errno::ENOENT) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    }
    fs::remove_file(path).map(|()| true)
}

/// The names of all network namespaces that begin with [`PREFIX`], sorted.
pub(super) fn ours() -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(FOLDER) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.starts_with(PREFIX)));
    }
    names.sort();
    Ok(names)
}
