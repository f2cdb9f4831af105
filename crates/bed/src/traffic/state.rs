//! What the applications have done so far, to be read while they run.

use std::{
    os::fd::{AsFd as _, BorrowedFd},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use socket2::Socket;

use crate::{
    Nanos,
    emulator::{Summary, Times},
};

/// A point in time that comes once.
#[derive(Debug)]
pub(super) struct Moment(AtomicU64);

impl Moment {
    const NOT_YET: Nanos = Nanos::MAX;

    pub(super) fn new() -> Self {
        Self(AtomicU64::new(Self::NOT_YET))
    }

    pub(super) fn set(&self, time: Nanos) {
        self.0.store(time, Ordering::Release);
    }

    fn get(&self) -> Option<Nanos> {
        Some(self.0.load(Ordering::Acquire)).filter(|&time| time != Self::NOT_YET)
    }
}

/// One way of a connection's data.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) written: AtomicU64,
    pub(super) delivered: AtomicU64,
}

/// How long an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// When it was there.
    pub at: Nanos,
    /// From the writing of the message to its last byte.
    pub taken: Nanos,
}

/// A connection of our own applications. Reading never waits.
#[derive(Debug)]
pub struct ConnectionState {
    pub(super) opened: Moment,
    pub(super) established: Moment,
    pub(super) completed: Moment,
    /// From the opener, and to it.
    pub(super) ways: [Way; 2],
    latencies: Mutex<Vec<Latency>>,
    pub(super) failure: OnceLock<String>,
    pub(super) client: Socket,
    pub(super) listener: Socket,
    pub(super) server: OnceLock<Socket>,
}

impl ConnectionState {
    pub(super) fn new(client: Socket, listener: Socket) -> Self {
        Self {
            opened: Moment::new(),
            established: Moment::new(),
            completed: Moment::new(),
            ways: Default::default(),
            latencies: Mutex::default(),
            failure: OnceLock::new(),
            client,
            listener,
            server: OnceLock::new(),
        }
    }

    /// Keeps the first failure: what follows from it explains less.
    pub(super) fn fail(&self, text: String) {
        let _ = self.failure.set(text);
    }

    /// When the client began to connect.
    pub fn opened_at(&self) -> Option<Nanos> {
        self.opened.get()
    }

    /// When the client was connected.
    pub fn established_at(&self) -> Option<Nanos> {
        self.established.get()
    }

    /// When the last byte of a file was received; of files in both directions, of the later one.
    pub fn completed_at(&self) -> Option<Nanos> {
        self.completed.get()
    }

    /// Bytes that the kernel has taken from the applications, both together.
    pub fn written_bytes(&self) -> u64 {
        self.ways.iter().map(|way| way.written.load(Ordering::Acquire)).sum()
    }

    /// Bytes that the applications have got, both together, all of them in order and checked.
    pub fn delivered_bytes(&self) -> u64 {
        self.ways.iter().map(|way| way.delivered.load(Ordering::Acquire)).sum()
    }

    /// Of these, the ones that the opener has got.
    pub fn downloaded_bytes(&self) -> u64 {
        self.ways[1].delivered.load(Ordering::Acquire)
    }

    /// How many answers have been measured.
    pub fn latencies(&self) -> usize {
        self.latencies.lock().expect("nobody panics with it").len()
    }

    pub(super) fn record_latency(&self, at: Nanos, taken: Nanos) {
        self.latencies.lock().expect("nobody panics with it").push(Latency { at, taken });
    }

    /// What went wrong, if anything.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// The opener's and the acceptor's socket, once the acceptor has taken the connection.
    pub fn sockets(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        self.server.get().map(|server| (self.client.as_fd(), server.as_fd()))
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            opened_at: self.opened_at(),
            established_at: self.established_at(),
            completed_at: self.completed_at(),
            written_bytes: self.written_bytes(),
            delivered_bytes: self.delivered_bytes(),
            downloaded_bytes: self.downloaded_bytes(),
            latencies: self.latencies.lock().expect("nobody panics with it").clone(),
            failure: self.failure().map(str::to_owned),
        }
    }
}

/// How a connection has ended; the meanings are those of [`ConnectionState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the client began to connect.
    pub opened_at: Option<Nanos>,
    /// When the client was connected.
    pub established_at: Option<Nanos>,
    /// When the last byte of a file was received.
    pub completed_at: Option<Nanos>,
    /// Taken by the kernel from both ends.
    pub written_bytes: u64,
    /// Received in order and checked, by both ends.
    pub delivered_bytes: u64,
    /// Of these, by the opener.
    pub downloaded_bytes: u64,
    /// How long answers took.
    pub latencies: Vec<Latency>,
    /// What went wrong.
    pub failure: Option<String>,
}

/// A UDP flow. Reading never waits.
#[derive(Debug)]
pub struct DatagramState {
    pub(super) sent: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) overflowed: AtomicU64,
    pub(super) failure: OnceLock<String>,
    pub(super) lateness: OnceLock<Times>,
    pub(super) packet_bytes: u32,
}

impl DatagramState {
    pub(super) fn new(packet_bytes: u32) -> Self {
        Self {
            sent: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            received: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            failure: OnceLock::new(),
            lateness: OnceLock::new(),
            packet_bytes,
        }
    }

    pub(super) fn fail(&self, text: String) {
        let _ = self.failure.set(text);
    }

    /// Packets that the kernel has taken from the sender.
    pub fn sent_packets(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Packets that the receiver has got.
    pub fn received_packets(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Their size on the wire.
    pub fn received_bytes(&self) -> u64 {
        self.received_packets() * u64::from(self.packet_bytes)
    }

    pub(super) fn outcome(&self) -> DatagramOutcome {
        DatagramOutcome {
            sent_packets: self.sent_packets(),
            refused_packets: self.refused.load(Ordering::Acquire),
            received_packets: self.received_packets(),
            received_bytes: self.received_bytes(),
            overflowed_packets: self.overflowed.load(Ordering::Acquire),
            lateness: self.lateness.get().map(Times::summary).unwrap_or_default(),
            failure: self.failure.get().cloned(),
        }
    }
}

/// How a UDP flow has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramOutcome {
    /// Taken by the kernel at the sender.
    pub sent_packets: u64,
    /// Due, but not taken by the kernel.
    pub refused_packets: u64,
    /// Got by the receiving application.
    pub received_packets: u64,
    /// Their size on the wire.
    pub received_bytes: u64,
    /// Arrived at the receiver's socket, but found it full: the machine was too slow, not the links.
    pub overflowed_packets: u64,
    /// How long after it was due each packet was given to the kernel.
    pub lateness: Summary,
    /// What went wrong.
    pub failure: Option<String>,
}
