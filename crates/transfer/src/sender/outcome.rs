//! What a sender tells while it works, and at its end.

use std::path::PathBuf;

use crate::{BackupWay, SocketMemory, path::Transport, wire::HASH_BYTES};

/// How far everything is.
#[derive(Clone, Debug)]
pub struct Status {
    /// Files to be sent.
    pub files: usize,
    /// Of these, those that are done or given up.
    pub files_ended: usize,
    /// Bytes of the files that have been opened so far.
    pub known_bytes: u64,
    /// Bytes that the receiver has.
    pub there_bytes: u64,
    /// Each path.
    pub paths: Vec<PathStatus>,
    /// How the interfaces are backups of each other; none if they are not.
    pub backups: Option<BackupWay>,
    /// Why the interfaces are not backups of each other, though they were to be.
    pub no_backups: Option<String>,
}

/// What there is to say of a path.
#[derive(Clone, Debug)]
pub struct PathStatus {
    /// The interface or address.
    pub name: String,
    /// What its sockets are; none before the first.
    pub transport: Option<Transport>,
    /// How it is.
    pub standing: Standing,
    /// Bytes of data that have arrived over it, those that came a second time included.
    pub arrived_bytes: u64,
    /// Chunks likewise.
    pub chunks: u64,
    /// Connections that were opened.
    pub connections: u64,
}

/// How a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not been tried.
    New,
    /// It has a connection.
    Up,
    /// It has none, for this reason, and is tried again.
    Down(String),
}

/// What has become of a file.
#[derive(Clone, Debug)]
pub struct FileOutcome {
    /// Where it is.
    pub path: PathBuf,
    /// Its length; 0 if it could not be opened.
    pub size_bytes: u64,
    /// BLAKE3 of it; none if not all of it was read.
    pub hash: Option<[u8; HASH_BYTES]>,
    /// Bytes that the receiver had before.
    pub resumed_bytes: u64,
    /// The receiver has it; `true` if it had all of it before. Else why not.
    pub result: Result<bool, String>,
}

/// Why a sender ended before its files were done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was told to stop.
    #[error("stopped; the same command goes on from here")]
    Stopped,
    /// Nothing has moved on any path for too long.
    #[error("nothing has moved on any path for {seconds} s; the same command goes on from here")]
    GaveUp {
        /// How long.
        seconds: u64,
    },
    /// No path can ever work.
    #[error("{0}")]
    Hopeless(String),
}

/// What a sender has done.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Each file.
    pub files: Vec<FileOutcome>,
    /// Each path.
    pub paths: Vec<PathStatus>,
    /// As in [`Status`].
    pub backups: Option<BackupWay>,
    /// As in [`Status`].
    pub no_backups: Option<String>,
    /// What their sockets have held.
    pub sockets: SocketMemory,
    /// Why it ended early, if it did.
    pub failure: Option<Failure>,
}
