//! What belongs to which life of a subflow: one that is closed and opened again is a connection of its own in TCP, with
//! another port and other initial sequence numbers, while the simulator's numbers go on (`world/lifecycle.rs`).

use super::numbers::Numbers;
use crate::packet::unwrap;

/// The segments that one sender has cut in all lives of its subflow.
pub(super) struct Lives {
    /// In their order, from the first on; there is always one.
    lives: Vec<Life>,
}

/// From a SYN to the next.
struct Life {
    first: u64,
    numbers: Numbers,
}

impl Default for Lives {
    fn default() -> Self {
        Self { lives: vec![Life { first: 0, numbers: Numbers::default() }] }
    }
}

impl Lives {
    fn last(&self) -> &Life {
        self.lives.last().expect("there is always one")
    }

    fn unwrap(&self, number: u32) -> u64 {
        unwrap(number, self.last().numbers.next())
    }

    /// A SYN leaves before the segment `number`; nothing happens if it has left before.
    pub(super) fn begin(&mut self, number: u32) {
        let first = self.unwrap(number);
        if first > self.last().first {
            self.lives.push(Life { first, numbers: Numbers::beginning_at(first) });
        }
    }

    /// A segment leaves; see [`Numbers::note`].
    pub(super) fn note(&mut self, number: u32, len: u16) {
        self.lives.last_mut().expect("there is always one").numbers.note(number, len);
    }

    /// The life that a number belongs to, counted from 0. The numbers between two lives, which no segment has, are of
    /// the earlier one: there they stand behind all data.
    pub(super) fn of(&self, number: u32) -> usize {
        let number = self.unwrap(number);
        self.lives.partition_point(|life| life.first <= number).saturating_sub(1)
    }

    /// Bytes before a segment in its own life.
    pub(super) fn bytes_before(&self, number: u32) -> u64 {
        self.lives[self.of(number)].numbers.bytes_before(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_start_anew_with_a_syn_and_old_numbers_keep_theirs() {
        let mut lives = Lives::default();
        lives.begin(0);
        for number in 0..3 {
            lives.note(number, 1000);
        }
        // The number 3 is left out, as a SYN takes one.
        lives.begin(4);
        lives.begin(4);
        lives.note(4, 500);
        let of = |number| (lives.of(number), lives.bytes_before(number));
        assert_eq!([2, 3, 4, 5].map(of), [(0, 2000), (0, 3000), (1, 0), (1, 500)]);
    }

    #[test]
    fn a_life_without_data_has_no_bytes() {
        let mut lives = Lives::default();
        lives.begin(1);
        lives.begin(2);
        assert_eq!(
            [0, 1, 2].map(|number| (lives.of(number), lives.bytes_before(number))),
            [(0, 0), (1, 0), (2, 0)]
        );
    }
}
