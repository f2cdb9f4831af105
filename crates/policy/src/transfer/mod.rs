//! A file that several connections carry together, in chunks: the data distributor of MPTCP-IoT (Hwang and Yoo, Sensors
//! 2020, 20(5):1436, section 3).
//!
//! [`Chunks`] says where each chunk lies in the file, [`Bitmap`] which ones have arrived, and [`Distributor`] which one a
//! connection carries next. With two connections one works upwards from the beginning of the file and the other downwards
//! from its end, until they meet.
//!
//! Where this differs from the printed algorithms 1 and 2:
//! - Their threads stop when `s1.index >= s2.index`, though both name chunks that are still to be sent: the last one is sent by
//!   nobody. Here a chunk is claimed, once, and the transfer ends when none is left to be claimed and all have arrived.
//! - They pass an index to `pread` where it takes an offset, and leave out a last chunk that is shorter.
//! - Their receiver cannot know where the two meet: here [`HEADER_BYTES`] before each chunk say which it is.
//! - They say nothing about connections that fail: what such a one had not delivered goes to the others.
//! - They know two connections. More of them begin with a part of the file each, and take from the largest part that is
//!   left when their own is empty; for two this rule is the paper's.
//!
//! How many chunks beside each other are claimed at once ([`Distributor::claim_run`]) is for the caller to say, who knows the rates.
//!
//! Left out: sending a slow connection's last chunk a second time on a fast one. A transfer of few chunks ends up to a chunk's time
//! on the slowest path later for it.

mod bitmap;
mod carriers;
mod distributor;
#[cfg(test)]
mod tests;

pub use bitmap::{Bitmap, BitmapError};
pub use carriers::{Carriers, Claim, Look};
pub use distributor::{Arrival, Distributor};

/// What precedes each chunk on a connection: its index and its length, eight bytes each.
pub const HEADER_BYTES: u64 = 16;

/// How a file is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Bytes of the file.
    size_bytes: u64,
    /// Bytes of each chunk but the last one.
    chunk_bytes: u64,
}

impl Chunks {
    /// A file of `size_bytes`, which may be 0, in chunks of `chunk_bytes`.
    ///
    /// # Panics
    /// If chunks are empty.
    pub fn new(size_bytes: u64, chunk_bytes: u64) -> Self {
        assert!(chunk_bytes > 0, "chunks are not empty");
        Self { size_bytes, chunk_bytes }
    }

    /// How many there are; of an empty file none.
    pub fn count(self) -> u64 {
        self.size_bytes.div_ceil(self.chunk_bytes)
    }

    /// Where a chunk begins in the file.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn offset(self, chunk: u64) -> u64 {
        assert!(chunk < self.count(), "chunk {chunk} of {}", self.count());
        chunk * self.chunk_bytes
    }

    /// Bytes of a chunk: the last one may be shorter.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn len(self, chunk: u64) -> u64 {
        (self.size_bytes - self.offset(chunk)).min(self.chunk_bytes)
    }

    /// Bytes of the file.
    pub fn size_bytes(self) -> u64 {
        self.size_bytes
    }
}
