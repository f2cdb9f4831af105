//! The next event of every link: a tournament tree over one key per link.
//!
//! A link owns the FIFO of its packets, so only the time of its next event takes part. Keys are ordered by
//! time, then by link: the order of simultaneous events is part of the promise that a seed gives the same
//! bytes. The tree has four children per node and is rebuilt along one path per change, without branches:
//! the smallest of a key's three siblings does not depend on the key, so a level costs one comparison in
//! sequence.

use anabranch_link::Nanos;

/// A tournament over links.
pub(crate) struct Heads<K> {
    /// Siblings together. The node at place `p` (four times its group plus its index in it) has its parent at
    /// `p / 4 + 2`; the children of the root are group 1, and the root itself is `winner`.
    groups: Vec<[K; 4]>,
    /// Place of the first leaf.
    leaves: usize,
    winner: K,
    id_bits: u32,
    /// Events after this do not happen.
    end: Nanos,
}

/// A time and a link in one ordered word.
pub(crate) trait Key: Copy + Ord {
    /// Bits for the time beside `id_bits` for the link.
    fn time_bits(id_bits: u32) -> u32;
    /// Later than any event.
    const LAST: Self;
    /// The key of an event.
    fn pack(time: Nanos, id: usize, id_bits: u32) -> Self;
    /// The time; that of [`Key::LAST`] is after every time that fits.
    fn time(self, id_bits: u32) -> Nanos;
    /// The link.
    fn id(self, id_bits: u32) -> usize;
}

/// 64 bits suffice for most scenarios: 1,000 links leave 208 days, a million links leave 4.8 hours.
impl Key for u64 {
    fn time_bits(id_bits: u32) -> u32 {
        63 - id_bits
    }
    const LAST: Self = Self::MAX;
    #[inline]
    fn pack(time: Nanos, id: usize, id_bits: u32) -> Self {
        time << id_bits | id as u64
    }
    #[inline]
    fn time(self, id_bits: u32) -> Nanos {
        self >> id_bits
    }
    #[inline]
    fn id(self, id_bits: u32) -> usize {
        (self & ((1 << id_bits) - 1)) as usize
    }
}

/// For scenarios that are longer or larger.
impl Key for u128 {
    fn time_bits(_: u32) -> u32 {
        64
    }
    const LAST: Self = Self::MAX;
    #[inline]
    fn pack(time: Nanos, id: usize, _: u32) -> Self {
        u128::from(time) << 64 | id as u128
    }
    #[inline]
    fn time(self, _: u32) -> Nanos {
        (self >> 64) as u64
    }
    #[inline]
    fn id(self, _: u32) -> usize {
        self as u64 as usize
    }
}

impl<K: Key> Heads<K> {
    /// A tree over `links` links without events, for a run that ends at `end`.
    pub(crate) fn new(links: usize, end: Nanos) -> Self {
        let mut width = 4;
        let mut leaves = 4;
        while width < links {
            leaves += width;
            width *= 4;
        }
        Self {
            groups: vec![[K::LAST; 4]; (leaves + width) / 4],
            leaves,
            winner: K::LAST,
            id_bits: id_bits(links),
            end,
        }
    }

    /// Whether keys of this width can hold every time up to `end` for that many links.
    pub(crate) fn fits(links: usize, end: Nanos) -> bool {
        let time_bits = K::time_bits(id_bits(links));
        time_bits >= 64 || end >> time_bits == 0
    }

    /// The next event as (time, link); the time is after the end of the run if there is none.
    #[inline]
    pub(crate) fn first(&self) -> (Nanos, usize) {
        (self.winner.time(self.id_bits), self.winner.id(self.id_bits))
    }

    /// Sets the time of a link's next event.
    #[inline(always)]
    pub(crate) fn set(&mut self, link: usize, time: Nanos) {
        let mut key = if time > self.end { K::LAST } else { K::pack(time, link, self.id_bits) };
        let mut place = self.leaves + link;
        while place > 3 {
            let own = place & 3;
            let group = &mut self.groups[place >> 2];
            group[own] = key;
            key = key.min(group[own ^ 1]).min(group[own ^ 2].min(group[own ^ 3]));
            place = (place >> 2) + 2;
        }
        self.winner = key;
    }
}

fn id_bits(links: usize) -> u32 {
    links.next_power_of_two().max(2).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_link::NEVER;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest_then_the_lowest(
            sets in prop::collection::vec((0_usize..37, prop_oneof![Just(NEVER), 0_u64..20]), 1..200)
        ) {
            let mut narrow = Heads::<u64>::new(37, 20);
            let mut wide = Heads::<u128>::new(37, 20);
            let mut plain = vec![NEVER; 37];
            for (link, time) in sets {
                narrow.set(link, time);
                wide.set(link, time);
                plain[link] = time;
                let (id, &earliest) = plain.iter().enumerate().min_by_key(|&(_, &t)| t).expect("not empty");
                if earliest == NEVER {
                    prop_assert!(narrow.first().0 > 20 && wide.first().0 > 20);
                } else {
                    prop_assert_eq!(narrow.first(), (earliest, id));
                    prop_assert_eq!(wide.first(), (earliest, id));
                }
            }
        }
    }

    #[test]
    fn a_million_links_for_five_hours_need_the_wide_key() {
        let hours = |h: u64| h * 3600 * 1_000_000_000;
        assert!(Heads::<u64>::fits(1000, hours(24)));
        assert!(Heads::<u64>::fits(1 << 20, hours(2)));
        assert!(!Heads::<u64>::fits(1 << 20, hours(5)));
        assert!(Heads::<u128>::fits(1 << 20, hours(5)));
    }
}
