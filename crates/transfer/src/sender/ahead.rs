//! Reading and hashing a path's next chunks while one is being sent.
//!
//! One thread that reads, hashes and sends is as slow as all three together, which shows where a path carries a gigabyte per second. On such
//! a path a second thread does the first two. It costs two chunks of memory, and chunks are claimed a little before they are sent: so
//! not where memory is bounded, and not on slow paths, where what is claimed early holds the end of a file.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use super::source::Source;
use crate::{
    tree::{ChunkHasher, Hashed},
    wire::Place,
};

/// Chunks that are read or ready at once.
const CHUNKS: usize = 2;

/// A chunk that is a path's.
#[derive(Clone)]
pub(super) struct Claimed {
    pub(super) source: Arc<Source>,
    pub(super) place: Place,
    pub(super) grains: Range<u64>,
}

/// What has become of it.
pub(super) enum Read {
    /// It can be sent.
    Ready(Vec<u8>, Hashed),
    /// Its file is not any more what it was.
    Changed,
}

/// A thread that reads chunks, in order. It ends when this is dropped.
pub(super) struct Ahead {
    /// With whether it is still wanted.
    claimed: VecDeque<(Claimed, bool)>,
    /// With memory for what is read.
    requests: Sender<(Claimed, Vec<u8>)>,
    read: Receiver<Read>,
    spare: Vec<Vec<u8>>,
}

impl Ahead {
    /// Nothing is read yet.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(super) fn start() -> io::Result<Self> {
        let (requests, requested) = mpsc::channel();
        let (done, read) = mpsc::channel();
        let name =
            thread::current().name().map_or_else(|| "ahead".to_owned(), |name| format!("{name}-ahead"));
        thread::Builder::new().name(name).stack_size(256 << 10).spawn(move || work(&requested, &done))?;
        Ok(Self { claimed: VecDeque::new(), requests, read, spare: Vec::new() })
    }

    /// Whether another chunk may be claimed.
    pub(super) fn has_room(&self) -> bool {
        self.claimed.len() < CHUNKS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }

    /// A chunk is to be read.
    pub(super) fn push(&mut self, claimed: Claimed) {
        assert!(self.has_room(), "chunks are claimed when there is room");
        let buffer = self.spare.pop().unwrap_or_default();
        self.requests.send((claimed.clone(), buffer)).expect("the thread lives as long as this");
        self.claimed.push_back((claimed, true));
    }

    /// What is claimed of a file is not to be sent any more.
    pub(super) fn forget(&mut self, file: u32) {
        for (claimed, is_wanted) in &mut self.claimed {
            *is_wanted &= claimed.place.file != file;
        }
    }

    /// The next chunk, as soon as it has been read; none if it is not wanted any more, or there is none.
    pub(super) fn next(&mut self) -> Option<(Claimed, Read)> {
        let (claimed, is_wanted) = self.claimed.pop_front()?;
        let read = self.read.recv().expect("the thread lives as long as this");
        if is_wanted {
            return Some((claimed, read));
        }
        if let Read::Ready(buffer, _) = read {
            self.give_back(buffer);
        }
        None
    }

    /// What was read has been sent: the next chunk can have its memory.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }
}

fn work(requested: &Receiver<(Claimed, Vec<u8>)>, done: &Sender<Read>) {
    for (Claimed { source, place, grains }, mut buffer) in requested {
        buffer.resize(place.bytes as usize, 0);
        let mut hasher = ChunkHasher::new(source.grains(), grains);
        let read = if source.has_changed() || source.read(&mut buffer, place.offset).is_err() {
            Read::Changed
        } else {
            hasher.update(&buffer);
            Read::Ready(buffer, hasher.finish())
        };
        // The path may have died.
        if done.send(read).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const GRAIN: u64 = 16 << 10;

    fn file(place: &Path) -> Arc<Source> {
        let data: Vec<u8> = (0..3 * GRAIN).map(|at| (at / GRAIN) as u8).collect();
        std::fs::write(place.join("log"), data).unwrap();
        Arc::new(Source::open(&place.join("log")).unwrap())
    }

    fn chunk(source: &Arc<Source>, file: u32, grain: u64) -> Claimed {
        let place = Place { file, offset: grain * GRAIN, bytes: GRAIN as u32 };
        Claimed { source: source.clone(), place, grains: grain..grain + 1 }
    }

    #[test]
    fn chunks_come_in_order_with_the_hash_of_what_was_read() {
        let place = tempfile::tempdir().unwrap();
        let (source, mut ahead) = (file(place.path()), Ahead::start().unwrap());
        assert!(ahead.next().is_none());
        for grain in [2, 0, 1] {
            if !ahead.has_room() {
                let (claimed, read) = ahead.next().expect("two were claimed");
                let Read::Ready(data, hashed) = read else { panic!("the file is as it was") };
                assert_eq!((claimed.grains, data.as_slice()), (2..3, &[2; GRAIN as usize][..]));
                let mut hasher = ChunkHasher::new(source.grains(), 2..3);
                hasher.update(&data);
                assert_eq!(hashed.check, hasher.finish().check);
                ahead.give_back(data);
            }
            ahead.push(chunk(&source, 0, grain));
        }
        let rest: Vec<_> =
            std::iter::from_fn(|| ahead.next()).map(|(claimed, _)| claimed.grains.start).collect();
        assert_eq!(rest, [0, 1]);
        assert!(ahead.is_empty());
    }

    #[test]
    fn what_is_not_wanted_any_more_or_has_changed_is_not_sent() {
        let place = tempfile::tempdir().unwrap();
        let (source, mut ahead) = (file(place.path()), Ahead::start().unwrap());
        ahead.push(chunk(&source, 4, 0));
        ahead.push(chunk(&source, 6, 1));
        ahead.forget(4);
        assert!(ahead.next().is_none(), "it has been forgotten");
        assert!(matches!(
            ahead.next(),
            Some((Claimed { place: Place { file: 6, .. }, .. }, Read::Ready(..)))
        ));
        std::fs::write(place.path().join("log"), "short").unwrap();
        ahead.push(chunk(&source, 6, 2));
        assert!(matches!(ahead.next(), Some((_, Read::Changed))));
    }
}
