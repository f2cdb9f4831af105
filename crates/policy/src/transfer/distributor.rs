//! Who carries which chunk.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
};

use super::{Bitmap, Chunks};

/// What a chunk's arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Its first.
    First,
    /// It has come before, on a connection that was given up or on the one that took its place.
    Again,
}

/// Chunks that nobody has claimed: those in `lo..hi` that have not arrived.
#[derive(Clone, Debug)]
struct Part {
    lo: u64,
    hi: u64,
    /// How many of them have not arrived.
    left: u64,
}

/// What a claim takes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// What failed workers held.
    GivenBack,
    /// The part of this number, from its beginning: its owner's claims.
    Begin(usize),
    /// The part of this number, from its end: claims of the others.
    End(usize),
}

/// Hands out the chunks of a file to workers, one per connection, numbered from 0. Claiming is the only way to a chunk, so
/// one that needs a lock has one place for it.
///
/// A chunk is in one of four states: nobody has claimed it, a worker holds it, it is given back, or it has arrived.
#[derive(Clone, Debug)]
pub struct Distributor {
    chunks: Chunks,
    arrived: Bitmap,
    /// What each worker begins with, less what has been taken from it.
    parts: Vec<Part>,
    /// What failed workers held, to be claimed before anything else.
    given_back: BTreeSet<u64>,
    /// What each worker has claimed and neither delivered nor given back, in the order of its claims.
    held: Vec<VecDeque<u64>>,
    claims: u64,
    /// Claims of chunks that had been given back.
    claimed_again: u64,
}

impl Distributor {
    /// A transfer by `workers` from the start.
    ///
    /// # Panics
    /// If there is no worker.
    pub fn new(chunks: Chunks, workers: usize) -> Self {
        Self::resume(chunks, workers, Bitmap::new(chunks.count()))
    }

    /// A transfer that goes on after some chunks have arrived.
    ///
    /// # Panics
    /// If there is no worker, or `arrived` is about another number of chunks.
    pub fn resume(chunks: Chunks, workers: usize, arrived: Bitmap) -> Self {
        assert!(workers > 0, "somebody carries the chunks");
        assert_eq!(arrived.count(), chunks.count(), "the map belongs to the file");
        // Of two workers the first owns the file and works upwards; the second owns nothing, so it takes from the end.
        let owners = if workers == 2 { 1 } else { workers as u64 };
        let count = u128::from(chunks.count());
        let bound = |owner: u64| (count * u128::from(owner.min(owners)) / u128::from(owners)) as u64;
        let parts = (0..workers as u64).map(|worker| {
            let (lo, hi) = (bound(worker), bound(worker + 1));
            let left = (lo..hi).filter(|&chunk| !arrived.contains(chunk)).count() as u64;
            Part { lo, hi, left }
        });
        Self {
            chunks,
            parts: parts.collect(),
            arrived,
            given_back: BTreeSet::new(),
            held: vec![VecDeque::new(); workers],
            claims: 0,
            claimed_again: 0,
        }
    }

    /// How the file is cut.
    pub fn chunks(&self) -> Chunks {
        self.chunks
    }

    /// The chunk that a worker carries next; `None`: all are claimed, which a failure may change.
    ///
    /// Chunks that were given back go first, the first of them in the file before the others; then those of the worker's own
    /// range upwards; then those of the largest range that is left, of equals the first, from its end downwards.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn claim(&mut self, worker: usize) -> Option<u64> {
        let source = self.source(worker)?;
        Some(self.take(worker, source))
    }

    /// As [`claim`](Self::claim), but up to `count` chunks at once that lie beside each other in the file: a worker on a fast
    /// path then has fewer claims to make and larger pieces to send. All are from where the first is from.
    ///
    /// # Panics
    /// If there is no such worker, or `count` is 0.
    pub fn claim_run(&mut self, worker: usize, count: u64) -> Option<Range<u64>> {
        assert!(count > 0, "a run has chunks");
        let source = self.source(worker)?;
        let first = self.take(worker, source);
        let mut run = first..first + 1;
        while run.end - run.start < count {
            match self.peek(source) {
                Some(next) if next == run.end => run.end += 1,
                Some(next) if next + 1 == run.start => run.start -= 1,
                _ => break,
            }
            self.take(worker, source);
        }
        Some(run)
    }

    /// Where the worker's next chunk is from, which has one.
    fn source(&self, worker: usize) -> Option<Source> {
        if !self.given_back.is_empty() {
            Some(Source::GivenBack)
        } else if self.parts[worker].left > 0 {
            Some(Source::Begin(worker))
        } else {
            let (largest, part) = self.parts.iter().enumerate().rev().max_by_key(|(_, part)| part.left)?;
            (part.left > 0).then_some(Source::End(largest))
        }
    }

    /// The next chunk of a source, if it has one.
    fn peek(&self, source: Source) -> Option<u64> {
        match source {
            Source::GivenBack => self.given_back.first().copied(),
            Source::Begin(part) => self.parts[part].first(&self.arrived),
            Source::End(part) => self.parts[part].last(&self.arrived),
        }
    }

    /// Takes the next chunk of a source that has one.
    fn take(&mut self, worker: usize, source: Source) -> u64 {
        let chunk = self.peek(source).expect("one is left");
        match source {
            Source::GivenBack => {
                self.given_back.remove(&chunk);
                self.claimed_again += 1;
            }
            Source::Begin(part) => {
                self.parts[part].lo = chunk + 1;
                self.parts[part].left -= 1;
            }
            Source::End(part) => {
                self.parts[part].hi = chunk;
                self.parts[part].left -= 1;
            }
        }
        self.claims += 1;
        self.held[worker].push_back(chunk);
        chunk
    }

    /// A chunk has arrived that this worker had claimed, perhaps before it failed.
    ///
    /// # Panics
    /// If there is no such worker or chunk.
    pub fn arrived(&mut self, worker: usize, chunk: u64) -> Arrival {
        let held = &mut self.held[worker];
        // Chunks mostly arrive in the order of their claims.
        if held.front() == Some(&chunk) {
            held.pop_front();
        } else {
            held.retain(|&held| held != chunk);
        }
        self.given_back.remove(&chunk);
        if self.arrived.insert(chunk) { Arrival::First } else { Arrival::Again }
    }

    /// A worker's connection has failed: what it holds is for the others, or for itself when it is back and claims again.
    /// How many chunks that are.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn failed(&mut self, worker: usize) -> usize {
        let held = std::mem::take(&mut self.held[worker]);
        // What has come by another worker since this one failed before is not wanted again.
        let missing = held.into_iter().filter(|&chunk| !self.arrived.contains(chunk));
        let before = self.given_back.len();
        self.given_back.extend(missing);
        self.given_back.len() - before
    }

    /// Chunks that a worker holds, in the order of its claims.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn held(&self, worker: usize) -> impl Iterator<Item = u64> + '_ {
        self.held[worker].iter().copied()
    }

    /// Chunks that can be claimed.
    pub fn unclaimed(&self) -> u64 {
        self.given_back.len() as u64 + self.parts.iter().map(|range| range.left).sum::<u64>()
    }

    /// Which chunks have arrived; kept, it is what [`resume`](Self::resume) goes on from.
    pub fn arrived_chunks(&self) -> &Bitmap {
        &self.arrived
    }

    /// Whether all have arrived.
    pub fn is_complete(&self) -> bool {
        self.arrived.is_full()
    }

    /// Claims so far; those of chunks that had been given back are counted again.
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// Of these, claims of chunks that a failed worker had given back.
    pub fn claimed_again(&self) -> u64 {
        self.claimed_again
    }
}

impl Part {
    /// The first chunk that has not arrived.
    fn first(&self, arrived: &Bitmap) -> Option<u64> {
        (self.left > 0)
            .then(|| (self.lo..self.hi).find(|&chunk| !arrived.contains(chunk)).expect("one is left"))
    }

    /// The last chunk that has not arrived.
    fn last(&self, arrived: &Bitmap) -> Option<u64> {
        let mut downwards = (self.lo..self.hi).rev();
        (self.left > 0).then(|| downwards.find(|&chunk| !arrived.contains(chunk)).expect("one is left"))
    }
}
