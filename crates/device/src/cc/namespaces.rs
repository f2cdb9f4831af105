//! The network namespaces of the machine, and what in them uses a congestion control.
//!
//! Left out: a namespace that neither a process is in nor a file below `/run/netns` holds (a mere descriptor can hold
//! one); its sockets are not seen.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
};

use nix::sched::{CloneFlags, setns};
use serde::Serialize;

use super::sockets::{self, SocketInUse};
use crate::DeviceError;

const OWN: &str = "/proc/self/ns/net";
/// Where ip-netns(8) keeps names.
const NAMED: &str = "/run/netns";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// A network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Namespace {
    /// `this`, a name of `ip netns`, or a process that is in it.
    pub name: String,
    /// Its number, as `lsns -t net` shows it.
    pub inode: u64,
    #[serde(skip)]
    file: PathBuf,
    #[serde(skip)]
    is_own: bool,
}

/// What uses a congestion control, or could not be looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// Sockets with the namespace they are in.
    pub(super) sockets: Vec<(Namespace, SocketInUse)>,
    /// The default of each namespace.
    pub(super) defaults: Vec<(Namespace, String)>,
    /// Namespaces that could not be entered.
    pub(super) unseen: Vec<Namespace>,
}

impl Namespace {
    /// The namespace that this process is in.
    ///
    /// # Errors
    /// [`DeviceError::System`].
    pub fn own() -> Result<Self, DeviceError> {
        Self::at("this".to_owned(), Path::new(OWN))
    }

    /// By a file such as `/proc/812/ns/net`, by a name of `ip netns`, or `this`.
    ///
    /// # Errors
    /// [`DeviceError::Input`] if there is no such file.
    pub fn find(name: &str) -> Result<Self, DeviceError> {
        if name == "this" {
            return Self::own();
        }
        let path = Path::new(NAMED).join(name);
        Self::at(name.to_owned(), &path).map_err(|_| {
            DeviceError::Input(format!(
                "no network namespace `{name}`; expected `this`, a name of `ip netns list` or a file like /proc/812/ns/net"
            ))
        })
    }

    fn at(name: String, file: &Path) -> Result<Self, DeviceError> {
        let number = |file: &Path| {
            let what = format!("looking at {}", file.display());
            fs::metadata(file).map(|namespace| namespace.ino()).map_err(DeviceError::system(what))
        };
        let inode = number(file)?;
        Ok(Self { name, inode, file: file.to_owned(), is_own: inode == number(Path::new(OWN))? })
    }

    /// Does `work` in a thread that has moved into the namespace.
    ///
    /// # Errors
    /// What setns(2) says, or `work`.
    pub(super) fn enter<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if self.is_own {
            return work();
        }
        let file = File::open(&self.file)?;
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&file, CloneFlags::CLONE_NEWNET)?;
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The congestion control of new sockets.
    pub(super) fn congestion(&self) -> io::Result<String> {
        self.enter(|| fs::read_to_string(DEFAULT)).map(|name| name.trim().to_owned())
    }

    /// Sets it.
    pub(super) fn set_congestion(&self, kernel_name: &str) -> io::Result<()> {
        self.enter(|| fs::write(DEFAULT, kernel_name))
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_own {
            true => f.write_str("this network namespace"),
            false => write!(f, "network namespace {}", self.name),
        }
    }
}

/// All network namespaces that a name or a process leads to, each once: the own one, then those with a name, then the
/// others by process.
pub(super) fn all() -> Result<Vec<Namespace>, DeviceError> {
    let mut found = vec![Namespace::own()?];
    let mut add = |name: String, file: &Path| {
        // A process or a name that is gone by now is none of ours.
        let Ok(namespace) = Namespace::at(name, file) else { return };
        if found.iter().all(|known| known.inode != namespace.inode) {
            found.push(namespace);
        }
    };
    for (name, path) in entries(Path::new(NAMED)) {
        add(name, &path);
    }
    for (process, path) in entries(Path::new("/proc")) {
        if process.parse::<u32>().is_ok() {
            let command = fs::read_to_string(path.join("comm")).unwrap_or_default();
            add(format!("of process {process} ({})", command.trim()), &path.join("ns/net"));
        }
    }
    Ok(found)
}

/// Names and paths of what is in a folder, sorted; none if there is no such folder.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    found.sort();
    found
}

/// Looks into all namespaces for sockets, and for defaults, that are `wanted`.
///
/// # Errors
/// [`DeviceError::System`] if not even the own namespace can be looked at.
pub(super) fn survey(wanted: impl Fn(&str) -> bool) -> Result<Survey, DeviceError> {
    let mut survey = Survey::default();
    for namespace in all()? {
        let looked = namespace.enter(sockets::list).and_then(|found| Ok((found, namespace.congestion()?)));
        match looked {
            Ok((found, default)) => {
                let found = found.into_iter().filter(|socket| wanted(&socket.congestion));
                survey.sockets.extend(found.map(|socket| (namespace.clone(), socket)));
                if wanted(&default) {
                    survey.defaults.push((namespace, default));
                }
            }
            Err(error) if namespace.is_own => return Err(DeviceError::system("listing sockets")(error)),
            Err(_) => survey.unseen.push(namespace),
        }
    }
    Ok(survey)
}
