//! What the applications send: bytes that the receiver knows beforehand, so that every one can be checked.

use std::{fmt, sync::LazyLock};

use anabranch_link::Streams;

/// The bytes repeat after this many. A prime, so that a gap of whole segments, pages or blocks is never a
/// multiple of it before it is as many of them.
const PERIOD: usize = 262_139;
/// Largest piece that can be had at once.
pub(super) const LONGEST: usize = 128 * 1024;
/// Enough bytes to know a place in the pattern by.
const PROBE: usize = 16;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut rng = Streams::new(0).stream("pattern");
    let mut bytes: Vec<u8> = (0..PERIOD).map(|_| rng.below(256) as u8).collect();
    bytes.extend_from_within(..LONGEST);
    bytes
});

/// The `length` bytes that are sent from `offset` on, at most [`LONGEST`].
pub(super) fn piece(offset: u64, length: usize) -> &'static [u8] {
    let start = place(offset);
    &BYTES[start..start + length]
}

/// Whether `received` is what was sent from `offset` on.
pub(super) fn check(offset: u64, received: &[u8]) -> Result<(), Mismatch> {
    for (index, part) in received.chunks(LONGEST).enumerate() {
        let from = offset + (index * LONGEST) as u64;
        let sent = piece(from, part.len());
        if part != sent {
            let wrong = part.iter().zip(sent).position(|(received, sent)| received != sent);
            let wrong = wrong.expect("unequal parts of one length differ in a byte");
            return Err(Mismatch::at(from + wrong as u64, &part[wrong..], sent[wrong]));
        }
    }
    Ok(())
}

fn place(offset: u64) -> usize {
    (offset % PERIOD as u64) as usize
}

/// How received data differ from what was sent. A shift is told apart up to half of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// What follows belongs this much further on.
    Missing { offset: u64, bytes: u64 },
    /// What follows had its place this much earlier.
    Repeated { offset: u64, bytes: u64 },
    /// What follows has no place near.
    Changed { offset: u64, received: u8, sent: u8 },
}

impl Mismatch {
    /// `received` begins with the first wrong byte.
    fn at(offset: u64, received: &[u8], sent: u8) -> Self {
        let changed = Self::Changed { offset, received: received[0], sent };
        let Some(probe) = received.get(..PROBE) else { return changed };
        let belongs = BYTES[..PERIOD + PROBE].windows(PROBE).position(|window| window == probe);
        let Some(belongs) = belongs else { return changed };
        let ahead = (belongs + PERIOD - place(offset)) % PERIOD;
        if ahead <= PERIOD / 2 {
            Self::Missing { offset, bytes: ahead as u64 }
        } else {
            Self::Repeated { offset, bytes: (PERIOD - ahead) as u64 }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { offset, bytes } => write!(to, "{bytes} bytes are missing at byte {offset}"),
            Self::Repeated { offset, bytes } => write!(to, "{bytes} bytes come again at byte {offset}"),
            Self::Changed { offset, received, sent } => {
                write!(to, "byte {offset} is {received:#04x}, but {sent:#04x} was sent")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was sent from 0 to `end`, across the pattern's repetition.
    fn sent(end: u64) -> Vec<u8> {
        (0..end).map(|offset| piece(offset, 1)[0]).collect()
    }

    #[test]
    fn pieces_of_any_length_are_what_was_sent() {
        let sent = sent(3 * PERIOD as u64);
        for (from, to) in [(0, 1), (0, sent.len()), (PERIOD - 7, PERIOD + 7), (100_000, 100_000 + LONGEST)] {
            assert_eq!(check(from as u64, &sent[from..to]), Ok(()));
        }
    }

    #[test]
    fn a_changed_byte_is_found() {
        let mut data = sent(400_000);
        data[300_123] ^= 0x10;
        let wrong = check(0, &data).expect_err("a byte differs");
        assert_eq!(
            wrong,
            Mismatch::Changed { offset: 300_123, received: data[300_123], sent: data[300_123] ^ 0x10 }
        );
        assert!(wrong.to_string().starts_with("byte 300123 is 0x"), "{wrong}");
    }

    #[test]
    fn a_missing_block_is_found_and_measured() {
        for missing in [1, 1448, 16_384, 131_000] {
            let mut data = sent(400_000);
            data.drain(50_000..50_000 + missing);
            let wrong = check(0, &data).expect_err("bytes are missing").to_string();
            // Where the gap is can be told up to a chance equality of bytes.
            assert!(wrong.starts_with(&format!("{missing} bytes are missing at byte 5000")), "{wrong}");
        }
    }

    #[test]
    fn a_repeated_block_is_found_and_measured() {
        for repeated in [1448, 16_384, 65_536] {
            let mut data = sent(400_000);
            let again = data[100_000 - repeated..100_000].to_vec();
            data.splice(100_000..100_000, again);
            let wrong = check(0, &data).expect_err("bytes come again").to_string();
            assert!(wrong.starts_with(&format!("{repeated} bytes come again at byte 10000")), "{wrong}");
        }
    }

    #[test]
    fn too_few_bytes_to_know_their_place_are_a_change() {
        let data = [piece(0, 1)[0] ^ 1];
        let wrong = check(0, &data).expect_err("the byte differs");
        assert_eq!(wrong, Mismatch::Changed { offset: 0, received: data[0], sent: data[0] ^ 1 });
    }
}
