//! Explicit congestion notification (RFC 3168) at one end of a subflow: what is agreed, what is told to the peer, and the
//! reduction of the window that its answer asks for.
//!
//! The reduction follows section 6.1.2: once per window of data, as after a loss but without a retransmission; with
//! proportional rate reduction (RFC 9937) evenly over a round trip, else at once. Where we differ: a window of one packet
//! stays, and the sender goes on instead of waiting for its retransmission timer (cc.h keeps ssthresh at 2 packets, which
//! nobody notices with more than a packet per round trip). Left out: networks that clear the field (RFC 3168 section 20.2)
//! or drop SYNs that ask for it (section 6.1.1.1), and accurate feedback (RFC 9768): one echo per round trip is all that
//! a sender learns, so nothing here serves an algorithm that counts marks.

use anabranch_cc::CaState;

use super::sender::Sender;
use crate::packet::flags;

/// State of one endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ecn {
    /// The scenario asks for it.
    wanted: bool,
    /// The acknowledgement at hand echoes a mark.
    pub(crate) echoed: bool,
    /// ECT once it is agreed, CWR until the first new data packet after a reduction has left, and ECE from a mark on
    /// until the peer has reduced its window.
    flags: u16,
    /// Packets delivered by acknowledgements that echo a mark.
    pub(crate) delivered_marked: u32,
    /// Marked data packets that have arrived.
    pub(crate) marks: u64,
}

impl Ecn {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// The subflow is opened again: what is agreed counts no more.
    pub(crate) fn restart(&mut self) {
        *self = Self { marks: self.marks, delivered_marked: self.delivered_marked, ..Self::new(self.wanted) };
    }

    /// Flags of a SYN (RFC 3168 section 6.1.1: an ECN-setup SYN).
    pub(crate) fn offer(&self) -> u16 {
        if self.wanted { flags::ECE | flags::CWR } else { 0 }
    }

    /// A SYN has come with these flags.
    pub(crate) fn offered(&mut self, syn: u16) {
        if self.wanted && syn & (flags::ECE | flags::CWR) == flags::ECE | flags::CWR {
            self.flags |= flags::ECT;
        }
    }

    /// Flags of the answer to a SYN (an ECN-setup SYN-ACK).
    pub(crate) fn answer(&self) -> u16 {
        if self.is_agreed() { flags::ECE } else { 0 }
    }

    /// The answer to our SYN has come with these flags.
    pub(crate) fn answered(&mut self, syn_ack: u16) {
        if self.wanted && syn_ack & (flags::ECE | flags::CWR) == flags::ECE {
            self.flags |= flags::ECT;
        }
    }

    /// Whether both ends take part.
    pub(crate) fn is_agreed(&self) -> bool {
        self.flags & flags::ECT != 0
    }

    /// The flags of a new data packet that leaves now.
    #[inline]
    pub(crate) fn take_new(&mut self) -> u16 {
        let new = self.flags & (flags::ECT | flags::CWR);
        self.flags &= !flags::CWR;
        new
    }

    /// The flags of any packet that leaves now.
    #[inline]
    pub(crate) fn echo(&self) -> u16 {
        self.flags & flags::ECE
    }

    /// The window has been reduced, for whatever reason (section 6.1.2): the peer is to hear of it.
    pub(crate) fn reduced(&mut self) {
        if self.is_agreed() {
            self.flags |= flags::CWR;
        }
    }

    /// A data packet with these flags has arrived. Says whether its acknowledgement must not wait: the window of a peer
    /// that learns of its first mark, or has just reduced, may be a single packet.
    pub(crate) fn arrived(&mut self, packet: u16) -> bool {
        let reduced = packet & flags::CWR != 0;
        if reduced {
            self.flags &= !flags::ECE;
        }
        if packet & flags::CE == 0 {
            return reduced;
        }
        self.marks += 1;
        let first = self.flags & flags::ECE == 0;
        self.flags |= flags::ECE;
        first
    }
}

impl Sender {
    /// A mark has been echoed: the window goes to the ssthresh that congestion control wants.
    pub(crate) fn begin_cwr(&mut self, ssthresh: u32) {
        self.forget_reduction();
        self.prior_cwnd = self.cwnd;
        self.ssthresh = ssthresh;
        self.cwnd = self.cwnd.min(ssthresh);
        self.cwnd_cnt = 0;
        self.state = CaState::Cwr;
        self.recover = self.next;
        self.lost_again();
        if let Some(prr) = self.prr() {
            prr.begin();
            self.cwnd = self.prior_cwnd;
        }
    }

    /// Whether the first packet sent after the reduction has been acknowledged: the echoes from now on are of later marks.
    pub(crate) fn cwr_is_over(&self) -> bool {
        self.state == CaState::Cwr && self.una > self.recover
    }

    /// The reduction is over.
    pub(crate) fn end_cwr(&mut self) {
        self.state = CaState::Open;
        self.cwnd = self.ssthresh.min(self.prior_cwnd).min(self.clamp);
        self.cwnd_cnt = 0;
    }
}
