//! Who carries which chunk.

use std::collections::{BTreeSet, VecDeque};

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
struct Range {
    lo: u64,
    hi: u64,
    /// How many of them have not arrived.
    left: u64,
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
    ranges: Vec<Range>,
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
        let ranges = (0..workers as u64).map(|worker| {
            let (lo, hi) = (bound(worker), bound(worker + 1));
            let left = (lo..hi).filter(|&chunk| !arrived.contains(chunk)).count() as u64;
            Range { lo, hi, left }
        });
        Self {
            chunks,
            ranges: ranges.collect(),
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
        let chunk = if let Some(chunk) = self.given_back.pop_first() {
            self.claimed_again += 1;
            chunk
        } else if self.ranges[worker].left > 0 {
            self.ranges[worker].first(&self.arrived)
        } else {
            let largest = self.ranges.iter_mut().rev().max_by_key(|range| range.left)?;
            if largest.left == 0 {
                return None;
            }
            largest.last(&self.arrived)
        };
        self.claims += 1;
        self.held[worker].push_back(chunk);
        Some(chunk)
    }

    /// A chunk has arrived that this worker had claimed, perhaps before it failed.
    ///
    /// # Panics
    /// If there is no such worker or chunk.
    pub fn arrived(&mut self, worker: usize, chunk: u64) -> Arrival {
        self.held[worker].retain(|&held| held != chunk);
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
        self.given_back.len() as u64 + self.ranges.iter().map(|range| range.left).sum::<u64>()
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

impl Range {
    /// Takes the first chunk that has not arrived; there is one.
    fn first(&mut self, arrived: &Bitmap) -> u64 {
        let chunk = (self.lo..self.hi).find(|&chunk| !arrived.contains(chunk)).expect("one is left");
        self.lo = chunk + 1;
        self.left -= 1;
        chunk
    }

    /// Takes the last chunk that has not arrived; there is one.
    fn last(&mut self, arrived: &Bitmap) -> u64 {
        let chunk = (self.lo..self.hi).rev().find(|&chunk| !arrived.contains(chunk)).expect("one is left");
        self.hi = chunk;
        self.left -= 1;
        chunk
    }
}
