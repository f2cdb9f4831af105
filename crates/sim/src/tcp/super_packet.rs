//! Which segments carry PSH because they end a super-packet.
//!
//! Linux hands segments that may leave together to the device as one (segmentation offload) and sets PSH on the last
//! of two or more; a receiver whose application waits acknowledges such a segment at once. A super-packet holds 1 ms
//! at the pacing rate, paced or not, at least two segments and at most 64 KiB. Both were seen on the wire of Linux 6.18
//! (`docs/validation.md`). Segments leave one by one here: only the mark is modelled.

use anabranch_link::Nanos;

use super::{pacer, sender::Sender};

/// The super-packet that a sender is filling.
#[derive(Debug, Default)]
pub(crate) struct SuperPacket {
    at: Nanos,
    segments: u64,
}

impl SuperPacket {
    /// A segment leaves; `more`: another may follow at once. Returns whether it carries the mark. `segment` is the
    /// size of a full one.
    pub(crate) fn ends_with(&mut self, now: Nanos, more: bool, segment: u16, sender: &Sender) -> bool {
        if self.at != now {
            *self = Self { at: now, segments: 0 };
        }
        self.segments += 1;
        if more && self.segments < pacer::burst_segments(sender, segment) {
            return false;
        }
        let several = self.segments > 1;
        self.segments = 0;
        several
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::Transport;

    use super::*;
    use crate::testing::transport;

    /// Marks of `count` segments that may leave together, by a sender with this window and a round trip of 100 ms.
    fn marks(cwnd: u32, count: u64) -> Vec<bool> {
        let mut sender = Sender::new(&Transport { initial_window: cwnd, ..transport() });
        sender.ssthresh = 2;
        sender.rtt.sample(100_000);
        let mut filling = SuperPacket::default();
        (1..=count).map(|number| filling.ends_with(7, number < count, 1448, &sender)).collect()
    }

    #[test]
    fn a_segment_that_leaves_alone_is_not_marked() {
        assert_eq!(marks(10, 1), [false]);
    }

    #[test]
    fn the_last_of_each_pair_is_marked_at_low_rates() {
        assert_eq!(marks(10, 2), [false, true]);
        assert_eq!(
            marks(10, 5),
            [false, true, false, true, false],
            "1.2 x 10 segments in 100 ms: 0.12 in 1 ms"
        );
    }

    #[test]
    fn a_super_packet_holds_a_millisecond_of_the_pacing_rate() {
        // 1.2 x 500 segments in 100 ms.
        let marks = marks(500, 12);
        let marked: Vec<usize> = (0..12).filter(|&at| marks[at]).collect();
        assert_eq!(marked, [5, 11]);
    }

    #[test]
    fn what_leaves_later_is_another_super_packet() {
        let mut sender = Sender::new(&transport());
        sender.rtt.sample(100_000);
        let mut filling = SuperPacket::default();
        assert!(!filling.ends_with(1, true, 1448, &sender));
        assert!(!filling.ends_with(2, false, 1448, &sender), "it is alone");
    }
}
