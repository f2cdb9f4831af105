//! What a journal says beside a partial file: of which file, which of its grains are on stable storage, and what BLAKE3 makes of them.
//!
//! It is appended to, so that nothing in it is ever half replaced: a head and records of 56 bytes, each with a check of its own.
//! What a crash has cut or torn at the end is not believed, nor anything after it. A later record holds against an earlier one.

use std::{
    io::{self, Read},
    ops::Range,
};

use anabranch_policy::transfer::Bitmap;

use crate::{
    tree::{Tree, Value},
    wire::{Frame, HASH_BYTES, Offer},
};

const MAGIC: [u8; 8] = *b"ABJRNL\0\x02";
const CHECK_BYTES: usize = 8;
const RECORD_BYTES: usize = 16 + HASH_BYTES + CHECK_BYTES;
/// Stands for a value that is not known.
const NO_VALUE: Value = [0; HASH_BYTES];

/// The first bytes of a journal: which file it is about, as it was offered, and a check of that.
pub(super) fn head(offer: &Offer) -> Vec<u8> {
    // The sender's number of the file is of one session only.
    let offer = Frame::Offer(Offer { file: 0, ..offer.clone() }).encode();
    let mut bytes = [&MAGIC[..], &offer].concat();
    bytes.extend_from_slice(&check(&bytes));
    bytes
}

/// The bytes that say that these grains are there, and which value they have, if they are a subtree and it is known.
pub(super) fn record(head: &[u8], grains: &Range<u64>, value: Option<Value>) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let (said, sum) = bytes.split_at_mut(RECORD_BYTES - CHECK_BYTES);
    said[..8].copy_from_slice(&grains.start.to_be_bytes());
    said[8..16].copy_from_slice(&grains.end.to_be_bytes());
    said[16..].copy_from_slice(&value.unwrap_or(NO_VALUE));
    sum.copy_from_slice(&check(&[head, said].concat()));
    bytes
}

/// What is known of some grains: the largest subtrees that they belong to, which may be more than they are, and the rest without values.
pub(super) fn known(tree: &Tree, grains: &Range<u64>) -> Vec<(Range<u64>, Option<Value>)> {
    let mut known: Vec<(Range<u64>, Option<Value>)> = Vec::new();
    let mut at = grains.start;
    while at < grains.end {
        match (tree.covering(at), known.last_mut()) {
            (Some((subtree, value)), _) => {
                at = subtree.end;
                known.push((subtree, Some(value)));
            }
            (None, Some((last, None))) => {
                at += 1;
                last.end = at;
            }
            (None, _) => {
                at += 1;
                known.push((at - 1..at, None));
            }
        }
    }
    known
}

/// What a journal says.
#[derive(Debug)]
pub(super) struct Known {
    /// Grains that are there.
    pub(super) map: Bitmap,
    /// Their values.
    pub(super) tree: Tree,
    /// How many bytes of the journal can be believed.
    pub(super) believed: u64,
}

/// Reads a journal to where it cannot be believed any more; none if it is not about the file of this head.
pub(super) fn read(head: &[u8], journal: impl Read, grains: u64) -> io::Result<Option<Known>> {
    let mut journal = io::BufReader::new(journal);
    let mut found = vec![0; head.len()];
    if !fill(&mut journal, &mut found)? || found != head {
        return Ok(None);
    }
    let mut known = Known { map: Bitmap::new(grains), tree: Tree::new(grains), believed: head.len() as u64 };
    let mut bytes = [0; RECORD_BYTES];
    while fill(&mut journal, &mut bytes)? {
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let range = number(0)..number(8);
        let value: Value = bytes[16..16 + HASH_BYTES].try_into().expect("a value");
        let value = (value != NO_VALUE).then_some(value);
        let subtree = known.tree.subtree(&range);
        let is_sound =
            range.start < range.end && range.end <= grains && (value.is_none() || subtree.is_some());
        if !is_sound || record(head, &range, value) != bytes {
            break;
        }
        known.tree.forget(range.clone());
        if let (Some(value), Some(subtree)) = (value, subtree) {
            known.tree.insert(subtree, value);
        }
        for grain in range {
            known.map.insert(grain);
        }
        known.believed += RECORD_BYTES as u64;
    }
    Ok(Some(known))
}

/// Fills the buffer, unless the journal ends before.
fn fill(journal: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match journal.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    *blake3::hash(bytes).as_bytes().first_chunk().expect("a hash is longer")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer() -> Offer {
        let name = b"meter.log".to_vec();
        let (modified_s, modified_ns, grain_bytes) = (5, 6, 16 << 10);
        Offer { file: 3, size_bytes: 40 << 14, modified_s, modified_ns, grain_bytes, name }
    }

    fn journal(runs: &[(Range<u64>, Option<Value>)]) -> Vec<u8> {
        let head = head(&offer());
        let records = runs.iter().flat_map(|(run, value)| record(&head, run, *value));
        head.iter().copied().chain(records).collect()
    }

    fn said(offer: &Offer, journal: &[u8]) -> Option<Known> {
        read(&head(offer), journal, 40).unwrap()
    }

    #[test]
    fn a_journal_of_another_file_says_nothing() {
        let written = journal(&[(0..4, Some([1; 32])), (10..11, None)]);
        let known = said(&offer(), &written).unwrap();
        assert_eq!((known.map.set_count(), known.believed), (5, written.len() as u64));
        assert_eq!(known.tree.covering(2), Some((0..4, [1; 32])));
        assert_eq!(known.tree.covering(10), None);
        assert!(said(&Offer { file: 8, ..offer() }, &written).is_some(), "a session later");
        let others = [
            Offer { name: b"meter.lag".to_vec(), ..offer() },
            Offer { size_bytes: 39 << 14, ..offer() },
            Offer { modified_s: 4, ..offer() },
            Offer { grain_bytes: 32 << 10, ..offer() },
        ];
        for other in others {
            assert!(said(&other, &written).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_later_record_holds_against_an_earlier_one() {
        let runs = [(0..4, Some([1; 32])), (2..3, None), (8..10, Some([2; 32])), (8..9, Some([3; 32]))];
        let known = said(&offer(), &journal(&runs)).unwrap();
        assert_eq!(known.map.set_count(), 6);
        assert_eq!([0, 2, 9].map(|grain| known.tree.covering(grain)), [None, None, None]);
        assert_eq!(known.tree.covering(8), Some((8..9, [3; 32])));
        let wide = journal(&[(1..3, Some([1; 32]))]);
        assert_eq!(said(&offer(), &wide).unwrap().map.set_count(), 0, "that is no subtree");
    }

    #[test]
    fn what_is_known_of_grains_is_told_by_whole_subtrees() {
        let mut tree = Tree::new(40);
        for (grains, value) in [(0..4, 1), (6..7, 2)] {
            tree.insert(tree.subtree(&grains).unwrap(), [value; 32]);
        }
        let expected = [(0..4, Some([1; 32])), (4..6, None), (6..7, Some([2; 32])), (7..9, None)];
        assert_eq!(known(&tree, &(3..9)), expected);
    }

    proptest! {
        #[test]
        fn whatever_a_crash_cuts_or_tears_nothing_is_believed_that_was_not_written(
            starts in proptest::collection::vec(0u64..39, 0..20),
            cut in 0usize..800,
            torn in 0usize..1600,
            bit in 0u8..8,
        ) {
            let runs: Vec<_> = starts.iter().map(|start| (*start..start + 1, Some([7; 32]))).collect();
            let written = journal(&runs);
            let mut found = written[..written.len().saturating_sub(cut)].to_vec();
            if let Some(byte) = found.get_mut(torn) {
                *byte ^= 1 << bit;
            }
            if let Some(known) = said(&offer(), &found) {
                let believed = known.believed as usize;
                prop_assert!(written[..believed] == found[..believed]);
                for grain in 0..40 {
                    prop_assert!(!known.map.contains(grain) || starts.contains(&grain));
                }
            }
        }
    }
}
