//! Data-level reassembly.

use anabranch_link::Nanos;

use super::waits::Waits;

/// State of the receiving side of a connection. Numbers count data-level segments.
#[derive(Default)]
pub(crate) struct MetaReceiver {
    /// Next data-level segment expected.
    pub(crate) next: u64,
    /// Lengths plus one of held segments by number; 0 is none.
    held: Vec<u32>,
    held_count: u32,
    /// Bytes handed to the application.
    pub(crate) delivered_bytes: u64,
    /// Bytes held out of order now.
    pub(crate) held_bytes: u64,
    /// The most bytes ever held out of order.
    pub(crate) held_bytes_max: u64,
    /// Segments that had arrived before.
    pub(crate) duplicates: u64,
    /// For those that tell how long data waits.
    pub(crate) waits: Option<Box<Waits>>,
}

impl MetaReceiver {
    pub(crate) fn new(head_of_line: bool) -> Self {
        Self { waits: head_of_line.then(Box::default), ..Self::default() }
    }

    /// Takes a segment from a subflow.
    #[inline]
    pub(crate) fn accept(&mut self, number: u64, len: u16, now: Nanos) {
        if number == self.next {
            self.next += 1;
            self.delivered_bytes += u64::from(len);
            if self.held_count > 0 {
                self.release(now);
            }
        } else {
            self.accept_elsewhere(number, len, now);
        }
    }

    /// Takes a segment that is not the next one.
    #[inline(never)]
    fn accept_elsewhere(&mut self, number: u64, len: u16, now: Nanos) {
        if number < self.next || self.held_len(number).is_some() {
            self.duplicates += 1;
            return;
        }
        self.hold(number, len);
        if let Some(waits) = &mut self.waits {
            waits.begin(number, now);
        }
    }

    fn held_len(&self, number: u64) -> Option<u32> {
        if number - self.next >= self.held.len() as u64 {
            return None;
        }
        self.held[number as usize & (self.held.len() - 1)].checked_sub(1)
    }

    #[inline(never)]
    fn release(&mut self, now: Nanos) {
        while self.held_count > 0
            && let Some(len) = self.held_len(self.next)
        {
            let mask = self.held.len() - 1;
            self.held[self.next as usize & mask] = 0;
            if let Some(waits) = &mut self.waits {
                waits.end(self.next, u64::from(len), now);
            }
            self.held_count -= 1;
            self.held_bytes -= u64::from(len);
            self.delivered_bytes += u64::from(len);
            self.next += 1;
        }
    }

    fn hold(&mut self, number: u64, len: u16) {
        let span = number - self.next + 1;
        if span > self.held.len() as u64 {
            let mut larger = vec![0; (span as usize).next_power_of_two().max(8)];
            let mask = larger.len() - 1;
            for kept in self.next..self.next + self.held.len() as u64 {
                larger[kept as usize & mask] = self.held[kept as usize & (self.held.len() - 1)];
            }
            self.held = larger;
        }
        let mask = self.held.len() - 1;
        self.held[number as usize & mask] = u32::from(len) + 1;
        self.held_count += 1;
        self.held_bytes += u64::from(len);
        self.held_bytes_max = self.held_bytes_max.max(self.held_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::waits::Waited;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_segment_is_delivered_exactly_once(
            order in Just((0..60_u64).collect::<Vec<_>>()).prop_shuffle(),
            repeats in prop::collection::vec(0..60_u64, 0..30),
        ) {
            let mut receiver = MetaReceiver::default();
            let len = |number: u64| 100 + number as u16;
            for number in order.iter().chain(&repeats) {
                receiver.accept(*number, len(*number), 0);
            }
            prop_assert_eq!(receiver.next, 60);
            prop_assert_eq!(receiver.delivered_bytes, (0..60).map(|n| u64::from(len(n))).sum::<u64>());
            prop_assert_eq!(receiver.duplicates, repeats.len() as u64);
            prop_assert_eq!((receiver.held_bytes, receiver.held_count), (0, 0));
        }
    }

    #[test]
    fn time_is_blocked_from_the_first_segment_held_to_the_last_one_let_go() {
        let mut receiver = MetaReceiver::new(true);
        let blocked =
            |receiver: &MetaReceiver, now| receiver.waits.as_ref().map(|waits| waits.until(now).blocked);
        receiver.accept(1, 100, 10);
        receiver.accept(2, 300, 20);
        receiver.accept(4, 500, 30);
        assert_eq!(blocked(&receiver, 35), Some(25));
        receiver.accept(0, 100, 40);
        assert_eq!(blocked(&receiver, 45), Some(35), "4 still waits");
        receiver.accept(3, 100, 50);
        receiver.accept(5, 100, 90);
        let expected =
            Waited { blocked: 40, bytes: 900, byte_time: 100 * 30 + 300 * 20 + 500 * 20, longest: 30 };
        assert_eq!(receiver.waits.as_ref().map(|waits| waits.until(100)), Some(expected));
        receiver.accept(7, 100, 100);
        assert_eq!(blocked(&receiver, 103), Some(43));
    }
}
