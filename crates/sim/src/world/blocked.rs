//! What a sender does when the receive window, full of data that waits for a segment of a slow subflow, holds a faster one
//! back: opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012, section 4.2).
//!
//! This is the form of the paper. Left out is what its authors' kernel added later: it sends the segment again only where
//! the slow subflow has at most four packets in its window or more than four times the round-trip time, keeps ssthresh in
//! slow start, and counts the time between two penalties in round trips of the faster subflow. A sender that only its send
//! buffer holds back does nothing here.

use anabranch_cc::CaState;
use anabranch_policy::scheduler::{self, Pick};

use super::{Phase, World};
use crate::engine::heads::Key;

impl<K: Key> World<'_, K> {
    /// The scheduler has nothing to give out; what can be done if that is for the receive window.
    pub(super) fn relieve(&mut self, connection: usize, side: usize) {
        let meta = &self.connections[connection].sides[side].send;
        if !meta.is_held_back() {
            return;
        }
        let Some(oldest) = meta.oldest() else { return };
        self.survey(connection, side);
        self.mark_carriers(oldest.carried_by);
        let Pick::Subflow(fast) = scheduler::fastest(&self.candidates) else { return };
        for slow in 0..self.candidates.len() {
            let (other, fastest) = (&self.candidates[slow], &self.candidates[fast]);
            if other.carried && other.srtt8_us > fastest.srtt8_us {
                self.penalise(connection, side, slow);
            }
        }
        let Some(remedy) = self.connections[connection].sides[side].remedy() else { return };
        if !remedy.retransmits {
            return;
        }
        remedy.retransmissions += 1;
        let index = self.connections[connection].first as usize + side + 2 * fast;
        self.connections[connection].sides[side].send.sent_again(oldest.number, fast as u32);
        self.send_new(index, oldest.number, oldest.len, false);
    }

    /// Halves the window of a subflow and ends its slow start, unless it is reducing its window anyway.
    fn penalise(&mut self, connection: usize, side: usize, subflow: usize) {
        let now = self.now;
        let connection = &mut self.connections[connection];
        let endpoint = &mut self.endpoints[connection.first as usize + side + 2 * subflow];
        let sender = &mut endpoint.sender;
        if endpoint.phase != Phase::Established || sender.state != CaState::Open {
            return;
        }
        let srtt = u64::from(sender.rtt.srtt8_us) * 125;
        let Some(remedy) = connection.sides[side].remedy() else { return };
        if remedy.penalises && remedy.penalise(subflow, now, srtt) {
            sender.cwnd = (sender.cwnd / 2).max(1);
            sender.cwnd_cnt = 0;
            sender.ssthresh = sender.cwnd.max(2);
        }
    }
}
