//! Proportional rate reduction (RFC 9937): how much may be sent in fast recovery, so that it ends with as much in
//! flight as ssthresh allows.
//!
//! Where we differ: packets are counted, not bytes; and where a loss is found by time alone, without a delivery, one
//! packet may follow, for the retransmission would else wait for a timeout if nothing more is in flight.

use super::{
    ack::Absorbed,
    sender::{Method, Sender},
};

/// State of one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: packets in flight when recovery began; 0 until its first acknowledgement has been counted.
    flight: u32,
    delivered: u32,
    out: u32,
}

impl Prr {
    /// A recovery begins (RFC 9937 section 6.1).
    pub(crate) fn begin(&mut self) {
        *self = Self::default();
    }

    /// A packet leaves.
    pub(crate) fn sent(&mut self) {
        self.out += 1;
    }

    /// How many packets may follow an acknowledgement that begins recovery or comes in it, when `in_flight` are in
    /// the network (RFC 9937 section 6.2). `unsacked` is how many are outstanding and not SACKed after it.
    pub(crate) fn allowance(
        &mut self,
        absorbed: &Absorbed,
        unsacked: u32,
        in_flight: u32,
        ssthresh: u32,
    ) -> u32 {
        let delivered = absorbed.fresh + absorbed.sacked;
        if self.flight == 0 {
            self.flight = (unsacked + delivered).max(1);
        } else if delivered == 0 {
            return u32::from(absorbed.newly_lost > 0);
        }
        self.delivered += delivered;
        let owed = i64::from(self.delivered) - i64::from(self.out);
        let mut count = if in_flight > ssthresh {
            let proportion =
                (u64::from(self.delivered) * u64::from(ssthresh)).div_ceil(u64::from(self.flight));
            proportion as i64 - i64::from(self.out)
        } else {
            // SafeACK: recovery makes progress and finds no further loss, so slow start may catch up.
            let safe = absorbed.acked > 0 && absorbed.newly_lost == 0;
            let conserving = owed.max(i64::from(delivered)) + i64::from(safe);
            conserving.min(i64::from(ssthresh - in_flight))
        };
        if self.out == 0 {
            count = count.max(1);
        }
        count.max(0) as u32
    }
}

impl Sender {
    #[inline]
    pub(super) fn prr(&mut self) -> Option<&mut Prr> {
        match &mut self.method {
            Method::NewReno(_) => None,
            Method::Sack(board) => board.prr.as_deref_mut(),
            Method::Rack(rack) => rack.board.prr.as_deref_mut(),
        }
    }

    /// An acknowledgement has begun fast recovery or has come in it: the window that proportional rate reduction
    /// gives, where it is on.
    #[inline(never)]
    pub(crate) fn reduce_window(&mut self, absorbed: &Absorbed) {
        let (in_flight, ssthresh) = (self.in_flight(), self.ssthresh);
        let unsacked = match &self.method {
            Method::NewReno(_) => return,
            Method::Sack(board) => self.outstanding() as u32 - board.sacked(),
            Method::Rack(rack) => self.outstanding() as u32 - rack.board.sacked(),
        };
        if let Some(prr) = self.prr() {
            let allowance = prr.allowance(absorbed, unsacked, in_flight, ssthresh);
            self.cwnd = (in_flight + allowance).clamp(1, self.clamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(acked: u32, newly_lost: u32) -> Absorbed {
        Absorbed { acked, fresh: acked, newly_lost, ..Absorbed::default() }
    }

    fn sacked(sacked: u32) -> Absorbed {
        Absorbed { sacked, ..Absorbed::default() }
    }

    #[test]
    fn rfc_9937_6_2_in_proportion_while_more_is_in_flight_than_ssthresh_allows() {
        let mut prr = Prr::default();
        prr.begin();
        let mut in_flight = 98;
        let mut sent = 0;
        for n in 1..=50_u32 {
            // The first acknowledgement reports one of 100 packets; one is lost.
            let allowed = prr.allowance(&sacked(1), 99, in_flight, 70);
            (0..allowed).for_each(|_| prr.sent());
            sent += allowed;
            assert_eq!(sent, (70 * n).div_ceil(100), "after {n} deliveries");
            in_flight = in_flight - 1 + allowed;
        }
    }

    #[test]
    fn rfc_9937_6_2_below_ssthresh_a_packet_leaves_for_each_delivered_and_one_more_after_a_safe_ack() {
        let mut prr = Prr { flight: 20, delivered: 5, out: 5 };
        assert_eq!(prr.allowance(&sacked(2), 0, 4, 10), 2);
        prr.out = 7;
        assert_eq!(prr.allowance(&acked(2, 1), 0, 4, 10), 2, "further loss: conservation only");
        prr.out = 9;
        assert_eq!(prr.allowance(&acked(2, 0), 0, 4, 10), 3, "SafeACK");
    }

    #[test]
    fn rfc_9937_6_2_what_has_not_been_sent_before_may_follow_up_to_ssthresh() {
        let mut prr = Prr { flight: 20, delivered: 9, out: 2 };
        assert_eq!(prr.allowance(&sacked(1), 0, 1, 10), 8);
        let mut prr = Prr { flight: 20, delivered: 9, out: 2 };
        assert_eq!(prr.allowance(&sacked(1), 0, 6, 10), 4);
    }

    #[test]
    fn rfc_9937_6_2_the_first_retransmission_leaves_whatever_is_in_flight() {
        let mut prr = Prr::default();
        prr.begin();
        assert_eq!(prr.allowance(&Absorbed::default(), 50, 49, 1), 1);
    }

    #[test]
    fn rfc_9937_6_2_an_acknowledgement_that_delivers_nothing_lets_out_nothing() {
        let mut prr = Prr { flight: 20, delivered: 9, out: 2 };
        assert_eq!(prr.allowance(&Absorbed::default(), 0, 1, 10), 0);
    }

    #[test]
    fn a_loss_that_only_time_has_shown_lets_out_its_retransmission() {
        let mut prr = Prr { flight: 20, delivered: 9, out: 9 };
        assert_eq!(prr.allowance(&Absorbed { newly_lost: 3, ..Absorbed::default() }, 0, 0, 10), 1);
    }
}
