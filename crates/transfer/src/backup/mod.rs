//! The other interfaces as backups of each dedicated subflow.
//!
//! MPTCP-IoT has one active subflow per socket and the other interface as its backup, so that a path that dies takes no socket with it.
//! There are two ways to have Linux do that ([`BackupWay`]): [`subflows`] opens exactly the other paths for each of our sockets, and
//! touches nothing of others; where the setting that this needs is read-only, [`endpoints`] has the kernel's path manager do about
//! the same for the whole network namespace.
//!
//! A thread looks after both, once a second and whenever a connection begins.

mod endpoints;
mod subflows;

use std::{
    fmt,
    net::{IpAddr, SocketAddr, TcpStream},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anabranch_netlink::{
    NetlinkError,
    mptcp::{Choice, Kept, PathManager, SubflowAddress, Token},
};
use nix::errno::Errno;

use crate::{
    clock,
    path::Path,
    sockets::{Ends, ends_of},
};
use endpoints::Endpoints;
use subflows::Subflows;

/// Time between looks.
const PERIOD: Duration = Duration::from_secs(1);
/// After the beginning of a connection until it has backups. What is over by then needs none, and data flow undisturbed: with backups
/// at once, every second transfer of 20 MB in a tenth of a second stood still for another one (Linux 6.18, docs/transfer.md).
/// The kernel must also know that it is a connection of Multipath TCP, which it does when the first acknowledgement has come.
const SETTLING: Duration = Duration::from_millis(300);

/// How the interfaces are backups of each other's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupWay {
    /// Each socket has a subflow over each other path.
    Subflows,
    /// By endpoints of the network namespace, which all connections of it follow while files are sent.
    Endpoints,
}

impl fmt::Display for BackupWay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Subflows => "subflows",
            Self::Endpoints => "endpoints",
        })
    }
}

/// Why there are no backups.
#[derive(Debug, thiserror::Error)]
pub enum NoBackups {
    /// The kernel does not let us, or has no Multipath TCP.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The process may not manage subflows.
    #[error("that needs CAP_NET_ADMIN")]
    NotPermitted,
    /// Somebody else has endpoints, and our sockets cannot do without.
    #[error(
        "the path manager cannot be chosen per socket (net.mptcp.path_manager), and there are endpoints already, which are left alone \
         (`ip mptcp endpoint show`)"
    )]
    EndpointsThere,
}

/// Connections that have backups, or will have.
pub(crate) struct Backups<'a> {
    paths: &'a [Path],
    peer: SocketAddr,
    way: Way,
    present: Mutex<Present>,
    changed: Condvar,
}

enum Way {
    Subflows(Choice),
    Endpoints(Mutex<Endpoints>),
}

#[derive(Default)]
struct Present {
    connections: Vec<Watched>,
    has_news: bool,
    is_closed: bool,
}

/// A connection that is looked after.
#[derive(Clone, Copy)]
struct Watched {
    /// Which path it is of.
    path: usize,
    ends: Ends,
    began_at: Instant,
}

/// A connection that is looked after as long as this is there.
pub(crate) struct Presence<'a> {
    backups: &'a Backups<'a>,
    watched: Option<Watched>,
    _kept: Option<Kept>,
}

impl<'a> Backups<'a> {
    /// For these paths to a peer; opens nothing yet.
    pub(crate) fn begin(paths: &'a [Path], peer: SocketAddr) -> Result<Self, NoBackups> {
        let mut manager = PathManager::open()?;
        if !may_manage(&mut manager) {
            return Err(NoBackups::NotPermitted);
        }
        let way = match Choice::find().filter(Choice::may_be_user_space) {
            Some(choice) => Way::Subflows(choice),
            None => Way::Endpoints(Mutex::new(Endpoints::begin(manager, paths.len())?)),
        };
        Ok(Self { paths, peer, way, present: Mutex::default(), changed: Condvar::new() })
    }

    pub(crate) fn way(&self) -> BackupWay {
        match self.way {
            Way::Subflows(_) => BackupWay::Subflows,
            Way::Endpoints(_) => BackupWay::Endpoints,
        }
    }

    /// By what sockets are to be created, if it matters.
    pub(crate) fn choice(&self) -> Option<&Choice> {
        match &self.way {
            Way::Subflows(choice) => Some(choice),
            Way::Endpoints(_) => None,
        }
    }

    /// A connection of a path has begun, and the receiver has answered on it.
    pub(crate) fn enter(&'a self, path: usize, socket: &TcpStream, kept: Option<Kept>) -> Presence<'a> {
        let watched = ends_of(socket).map(|ends| Watched { path, ends, began_at: clock::now() });
        let mut present = self.lock();
        present.connections.extend(watched);
        present.has_news = true;
        self.changed.notify_all();
        Presence { backups: self, watched, _kept: kept }
    }

    /// Ends [`work`](Self::work).
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Looks after the connections until it is closed; `tell` is told why backups cannot be had after all.
    pub(crate) fn work(&self, mut tell: impl FnMut(String)) {
        let mut subflows = match &self.way {
            Way::Subflows(_) => match Subflows::open(self.paths, self.peer) {
                Ok(subflows) => Some(subflows),
                Err(error) => return tell(error.to_string()),
            },
            Way::Endpoints(_) => None,
        };
        let mut period = Duration::ZERO;
        loop {
            let connections = {
                let waits = |present: &mut Present| !present.is_closed && !present.has_news;
                let (mut present, _) = self
                    .changed
                    .wait_timeout_while(self.lock(), period, waits)
                    .unwrap_or_else(PoisonError::into_inner);
                if present.is_closed {
                    return;
                }
                present.has_news = false;
                present.connections.clone()
            };
            let now = clock::now();
            let (settled, coming): (Vec<_>, Vec<_>) =
                connections.into_iter().partition(|watched| watched.settles_at() <= now);
            let until_next = coming.iter().map(|watched| watched.settles_at().duration_since(now)).min();
            period = until_next.unwrap_or(PERIOD).min(PERIOD);
            let outcome = match (&self.way, &mut subflows) {
                (Way::Endpoints(endpoints), _) => self.add_endpoints(endpoints, &settled),
                (Way::Subflows(_), Some(subflows)) => subflows.look(&settled, now),
                (Way::Subflows(_), None) => unreachable!("opened above"),
            };
            match outcome {
                // The next look may fare better.
                Ok(()) | Err(NetlinkError::Unsteady { .. }) => {}
                Err(error) => tell(error.to_string()),
            }
        }
    }

    /// The addresses of connections become endpoints, unless these have gone meanwhile.
    fn add_endpoints(
        &self,
        endpoints: &Mutex<Endpoints>,
        connections: &[Watched],
    ) -> Result<(), NetlinkError> {
        for watched in connections {
            let mut endpoints = endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            if self.lock().connections.iter().any(|other| other.ends == watched.ends) {
                endpoints.add(watched.address())?;
            }
        }
        Ok(())
    }

    fn leave(&self, watched: &Watched) {
        let mut present = self.lock();
        if let Some(at) = present.connections.iter().position(|other| other.ends == watched.ends) {
            present.connections.swap_remove(at);
        }
        drop(present);
        if let Way::Endpoints(endpoints) = &self.way {
            endpoints.lock().unwrap_or_else(PoisonError::into_inner).remove(watched.address());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the kernel lets this process manage subflows: closing one that nobody has (RFC 5737) is then refused for that reason alone.
fn may_manage(manager: &mut PathManager) -> bool {
    let end = |address: [u8; 4]| SocketAddr::from((address, 1));
    let nobodys = SubflowAddress { local: end([192, 0, 2, 1]), remote: end([198, 51, 100, 1]) };
    let refused = manager.destroy_subflow(Token(0), nobodys).err().and_then(|error| error.errno());
    refused != Some(Errno::EPERM as i32)
}

impl Watched {
    /// When it has backups at the earliest.
    fn settles_at(&self) -> Instant {
        self.began_at + SETTLING
    }

    /// Where it begins on this machine.
    fn address(&self) -> IpAddr {
        self.ends.0.ip()
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            self.backups.leave(watched);
        }
    }
}
