//! The receiving end: listens, lets in whom it trusts, and writes files into one folder.
//!
//! A thread per connection. What several connections share of a file is in `incoming.rs`; which files there are, in `store.rs`.
//!
//! # Limits
//! Everything that a stranger can make it spend is bounded by [`Limits`]: connections that have not shown who they are by number and
//! time, those of a sender by number, files by size and number, data by rate. Memory per connection: a piece, the inbox and TLS's
//! buffers; the map of each file of it that is under way (32 KiB at most) and what is known of its hash (72 KiB at most).

mod connection;
mod folder;
mod incoming;
mod journal;
mod pace;
mod publisher;
mod store;
mod syncer;

use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

pub use folder::{Folder, Refusal};

use crate::{
    SocketMemory, Stop,
    path::Transport,
    security::{Admission, Fingerprint, ServerTls},
    sockets::Sockets,
};
use pace::Pace;
use publisher::Publisher;
use store::Store;
use syncer::Syncer;

/// What a receiver does not exceed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest file, in bytes.
    pub file_bytes: u64,
    /// Data of all connections together, in bytes per second; none: as fast as it comes.
    pub bytes_per_second: Option<u64>,
    /// Connections of one sender at once.
    pub connections: u16,
    /// Connections at once that have not shown who they are.
    pub strangers: usize,
    /// Senders' connections of all senders at once.
    pub all_connections: usize,
    /// How long a stranger has to show who it is.
    pub introduction: Duration,
    /// How long a connection may say nothing.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: crate::wire::FILE_BYTES_MAX,
            bytes_per_second: None,
            connections: 16,
            strangers: 16,
            all_connections: 64,
            introduction: Duration::from_secs(10),
            silence: Duration::from_secs(60),
        }
    }
}

/// How a receiver works.
pub struct Receiver {
    /// Where files go.
    pub folder: Arc<Folder>,
    /// Whether a file may take the place of another.
    pub overwrite: bool,
    /// Keys and whom they let in; none: anybody, in plaintext.
    pub security: Option<(ServerTls, Arc<Admission>)>,
    /// What it does not exceed.
    pub limits: Limits,
    /// In how large pieces a connection passes data on, in bytes.
    pub piece_bytes: usize,
    /// Who is told what happens.
    pub observer: Box<dyn Fn(&Event) + Send + Sync>,
}

/// What a receiver has received in all.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes of data that came, those that came a second time included.
    pub data_bytes: u64,
    /// What its sockets have held.
    pub sockets: SocketMemory,
}

/// What happens at a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sender has been let in.
    Connected {
        /// From where.
        peer: SocketAddr,
        /// By which key; none in plaintext.
        who: Option<Fingerprint>,
        /// What the connection speaks.
        transport: Transport,
    },
    /// A connection has ended, as it should or not.
    Closed {
        /// From where.
        peer: SocketAddr,
        /// Why, if not because the sender was done.
        why: Option<String>,
        /// Whether there was an [`Event::Connected`] of it.
        was_let_in: bool,
    },
    /// A file begins to arrive, or goes on.
    Began {
        /// Its name.
        name: String,
        /// Its length.
        size_bytes: u64,
        /// How much of it was there.
        arrived_bytes: u64,
    },
    /// A file is whole, and has its name.
    Received {
        /// Its name.
        name: String,
        /// Its length.
        size_bytes: u64,
    },
    /// A file is not taken.
    Refused {
        /// Its name.
        name: String,
        /// Why.
        why: Refusal,
    },
}

/// What all connections share.
struct Shared {
    receiver: Receiver,
    store: Store,
    sockets: Sockets,
    syncer: Syncer,
    publisher: Publisher,
    pace: Option<Pace>,
    stop: Stop,
    strangers: AtomicUsize,
    known: AtomicUsize,
    data_bytes: AtomicU64,
}

impl Shared {
    fn tell(&self, event: Event) {
        (self.receiver.observer)(&event);
    }
}

/// Bytes of a name as text, for people.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

impl Receiver {
    /// Accepts connections until the flag is raised, and then waits until all of them have ended.
    ///
    /// # Errors
    /// If connections cannot be accepted any more.
    pub fn serve(self, listener: &TcpListener, stop: &Stop) -> io::Result<Received> {
        let shared = Shared {
            store: Store::default(),
            sockets: Sockets::default(),
            syncer: Syncer::default(),
            publisher: Publisher::default(),
            pace: self.limits.bytes_per_second.map(Pace::new),
            stop: stop.clone(),
            strangers: AtomicUsize::new(0),
            known: AtomicUsize::new(0),
            data_bytes: AtomicU64::new(0),
            receiver: self,
        };
        let shared = &shared;
        let small = || thread::Builder::new().stack_size(256 << 10);
        thread::scope(|scope| {
            small().name("journals".to_owned()).spawn_scoped(scope, || shared.syncer.work())?;
            small().name("names".to_owned()).spawn_scoped(scope, || {
                let (folder, overwrite) = (&shared.receiver.folder, shared.receiver.overwrite);
                shared.publisher.work(folder, overwrite);
            })?;
            small().name("memory".to_owned()).spawn_scoped(scope, || shared.sockets.work())?;
            let outcome = shared.accept(listener);
            shared.sockets.close();
            shared.syncer.close();
            shared.publisher.close();
            outcome
        })?;
        let data_bytes = shared.data_bytes.load(Ordering::Relaxed);
        Ok(Received { data_bytes, sockets: shared.sockets.memory() })
    }
}

impl Shared {
    /// Accepts connections and serves them, until the flag is raised and all have ended.
    fn accept(&self, listener: &TcpListener) -> io::Result<()> {
        let stop = &self.stop;
        thread::scope(|scope| {
            while !stop.is_raised() {
                let (socket, peer) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        wait_for(listener);
                        continue;
                    }
                    // The peer has gone already, or there are too many files open: others end.
                    Err(error) if is_passing(&error) => {
                        thread::sleep(Duration::from_millis(50));
                        continue;
                    }
                    Err(error) => {
                        stop.raise();
                        return Err(error);
                    }
                };
                // Whoever is one too many is dropped without a word: an answer would cost what the limit is to save.
                let guard = Count::new(&self.strangers, self.receiver.limits.strangers);
                let Some(guard) = guard else { continue };
                thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, move || {
                    connection::serve(self, socket, peer, guard);
                })?;
            }
            Ok(())
        })
    }
}

/// Whether accepting can go on after this.
fn is_passing(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let passing =
        [Errno::ECONNABORTED, Errno::EINTR, Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    passing.map(|errno| Some(errno as i32)).contains(&error.raw_os_error())
}

/// Waits until somebody connects, a fifth of a second at most.
fn wait_for(listener: &TcpListener) {
    use std::os::fd::AsFd as _;

    use nix::poll::{PollFd, PollFlags, poll};
    // If it fails, the next look at the listener tells why.
    let _ = poll(&mut [PollFd::new(listener.as_fd(), PollFlags::POLLIN)], 200u16);
}

/// One of at most so many; gives its place back when dropped.
struct Count<'a>(&'a AtomicUsize);

impl<'a> Count<'a> {
    fn new(counter: &'a AtomicUsize, limit: usize) -> Option<Self> {
        let taken = counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < limit).then_some(count + 1));
        taken.is_ok().then(|| Self(counter))
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Receiver")
            .field("folder", &self.folder)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
