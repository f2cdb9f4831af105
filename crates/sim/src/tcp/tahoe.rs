//! Tahoe (Jacobson 1988): the third duplicate acknowledgement is answered as a timeout is, with a window of one packet,
//! slow start to half of the old one, and everything that is not acknowledged sent again (go-back-N). All else is
//! `newreno.rs`.
//!
//! Where we differ: duplicates of what is sent again do not begin another recovery (RFC 6582 section 3.2, step 1; so
//! ns-2); the first two duplicates let out a new segment each if limited transmit is on; congestion control hears of a
//! timeout, whose rules Tahoe's fast retransmit has. A timeout before all is acknowledged halves ssthresh again.

use anabranch_cc::CaState;

use super::{newreno::NewReno, sender::Sender};

impl Sender {
    /// The third duplicate has come: slow start up to the ssthresh that congestion control wants.
    pub(crate) fn start_over(&mut self, ssthresh: u32) {
        if self.state != CaState::Cwr {
            self.lost_again();
        }
        self.prior_cwnd = self.cwnd;
        self.ssthresh = ssthresh;
        self.counters.recoveries += 1;
        self.begin_anew();
        NewReno::time_out(self);
    }
}

#[cfg(test)]
mod tests {
    use anabranch_cc::CaState;
    use anabranch_scenario::model::{Recovery, Transport};

    use crate::{
        tcp::ack::Verdict,
        testing::{Alone, transport},
    };

    /// Tahoe with a window, without limited transmit, as in 1988.
    fn sender(window: u32) -> Alone {
        let limited_transmit = false;
        let initial_window = window;
        Alone::with(&Transport { recovery: Recovery::Tahoe, initial_window, limited_transmit, ..transport() })
    }

    #[test]
    fn a1_the_third_duplicate_halves_ssthresh_and_leaves_a_window_of_one() {
        let mut tahoe = sender(16);
        tahoe.ack(0, &[]);
        tahoe.ack(0, &[]);
        assert_eq!(tahoe.ack(0, &[]), (Verdict::StartOver, vec![0]));
        assert_eq!((tahoe.0.ssthresh, tahoe.0.cwnd, tahoe.0.state), (8, 1, CaState::Loss));
        assert_eq!((tahoe.0.counters.recoveries, tahoe.0.counters.timeouts, tahoe.0.loss_events), (1, 0, 1));
        assert!(!tahoe.0.rtt.is_backed_off(), "no timer has expired");
    }

    #[test]
    fn everything_after_the_hole_is_sent_again() {
        let mut tahoe = sender(4);
        for _ in 0..3 {
            tahoe.ack(0, &[]);
        }
        tahoe.0.cwnd = 2;
        assert_eq!(tahoe.ack(1, &[]), (Verdict::Continue, vec![1, 2]));
        tahoe.0.cwnd = 3;
        assert_eq!(tahoe.ack(2, &[]), (Verdict::Continue, vec![3, 4]), "and new data once all is sent again");
        assert_eq!(tahoe.ack(4, &[]).0, Verdict::Leave);
        assert_eq!((tahoe.0.state, tahoe.0.cwnd), (CaState::Open, 3), "slow start goes on");
    }

    #[test]
    fn duplicates_of_what_is_sent_again_do_not_begin_another_recovery() {
        let mut tahoe = sender(8);
        for _ in 0..3 {
            tahoe.ack(0, &[]);
        }
        for _ in 0..5 {
            assert_eq!(tahoe.ack(0, &[]).0, Verdict::Continue);
        }
        assert_eq!(tahoe.ack(8, &[]).0, Verdict::Leave);
        for _ in 0..3 {
            assert_eq!(tahoe.ack(8, &[]).0, Verdict::Continue, "they do not cover more than recover");
        }
        assert_eq!((tahoe.0.ssthresh, tahoe.0.loss_events), (4, 1));
    }
}
