//! Episodes of loss: what the beginning and the end of one do to the window of a sender, whatever has found the loss.

use anabranch_cc::CaState;
use anabranch_link::Nanos;

use super::{
    newreno::NewReno,
    rack::Rack,
    sack::Scoreboard,
    sender::{Method, Sender},
};

impl Sender {
    /// Enters fast recovery with the ssthresh that congestion control wants.
    pub(crate) fn enter_recovery(&mut self, ssthresh: u32) {
        if self.state == CaState::Cwr {
            self.cwnd = ssthresh;
        } else {
            self.lost_again();
        }
        self.remember_reduction();
        self.prior_cwnd = self.cwnd;
        self.ssthresh = ssthresh;
        self.cwnd = ssthresh.min(self.clamp);
        self.cwnd_cnt = 0;
        self.state = CaState::Recovery;
        self.recover = self.next;
        self.counters.recoveries += 1;
        match &self.method {
            Method::NewReno(_) => NewReno::enter(self),
            Method::Sack(_) => Scoreboard::enter(self),
            Method::Rack(_) => Rack::enter(self),
        }
        if let Some(prr) = self.prr() {
            prr.begin();
        }
    }

    /// A loss has been repaired without a recovery; congestion control takes it as one all the same.
    pub(crate) fn note_repaired(&mut self, ssthresh: u32) {
        self.forget_reduction();
        self.prior_cwnd = self.cwnd;
        self.ssthresh = ssthresh;
        self.cwnd = ssthresh.min(self.clamp);
        self.cwnd_cnt = 0;
        self.lost_again();
    }

    /// Leaves recovery, fast or after a timeout.
    pub(crate) fn leave_recovery(&mut self) {
        let was = std::mem::replace(&mut self.state, CaState::Open);
        self.dupacks = 0;
        if was == CaState::Recovery {
            self.cwnd = self.ssthresh.min(self.clamp);
            self.cwnd_cnt = 0;
        }
        if let Method::NewReno(newreno) = &mut self.method {
            newreno.leave();
        }
    }

    /// Whether a timeout now begins a new episode, so that congestion control is asked for ssthresh.
    pub(crate) fn timeout_begins_episode(&self) -> bool {
        match self.state {
            CaState::Open | CaState::Disorder => true,
            CaState::Recovery | CaState::Cwr => self.una >= self.recover,
            CaState::Loss => self.una >= self.recover || !self.rtt.is_backed_off(),
        }
    }

    /// The retransmission timer has expired (RFC 5681 section 3.1, RFC 6298 section 5).
    pub(crate) fn time_out(&mut self, ssthresh: Option<u32>, now: Nanos) {
        if let Some(ssthresh) = ssthresh {
            self.remember_reduction();
            self.prior_cwnd = self.cwnd;
            self.ssthresh = ssthresh;
            self.lost_again();
        }
        self.counters.timeouts += 1;
        self.begin_anew();
        self.rtt.back_off();
        match &self.method {
            Method::NewReno(_) => NewReno::time_out(self),
            Method::Sack(_) => Scoreboard::time_out(self),
            Method::Rack(_) => Rack::time_out(self, now),
        }
    }

    /// A window of one packet, until all that has been sent is acknowledged.
    pub(super) fn begin_anew(&mut self) {
        self.cwnd = 1;
        self.cwnd_cnt = 0;
        self.state = CaState::Loss;
        self.recover = self.next;
        self.dupacks = 0;
    }

    pub(super) fn lost_again(&mut self) {
        self.loss_events += 1;
        self.bytes_between_losses = self.bytes_since_loss;
        self.bytes_since_loss = 0;
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::Recovery;

    use super::*;
    use crate::testing::Alone;

    #[test]
    fn rfc_5681_3_1_a_timeout_of_a_retransmission_by_timer_keeps_ssthresh() {
        for recovery in [Recovery::NewReno, Recovery::Sack] {
            let mut sender = Alone::new(recovery, 10);
            assert_eq!(sender.time_out(), [0]);
            assert_eq!((sender.0.ssthresh, sender.0.cwnd, sender.0.loss_events), (5, 1, 1));
            assert_eq!(sender.time_out(), [0]);
            assert_eq!((sender.0.ssthresh, sender.0.loss_events), (5, 1));
            assert_eq!(sender.0.counters.timeouts, 2);
        }
    }

    #[test]
    fn a_timeout_in_fast_recovery_belongs_to_its_episode() {
        for recovery in [Recovery::NewReno, Recovery::Sack] {
            let mut sender = Alone::new(recovery, 10);
            for sacked in 2..5 {
                sender.ack(0, &[(1, sacked)]);
            }
            assert_eq!(sender.0.state, CaState::Recovery);
            sender.time_out();
            assert_eq!((sender.0.ssthresh, sender.0.cwnd, sender.0.loss_events), (5, 1, 1));
        }
    }

    #[test]
    fn leaving_fast_recovery_sets_the_window_to_ssthresh_and_leaving_a_timeout_does_not() {
        let mut fast = Alone::new(Recovery::NewReno, 10);
        for _ in 0..8 {
            fast.ack(0, &[]);
        }
        fast.ack(fast.0.recover, &[]);
        assert_eq!((fast.0.state, fast.0.cwnd, fast.0.in_flight()), (CaState::Open, 5, 5));
        let mut slow = Alone::new(Recovery::NewReno, 10);
        slow.time_out();
        slow.ack(10, &[]);
        assert_eq!((slow.0.state, slow.0.cwnd), (CaState::Open, 1));
    }
}
