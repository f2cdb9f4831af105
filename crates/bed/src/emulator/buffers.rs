//! Buffers for the packets under way. They grow in number and size as needed and are used again for ever, so
//! that in steady state nothing is allocated.

/// Room for a packet of an ordinary MTU; two of them make a page.
const USUAL_BYTES: usize = 2048;
/// Buffers that are there, and have been touched, from the start.
const AT_START: usize = 1024;

/// All buffers.
pub(crate) struct Buffers {
    slots: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        let mut buffers = Self { slots: Vec::new(), free: Vec::new() };
        for _ in 0..AT_START {
            let index = buffers.add();
            buffers.free.push(index);
        }
        buffers
    }

    fn add(&mut self) -> u32 {
        let mut slot = vec![0; USUAL_BYTES].into_boxed_slice();
        // Zeroed memory is not there before it is written to.
        slot.fill(0xff);
        self.slots.push(slot);
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets under way")
    }

    /// A buffer of at least [`USUAL_BYTES`], the one that was given back last if there is one.
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.add())
    }

    /// Gives a buffer back.
    pub(crate) fn give_back(&mut self, index: u32) {
        self.free.push(index);
    }

    /// The whole buffer.
    pub(crate) fn get(&self, index: u32) -> &[u8] {
        &self.slots[index as usize]
    }

    /// The whole buffer.
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut [u8] {
        &mut self.slots[index as usize]
    }

    /// Appends to a full buffer what did not fit into it.
    pub(crate) fn extend(&mut self, index: u32, rest: &[u8]) {
        let slot = &mut self.slots[index as usize];
        *slot = [&slot[..], rest].concat().into_boxed_slice();
    }

    /// Buffers that have been taken and not given back.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_grow_in_number_and_size() {
        let mut buffers = Buffers::new();
        let taken: Vec<_> = (0..=AT_START).map(|_| buffers.take()).collect();
        assert_eq!((buffers.in_use(), buffers.slots.len()), (AT_START + 1, AT_START + 1));
        buffers.get_mut(taken[0]).fill(7);
        buffers.extend(taken[0], &[8; 3]);
        assert_eq!(buffers.get(taken[0])[USUAL_BYTES - 1..], [7, 8, 8, 8]);
        buffers.give_back(taken[5]);
        assert_eq!(buffers.take(), taken[5]);
    }
}
