//! The window that the receiving side of a connection offers: constant, or growing with what the application
//! reads.
//!
//! The growing one is dynamic right-sizing (Fisk, Feng 2001) as Linux 6.18 does it: the constants and the two rules
//! are what was measured on the wire (`docs/validation.md`). Windows here count payload; the kernel's buffers count
//! memory too, 158/256 of which it takes for payload at first. Left out: that ratio's later changes and memory
//! pressure. Applications read at once; a relay does not ([`Window::hold`]).

use anabranch_link::Nanos;
use anabranch_scenario::model::Transport;

/// The largest window that a SYN-ACK can offer (RFC 7323 section 2.2: it is never scaled).
const UNSCALED_MAX: u64 = 65_535;
/// What Linux lets the window grow to at first: the second value of `tcp_rmem`, 131072 bytes, times 158/256.
const FIRST_LIMIT: u64 = 131_072 * 158 / 256;
/// Segments of an initial window (RFC 6928): the round trip that the first one is measured against.
const FIRST_ROUND: u64 = 10;

/// The window one side offers.
pub(crate) struct Window {
    /// In bytes beyond the acknowledgement; `None`: unlimited.
    pub(crate) offered: Option<u32>,
    /// Bytes of the buffer that hold what has not been read.
    unread: u32,
    tuning: Option<Box<Tuning>>,
}

/// State of a growing window, in bytes.
struct Tuning {
    segment: u32,
    /// What the window may grow to now.
    limit: u64,
    /// The receive buffer.
    max: u64,
    /// The most that was read in one round trip so far.
    best_round: u64,
    /// When this round trip began and what had been read then; `None` before the first segment.
    round: Option<(Nanos, u64)>,
}

impl Window {
    pub(crate) fn new(transport: &Transport) -> Self {
        let small = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        if !transport.receive_buffer_tuning {
            return Self { offered: transport.receive_buffer.map(small), unread: 0, tuning: None };
        }
        let segment = u64::from(transport.segment_bytes);
        let max = transport.receive_buffer.unwrap_or(u64::MAX);
        let first = (UNSCALED_MAX / segment * segment).min(max);
        let tuning = Tuning {
            segment: transport.segment_bytes,
            limit: FIRST_LIMIT.max(first).min(max),
            max,
            best_round: FIRST_ROUND * segment,
            round: None,
        };
        Self { offered: Some(small(first)), unread: 0, tuning: Some(Box::new(tuning)) }
    }

    /// A segment that was not here before has come: the window grows by two segments, up to its limit. Says
    /// whether it has grown.
    pub(crate) fn grow(&mut self) -> bool {
        let (Some(tuning), Some(offered)) = (&self.tuning, &mut self.offered) else { return false };
        let before = *offered;
        let limit = u32::try_from(tuning.limit).unwrap_or(u32::MAX).saturating_sub(self.unread);
        *offered = before.saturating_add(2 * tuning.segment).min(limit).max(before);
        *offered > before
    }

    /// So many bytes have been delivered and not been read; returns the window before and after. Its edge does not move
    /// back: what is delivered goes off the window in any case.
    pub(crate) fn hold(&mut self, unread: u64) -> (u64, u64) {
        let Some(offered) = &mut self.offered else { return (u64::MAX, u64::MAX) };
        let before = *offered;
        let room = before + self.unread;
        let unread = u32::try_from(unread).unwrap_or(u32::MAX).min(room);
        *offered = room - unread;
        self.unread = unread;
        (u64::from(before), u64::from(*offered))
    }

    /// Bytes that have been delivered and not been read.
    pub(crate) fn unread(&self) -> u64 {
        u64::from(self.unread)
    }

    /// Whether a round trip of `rtt` is over at `now`.
    pub(crate) fn round_is_over(&self, now: Nanos, rtt: Nanos) -> bool {
        self.tuning.as_ref().is_some_and(|tuning| tuning.round.is_none_or(|(began, _)| now - began >= rtt))
    }

    /// A round trip is over, and the application has read `read_bytes` since the connection began. A round better
    /// than all before raises the limit to twice what was read in it, and by four times the part by which it was
    /// better: a sender that doubles its window, which will read twice as much in the next round, finds three times
    /// that.
    pub(crate) fn end_round(&mut self, now: Nanos, read_bytes: u64) {
        let Some(tuning) = &mut self.tuning else { return };
        let Some((_, before)) = tuning.round.replace((now, read_bytes)) else { return };
        let read = read_bytes - before;
        if read > tuning.best_round {
            let better =
                u128::from(read) * u128::from(read - tuning.best_round) / u128::from(tuning.best_round);
            let better = u64::try_from(better).unwrap_or(u64::MAX);
            let wanted = read.saturating_mul(2).saturating_add(better.saturating_mul(4));
            tuning.limit = tuning.limit.max(wanted.min(tuning.max));
            tuning.best_round = read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::transport;

    const MSS: u64 = 1448;

    fn tuned(receive_buffer: Option<u64>) -> Window {
        Window::new(&Transport {
            segment_bytes: MSS as u32,
            receive_buffer,
            receive_buffer_tuning: true,
            ..transport()
        })
    }

    fn grown(window: &mut Window) -> u64 {
        while window.grow() {}
        u64::from(window.offered.expect("a tuned window is a limit"))
    }

    #[test]
    fn without_tuning_all_of_the_buffer_is_offered_at_once() {
        for receive_buffer in [None, Some(50_000)] {
            let mut window = Window::new(&Transport { receive_buffer, ..transport() });
            assert!(!window.grow());
            assert_eq!(window.offered.map(u64::from), receive_buffer);
        }
    }

    #[test]
    fn the_first_window_is_whole_segments_of_64_kib_and_grows_by_two_per_segment() {
        let mut window = tuned(None);
        assert_eq!(window.offered, Some(65_160), "as offered in the SYN-ACK of Linux 6.18");
        assert!(window.grow());
        assert_eq!(window.offered, Some(65_160 + 2 * MSS as u32));
        assert_eq!(grown(&mut window), 80_896, "where Linux 6.18 stops at first");
    }

    #[test]
    fn a_better_round_allows_twice_what_it_read_and_four_times_the_part_by_which_it_was_better() {
        for (read, limit) in [(15, 60), (20, 120), (40, 560)] {
            let mut window = tuned(None);
            window.end_round(0, 0);
            window.end_round(1, read * MSS);
            assert_eq!(grown(&mut window), limit * MSS, "{read} segments, ten being the initial window");
        }
    }

    #[test]
    fn a_round_like_the_best_one_changes_nothing_and_the_buffer_is_the_end() {
        let mut window = tuned(Some(100_000));
        window.end_round(0, 0);
        window.end_round(1, 10 * MSS);
        assert_eq!(grown(&mut window), 80_896);
        window.end_round(2, 1 << 60);
        assert_eq!(grown(&mut window), 100_000);
    }

    #[test]
    fn a_small_buffer_bounds_the_first_window() {
        let mut window = tuned(Some(20_000));
        assert_eq!(window.offered, Some(20_000));
        assert_eq!(grown(&mut window), 20_000);
    }

    #[test]
    fn a_round_lasts_a_round_trip() {
        let mut window = tuned(None);
        assert!(window.round_is_over(5, 100), "the first segment begins the first round");
        window.end_round(5, MSS);
        assert!(!window.round_is_over(104, 100));
        assert!(window.round_is_over(105, 100));
    }
}
