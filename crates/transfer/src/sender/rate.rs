//! How fast a path is, and how large pieces go with that.

use std::time::{Duration, Instant};

/// A chunk takes about so long: short enough that paths end together, long enough that claims are few.
const CHUNK_TIME: Duration = Duration::from_millis(250);
/// So much is under way at most, counted in time beyond the fastest answer. Two chunks: one on its way, one behind it. More would lie in
/// the queues of a slow path, and hold the end of a file.
const WINDOW_TIME: Duration = Duration::from_millis(500);
/// The fastest answer counts as this at most. Twice the round-trip time of a geostationary link and more.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(1500);
/// Before a rate is known so many bytes, and as much again as has arrived.
const WINDOW_START_BYTES: u64 = 256 << 10;
/// And so many least.
const WINDOW_BYTES_MIN: u64 = 64 << 10;
/// So much lies in the socket unsent at most, counted in time: what a slow path has claimed too early holds the end of a file.
const UNSENT_TIME: Duration = Duration::from_millis(50);
/// And in bytes, least, and before a rate is known.
const UNSENT_BYTES: (u32, u32) = (32 << 10, 128 << 10);
/// A rate is reckoned over so long at least.
const PERIOD: Duration = Duration::from_millis(200);
/// A path is fast that carries so much in a period: from 320 Mbit/s on.
const FAST_BYTES: u64 = 8 << 20;
/// Largest chunk that is made, in bytes: its answer tells the sender, too, that there is room again, which matters at gigabits per second.
const CHUNK_BYTES_MAX: u64 = 256 << 10;

/// What arrives, per time: the larger of the last period's rate and half of what it was before, so that a pause does not look like a slow
/// path for long, and a path that has become slow soon does.
#[derive(Debug)]
pub(super) struct Rate {
    since: Instant,
    bytes: u64,
    bytes_per_second: Option<u64>,
    /// From the end of writing a chunk to its answer.
    fastest_answer: Duration,
}

impl Rate {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, bytes: 0, bytes_per_second: None, fastest_answer: ANSWER_TIME_MAX }
    }

    /// So much has arrived, which was written at `written`.
    pub(super) fn arrived(&mut self, bytes: u64, written: Instant, now: Instant) {
        self.bytes += bytes;
        self.fastest_answer = self.fastest_answer.min(now.duration_since(written));
        let period = now.duration_since(self.since);
        if period >= PERIOD {
            let rate = u128::from(self.bytes) * 1_000_000_000 / period.as_nanos().max(1);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            self.bytes_per_second = Some(self.bytes_per_second.map_or(rate, |before| rate.max(before / 2)));
            self.since = now;
            self.bytes = 0;
        }
    }

    fn in_time(&self, time: Duration) -> Option<u64> {
        let bytes = u128::from(self.bytes_per_second?) * time.as_millis() / 1000;
        Some(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Whether reading and sending take long enough, compared with the path, to be done at once.
    pub(super) fn is_fast(&self) -> bool {
        let seen = self.bytes_per_second.map_or(self.bytes, |bytes| bytes * PERIOD.as_millis() as u64 / 1000);
        seen >= FAST_BYTES
    }

    /// Grains of a chunk.
    pub(super) fn chunk_grains(&self, grain_bytes: u32) -> u64 {
        // Before a rate is known, little of what the path is seen to carry.
        let bytes = self.in_time(CHUNK_TIME).unwrap_or(self.bytes / 8).min(CHUNK_BYTES_MAX);
        (bytes / u64::from(grain_bytes)).max(1)
    }

    /// Bytes that may lie in the socket without having been sent.
    pub(super) fn unsent_bytes(&self) -> u32 {
        let (least, start) = UNSENT_BYTES;
        let bytes = self.in_time(UNSENT_TIME).unwrap_or(u64::from(start) + self.bytes);
        u32::try_from(bytes).unwrap_or(u32::MAX).max(least)
    }

    /// Bytes that may be under way.
    pub(super) fn window_bytes(&self) -> u64 {
        self.in_time(self.fastest_answer + WINDOW_TIME)
            .map_or(WINDOW_START_BYTES + self.bytes, |bytes| bytes.max(WINDOW_BYTES_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_chunk_is_a_quarter_of_a_second_and_the_window_two_beyond_the_fastest_answer() {
        let start = clock::now();
        let mut rate = Rate::new(start);
        assert_eq!((rate.chunk_grains(16 << 10), rate.window_bytes()), (1, 256 << 10));
        rate.arrived(256 << 10, start + Duration::from_millis(1), start + Duration::from_millis(1));
        assert_eq!(
            (rate.chunk_grains(16 << 10), rate.window_bytes()),
            (2, 512 << 10),
            "no rate yet, but no slow path"
        );
        let mut rate = Rate::new(start);
        rate.arrived(1 << 20, start + Duration::from_secs(1), start + Duration::from_secs(1));
        assert_eq!((rate.chunk_grains(16 << 10), rate.window_bytes()), (16, 1 << 19));
        let mut far = Rate::new(start);
        far.arrived(1 << 20, start, start + Duration::from_secs(1));
        assert_eq!(far.window_bytes(), 3 << 19, "its answers take a second");
        far.arrived(1 << 10, start, start + Duration::from_secs(5));
        assert_eq!(far.window_bytes(), 3 << 18, "half the rate, as far");
        assert_eq!(rate.chunk_grains(64 << 20), 1, "a grain at least");
        rate.arrived(1 << 30, start + Duration::from_secs(2), start + Duration::from_secs(2));
        assert_eq!(rate.chunk_grains(16 << 10), 16, "256 KiB at most");
    }

    #[test]
    fn a_socket_holds_a_twentieth_of_a_second_unsent_and_32_kib_at_least() {
        let start = clock::now();
        let mut rate = Rate::new(start);
        assert_eq!(rate.unsent_bytes(), 128 << 10, "no rate yet");
        rate.arrived(1 << 20, start + Duration::from_secs(1), start + Duration::from_secs(1));
        assert_eq!(rate.unsent_bytes(), (1 << 20) / 20);
        for second in 2..9 {
            rate.arrived(1 << 10, start + Duration::from_secs(second), start + Duration::from_secs(second));
        }
        assert_eq!(rate.unsent_bytes(), 32 << 10);
    }

    #[test]
    fn a_path_that_becomes_slow_is_known_as_that_after_a_few_periods() {
        let start = clock::now();
        let mut rate = Rate::new(start);
        rate.arrived(1 << 20, start + Duration::from_secs(1), start + Duration::from_secs(1));
        for second in 2..6 {
            rate.arrived(1 << 14, start + Duration::from_secs(second), start + Duration::from_secs(second));
        }
        assert_eq!(rate.bytes_per_second, Some(1 << 16));
    }
}
