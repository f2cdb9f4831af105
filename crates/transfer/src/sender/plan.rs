//! What is to be sent, what of it has arrived, and who does what next: what all workers of a sender share.

use std::{
    collections::BTreeSet,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anabranch_policy::transfer::{Bitmap, Distributor};

use super::{
    bell::Bell,
    outcome::{FileOutcome, PathStatus, Standing, Status},
    source::{Source, SourceError},
};
use crate::{
    BackupWay, clock,
    path::Transport,
    wire::{Code, Have, Held, Malformed, Problem},
};

/// Files that are open at once.
const FILES_AHEAD: usize = 128;
/// Files up to so many bytes are sent with their offer where the receiver seems to have nothing of them; larger ones if the path
/// would carry them as one chunk anyway.
const WHOLE_BYTES_MAX: u64 = 64 << 10;

/// How far a file is.
#[derive(Debug)]
enum State {
    /// It is not open yet.
    Waiting,
    /// Nobody knows what the receiver has of it.
    Ready,
    /// This worker has asked.
    Asked(usize),
    /// It is being sent.
    Active(Distributor),
    /// All of it has arrived; the receiver is to be told.
    Arrived,
    /// This worker has told.
    Finishing(usize),
    /// It is done, or given up.
    Ended,
}

struct Entry {
    path: PathBuf,
    state: State,
    source: Option<Arc<Source>>,
    outcome: Option<FileOutcome>,
    /// The receiver has thrown away what it had, and was offered the file anew.
    is_second_try: bool,
    /// The receiver has a file of that name and length, and is to be told the hash.
    is_alike: bool,
    /// Bytes that the receiver had before.
    had_bytes: u64,
    arrived_bytes: u64,
}

struct Inner {
    files: Vec<Entry>,
    /// All before it have ended.
    first: usize,
    /// All before it have been opened, or given to be.
    to_open: usize,
    /// The last file that was offered was not there at all: the next ones may not be either.
    seems_empty: bool,
    paths: Vec<PathStatus>,
    /// Workers that will not come back, and why.
    retired: Vec<Option<String>>,
    backups: Option<BackupWay>,
    no_backups: Option<String>,
    moved_at: Instant,
}

/// The work of all workers.
pub(super) struct Plan {
    inner: Mutex<Inner>,
    changed: Bell,
    /// More files can be opened.
    room: Bell,
    /// All have ended, or nobody is left to work.
    over: Bell,
}

/// What a worker does next.
pub(super) enum Job {
    /// Offer a file, to learn what the receiver has of it.
    Offer(u32, Arc<Source>),
    /// Offer a small file, send all its grains and say so at once.
    Whole(u32, Arc<Source>, Range<u64>),
    /// Send these grains of a file, and offer it before if this connection has not.
    Chunk(u32, Arc<Source>, Range<u64>),
    /// Say that all of a file has arrived, and offer it before if this connection has not.
    Finish(u32, Arc<Source>),
    /// There is nothing to do just now.
    Wait,
    /// There is nothing to do any more.
    End,
}

/// The number of a file on the wire: another one for the second try, as answers to the first may still be under way.
fn number(index: usize, is_second_try: bool) -> u32 {
    u32::try_from(index * 2 + usize::from(is_second_try)).expect("there are fewer files")
}

impl Plan {
    pub(super) fn new(
        files: &[PathBuf],
        paths: Vec<PathStatus>,
        backups: Option<BackupWay>,
        no_backups: Option<String>,
    ) -> Self {
        let entry = |path: &PathBuf| Entry {
            path: path.clone(),
            state: State::Waiting,
            source: None,
            outcome: None,
            is_second_try: false,
            is_alike: false,
            had_bytes: 0,
            arrived_bytes: 0,
        };
        let (files, retired) = (files.iter().map(entry).collect(), vec![None; paths.len()]);
        let inner = Inner {
            files,
            first: 0,
            to_open: 0,
            seems_empty: false,
            paths,
            retired,
            backups,
            no_backups,
            moved_at: clock::now(),
        };
        let [changed, room, over] = [(); 3].map(|()| Bell::default());
        Self { inner: Mutex::new(inner), changed, room, over }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, or so long.
    pub(super) fn wait(&self, time: Duration) {
        self.changed.wait(self.lock(), time);
    }

    /// Waits until more files can be opened, or so long.
    pub(super) fn wait_for_room(&self, time: Duration) {
        self.room.wait(self.lock(), time);
    }

    /// Waits until everything is over, or so long.
    pub(super) fn wait_for_end(&self, time: Duration) {
        let inner = self.lock();
        if inner.first < inner.files.len() {
            self.over.wait(inner, time);
        }
    }

    /// Wakes those whom a change may concern.
    fn tell(&self, inner: &Inner) {
        self.changed.ring();
        // Several at once: whoever opens files is not woken for each.
        if inner.to_open <= inner.first + FILES_AHEAD / 2 {
            self.room.ring();
        }
        if inner.first == inner.files.len() {
            self.over.ring();
        }
    }

    /// The next file to be opened, when it is time to; outer none: there is none any more.
    pub(super) fn to_open(&self) -> Option<Option<(usize, PathBuf)>> {
        let mut inner = self.lock();
        let index = inner.to_open;
        let path = inner.files.get(index)?.path.clone();
        let is_time = index < inner.first + FILES_AHEAD;
        inner.to_open += usize::from(is_time);
        Some(is_time.then_some((index, path)))
    }

    /// A file has been opened, or not.
    pub(super) fn opened(&self, index: usize, source: Result<Source, SourceError>) {
        let mut inner = self.lock();
        match source {
            Ok(source) => {
                let entry = &mut inner.files[index];
                entry.source = Some(Arc::new(source));
                entry.state = State::Ready;
            }
            Err(error) => inner.end(index, Err(error.to_string())),
        }
        inner.moved_at = clock::now();
        self.tell(&inner);
    }

    /// What a worker does next. `grains` says how many grains of a file to claim at most; at the end of a file it is fewer.
    pub(super) fn next(&self, worker: usize, grains: impl Fn(u32) -> u64) -> Job {
        let mut inner = self.lock();
        let workers = inner.paths.len() as u64;
        let window = inner.first..inner.files.len().min(inner.first + FILES_AHEAD);
        if window.is_empty() {
            return Job::End;
        }
        let seems_empty = inner.seems_empty;
        for index in window {
            let entry = &mut inner.files[index];
            let number = number(index, entry.is_second_try);
            let Some(source) = &entry.source else { continue };
            let is_small = || {
                source.size_bytes() <= WHOLE_BYTES_MAX
                    || source.grains().count() <= grains(source.grain_bytes())
            };
            match &mut entry.state {
                State::Ready if seems_empty && is_small() => {
                    entry.state = State::Finishing(worker);
                    let count = source.grains().count();
                    return Job::Whole(number, source.clone(), 0..count);
                }
                State::Ready => {
                    entry.state = State::Asked(worker);
                    return Job::Offer(number, source.clone());
                }
                State::Active(distributor) => {
                    // So that all end at about the same time, nobody takes more than a share of what is left.
                    let share = distributor.unclaimed() / if workers > 1 { 2 * workers } else { 1 };
                    let count = grains(source.grain_bytes()).min(share).max(1);
                    if let Some(run) = distributor.claim_run(worker, count) {
                        return Job::Chunk(number, source.clone(), run);
                    }
                }
                State::Arrived => {
                    entry.state = State::Finishing(worker);
                    return Job::Finish(number, source.clone());
                }
                State::Waiting | State::Asked(_) | State::Finishing(_) | State::Ended => {}
            }
        }
        Job::Wait
    }

    /// The receiver has said what it has. `was_finished`: in answer to a finish, not to an offer.
    pub(super) fn have(&self, worker: usize, have: &Have, was_finished: bool) -> Result<(), Malformed> {
        let mut inner = self.lock();
        inner.moved_at = clock::now();
        let workers = inner.paths.len();
        if !was_finished {
            inner.seems_empty = have.held == Held::Part && have.map.is_empty();
        }
        let Some((index, entry)) = inner.entry(have.file) else { return Ok(()) };
        let Some(source) = entry.source.clone() else { return Ok(()) };
        let answers_what_was_asked = match entry.state {
            State::Asked(who) => who == worker && !was_finished,
            State::Finishing(who) => who == worker && was_finished,
            _ => false,
        };
        if have.held == Held::Whole {
            entry.had_bytes = source.size_bytes() - entry.arrived_bytes.min(source.size_bytes());
            let was_there = entry.arrived_bytes == 0;
            inner.end(index, Ok(was_there));
        } else if have.held == Held::Alike {
            entry.is_alike = true;
            entry.had_bytes = source.size_bytes();
            if answers_what_was_asked {
                entry.state = State::Arrived;
            }
        } else if answers_what_was_asked {
            let offer = source.offer(have.file);
            let map = have.bitmap(source.grains().count()).map_err(|_| Malformed("a map of another file"))?;
            if !was_finished || std::mem::replace(&mut entry.is_alike, false) {
                entry.had_bytes = bytes_of(&map, offer.grain_bytes, offer.size_bytes);
            }
            let distributor = Distributor::resume(offer.grains(), workers, map);
            let is_complete = distributor.is_complete();
            entry.state = if is_complete { State::Arrived } else { State::Active(distributor) };
        }
        self.tell(&inner);
        Ok(())
    }

    /// A chunk has arrived.
    pub(super) fn arrived(&self, worker: usize, file: u32, grains: Range<u64>, bytes: u64) {
        let mut inner = self.lock();
        inner.moved_at = clock::now();
        inner.paths[worker].arrived_bytes += bytes;
        inner.paths[worker].chunks += 1;
        let Some((_, entry)) = inner.entry(file) else { return };
        entry.arrived_bytes += bytes;
        if let State::Active(distributor) = &mut entry.state {
            for grain in grains {
                distributor.arrived(worker, grain);
            }
            if distributor.is_complete() {
                entry.state = State::Arrived;
                self.tell(&inner);
            }
        }
    }

    /// The receiver has the file under its name.
    pub(super) fn done(&self, file: u32) {
        let mut inner = self.lock();
        inner.moved_at = clock::now();
        if let Some((index, entry)) = inner.entry(file) {
            let was_there = entry.is_alike;
            inner.end(index, Ok(was_there));
        }
        self.tell(&inner);
    }

    /// The receiver does not take a file.
    pub(super) fn refused(&self, file: u32, problem: &Problem) {
        let mut inner = self.lock();
        inner.moved_at = clock::now();
        if let Some((index, entry)) = inner.entry(file) {
            let has_changed = entry.source.as_ref().is_none_or(|source| source.has_changed());
            if problem.code == Code::WrongHash && has_changed {
                inner.end(index, Err(SourceError::Changed.to_string()));
            } else if problem.code == Code::WrongHash && !entry.is_second_try {
                entry.is_second_try = true;
                entry.state = State::Ready;
            } else {
                inner.end(index, Err(format!("the receiver does not take it: {}", problem.text)));
            }
        }
        self.tell(&inner);
    }

    /// The file is not any more what was offered; whether that is news.
    pub(super) fn changed(&self, file: u32) -> bool {
        let mut inner = self.lock();
        let index = inner.entry(file).map(|(index, _)| index);
        if let Some(index) = index {
            inner.end(index, Err(SourceError::Changed.to_string()));
        }
        self.tell(&inner);
        index.is_some()
    }

    /// A worker's connection has ended: what it was at is for the others.
    pub(super) fn lost(&self, worker: usize) {
        let mut inner = self.lock();
        for entry in &mut inner.files {
            match &mut entry.state {
                State::Active(distributor) => drop(distributor.failed(worker)),
                State::Asked(who) if *who == worker => entry.state = State::Ready,
                State::Finishing(who) if *who == worker => entry.state = State::Arrived,
                _ => {}
            }
        }
        self.tell(&inner);
    }

    /// What is said of a path.
    pub(super) fn stand(&self, worker: usize, standing: Standing, transport: Option<Transport>) {
        let path = &mut self.lock().paths[worker];
        if standing == Standing::Up {
            path.connections += 1;
        }
        path.transport = transport.or(path.transport);
        path.standing = standing;
    }

    /// The connection of a path has become one of TCP.
    pub(super) fn fell_back(&self, worker: usize) {
        self.lock().paths[worker].transport = Some(Transport::FallenBack);
    }

    /// A worker will not come back: no attempt of it would fare better.
    pub(super) fn retire(&self, worker: usize, why: String) {
        let mut inner = self.lock();
        inner.retired[worker] = Some(why);
        self.over.ring();
        self.changed.ring();
    }

    /// Why no worker will come back, if that is so.
    pub(super) fn all_retired(&self) -> Option<String> {
        let inner = self.lock();
        inner
            .retired
            .iter()
            .cloned()
            .collect::<Option<BTreeSet<_>>>()
            .map(|whys| Vec::from_iter(whys).join("; "))
    }

    /// Whether all files have ended, well or not.
    pub(super) fn has_ended(&self) -> bool {
        let inner = self.lock();
        inner.first == inner.files.len()
    }

    /// The work goes on, though no data moves: a large file is read, or the receiver says that it is at something long.
    pub(super) fn moved(&self) {
        self.lock().moved_at = clock::now();
    }

    /// How long nothing has moved on any path.
    pub(super) fn silence(&self) -> Duration {
        clock::now().duration_since(self.lock().moved_at)
    }

    /// How far everything is.
    pub(super) fn status(&self) -> Status {
        let inner = self.lock();
        let ended = inner.files.iter().filter(|entry| matches!(entry.state, State::Ended)).count();
        let size = |entry: &Entry| match (&entry.source, &entry.outcome) {
            (Some(source), _) => source.size_bytes(),
            (None, Some(outcome)) => outcome.size_bytes,
            (None, None) => 0,
        };
        Status {
            files: inner.files.len(),
            files_ended: ended,
            known_bytes: inner.files.iter().map(size).sum(),
            there_bytes: inner
                .files
                .iter()
                .map(|entry| (entry.had_bytes + entry.arrived_bytes).min(size(entry)))
                .sum(),
            paths: inner.paths.clone(),
            backups: inner.backups,
            no_backups: inner.no_backups.clone(),
        }
    }

    /// There are no backups after all.
    pub(super) fn without_backups(&self, why: String) {
        let mut inner = self.lock();
        (inner.backups, inner.no_backups) = (None, Some(why));
    }

    /// What has become of each file; of those that have not ended, `why`.
    pub(super) fn outcomes(&self, why: &str) -> Vec<FileOutcome> {
        let mut inner = self.lock();
        for index in 0..inner.files.len() {
            inner.end(index, Err(why.to_owned()));
        }
        inner.files.iter().filter_map(|entry| entry.outcome.clone()).collect()
    }
}

impl Inner {
    /// The file of a number, if it has not ended and the number is that of the present try.
    fn entry(&mut self, file: u32) -> Option<(usize, &mut Entry)> {
        let index = usize::try_from(file / 2).ok()?;
        let entry = self.files.get_mut(index)?;
        let is_present = number(index, entry.is_second_try) == file && !matches!(entry.state, State::Ended);
        is_present.then_some((index, entry))
    }

    /// A file has ended; a first end stays.
    fn end(&mut self, index: usize, result: Result<bool, String>) {
        let entry = &mut self.files[index];
        if matches!(entry.state, State::Ended) {
            return;
        }
        let source = entry.source.take();
        entry.outcome = Some(FileOutcome {
            path: entry.path.clone(),
            size_bytes: source.as_ref().map_or(0, |source| source.size_bytes()),
            hash: source.as_ref().and_then(|source| source.hash()),
            resumed_bytes: entry.had_bytes,
            result,
        });
        entry.state = State::Ended;
        while self.files.get(self.first).is_some_and(|entry| matches!(entry.state, State::Ended)) {
            self.first += 1;
        }
    }
}

/// How many bytes of a file the grains of a map are.
fn bytes_of(map: &Bitmap, grain_bytes: u32, size_bytes: u64) -> u64 {
    let whole = map.set_count() * u64::from(grain_bytes);
    let last_is_there = map.count() > 0 && map.contains(map.count() - 1);
    let short = map.count() * u64::from(grain_bytes) - size_bytes;
    if last_is_there { whole - short } else { whole }
}

#[cfg(test)]
mod tests;
