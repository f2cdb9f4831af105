//! What the connections of a transfer have claimed and delivered, and when one of them is given up: the part that whoever
//! writes to them and reads from them, a simulator or sockets, has in common.
//!
//! A chunk is written with its header; it has arrived when its last byte has been delivered. A connection that has delivered
//! nothing between two looks, though chunks are under way, has failed: the others get what it holds, and it claims again when
//! it has delivered a chunk after all.

use std::collections::VecDeque;

use super::{Chunks, Distributor, HEADER_BYTES};

/// The connections of a transfer, numbered from 0, and the distributor of its chunks.
#[derive(Clone, Debug)]
pub struct Carriers {
    distributor: Distributor,
    carriers: Vec<Carrier>,
}

/// A connection at work.
#[derive(Clone, Debug, Default)]
struct Carrier {
    /// Bytes that it has been given, headers included.
    claimed_bytes: u64,
    /// Chunks that have not been delivered, each with the number of bytes after which it is.
    under_way: VecDeque<(u64, u64)>,
    delivered: u64,
    has_failed: bool,
    /// Whether looks at it go on.
    is_watched: bool,
    /// Bytes that had been delivered at the last look.
    seen_bytes: u64,
}

/// What a connection is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Bytes to write, the header included.
    pub bytes: u64,
    /// The chunk has arrived when so many bytes in all have been delivered.
    pub end: u64,
}

/// What a look at a connection has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing is under way, or it has failed already: looks end until it claims again.
    Over,
    /// It delivers: it is looked at again.
    Again,
    /// It has failed; so many chunks are there for the others.
    Failed(usize),
}

impl Carriers {
    /// A transfer over so many connections from the start.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(chunks: Chunks, connections: usize) -> Self {
        let carriers = vec![Carrier::default(); connections];
        Self { distributor: Distributor::new(chunks, connections), carriers }
    }

    /// Who has which chunk.
    pub fn distributor(&self) -> &Distributor {
        &self.distributor
    }

    /// The next chunk of a connection; none if all are claimed, or it has failed and is not back.
    ///
    /// # Panics
    /// If there is no such connection, here and below.
    pub fn claim(&mut self, carrier: usize) -> Option<Claim> {
        let of = &mut self.carriers[carrier];
        if of.has_failed {
            return None;
        }
        let chunk = self.distributor.claim(carrier)?;
        let bytes = HEADER_BYTES + self.distributor.chunks().len(chunk);
        of.claimed_bytes += bytes;
        of.under_way.push_back((of.claimed_bytes, chunk));
        Some(Claim { bytes, end: of.claimed_bytes })
    }

    /// After how many bytes in all the oldest chunk that is under way has arrived.
    pub fn next_end(&self, carrier: usize) -> Option<u64> {
        self.carriers[carrier].under_way.front().map(|&(end, _)| end)
    }

    /// So many bytes in all have been delivered. Whether a connection that had failed is back.
    pub fn delivered(&mut self, carrier: usize, bytes: u64) -> bool {
        let of = &mut self.carriers[carrier];
        let mut is_back = false;
        while let Some(&(end, chunk)) = of.under_way.front()
            && end <= bytes
        {
            of.under_way.pop_front();
            of.delivered += 1;
            is_back |= std::mem::replace(&mut of.has_failed, false);
            self.distributor.arrived(carrier, chunk);
        }
        is_back
    }

    /// Chunks that a connection has delivered.
    pub fn delivered_chunks(&self, carrier: usize) -> u64 {
        self.carriers[carrier].delivered
    }

    /// Begins to look at a connection that has delivered so many bytes; false if looks go on already.
    pub fn watch(&mut self, carrier: usize, delivered_bytes: u64) -> bool {
        let of = &mut self.carriers[carrier];
        let begins = !std::mem::replace(&mut of.is_watched, true);
        if begins {
            of.seen_bytes = delivered_bytes;
        }
        begins
    }

    /// Looks at a connection that is watched and has delivered so many bytes.
    pub fn look(&mut self, carrier: usize, delivered_bytes: u64) -> Look {
        let of = &mut self.carriers[carrier];
        let is_silent = std::mem::replace(&mut of.seen_bytes, delivered_bytes) == delivered_bytes;
        let is_idle = of.under_way.is_empty() || of.has_failed;
        if !is_idle && !is_silent {
            return Look::Again;
        }
        of.is_watched = false;
        if is_idle {
            return Look::Over;
        }
        of.has_failed = true;
        Look::Failed(self.distributor.failed(carrier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of four chunks of 84 bytes, 100 with their headers, over two connections.
    fn carriers() -> Carriers {
        Carriers::new(Chunks::new(4 * 84, 84), 2)
    }

    fn ends(carriers: &mut Carriers, carrier: usize, claims: usize) -> Vec<Option<u64>> {
        (0..claims).map(|_| carriers.claim(carrier).map(|claim| claim.end)).collect()
    }

    #[test]
    fn a_chunk_has_arrived_when_its_last_byte_has_been_delivered() {
        let mut carriers = carriers();
        assert_eq!(ends(&mut carriers, 0, 2), [Some(100), Some(200)]);
        assert_eq!(ends(&mut carriers, 1, 3), [Some(100), Some(200), None]);
        carriers.delivered(0, 199);
        carriers.delivered(1, 200);
        assert_eq!((carriers.delivered_chunks(0), carriers.delivered_chunks(1)), (1, 2));
        assert_eq!((carriers.next_end(0), carriers.next_end(1)), (Some(200), None));
        assert!(!carriers.distributor().is_complete());
        carriers.delivered(0, 200);
        assert!(carriers.distributor().is_complete());
    }

    #[test]
    fn chunks_of_a_silent_connection_go_to_the_other_until_it_delivers_again() {
        let mut carriers = carriers();
        ends(&mut carriers, 0, 2);
        assert!(carriers.watch(0, 0));
        assert!(!carriers.watch(0, 0), "looks go on");
        carriers.delivered(0, 50);
        assert_eq!(carriers.look(0, 50), Look::Again, "half a chunk is not nothing");
        assert_eq!(carriers.look(0, 50), Look::Failed(2));
        assert_eq!(carriers.claim(0), None);
        assert_eq!(ends(&mut carriers, 1, 5), [Some(100), Some(200), Some(300), Some(400), None]);
        assert!(carriers.delivered(0, 100), "it is back");
        assert!(!carriers.delivered(0, 200), "it was");
        assert_eq!(carriers.distributor().claimed_again(), 2);
        assert!(carriers.watch(0, 200));
        assert_eq!(carriers.look(0, 200), Look::Over, "nothing is under way");
    }
}
