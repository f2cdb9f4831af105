//! The sending end: one worker per path, each with a socket of its own, and one thread that opens files ahead of them.
//!
//! All workers claim from one [`Distributor`](anabranch_policy::transfer::Distributor) per file, so that each chunk is somebody's, once. A
//! chunk is as large as the path's rate makes it; what a failed connection had not delivered is given back.
//!
//! Left out: sending the last chunks of a slow path a second time on a fast one. A transfer ends up to half a second later for it, and the
//! time of the path's fastest answer, which is what it may have under way.

mod ahead;
mod answers;
mod bell;
mod outcome;
mod plan;
mod rate;
mod source;
mod trouble;
mod worker;

use std::{net::SocketAddr, path::PathBuf, thread, time::Duration};

pub use outcome::{Failure, FileOutcome, Outcome, PathStatus, Standing, Status};
pub use source::SourceError;

use crate::{
    Stop,
    backup::Backups,
    clock,
    path::{Path, SocketOptions},
    security::{ClientTls, random},
    sockets::Sockets,
    wire::TOKEN_BYTES,
};
use plan::Plan;
use source::Source;
use worker::Worker;

/// How often somebody is told how far it is.
const WATCH: Duration = Duration::from_millis(200);

/// What to send where, and how.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Files, each of which arrives under the last part of its name.
    pub files: Vec<PathBuf>,
    /// The receiver.
    pub peer: SocketAddr,
    /// Ways to it, at least one.
    pub paths: Vec<Path>,
    /// Keys, and what a one-time token proves with; none: plaintext.
    pub security: Option<(ClientTls, Option<[u8; TOKEN_BYTES]>)>,
    /// How sockets are made.
    pub sockets: SocketOptions,
    /// Make each path's interface a backup of the others' connections, where the kernel lets us ([`crate::NoBackups`]).
    pub backups: bool,
    /// In how large pieces a worker passes data on, in bytes.
    pub piece_bytes: usize,
    /// On a fast path, read in a thread of its own, with 512 KiB more memory for each.
    pub reads_ahead: bool,
    /// How long a connection may stand still.
    pub patience: Duration,
    /// How long all may, before everything ends.
    pub give_up: Duration,
}

impl Sender {
    /// Sends, until all is there or nothing more can be done. `watch` is told five times a second how far it is.
    ///
    /// # Panics
    /// If there is no path.
    pub fn run(&self, stop: &Stop, watch: &mut dyn FnMut(&Status)) -> Outcome {
        assert!(!self.paths.is_empty(), "there is a path");
        let is_of_use = self.backups && self.sockets.mptcp && self.paths.len() > 1;
        let (backups, no_backups) = match is_of_use.then(|| Backups::begin(&self.paths, self.peer)) {
            None => (None, None),
            Some(Ok(backups)) => (Some(backups), None),
            Some(Err(why)) => (None, Some(why.to_string())),
        };
        let path = |path: &Path| PathStatus {
            name: path.to_string(),
            transport: None,
            standing: Standing::New,
            arrived_bytes: 0,
            chunks: 0,
            connections: 0,
        };
        let way = backups.as_ref().map(Backups::way);
        let plan = Plan::new(&self.files, self.paths.iter().map(path).collect(), way, no_backups);
        let session = random();
        // Raised when it ends early, and when it ends at all.
        let (end, over) = (Stop::new(), Stop::new());
        let sockets = Sockets::default();
        let failure = thread::scope(|scope| {
            let opener = thread::Builder::new().name("opener".to_owned());
            let (plan, end, over, backups) = (&plan, &end, &over, backups.as_ref());
            let sockets = &sockets;
            let looker = thread::Builder::new().name("memory".to_owned()).stack_size(256 << 10);
            looker.spawn_scoped(scope, || sockets.work()).expect("a thread can be made");
            if let Some(backups) = backups {
                let backer = thread::Builder::new().name("backups".to_owned()).stack_size(256 << 10);
                let work = || backups.work(|why| plan.without_backups(why));
                backer.spawn_scoped(scope, work).expect("a thread can be made");
            }
            opener.spawn_scoped(scope, move || open_files(plan, end)).expect("a thread can be made");
            let mut workers = Vec::new();
            for number in 0..self.paths.len() {
                let thread = thread::Builder::new().name(format!("path-{number}")).stack_size(256 << 10);
                let worker =
                    Worker { sender: self, plan, number, session, stop: end, over, backups, sockets };
                workers
                    .push(thread.spawn_scoped(scope, move || worker.work()).expect("a thread can be made"));
            }
            let mut watched_at = None;
            let failure = loop {
                let now = clock::now();
                if watched_at.is_none_or(|then| now.duration_since(then) >= WATCH) {
                    watch(&plan.status());
                    watched_at = Some(now);
                }
                if plan.has_ended() {
                    break None;
                } else if stop.is_raised() {
                    break Some(Failure::Stopped);
                } else if let Some(why) = plan.all_retired() {
                    break Some(Failure::Hopeless(why));
                } else if plan.silence() > self.give_up {
                    break Some(Failure::GaveUp { seconds: self.give_up.as_secs() });
                }
                plan.wait_for_end(WATCH);
            };
            over.raise();
            if failure.is_some() {
                end.raise();
            }
            for worker in workers {
                worker.join().expect("a worker does not panic");
            }
            sockets.close();
            if let Some(backups) = backups {
                backups.close();
            }
            failure
        });
        let status = plan.status();
        watch(&status);
        let why = failure.as_ref().map(ToString::to_string).unwrap_or_default();
        let sockets = sockets.memory();
        let Status { paths, backups, no_backups, .. } = status;
        Outcome { files: plan.outcomes(&why), paths, backups, no_backups, sockets, failure }
    }
}

/// Opens files a little ahead of those who send them.
fn open_files(plan: &Plan, stop: &Stop) {
    while let Some(next) = plan.to_open() {
        if stop.is_raised() {
            return;
        }
        match next {
            Some((index, path)) => plan.opened(index, Source::open(&path)),
            None => plan.wait_for_room(Duration::from_millis(100)),
        }
    }
}
