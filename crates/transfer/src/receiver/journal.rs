//! What a journal says beside a partial file: of which file, and which of its grains are on stable storage.
//!
//! It is appended to, so that nothing in it is ever half replaced: a head and records of 24 bytes, each with a check of its own.
//! What a crash has cut or torn at the end is not believed, nor anything after it.

use std::ops::Range;

use anabranch_policy::transfer::Bitmap;

use crate::wire::{Frame, Offer};

const MAGIC: [u8; 8] = *b"ABJRNL\0\x01";
const CHECK_BYTES: usize = 8;
const RECORD_BYTES: usize = 16 + CHECK_BYTES;
/// Longest journal that is read: each grain in a record of its own, and a head.
pub(super) const BYTES_MAX: u64 = (crate::wire::GRAINS_MAX + 100) * RECORD_BYTES as u64;

/// The first bytes of a journal: which file it is about, as it was offered, and a check of that.
pub(super) fn head(offer: &Offer) -> Vec<u8> {
    // The sender's number of the file is of one session only.
    let offer = Frame::Offer(Offer { file: 0, ..offer.clone() }).encode();
    let mut bytes = [&MAGIC[..], &offer].concat();
    bytes.extend_from_slice(&check(&bytes));
    bytes
}

/// The bytes that say that these grains are there.
pub(super) fn record(head: &[u8], grains: &Range<u64>) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&grains.start.to_be_bytes());
    bytes[8..16].copy_from_slice(&grains.end.to_be_bytes());
    let sum = check(&[head, &bytes[..16]].concat());
    bytes[16..].copy_from_slice(&sum);
    bytes
}

/// What a journal says, if it is about the file of this head; how many of its bytes can be believed.
pub(super) fn read(head: &[u8], journal: &[u8], grains: u64) -> Option<(Bitmap, usize)> {
    let records = journal.strip_prefix(head)?;
    let mut map = Bitmap::new(grains);
    let mut believed = head.len();
    for bytes in records.chunks_exact(RECORD_BYTES) {
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let range = number(0)..number(8);
        if record(head, &range) != bytes || range.start >= range.end || range.end > grains {
            break;
        }
        for grain in range {
            map.insert(grain);
        }
        believed += RECORD_BYTES;
    }
    Some((map, believed))
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
        Offer { file: 3, size_bytes: 40 << 14, modified_s, modified_ns, grain_bytes, hash: [9; 32], name }
    }

    fn journal(runs: &[Range<u64>]) -> Vec<u8> {
        let head = head(&offer());
        let records = runs.iter().flat_map(|run| record(&head, run));
        head.iter().copied().chain(records).collect()
    }

    #[test]
    fn a_journal_of_another_file_says_nothing() {
        let written = journal(&[0..4, 10..11]);
        let (map, believed) = read(&head(&offer()), &written, 40).unwrap();
        assert_eq!((map.set_count(), believed), (5, written.len()));
        let renumbered = Offer { file: 8, ..offer() };
        assert!(read(&head(&renumbered), &written, 40).is_some(), "a session later");
        let others = [
            Offer { hash: [8; 32], ..offer() },
            Offer { size_bytes: 39 << 14, ..offer() },
            Offer { modified_s: 4, ..offer() },
            Offer { grain_bytes: 32 << 10, ..offer() },
        ];
        for other in others {
            assert!(read(&head(&other), &written, 40).is_none(), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_crash_cuts_or_tears_nothing_is_believed_that_was_not_written(
            starts in proptest::collection::vec(0u64..39, 0..20),
            cut in 0usize..800,
            torn in 0usize..800,
            bit in 0u8..8,
        ) {
            let runs: Vec<_> = starts.iter().map(|start| *start..start + 1).collect();
            let written = journal(&runs);
            let mut found = written[..written.len().saturating_sub(cut)].to_vec();
            if let Some(byte) = found.get_mut(torn) {
                *byte ^= 1 << bit;
            }
            if let Some((map, believed)) = read(&head(&offer()), &found, 40) {
                prop_assert!(written[..believed] == found[..believed]);
                for grain in 0..40 {
                    prop_assert!(!map.contains(grain) || starts.contains(&grain));
                }
            }
        }
    }
}
