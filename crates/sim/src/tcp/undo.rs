//! Undoing a recovery that was not needed: the delay had grown, or packets had changed places, and the originals arrive
//! after all. That is seen by timestamps (Eifel detection, RFC 3522) or when the receiver reports that everything
//! sent again has come twice (DSACK, RFC 2883, as RFC 3708 uses it); the response restores window and ssthresh (RFC
//! 4015).
//!
//! Where we differ: congestion control says to which window to return (RFC 4015 leaves it a burst of an initial window);
//! the retransmission timeout is not adapted (RFC 4015 section 3.2, optional), for the samples of the late originals
//! raise it. F-RTO (RFC 5682) is left out: timestamps are always on here and decide at the first acknowledgement,
//! F-RTO at the second.

use anabranch_cc::CaState;

use super::{
    ack::{Absorbed, Ack},
    sack,
    segments::{LOST, RETRANSMITTED},
    sender::{Method, Sender},
};

/// What is remembered of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// Whether the recovery that began last, fast or after a timeout, may still turn out to be spurious.
    open: bool,
    /// Whether timestamps may still prove it.
    by_timestamp: bool,
    prior_ssthresh: u32,
    /// When it sent its first retransmission (RFC 3522's RetransmitTS).
    first_again_us: Option<u32>,
    /// The oldest unacknowledged segment when it began.
    from: u64,
    /// Its retransmissions that the receiver has not reported as come twice.
    unreported: u32,
    /// It has proved spurious.
    proved: bool,
}

impl Undo {
    /// A recovery begins; `ssthresh` is still that of before.
    pub(super) fn begin(&mut self, ssthresh: u32, una: u64) {
        *self =
            Self { open: true, by_timestamp: true, prior_ssthresh: ssthresh, from: una, ..Self::default() };
    }

    /// A segment is sent again.
    pub(super) fn sent_again(&mut self, now_us: u32) {
        self.first_again_us.get_or_insert(now_us);
        self.unreported += 1;
    }

    /// The window has been reduced for another reason.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    fn absorb(&mut self, ack: &Ack<'_>, absorbed: &Absorbed, recovering: bool, probe_end: Option<u64>) {
        let Some(first_again_us) = self.first_again_us.filter(|_| self.open) else { return };
        if absorbed.acked > 0 && recovering {
            // An original fills the gap, or a retransmission does (RFC 3522 section 3.2, step 5).
            let earlier = (ack.echo_us.wrapping_sub(first_again_us) as i32) < 0;
            self.by_timestamp &= earlier;
            self.proved = self.by_timestamp || self.unreported == 0;
        }
        if let Some((from, to)) = ack.duplicated()
            && from >= self.from
            && Some(to) != probe_end
            && self.unreported > 0
        {
            self.unreported = self.unreported.saturating_sub((to - from) as u32);
            self.proved |= self.unreported == 0;
        }
    }
}

impl Sender {
    #[inline]
    fn undo_state(&mut self) -> Option<&mut Undo> {
        match &mut self.method {
            Method::NewReno(_) => None,
            Method::Sack(board) => board.undo.as_deref_mut(),
            Method::Rack(rack) => rack.board.undo.as_deref_mut(),
        }
    }

    /// A reduction of the window begins that may have to be undone.
    pub(super) fn remember_reduction(&mut self) {
        let (ssthresh, una) = (self.ssthresh, self.una);
        if let Some(undo) = self.undo_state() {
            undo.begin(ssthresh, una);
        }
    }

    /// A reduction of the window begins that cannot be undone.
    pub(super) fn forget_reduction(&mut self) {
        if let Some(undo) = self.undo_state() {
            undo.close();
        }
    }

    /// A segment is sent again, for the sake of [`Undo`].
    pub(super) fn note_again(&mut self, now_us: u32) {
        if let Some(undo) = self.undo_state() {
            undo.sent_again(now_us);
        }
    }

    /// Looks at an acknowledgement for what proves a recovery spurious.
    #[inline]
    pub(super) fn look_for_spurious(&mut self, ack: &Ack<'_>, absorbed: &Absorbed) {
        if self.undo_state().is_some() {
            self.weigh(ack, absorbed);
        }
    }

    #[inline(never)]
    fn weigh(&mut self, ack: &Ack<'_>, absorbed: &Absorbed) {
        let recovering = matches!(self.state, CaState::Recovery | CaState::Loss);
        let probe_end = match &self.method {
            Method::Rack(rack) => rack.probe.end(),
            Method::NewReno(_) | Method::Sack(_) => None,
        };
        if let Some(undo) = self.undo_state() {
            undo.absorb(ack, absorbed, recovering, probe_end);
        }
    }

    /// Whether the last recovery has proved spurious and is to be undone now. It is not while a retransmission is
    /// under way: that one may be needed.
    #[inline]
    pub(super) fn is_to_be_undone(&mut self) -> bool {
        if !self.undo_state().is_some_and(|undo| undo.open && undo.proved) {
            return false;
        }
        (self.una..self.next).all(|number| self.segments.get(number).flags & RETRANSMITTED == 0)
    }

    /// Undoes the last recovery: congestion control has named the window. What is taken for lost and has not been
    /// sent again is taken to be under way.
    pub(crate) fn undo(&mut self, window: u32) {
        let prior_ssthresh = self.undo_state().map_or(0, |undo| {
            undo.close();
            undo.prior_ssthresh
        });
        self.ssthresh = self.ssthresh.max(prior_ssthresh);
        self.cwnd = window.clamp(1, self.clamp);
        self.dupacks = 0;
        let was = std::mem::replace(&mut self.state, CaState::Open);
        self.rtt.end_back_off();
        for number in self.una..self.next {
            self.segments.get_mut(number).flags &= !LOST;
        }
        let una = self.una;
        sack::board(self).take_back_losses(una);
        if let Method::Rack(rack) = &mut self.method
            && was == CaState::Recovery
        {
            rack.see_reordering();
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::{Recovery, Transport};

    use super::*;
    use crate::tcp::ack::Verdict;
    use crate::testing::{Alone, transport};

    const MS: u32 = 1000;
    const BOTH: [Recovery; 2] = [Recovery::Sack, Recovery::Rack];

    /// Ten segments sent at 0 ms; a round trip takes 100 ms.
    fn sender(recovery: Recovery) -> Alone {
        let settings = Transport { recovery, initial_window: 10, undo: true, ..transport() };
        let mut sender = Alone::with(&settings);
        sender.0.rtt.sample(100 * MS);
        sender
    }

    fn lost(sender: &Alone) -> usize {
        let outstanding = sender.0.una..sender.0.next;
        outstanding.filter(|&number| sender.0.segments.get(number).flags & LOST != 0).count()
    }

    #[test]
    fn rfc_3522_3_2_a_timeout_is_spurious_if_an_original_fills_the_gap() {
        for recovery in BOTH {
            let mut sender = sender(recovery);
            assert_eq!(sender.at(500 * MS, 0).time_out(), [0]);
            let (verdict, sent) = sender.at(510 * MS, 0).ack(2, &[]);
            assert_eq!(verdict, Verdict::Undo);
            assert_eq!((sender.0.state, sender.0.cwnd), (CaState::Open, 10));
            assert_eq!(sender.0.ssthresh, anabranch_cc::SSTHRESH_INFINITE);
            assert_eq!((lost(&sender), sent), (0, vec![10, 11]), "{recovery:?}: only new data follows");
        }
    }

    #[test]
    fn rfc_3522_3_2_a_timeout_is_needed_if_the_retransmission_fills_the_gap() {
        for recovery in BOTH {
            let mut sender = sender(recovery);
            sender.at(500 * MS, 0).time_out();
            assert_eq!(sender.at(600 * MS, 500 * MS).ack(1, &[]).0, Verdict::Continue);
            assert_eq!(sender.at(610 * MS, 0).ack(2, &[]).0, Verdict::Continue, "the first answer decides");
            assert_eq!(sender.0.state, CaState::Loss);
        }
    }

    #[test]
    fn rfc_3522_3_2_a_fast_recovery_is_spurious_if_an_original_fills_the_gap() {
        for recovery in BOTH {
            let mut sender = sender(recovery);
            assert_eq!(sender.at(100 * MS, 0).ack(0, &[(1, 4)]).0, Verdict::Enter);
            assert_eq!(sender.at(101 * MS, 0).ack(4, &[]).0, Verdict::Undo);
            assert_eq!((sender.0.state, sender.0.cwnd, lost(&sender)), (CaState::Open, 10, 0));
        }
    }

    #[test]
    fn a_recovery_is_not_undone_while_a_retransmission_may_be_needed() {
        for recovery in BOTH {
            let mut sender = sender(recovery);
            sender.at(100 * MS, 0).ack(0, &[(1, 3), (4, 9)]);
            sender.at(101 * MS, 0).ack(0, &[(1, 3), (4, 10)]);
            assert_eq!(sender.0.segments.get(3).flags & RETRANSMITTED, RETRANSMITTED);
            assert_eq!(sender.at(102 * MS, 0).ack(3, &[(4, 10)]).0, Verdict::Continue, "3 is under way");
            let end = sender.0.recover;
            assert_eq!(sender.at(201 * MS, 101 * MS).ack(end, &[]).0, Verdict::Leave, "and was needed");
            assert_eq!(sender.0.cwnd, 5);
        }
    }

    #[test]
    fn rfc_3708_3_a_recovery_is_spurious_if_all_that_it_sent_again_has_come_twice() {
        for recovery in BOTH {
            let mut sender = sender(recovery);
            sender.at(500 * MS, 0).time_out();
            // The acknowledgements of the originals were lost: the answer to the retransmission covers all.
            assert_eq!(sender.at(600 * MS, 500 * MS).ack(10, &[(0, 1)]).0, Verdict::Undo);
            assert_eq!((sender.0.state, sender.0.cwnd), (CaState::Open, 10));
        }
    }

    #[test]
    fn rfc_3708_3_a_report_may_come_after_the_recovery() {
        for recovery in BOTH {
            let mut sender = sender(recovery);
            sender.at(500 * MS, 0).time_out();
            assert_eq!(sender.at(600 * MS, 500 * MS).ack(10, &[]).0, Verdict::Leave);
            assert_eq!(sender.0.cwnd, 1);
            assert_eq!(sender.at(601 * MS, 500 * MS).ack(10, &[(0, 1)]).0, Verdict::Undo);
            assert_eq!(sender.0.cwnd, 10);
            assert_eq!(sender.ack(10, &[(0, 1)]).0, Verdict::Continue, "once");
        }
    }

    #[test]
    fn after_a_spurious_fast_recovery_segments_may_change_places() {
        let mut sender = sender(Recovery::Rack);
        sender.at(100 * MS, 0).ack(0, &[(1, 4)]);
        sender.at(101 * MS, 0).ack(4, &[]);
        assert_eq!(sender.at(102 * MS, 0).ack(4, &[(5, 9)]).0, Verdict::Continue, "four above it are SACKed");
    }
}
