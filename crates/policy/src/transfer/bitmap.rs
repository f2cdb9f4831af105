//! Which chunks of a file are there: one bit each, in a form that can be kept beside a partial file.

use std::fmt;

/// A set of the first so many numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    bytes: Vec<u8>,
    count: u64,
    set: u64,
}

/// Why kept bytes are not the bitmap of so many chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitmapError {
    /// There are more bytes or fewer.
    Length {
        /// How many there are.
        found: usize,
        /// How many so many chunks take.
        expected: usize,
    },
    /// A bit beyond the last chunk is set.
    BeyondTheEnd,
}

impl fmt::Display for BitmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found, expected } => {
                write!(f, "the map of chunks has {found} bytes; expected {expected}")
            }
            Self::BeyondTheEnd => f.write_str("the map of chunks names one beyond the end of the file"),
        }
    }
}

impl std::error::Error for BitmapError {}

impl Bitmap {
    /// The empty set of `count` chunks.
    pub fn new(count: u64) -> Self {
        Self { bytes: vec![0; Self::len_of(count)], count, set: 0 }
    }

    fn len_of(count: u64) -> usize {
        usize::try_from(count.div_ceil(8)).expect("the map fits into memory")
    }

    /// The set that [`as_bytes`](Self::as_bytes) has given.
    ///
    /// # Errors
    /// If the bytes are not those of a set of `count` chunks.
    pub fn from_bytes(count: u64, bytes: &[u8]) -> Result<Self, BitmapError> {
        let (found, expected) = (bytes.len(), Self::len_of(count));
        if found != expected {
            return Err(BitmapError::Length { found, expected });
        }
        let used = (count % 8) as u32;
        if used > 0 && bytes.last().is_some_and(|last| last >> used != 0) {
            return Err(BitmapError::BeyondTheEnd);
        }
        let set = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
        Ok(Self { bytes: bytes.to_vec(), count, set })
    }

    /// The set as bytes: chunk `i` is bit `i % 8` of byte `i / 8`, and what is left of the last byte is 0.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many chunks there are, in the set or not.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many are in the set.
    pub fn set_count(&self) -> u64 {
        self.set
    }

    /// Whether all are in the set.
    pub fn is_full(&self) -> bool {
        self.set == self.count
    }

    /// Whether a chunk is in the set.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn contains(&self, chunk: u64) -> bool {
        let (byte, bit) = self.place(chunk);
        self.bytes[byte] & bit != 0
    }

    /// Puts a chunk into the set; whether it was not there before.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn insert(&mut self, chunk: u64) -> bool {
        let (byte, bit) = self.place(chunk);
        let is_new = self.bytes[byte] & bit == 0;
        self.bytes[byte] |= bit;
        self.set += u64::from(is_new);
        is_new
    }

    fn place(&self, chunk: u64) -> (usize, u8) {
        assert!(chunk < self.count, "chunk {chunk} of {}", self.count);
        ((chunk / 8) as usize, 1 << (chunk % 8))
    }
}
