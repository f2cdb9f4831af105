//! What has been asked and not answered on a connection, and how long the answers can be.

use std::{collections::VecDeque, ops::Range, time::Instant};

use crate::wire::{HEAD_BYTES, Place};

/// What waits for an answer.
pub(super) enum Unanswered {
    Offer { file: u32, grains: u64 },
    Chunk { place: Place, grains: Range<u64>, written: Instant },
    Finish { file: u32, grains: u64 },
}

impl Unanswered {
    pub(super) fn file(&self) -> u32 {
        match self {
            Self::Offer { file, .. } | Self::Finish { file, .. } => *file,
            Self::Chunk { place, .. } => place.file,
        }
    }

    pub(super) fn is_chunk(&self) -> bool {
        matches!(self, Self::Chunk { .. })
    }

    /// How long the answer can be, in bytes; an explanation why not apart, of which there are few.
    fn answer_bytes(&self) -> usize {
        match self {
            Self::Offer { grains, .. } | Self::Finish { grains, .. } => {
                HEAD_BYTES + 5 + usize::try_from(grains.div_ceil(8)).unwrap_or(usize::MAX)
            }
            Self::Chunk { .. } => HEAD_BYTES + 16,
        }
    }

    fn data_bytes(&self) -> u64 {
        match self {
            Self::Chunk { place, .. } => u64::from(place.bytes),
            Self::Offer { .. } | Self::Finish { .. } => 0,
        }
    }
}

/// All that waits for an answer, the oldest first.
#[derive(Default)]
pub(super) struct Answers {
    waiting: VecDeque<Unanswered>,
    answer_bytes: usize,
    data_bytes: u64,
}

impl Answers {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes that all answers together may have.
    pub(super) fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// Bytes of chunks that have not been answered.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    pub(super) fn has(&self, is_it: impl Fn(&Unanswered) -> bool) -> bool {
        self.waiting.iter().any(is_it)
    }

    /// One more has been asked.
    pub(super) fn push(&mut self, item: Unanswered) {
        self.answer_bytes += item.answer_bytes();
        self.data_bytes += item.data_bytes();
        self.waiting.push_back(item);
    }

    /// Takes out what has been answered, the oldest of that kind.
    pub(super) fn take(&mut self, is_it: impl Fn(&Unanswered) -> bool) -> Option<Unanswered> {
        let item = self.waiting.iter().position(is_it).and_then(|at| self.waiting.remove(at))?;
        self.answer_bytes -= item.answer_bytes();
        self.data_bytes -= item.data_bytes();
        Some(item)
    }

    /// No answers come any more about a file, of these kinds.
    pub(super) fn forget(&mut self, file: u32, which: impl Fn(&Unanswered) -> bool) {
        while self.take(|item| item.file() == file && which(item)).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn what_is_answered_or_forgotten_counts_no_more() {
        let chunk = |file, bytes| Unanswered::Chunk {
            place: Place { file, offset: 0, bytes },
            grains: 0..1,
            written: clock::now(),
        };
        let mut answers = Answers::default();
        answers.push(Unanswered::Offer { file: 1, grains: 17 });
        answers.push(chunk(1, 100));
        answers.push(chunk(2, 50));
        answers.push(Unanswered::Finish { file: 1, grains: 17 });
        assert_eq!((answers.answer_bytes(), answers.data_bytes()), (2 * (8 + 5 + 3) + 2 * 24, 150));
        let oldest = answers.take(|item| item.file() == 1).expect("there are three");
        assert!(matches!(oldest, Unanswered::Offer { .. }));
        answers.forget(1, Unanswered::is_chunk);
        assert!(answers.has(|item| item.file() == 1) && answers.take(|item| item.file() == 3).is_none());
        assert_eq!((answers.answer_bytes(), answers.data_bytes()), (16 + 24, 50));
        answers.forget(1, |_| true);
        answers.forget(2, |_| true);
        assert!(answers.is_empty());
        assert_eq!((answers.answer_bytes(), answers.data_bytes()), (0, 0));
    }
}
