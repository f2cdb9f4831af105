//! BLAKE3 of a file whose parts are seen in any order, each of them once.
//!
//! BLAKE3 is a tree over pieces of 1,024 bytes (section 2.1 of its paper): a subtree that begins at a multiple of its own width has a
//! value that depends on its data and place alone, and the values of two halves make that of the whole. So whoever passes a chunk on
//! reckons the values of its [`subtrees`] meanwhile ([`ChunkHasher`]), and [`Tree`] puts them together. Nobody reads the file
//! once more for its hash; what a tree does not know ([`Tree::missing`]) can be read at the end.
//!
//! A tree keeps at most [`SUBTREES_MAX`] values, as two become one where they meet. Who sends grains so that
//! they do not meet has them read again at the end, and costs no memory.

use std::{collections::BTreeMap, ops::Range};

use anabranch_policy::transfer::Chunks;
use blake3::{
    Hasher,
    hazmat::{HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root},
};

use crate::wire::HASH_BYTES;

/// Values that a tree keeps at most; about 70 bytes each.
const SUBTREES_MAX: usize = 1024;

/// What BLAKE3 makes of a subtree; of the whole file, its hash.
pub(crate) type Value = [u8; HASH_BYTES];

/// So many grains from `first` on that are a power of two, and of which `first` is a multiple; fewer at the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subtree {
    first: u64,
    /// The logarithm of how many grains it has.
    level: u32,
}

/// The largest subtrees that some grains of a file are made of, from the first one on.
pub(crate) fn subtrees(grains: Range<u64>) -> impl Iterator<Item = Subtree> {
    let mut first = grains.start;
    std::iter::from_fn(move || {
        let left = grains.end.checked_sub(first).filter(|left| *left > 0)?;
        let level = first.trailing_zeros().min(left.ilog2());
        let subtree = Subtree { first, level };
        first += 1 << level;
        Some(subtree)
    })
}

/// How many doublings the grain takes to be the whole file.
fn top(grains: u64) -> u32 {
    grains.next_power_of_two().trailing_zeros()
}

/// Hashes a chunk that comes in pieces.
pub(crate) struct ChunkHasher {
    chunks: Chunks,
    end: u64,
    /// Where the next subtree begins.
    next: u64,
    hasher: Hasher,
    subtree: Subtree,
    /// Bytes of it that have not come.
    left_bytes: u64,
    values: Vec<(Subtree, Value)>,
}

/// What a chunk's data is.
pub(crate) struct Hashed {
    /// What follows the data on the wire: BLAKE3 of the values of its subtrees, one after the other.
    pub(crate) check: [u8; HASH_BYTES],
    /// Its subtrees.
    pub(crate) values: Vec<(Subtree, Value)>,
}

impl ChunkHasher {
    /// For these grains, of which there is at least one, of a file that is cut so.
    pub(crate) fn new(chunks: Chunks, grains: Range<u64>) -> Self {
        assert!(!grains.is_empty(), "a chunk has data");
        let subtree = Subtree { first: grains.start, level: 0 };
        let (hasher, values) = (Hasher::new(), Vec::new());
        let mut new =
            Self { chunks, end: grains.end, next: grains.start, hasher, subtree, left_bytes: 0, values };
        new.begin();
        new
    }

    /// Begins with the next subtree, if there is one.
    fn begin(&mut self) {
        let Some(subtree) = subtrees(self.next..self.end).next() else { return };
        // Not `reset`, which leaves the offset of the one before.
        self.hasher = Hasher::new();
        let offset = self.chunks.offset(subtree.first);
        self.hasher.set_input_offset(offset);
        self.next = subtree.first + (1 << subtree.level);
        let last = self.next.min(self.chunks.count()) - 1;
        self.left_bytes = self.chunks.offset(last) + self.chunks.len(last) - offset;
        self.subtree = subtree;
    }

    /// The next piece.
    pub(crate) fn update(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            assert!(self.left_bytes > 0, "there is no more in a chunk than its grains");
            let count = usize::try_from(self.left_bytes).unwrap_or(usize::MAX).min(piece.len());
            let (now, later) = piece.split_at(count);
            self.hasher.update(now);
            self.left_bytes -= count as u64;
            piece = later;
            if self.left_bytes == 0 {
                let is_whole = self.subtree.level == top(self.chunks.count());
                let value = match is_whole {
                    true => *self.hasher.finalize().as_bytes(),
                    false => self.hasher.finalize_non_root(),
                };
                self.values.push((self.subtree, value));
                self.begin();
            }
        }
    }

    /// All of it has come.
    pub(crate) fn finish(self) -> Hashed {
        assert_eq!(self.left_bytes, 0, "a chunk is hashed to its end");
        let mut check = Hasher::new();
        for (_, value) in &self.values {
            check.update(value);
        }
        Hashed { check: *check.finalize().as_bytes(), values: self.values }
    }
}

/// What is known of a file's hash.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    count: u64,
    /// Subtrees that do not overlap, by their first grain: level and value.
    known: BTreeMap<u64, (u32, Value)>,
}

impl Tree {
    /// Nothing is known of a file of so many grains.
    pub(crate) fn new(count: u64) -> Self {
        Self { count, known: BTreeMap::new() }
    }

    /// The hash of the whole, if all of it is known.
    pub(crate) fn root(&self) -> Option<Value> {
        if self.count == 0 {
            return Some(*blake3::hash(&[]).as_bytes());
        }
        let (level, value) = self.known.get(&0)?;
        (*level == top(self.count)).then_some(*value)
    }

    /// A subtree's value, unless it is known already, or there are too many that do not meet.
    pub(crate) fn insert(&mut self, subtree: Subtree, value: Value) {
        self.insert_within(subtree, value, SUBTREES_MAX);
    }

    /// As [`insert`](Self::insert), of the first subtree that is [missing](Self::missing): what is before it are few, so it always has room.
    pub(crate) fn insert_first(&mut self, subtree: Subtree, value: Value) {
        self.insert_within(subtree, value, usize::MAX);
    }

    fn insert_within(&mut self, subtree: Subtree, mut value: Value, limit: usize) {
        let Subtree { mut first, mut level } = subtree;
        if self.covering(first).is_some_and(|(known, _)| known.end >= self.end_of(first, level)) {
            return;
        }
        self.forget(first..self.end_of(first, level));
        let top = top(self.count);
        while level < top {
            let width = 1 << level;
            let (left, right) = (first & !width, first | width);
            if right < self.count {
                let sibling = if first == left { right } else { left };
                match self.known.get(&sibling) {
                    Some((of, other)) if *of == level => {
                        let (a, b) = if first == left { (&value, other) } else { (other, &value) };
                        value = match level + 1 == top {
                            true => *merge_subtrees_root(a, b, Mode::Hash).as_bytes(),
                            false => merge_subtrees_non_root(a, b, Mode::Hash),
                        };
                        self.known.remove(&sibling);
                    }
                    _ => break,
                }
            }
            // Where the file ends before the right half begins, the left one is all there is.
            (first, level) = (left, level + 1);
        }
        if self.known.len() < limit {
            self.known.insert(first, (level, value));
        }
    }

    /// These grains may be different from what was known, and what they are is read again.
    pub(crate) fn forget(&mut self, grains: Range<u64>) {
        while let Some((known, _)) =
            self.last_before(grains.end).filter(|(known, _)| known.end > grains.start)
        {
            self.known.remove(&known.start);
        }
    }

    /// The subtree that a grain is known to belong to, and its value.
    pub(crate) fn covering(&self, grain: u64) -> Option<(Range<u64>, Value)> {
        self.last_before(grain + 1).filter(|(known, _)| known.end > grain)
    }

    /// The last subtree that begins before a grain.
    fn last_before(&self, grain: u64) -> Option<(Range<u64>, Value)> {
        let (first, (level, value)) = self.known.range(..grain).next_back()?;
        Some((*first..self.end_of(*first, *level), *value))
    }

    fn end_of(&self, first: u64, level: u32) -> u64 {
        (first + (1 << level)).min(self.count)
    }

    /// Grains of which nothing is known, from the beginning on.
    pub(crate) fn missing(&self) -> Option<Range<u64>> {
        let mut at = 0;
        for (first, (level, _)) in &self.known {
            if *first > at {
                return Some(at..*first);
            }
            at = self.end_of(*first, *level);
        }
        (at < self.count).then_some(at..self.count)
    }

    /// The subtree with exactly these grains, if they are one.
    pub(crate) fn subtree(&self, grains: &Range<u64>) -> Option<Subtree> {
        if grains.is_empty() || grains.end > self.count {
            return None;
        }
        let width = (grains.end - grains.start).next_power_of_two();
        let level = width.trailing_zeros();
        let is_one = grains.start.is_multiple_of(width) && grains.end == self.end_of(grains.start, level);
        is_one.then_some(Subtree { first: grains.start, level })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRAIN: u64 = 2048;

    fn noise(count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        Hasher::new().update(&count.to_le_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    }

    /// Hashes some grains of a file, in pieces of that length.
    fn hashed(data: &[u8], grains: Range<u64>, piece: usize) -> Hashed {
        let chunks = Chunks::new(data.len() as u64, GRAIN);
        let mut hasher = ChunkHasher::new(chunks, grains.clone());
        let end = (grains.end * GRAIN).min(data.len() as u64);
        for piece in data[(grains.start * GRAIN) as usize..end as usize].chunks(piece) {
            hasher.update(piece);
        }
        hasher.finish()
    }

    #[test]
    fn grains_are_cut_into_subtrees_that_begin_at_multiples_of_their_width() {
        let cut =
            |grains| subtrees(grains).map(|subtree| (subtree.first, 1 << subtree.level)).collect::<Vec<_>>();
        assert_eq!(cut(0..8), [(0, 8)]);
        assert_eq!(cut(0..7), [(0, 4), (4, 2), (6, 1)]);
        assert_eq!(cut(3..12), [(3, 1), (4, 4), (8, 4)]);
        assert_eq!(cut(5..5), [(0, 0); 0]);
    }

    #[test]
    fn the_check_of_a_chunk_is_the_hash_of_its_subtrees_values() {
        let data = noise(5 * GRAIN as usize + 7);
        let value = |grain: u64| {
            let mut hasher = Hasher::new();
            let end = (data.len() as u64).min((grain + 1) * GRAIN);
            hasher.set_input_offset(grain * GRAIN).update(&data[(grain * GRAIN) as usize..end as usize]);
            hasher.finalize_non_root()
        };
        let pair = merge_subtrees_non_root(&value(2), &value(3), Mode::Hash);
        let expected = blake3::hash(&[value(1), pair].concat());
        assert_eq!(hashed(&data, 1..4, 1000).check, *expected.as_bytes());
        assert_eq!(
            hashed(&data, 5..6, 1000).check,
            *blake3::hash(&value(5)).as_bytes(),
            "the short last one"
        );
    }

    #[test]
    fn of_a_file_of_one_grain_the_value_is_the_hash_and_an_empty_file_has_one_too() {
        for length in [1, 1024, 1025, GRAIN as usize] {
            let data = noise(length);
            let of = hashed(&data, 0..1, 333);
            assert_eq!(of.check, *blake3::hash(blake3::hash(&data).as_bytes()).as_bytes());
            let mut tree = Tree::new(1);
            assert_eq!((tree.root(), tree.missing()), (None, Some(0..1)));
            tree.insert(of.values[0].0, of.values[0].1);
            assert_eq!(tree.root(), Some(*blake3::hash(&data).as_bytes()), "{length}");
        }
        assert_eq!(Tree::new(0).root(), Some(*blake3::hash(&[]).as_bytes()));
        assert_eq!(Tree::new(0).missing(), None);
    }

    #[test]
    fn a_tree_keeps_few_values_and_what_it_does_not_keep_is_missing() {
        let grains = 4 * SUBTREES_MAX as u64;
        let mut tree = Tree::new(grains);
        for first in (0..grains).step_by(2) {
            tree.insert(Subtree { first, level: 0 }, [1; 32]);
        }
        assert_eq!(tree.known.len(), SUBTREES_MAX);
        assert_eq!(tree.missing(), Some(1..2));
        for first in (1..grains).step_by(2) {
            tree.insert(Subtree { first, level: 0 }, [1; 32]);
        }
        assert_eq!(tree.missing(), Some(grains / 2..grains / 2 + 1), "those that did not fit");
    }

    #[test]
    fn only_grains_that_make_one_subtree_are_taken_for_one() {
        let tree = Tree::new(11);
        for (grains, level) in [(0..1, 0), (4..8, 2), (8..11, 2), (10..11, 0), (0..11, 4)] {
            assert_eq!(tree.subtree(&grains).map(|subtree| subtree.level), Some(level), "{grains:?}");
        }
        for grains in [3..3, 1..3, 0..3, 8..10, 10..12, 0..u64::MAX, u64::MAX - 1..u64::MAX] {
            let is_one = tree.subtree(&grains).is_some();
            assert_eq!(is_one, grains == (8..10), "{grains:?}");
        }
    }

    proptest! {
        #[test]
        fn in_whatever_order_chunks_come_the_tree_has_the_hash_of_the_file(
            length in 1usize..60_000,
            cuts in proptest::collection::vec(0u64..30, 0..12),
            order in any::<u64>(),
            piece in 1usize..9000,
            again in proptest::option::of(0u64..30),
        ) {
            let data = noise(length);
            let count = (length as u64).div_ceil(GRAIN);
            let mut bounds: Vec<u64> = cuts.into_iter().filter(|cut| *cut < count).chain([0, count]).collect();
            bounds.sort_unstable();
            let mut runs: Vec<_> = bounds.windows(2).map(|pair| pair[0]..pair[1]).filter(|run| !run.is_empty()).collect();
            runs.sort_by_key(|run| blake3::hash(&(order ^ run.start).to_le_bytes()).to_hex());
            let mut tree = Tree::new(count);
            for run in &runs {
                prop_assert!(tree.root().is_none());
                for (subtree, value) in hashed(&data, run.clone(), piece).values {
                    tree.insert(subtree, value);
                }
            }
            prop_assert_eq!(tree.missing(), None);
            prop_assert_eq!(tree.root(), Some(*blake3::hash(&data).as_bytes()));
            if let Some(grain) = again.filter(|grain| *grain < count) {
                tree.forget(grain..grain + 1);
                prop_assert!(tree.covering(grain).is_none() && tree.root().is_none());
                while let Some(run) = tree.missing() {
                    for (subtree, value) in hashed(&data, run, piece).values {
                        tree.insert(subtree, value);
                    }
                }
                prop_assert_eq!(tree.root(), Some(*blake3::hash(&data).as_bytes()));
            }
        }
    }
}
