//! The bytes between sender and receiver: `docs/transfer-protocol.md`, version 2.
//!
//! A frame is a head of [`HEAD_BYTES`] and a payload. The reader is strict: each frame has exactly one encoding, and anything else
//! is [`Malformed`], after which a connection is of no use. Nothing here allocates more than a frame's limit, and that only when
//! its payload is there.
//!
//! The data of a chunk is the only payload that is not read as a whole: [`Head::Chunk`] says how much follows, so that either end
//! can pass it on in pieces.

mod frame;
mod reader;
#[cfg(test)]
mod tests;

pub use frame::{Code, Frame, Have, Held, Hello, Offer, Place, Problem, Welcome};
use reader::Reader;

/// What this program speaks.
pub const VERSION: u16 = 2;
/// What a [`Hello`] begins with.
pub const MAGIC: [u8; 4] = *b"ABTX";
/// Bytes of a frame's head: its kind, three zero bytes, and the length of its payload.
pub const HEAD_BYTES: usize = 8;
/// Bytes of a chunk's payload before its data: file and offset.
pub const CHUNK_HEAD_BYTES: usize = 12;
/// Bytes of a BLAKE3 hash, of a file in a finish and after a chunk's data.
pub const HASH_BYTES: usize = 32;
/// Bytes of a one-time token.
pub const TOKEN_BYTES: usize = 16;
/// Longest name of a file in bytes, as Linux has it.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest explanation in an error in bytes.
pub const TEXT_BYTES_MAX: usize = 400;
/// Grains are powers of two between these.
pub const GRAIN_BYTES_MIN: u32 = 16 << 10;
/// See [`GRAIN_BYTES_MIN`].
pub const GRAIN_BYTES_MAX: u32 = 64 << 20;
/// Most grains of a file: what bounds the map of what has arrived, on either end.
pub const GRAINS_MAX: u64 = 1 << 18;
/// Longest map of what has arrived, in bytes.
pub const MAP_BYTES_MAX: usize = (GRAINS_MAX / 8) as usize;
/// Most data in one chunk, in bytes.
pub const CHUNK_BYTES_MAX: u32 = GRAIN_BYTES_MAX;
/// Largest file, in bytes.
pub const FILE_BYTES_MAX: u64 = GRAINS_MAX * GRAIN_BYTES_MAX as u64;

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer does not speak this protocol: {0}")]
pub struct Malformed(pub &'static str);

/// Kinds of frames, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "Frame has a variant for each but Chunk, which Head describes")]
pub enum Kind {
    Hello = 1,
    Welcome = 2,
    Offer = 3,
    Have = 4,
    Chunk = 5,
    Arrived = 6,
    Finish = 7,
    Done = 8,
    Error = 9,
    Alive = 10,
    Bye = 11,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Hello,
        Self::Welcome,
        Self::Offer,
        Self::Have,
        Self::Chunk,
        Self::Arrived,
        Self::Finish,
        Self::Done,
        Self::Error,
        Self::Alive,
        Self::Bye,
    ];

    /// Shortest and longest payload, in bytes.
    const fn lengths(self) -> (usize, usize) {
        match self {
            Self::Hello => (22, 22 + TOKEN_BYTES),
            Self::Welcome => (4, 4),
            Self::Offer => (29, 28 + NAME_BYTES_MAX),
            Self::Have => (5, 5 + MAP_BYTES_MAX),
            Self::Chunk => {
                let around = CHUNK_HEAD_BYTES + HASH_BYTES;
                (around + 1, around + CHUNK_BYTES_MAX as usize)
            }
            Self::Arrived => (16, 16),
            Self::Finish => (4 + HASH_BYTES, 4 + HASH_BYTES),
            Self::Done => (4, 4),
            Self::Error => (6, 6 + TEXT_BYTES_MAX),
            Self::Alive | Self::Bye => (0, 0),
        }
    }
}

/// What a frame's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A payload that is read as a whole, with [`Frame::decode`].
    Whole {
        /// Its kind, which is not [`Kind::Chunk`].
        kind: Kind,
        /// Bytes of the payload.
        length: usize,
    },
    /// A chunk: [`CHUNK_HEAD_BYTES`], then so much data, then its check of [`HASH_BYTES`].
    Chunk {
        /// Bytes of its data, at least 1.
        bytes: u32,
    },
}

impl Head {
    /// Reads a head.
    ///
    /// # Errors
    /// If the kind is not known, or no payload of the kind has that length.
    pub fn decode(bytes: [u8; HEAD_BYTES]) -> Result<Self, Malformed> {
        let [kind, zeros @ .., a, b, c, d] = bytes;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind);
        let kind = kind.ok_or(Malformed("a frame of unknown kind"))?;
        if zeros != [0; 3] {
            return Err(Malformed("a frame's head has bits set that mean nothing"));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let (shortest, longest) = kind.lengths();
        if length < shortest || length > longest {
            return Err(Malformed("no frame of that kind has that length"));
        }
        Ok(match kind {
            Kind::Chunk => Self::Chunk { bytes: (length - CHUNK_HEAD_BYTES - HASH_BYTES) as u32 },
            kind => Self::Whole { kind, length },
        })
    }

    /// The bytes that [`decode`](Self::decode) reads.
    pub fn encode(self) -> [u8; HEAD_BYTES] {
        let (kind, length) = match self {
            Self::Whole { kind, length } => (kind, length),
            Self::Chunk { bytes } => (Kind::Chunk, CHUNK_HEAD_BYTES + bytes as usize + HASH_BYTES),
        };
        let [a, b, c, d] = u32::try_from(length).expect("lengths are limited").to_be_bytes();
        [kind as u8, 0, 0, 0, a, b, c, d]
    }
}

/// What precedes a chunk's data on the wire, head included.
pub fn chunk_prefix(place: Place) -> [u8; HEAD_BYTES + CHUNK_HEAD_BYTES] {
    let mut prefix = [0; HEAD_BYTES + CHUNK_HEAD_BYTES];
    let (head, rest) = prefix.split_at_mut(HEAD_BYTES);
    head.copy_from_slice(&Head::Chunk { bytes: place.bytes }.encode());
    rest[..4].copy_from_slice(&place.file.to_be_bytes());
    rest[4..].copy_from_slice(&place.offset.to_be_bytes());
    prefix
}

/// Reads what follows a chunk's head; `bytes` is from the head.
pub fn chunk_place(bytes: u32, payload: [u8; CHUNK_HEAD_BYTES]) -> Place {
    let (file, offset) = payload.split_at(4);
    Place {
        file: u32::from_be_bytes(file.try_into().expect("four bytes")),
        offset: u64::from_be_bytes(offset.try_into().expect("eight bytes")),
        bytes,
    }
}

/// Whether a file may be called that in the receiver's folder: one name of a Linux folder, not the folder itself or the one above,
/// and not one of the receiver's own ([`OWN_PREFIX`]).
pub fn is_file_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(&0)
        && !name.contains(&b'/')
        && name != b"."
        && name != b".."
        && !name.starts_with(OWN_PREFIX.as_bytes())
}

/// The smallest grain that a file of so many bytes can have, [`FILE_BYTES_MAX`] at most.
pub fn grain_bytes(size_bytes: u64) -> u32 {
    let least = size_bytes.div_ceil(GRAINS_MAX).next_power_of_two();
    u32::try_from(least).unwrap_or(GRAIN_BYTES_MAX).clamp(GRAIN_BYTES_MIN, GRAIN_BYTES_MAX)
}

/// What the names of the receiver's own files begin with; no file that is sent may.
pub const OWN_PREFIX: &str = ".anabranch-";
