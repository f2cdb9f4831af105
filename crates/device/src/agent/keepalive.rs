//! Keeping subflows alive through middleboxes that forget who is silent: an acknowledgement that repeats the subflow's rank (MP_PRIO,
//! RFC 8684 section 3.3.8) when nothing was sent for as long as the configuration says.
//!
//! A packet from inside is what renews a translator's entry (RFC 5382 section 5: 2 h 4 min at least, which many do not keep). The peer
//! does not answer it: if the entry is gone already, that shows when data are sent, or by the translator's reset.

use anabranch_netlink::{diag::Subflow, mptcp::SubflowAddress};
use anabranch_policy::paths::Nanos;

/// When each subflow has sent last.
#[derive(Debug, Default)]
pub(super) struct Keepalive {
    sent: Vec<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    subflow: SubflowAddress,
    segments: u32,
    at: Nanos,
}

impl Keepalive {
    /// Takes in how much the subflows of a connection have sent. Those that have not for as long as `every` says of them are to
    /// send something; the other result is when the next will be due.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        subflows: &[&Subflow],
        every: impl Fn(&Subflow) -> Option<Nanos>,
    ) -> (Vec<SubflowAddress>, Option<Nanos>) {
        let before = std::mem::take(&mut self.sent);
        let (mut silent, mut next) = (Vec::new(), None);
        for subflow in subflows.iter().filter(|subflow| subflow.state.is_established()) {
            let Some(every) = every(subflow) else { continue };
            let segments = subflow.figures.segments_sent;
            let same =
                before.iter().find(|sent| (sent.subflow, sent.segments) == (subflow.address, segments));
            let (mut at, mut segments) = (same.map_or(now, |sent| sent.at), segments);
            if now >= at.saturating_add(every) {
                silent.push(subflow.address);
                // What keeps it alive is itself a segment.
                (at, segments) = (now, segments.wrapping_add(1));
            }
            self.sent.push(Sent { subflow: subflow.address, segments, at });
            let due = at.saturating_add(every);
            next = Some(next.map_or(due, |next: Nanos| next.min(due)));
        }
        (silent, next)
    }
}
