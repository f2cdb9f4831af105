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
    mptcp::{Choice, Kept, PathManager},
};

use crate::{
    clock,
    path::Path,
    sockets::{Ends, ends_of},
};
use endpoints::Endpoints;
use subflows::Subflows;

/// Time between looks.
const PERIOD: Duration = Duration::from_secs(1);

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
        // Refused to whom nothing else would be granted.
        manager.endpoints()?;
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
            period = PERIOD;
            let outcome = match (&self.way, &mut subflows) {
                (Way::Endpoints(endpoints), _) => {
                    let now = clock::now();
                    for watched in &connections {
                        let left = endpoints::SETTLING.saturating_sub(now.duration_since(watched.began_at));
                        if !left.is_zero() {
                            period = period.min(left);
                        }
                    }
                    self.add_settled(endpoints, &connections, now)
                }
                (Way::Subflows(_), Some(subflows)) => subflows.look(&connections, clock::now()),
                (Way::Subflows(_), None) => unreachable!("opened above"),
            };
            match outcome {
                // The next look may fare better.
                Ok(()) | Err(NetlinkError::Unsteady { .. }) => {}
                Err(error) => tell(error.to_string()),
            }
        }
    }

    /// Addresses whose connections have settled become endpoints, unless they have gone meanwhile.
    fn add_settled(
        &self,
        endpoints: &Mutex<Endpoints>,
        connections: &[Watched],
        now: Instant,
    ) -> Result<(), NetlinkError> {
        for watched in connections {
            let mut endpoints = endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            let is_there = self.lock().connections.iter().any(|other| other.ends == watched.ends);
            if is_there && now.duration_since(watched.began_at) >= endpoints::SETTLING {
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

impl Watched {
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
