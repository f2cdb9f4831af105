//! Tail loss probes (RFC 8985 section 7): when nothing comes back, one packet asks for an acknowledgement before the
//! retransmission timeout would expire.

use anabranch_link::Nanos;

use super::ack::{Absorbed, Ack};

/// What the receiver of a lone segment may wait with its acknowledgement (TLP.max_ack_delay): the timer of BSD and the
/// upper bound of Linux's.
const MAX_ACK_DELAY: Nanos = 200_000_000;
/// PTO before the first sample of the round trip (section 7.2).
const INITIAL: Nanos = 1_000_000_000;

/// A probe that has been sent and whose fate is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outstanding {
    /// What was the next segment to be cut when it had been sent (TLP.end_seq).
    end: u64,
    /// Whether it was a retransmission (TLP.is_retrans).
    again: bool,
}

/// State of the probes of one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    outstanding: Option<Outstanding>,
    /// A round trip has been measured since the last probe.
    measured: bool,
    /// When the last event was from which the probe's time counts; `None` once it is over.
    since: Option<Nanos>,
    /// An acknowledgement has proved that a probe filled the place of a lost segment.
    repaired: bool,
}

impl Probe {
    /// New data has been sent or acknowledged: the time begins again (section 7.2).
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.since = Some(now);
    }

    /// When the probe is due (TLP_calc_PTO, section 7.2), apart from the retransmission timeout, which it must not
    /// outlast.
    pub(super) fn due(&self, srtt8_us: u32, outstanding: u64) -> Option<Nanos> {
        let timeout = match srtt8_us {
            0 => INITIAL,
            _ => 2 * Nanos::from(srtt8_us) * 1000 / 8 + if outstanding == 1 { MAX_ACK_DELAY } else { 0 },
        };
        self.since.map(|since| since + timeout)
    }

    /// The time is over: whether a probe may be sent (section 7.3). One at a time, and not without a round trip
    /// since the last.
    pub(crate) fn expire(&mut self) -> bool {
        self.since = None;
        self.outstanding.is_none() && self.measured
    }

    /// A probe has been sent; `end` is the next segment to be cut now.
    pub(crate) fn sent(&mut self, end: u64, again: bool) {
        self.outstanding = Some(Outstanding { end, again });
        self.measured = false;
        self.since = None;
    }

    /// What ends with the probe under way, if it is a retransmission.
    pub(super) fn end(&self) -> Option<u64> {
        self.outstanding.filter(|probe| probe.again).map(|probe| probe.end)
    }

    /// An acknowledgement has come (section 7.4.2).
    pub(super) fn absorb(&mut self, ack: &Ack<'_>, absorbed: &Absorbed) {
        self.measured |= absorbed.acked > 0;
        let Some(Outstanding { end, again }) = self.outstanding.filter(|probe| ack.number >= probe.end)
        else {
            return;
        };
        let duplicate = absorbed.acked == 0 && ack.pure && ack.sacks.is_empty();
        let arrived_twice = ack.duplicated().is_some_and(|(_, to)| to == end) || duplicate;
        if !again || arrived_twice {
            self.outstanding = None;
        } else if ack.number > end {
            self.outstanding = None;
            self.repaired = true;
        }
    }

    /// Whether a probe has repaired a loss since this was last asked.
    pub(super) fn take_repaired(&mut self) -> bool {
        std::mem::take(&mut self.repaired)
    }

    /// Recovery begins, which answers for all that has been lost.
    pub(super) fn forget(&mut self) {
        self.outstanding = None;
        self.repaired = false;
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn ack(number: u64, sacks: &[(u64, u64)]) -> Ack<'_> {
        Ack { number, sacks, pure: true, echo_us: 0, now_us: 0 }
    }

    fn acked(acked: u32) -> Absorbed {
        Absorbed { acked, ..Absorbed::default() }
    }

    /// The tenth segment has been sent again as a probe.
    fn again() -> Probe {
        let mut probe = Probe { measured: true, ..Probe::default() };
        probe.sent(10, true);
        probe
    }

    #[test]
    fn rfc_8985_7_2_two_round_trips_and_the_delay_of_an_acknowledgement_for_a_lone_segment() {
        let mut probe = Probe::default();
        assert_eq!(probe.due(800_000, 2), None);
        probe.restart(5 * MS);
        assert_eq!(probe.due(800_000, 2), Some(205 * MS));
        assert_eq!(probe.due(800_000, 1), Some(405 * MS));
        assert_eq!(probe.due(0, 1), Some(1005 * MS), "no round trip has been measured");
    }

    #[test]
    fn rfc_8985_7_3_one_probe_at_a_time_and_a_new_round_trip_between_two() {
        let mut probe = Probe::default();
        assert!(!probe.expire(), "nothing has been measured");
        probe.absorb(&ack(3, &[]), &acked(3));
        assert!(probe.expire());
        probe.sent(10, false);
        probe.absorb(&ack(5, &[]), &acked(2));
        assert!(!probe.expire(), "the probe is under way");
        probe.absorb(&ack(10, &[]), &acked(5));
        assert!(probe.expire());
    }

    #[test]
    fn rfc_8985_7_4_2_an_acknowledgement_of_more_than_the_probe_proves_a_repaired_loss() {
        let mut probe = again();
        probe.absorb(&ack(10, &[]), &acked(1));
        assert!(!probe.take_repaired(), "the original may have arrived");
        probe.absorb(&ack(11, &[]), &acked(1));
        assert!(probe.take_repaired());
        assert!(!probe.take_repaired());
    }

    #[test]
    fn rfc_8985_7_4_2_a_probe_that_arrived_twice_proves_no_loss() {
        for sacks in [&[(9, 10)][..], &[]] {
            let mut probe = again();
            probe.absorb(&ack(10, &[]), &acked(1));
            probe.absorb(&ack(10, sacks), &acked(0));
            probe.absorb(&ack(11, &[]), &acked(1));
            assert!(!probe.take_repaired(), "{sacks:?}");
        }
    }

    #[test]
    fn rfc_8985_7_4_2_a_probe_of_new_data_proves_no_loss() {
        let mut probe = Probe { measured: true, ..Probe::default() };
        probe.sent(10, false);
        probe.absorb(&ack(12, &[]), &acked(3));
        assert!(!probe.take_repaired());
        assert!(probe.expire());
    }
}
