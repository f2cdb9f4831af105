//! Algorithms that stay registered after the loader has gone, held by files in the BPF file system.
//!
//! A folder holds one subfolder per algorithm, named like it in the kernel:
//!
//! ```text
//! /sys/fs/bpf/anabranch/ab_lia/params      map, the section .rodata.params
//!                              counters    map
//!                              conns       map, of coupled algorithms
//!                              build       symbolic link whose text identifies the BPF object
//!                              link        the registration
//! ```
//!
//! `link` is made last and removed first, and it alone decides: with it the algorithm is registered and all else is
//! there, without it nothing is registered and what lies there is a leftover. The kernel takes a registration
//! away when the last file or descriptor of its link goes, so a process killed at any point leaves either a
//! working algorithm or none. Whoever changes something holds a lock on the folder itself.
//!
//! Left out: a registration by other means (bpftool, another folder) is seen as a name that is taken, no more.

use std::{
    fs::{self, File},
    io,
    mem::{offset_of, size_of},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use anabranch_cc::{Algorithm, Conn};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};
use nix::{
    fcntl::{Flock, FlockArg, OFlag},
    sys::statfs::{BPF_FS_MAGIC, statfs},
    unistd::geteuid,
};

use crate::{
    Counters, KernelError, check_host, kernel_name,
    load::{CONNECTIONS_MAP, COUNTERS_MAP, PARAMS_SECTION, Prepared, find, read_counters, read_params},
    objects,
};

const LINK: &str = "link";
const BUILD: &str = "build";
const PARAMS: &str = "params";
const COUNTERS: &str = "counters";
const CONNECTIONS: &str = "conns";
/// Files of the maps, by the maps' names.
const MAPS: [(&str, &str); 3] =
    [(PARAMS_SECTION, PARAMS), (COUNTERS_MAP, COUNTERS), (CONNECTIONS_MAP, CONNECTIONS)];
const NAME_PREFIX: &str = "ab_";

/// A name goes within milliseconds of its link; longer means that someone else holds the link.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Why the folder of registrations cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// What loading without a folder meets, too.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Pinned objects need bpffs.
    #[error(
        "{} is not in a BPF file system; mount one with `mount -t bpf bpf /sys/fs/bpf`",
        folder.display()
    )]
    NotBpffs {
        /// The folder asked for.
        folder: PathBuf,
    },
    /// Anyone may make folders in a BPF file system, and could take away what others put into his.
    #[error(
        "{} belongs to user {owner}; remove it, or keep what is loaded in another folder (`--pin`)",
        folder.display()
    )]
    OthersFolder {
        /// The folder.
        folder: PathBuf,
        /// Number of the user.
        owner: u32,
    },
    /// It is loaded with other parameters.
    #[error(
        "`{name}` is loaded with other parameters; its parameters are fixed while it is loaded: unload it first \
         (`anabranchd cc unload {name}`), then load it again"
    )]
    OtherParameters {
        /// The algorithm.
        name: &'static str,
    },
    /// It is loaded, from other sources or by another compiler.
    #[error(
        "`{name}` is loaded from another build of it; unload it first (`anabranchd cc unload {name}`), then load \
         it again"
    )]
    OtherBuild {
        /// The algorithm.
        name: &'static str,
    },
    /// It is not loaded from this folder.
    #[error("`{name}` is not loaded")]
    NotLoaded {
        /// The algorithm.
        name: &'static str,
    },
    /// The link has gone and the name is still there.
    #[error("`{kernel_name}` is still registered: another process holds the registration open")]
    StillRegistered {
        /// The name.
        kernel_name: String,
    },
    /// An object of the folder could not be made, read or removed.
    #[error("{}: {source}", path.display())]
    Bpf {
        /// The file.
        path: PathBuf,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// The same, by the file system.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What [`Pins::load`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// The algorithm is registered now.
    Loaded,
    /// It was, with the same parameters and from the same build.
    AlreadyLoaded,
}

/// A folder of registrations, locked against other processes until dropped.
#[derive(Debug)]
pub struct Pins {
    folder: PathBuf,
    _lock: Flock<File>,
}

impl Pins {
    /// Opens `folder`, makes it if need be, and waits for its lock.
    ///
    /// # Errors
    /// [`PinError::Kernel`] as [`check_host`], [`PinError::NotBpffs`], [`PinError::OthersFolder`] or [`PinError::File`].
    pub fn open(folder: &Path) -> Result<Self, PinError> {
        check_host()?;
        let parent = folder.parent().unwrap_or(folder);
        if !statfs(parent).is_ok_and(|there| there.filesystem_type() == BPF_FS_MAGIC) {
            return Err(PinError::NotBpffs { folder: folder.to_owned() });
        }
        let failed = |source| PinError::File { path: folder.to_owned(), source };
        // Closed to others, who could do nothing with what is in it.
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.map_err(failed)?,
        }
        let file = File::options()
            .read(true)
            .custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits())
            .open(folder)
            .map_err(failed)?;
        let owner = file.metadata().map_err(failed)?.uid();
        if owner != geteuid().as_raw() {
            return Err(PinError::OthersFolder { folder: folder.to_owned(), owner });
        }
        let lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| failed(io::Error::from(errno)))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Registers the algorithm `name` until it is unloaded, with parameters in the registry's order, as stored.
    ///
    /// # Errors
    /// Any [`PinError`] but [`PinError::NotLoaded`] and [`PinError::StillRegistered`].
    pub fn load(&self, name: &str, params: &[u32]) -> Result<Loading, PinError> {
        let algorithm = find(name)?;
        let name = algorithm.name();
        if let Some(pinned) = self.find(algorithm) {
            if pinned.params()? != params {
                return Err(PinError::OtherParameters { name });
            }
            return Ok(Loading::AlreadyLoaded);
        }
        let folder = self.place(algorithm);
        remove(&folder)?;
        let mut prepared = Prepared::load(name, params)?;
        let made = pin(&mut prepared, &folder);
        if made.is_err() {
            // The error is what matters; what cannot be removed now is removed as a leftover later.
            let _ = remove(&folder);
        }
        made.map(|()| Loading::Loaded)
    }

    /// The algorithms that are loaded, in the order of the registry.
    pub fn loaded(&self) -> Vec<Pinned> {
        anabranch_cc::algorithms().iter().filter_map(|algorithm| self.find(algorithm)).collect()
    }

    /// The algorithm, if it is loaded.
    pub fn find(&self, algorithm: &'static Algorithm) -> Option<Pinned> {
        let folder = self.place(algorithm);
        holds_registration(&folder).then_some(Pinned { algorithm, folder })
    }

    /// Takes the algorithm's name away. Sockets that use it keep it until they close.
    ///
    /// # Errors
    /// [`PinError::NotLoaded`], [`PinError::StillRegistered`], [`PinError::Bpf`] or [`PinError::File`].
    pub fn unload(&self, algorithm: &'static Algorithm) -> Result<(), PinError> {
        let pinned = self.find(algorithm).ok_or(PinError::NotLoaded { name: algorithm.name() })?;
        let path = pinned.folder.join(LINK);
        // The last reference is a descriptor's, because a file's goes only when the kernel finds time for it.
        let link = Link::open(&path).map_err(|source| PinError::Bpf { path: path.clone(), source })?;
        fs::remove_file(&path).map_err(|source| PinError::File { path, source })?;
        drop(link);
        remove(&pinned.folder)?;
        let kernel_name = kernel_name(algorithm);
        let mut waited = Duration::ZERO;
        while is_registered(&kernel_name) {
            if waited >= PATIENCE {
                return Err(PinError::StillRegistered { kernel_name });
            }
            thread::sleep(POLL);
            waited += POLL;
        }
        Ok(())
    }

    /// What killed loaders left: subfolders without a registration, also of algorithms that this build does not know.
    /// Sorted.
    ///
    /// # Errors
    /// [`PinError::File`].
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, PinError> {
        let failed = |source| PinError::File { path: self.folder.clone(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(NAME_PREFIX);
            let path = entry.path();
            if is_ours && path.is_dir() && !holds_registration(&path) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Removes the leftovers and says which.
    ///
    /// # Errors
    /// [`PinError::File`].
    pub fn clean(&self) -> Result<Vec<PathBuf>, PinError> {
        let leftovers = self.leftovers()?;
        for folder in &leftovers {
            remove(folder)?;
        }
        Ok(leftovers)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn place(&self, algorithm: &Algorithm) -> PathBuf {
        self.folder.join(kernel_name(algorithm))
    }
}

/// An algorithm that is registered from a folder.
#[derive(Clone, Debug)]
pub struct Pinned {
    algorithm: &'static Algorithm,
    folder: PathBuf,
}

/// A connection that a coupled algorithm knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    /// As `ss -M` shows it.
    pub token: u32,
    /// Subflows in a slot of the connection.
    pub subflows: u32,
    /// The word `mode` of the algorithm's `struct ab_conn`; what it says is the algorithm's matter. MFVL: 1 if it
    /// couples.
    pub mode: u32,
    /// Decisions so far, of an algorithm that decides whether to couple (the words `epoch` and `coupled_epochs`).
    pub verdicts: u32,
    /// Those of them that were to couple.
    pub coupled_verdicts: u32,
}

impl Pinned {
    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Where its maps and its link are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The parameters the kernel holds, in the registry's order, as stored.
    ///
    /// # Errors
    /// [`PinError::OtherBuild`], because its maps may be laid out differently; [`PinError::Bpf`], [`PinError::File`], or
    /// [`PinError::Kernel`] with [`KernelError::Read`].
    pub fn params(&self) -> Result<Vec<u32>, PinError> {
        Ok(read_params(self.map(PARAMS)?, self.algorithm)?)
    }

    /// What the shim has counted since it was loaded.
    ///
    /// # Errors
    /// As [`Pinned::params`].
    pub fn counters(&self) -> Result<Counters, PinError> {
        Ok(read_counters(self.map(COUNTERS)?)?)
    }

    /// The MPTCP connections with at least one subflow in a slot, by token; none if the algorithm does not couple.
    ///
    /// # Errors
    /// As [`Pinned::params`].
    pub fn connections(&self) -> Result<Vec<Connection>, PinError> {
        if !self.folder.join(CONNECTIONS).exists() {
            return Ok(Vec::new());
        }
        let map = self.map(CONNECTIONS)?;
        // An entry may go between its key and its value.
        let values = map.keys().filter_map(|key| map.lookup(&key, MapFlags::ANY).ok().flatten());
        let mut connections: Vec<Connection> = values.map(|value| connection(&value)).collect();
        connections.sort_unstable();
        Ok(connections)
    }

    /// When it was loaded.
    ///
    /// # Errors
    /// [`PinError::File`].
    pub fn since(&self) -> Result<SystemTime, PinError> {
        let path = self.folder.join(LINK);
        let made = fs::metadata(&path).and_then(|link| link.modified());
        made.map_err(|source| PinError::File { path, source })
    }

    /// User number of whoever loaded it.
    ///
    /// # Errors
    /// [`PinError::File`].
    pub fn owner(&self) -> Result<u32, PinError> {
        let path = self.folder.join(LINK);
        fs::metadata(&path).map(|link| link.uid()).map_err(|source| PinError::File { path, source })
    }

    /// Whether what is loaded is the BPF object of this build.
    ///
    /// # Errors
    /// [`PinError::File`], or [`PinError::Kernel`] with [`KernelError::NotBuilt`].
    pub fn is_this_build(&self) -> Result<bool, PinError> {
        let path = self.folder.join(BUILD);
        let loaded = fs::read_link(&path).map_err(|source| PinError::File { path, source })?;
        Ok(loaded == Path::new(&build_of(self.algorithm)?))
    }

    fn map(&self, file: &str) -> Result<MapHandle, PinError> {
        if !self.is_this_build()? {
            return Err(PinError::OtherBuild { name: self.algorithm.name() });
        }
        let path = self.folder.join(file);
        MapHandle::from_pinned_path(&path).map_err(|source| PinError::Bpf { path, source })
    }
}

/// Whether a subfolder's algorithm is registered. A link may have been detached behind our back (`bpftool link detach`)
/// and is a leftover then.
fn holds_registration(folder: &Path) -> bool {
    folder.join(LINK).exists()
        && folder.file_name().is_some_and(|kernel_name| is_registered(&kernel_name.to_string_lossy()))
}

/// Whether the kernel has a congestion control of that name, ours or not. Names are host-wide.
fn is_registered(kernel_name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.is_ok_and(|names| names.split_whitespace().any(|name| name == kernel_name))
}

/// Makes the files of an algorithm, the registration last.
fn pin(prepared: &mut Prepared, folder: &Path) -> Result<(), PinError> {
    fs::create_dir(folder).map_err(|source| PinError::File { path: folder.to_owned(), source })?;
    for mut map in prepared.object.maps_mut() {
        let name = map.name().to_owned();
        if let Some((_, file)) = MAPS.iter().find(|(map, _)| name == *map) {
            let path = folder.join(file);
            map.pin(&path).map_err(|source| PinError::Bpf { path, source })?;
        }
    }
    let path = folder.join(BUILD);
    std::os::unix::fs::symlink(build_of(prepared.algorithm)?, &path)
        .map_err(|source| PinError::File { path, source })?;
    let mut link = prepared.register()?;
    let path = folder.join(LINK);
    link.pin(&path).map_err(|source| PinError::Bpf { path, source })
}

/// Removes a subfolder with all that is in it, the registration first; nothing happens if there is none.
fn remove(folder: &Path) -> Result<(), PinError> {
    let files = [LINK, BUILD].into_iter().chain(MAPS.map(|(_, file)| file));
    let paths = files.map(|file| folder.join(file));
    let gone = |path: PathBuf, result: io::Result<()>| match result {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(PinError::File { path, source }),
        _ => Ok(()),
    };
    for path in paths {
        let result = fs::remove_file(&path);
        gone(path, result)?;
    }
    gone(folder.to_owned(), fs::remove_dir(folder))
}

/// Identifies a BPF object by its content: 64 bits of FNV-1a, which tells builds apart and is no protection.
fn build_of(algorithm: &Algorithm) -> Result<String, KernelError> {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = objects::elf(algorithm.name())?.iter().fold(0xcbf2_9ce4_8422_2325, step);
    Ok(format!("{hash:016x}"))
}

/// Reads a `struct ab_connection`: the lock, the token, the number of taken slots first, `struct ab_conn` last.
fn connection(value: &[u8]) -> Connection {
    let word = |at: usize| u32::from_ne_bytes(value[at..at + 4].try_into().expect("four bytes"));
    let conn = value.len() - size_of::<Conn>();
    Connection {
        token: word(4),
        subflows: word(8),
        mode: word(conn + offset_of!(Conn, mode)),
        verdicts: word(conn + offset_of!(Conn, epoch)),
        coupled_verdicts: word(conn + offset_of!(Conn, coupled_epochs)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_connection_is_read_as_the_shim_lays_it_out() {
        let header = include_str!("../bpf/conn.h");
        let fields: Vec<&str> = header
            .lines()
            .skip_while(|line| *line != "struct ab_connection {")
            .skip(1)
            .take_while(|line| *line != "};")
            .filter_map(|line| line.split(';').next()?.split_whitespace().last())
            .collect();
        assert_eq!(fields[..3], ["lock", "token", "n_slots"]);
        assert_eq!(fields.last(), Some(&"conn"));
    }
}
