//! Which bytes the numbers of segments stand for.

use crate::packet::unwrap;

/// The segments that one sender has cut so far, as runs of equal length: most have the same.
#[derive(Default)]
pub(super) struct Numbers {
    runs: Vec<Run>,
    /// Number of the next segment.
    next: u64,
    /// Bytes of all segments so far.
    end: u64,
}

/// Segments of the same length, one behind the other.
struct Run {
    first: u64,
    /// Bytes before them.
    begin: u64,
    len: u16,
}

impl Numbers {
    /// Those of a sender whose first segment has the number `next`.
    pub(super) fn beginning_at(next: u64) -> Self {
        Self { next, ..Self::default() }
    }

    /// The segment that has not left yet.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// A segment of `len` bytes leaves; nothing happens if it has left before. Segments leave for the first time in
    /// the order of their numbers, of which `number` is the lower half.
    pub(super) fn note(&mut self, number: u32, len: u16) {
        if unwrap(number, self.next) != self.next {
            return;
        }
        if self.runs.last().is_none_or(|run| run.len != len) {
            self.runs.push(Run { first: self.next, begin: self.end, len });
        }
        self.next += 1;
        self.end += u64::from(len);
    }

    /// Bytes before the segment whose number has this lower half; before one that has not left: all of them.
    pub(super) fn bytes_before(&self, number: u32) -> u64 {
        let number = unwrap(number, self.next);
        if number >= self.next {
            return self.end;
        }
        let run = &self.runs[self.runs.partition_point(|run| run.first <= number) - 1];
        run.begin + (number - run.first) * u64::from(run.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_one_another_without_gap_or_overlap() {
        let lens = [1448, 1448, 100, 1448, 7, 7];
        let mut numbers = Numbers::default();
        let mut expected = vec![0];
        for (number, len) in lens.into_iter().enumerate() {
            numbers.note(number as u32, len);
            numbers.note(0, 1448);
            expected.push(expected[number] + u64::from(len));
        }
        let begins: Vec<u64> = (0..=6).map(|number| numbers.bytes_before(number)).collect();
        assert_eq!(begins, expected);
        assert_eq!(numbers.runs.len(), 4);
        assert_eq!(numbers.bytes_before(9), expected[6], "not cut yet");
    }

    #[test]
    fn numbers_go_on_beyond_their_lower_half() {
        let near_wrap = (1 << 32) - 2;
        let mut numbers = Numbers { next: near_wrap, end: 1000 * near_wrap, ..Numbers::default() };
        for number in [u32::MAX - 1, u32::MAX, 0, 1] {
            numbers.note(number, 1000);
        }
        assert_eq!(numbers.bytes_before(1), 1000 * ((1 << 32) + 1));
    }
}
