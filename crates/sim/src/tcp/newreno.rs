//! Loss recovery by duplicate acknowledgements (RFC 5681 section 3.2, RFC 6582), go-back-N after a timeout.
//!
//! Where we differ: the window that recovery inflates is kept apart from cwnd, so congestion control and
//! coupling see ssthresh all along; the inflation is bounded by the window cap like cwnd itself.

use anabranch_cc::CaState;

use super::sender::{Absorbed, Method, Next, Sender, Verdict};

/// Duplicate acknowledgements that mean loss (RFC 5681 section 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;

/// State of NewReno recovery.
#[derive(Default)]
pub(crate) struct NewReno {
    /// Next segment to send in sequence: below the sender's `next` only while going back after a timeout.
    cursor: u64,
    /// Packets by which recovery has inflated the window.
    inflation: i64,
    /// A segment that is sent whatever the window says.
    forced: Option<u64>,
    partial_seen: bool,
    /// Segments that duplicates say have left the network.
    implied: u32,
    /// RFC 6582's `recover`, plus one: the next segment to be cut when a fast recovery or timeout last began.
    /// Duplicates up to it may come from retransmissions of that time and do not mean loss (section 3.2, step 1).
    guard: u64,
}

impl NewReno {
    pub(crate) fn in_flight(&self, sender: &Sender) -> u32 {
        (self.cursor - sender.una) as u32
    }

    pub(crate) fn next_to_send(sender: &mut Sender) -> Next {
        let (una, next) = (sender.una, sender.next);
        let window = Self::window(sender);
        let newreno = state(sender);
        if let Some(number) = newreno.forced {
            return Next::Retransmit(number);
        }
        if newreno.cursor - una >= window {
            Next::Wait
        } else if newreno.cursor < next {
            Next::Retransmit(newreno.cursor)
        } else {
            Next::New
        }
    }

    fn window(sender: &Sender) -> u64 {
        let Method::NewReno(newreno) = &sender.method else { unreachable!("called for NewReno") };
        // RFC 3042: the first two duplicates each let out a new segment.
        let early = match sender.state {
            CaState::Open if sender.limited_transmit && sender.dupacks < DUPLICATE_THRESHOLD => {
                sender.dupacks
            }
            _ => 0,
        };
        let window = i64::from(sender.cwnd) + newreno.inflation + i64::from(early);
        window.clamp(1, i64::from(sender.clamp)) as u64
    }

    pub(crate) fn judge(sender: &mut Sender, absorbed: &Absorbed) -> Verdict {
        let (una, recover, state_now) = (sender.una, sender.recover, sender.state);
        let dupacks = sender.dupacks;
        let newreno = state(sender);
        match state_now {
            CaState::Recovery if una >= recover => Verdict::Leave,
            CaState::Recovery => {
                if absorbed.acked > 0 {
                    // A partial acknowledgement: the next hole (RFC 6582 section 3.2, step 3).
                    newreno.forced = Some(una);
                    newreno.inflation += 1 - i64::from(absorbed.acked);
                } else if absorbed.duplicate {
                    newreno.inflation += 1;
                }
                Verdict::Continue
            }
            CaState::Loss if una >= recover => Verdict::Leave,
            CaState::Loss => Verdict::Continue,
            _ if dupacks == DUPLICATE_THRESHOLD && (newreno.guard == 0 || una > newreno.guard) => {
                Verdict::Enter
            }
            _ => Verdict::Continue,
        }
    }

    pub(crate) fn enter(sender: &mut Sender) {
        let (una, next) = (sender.una, sender.next);
        let newreno = state(sender);
        newreno.guard = next;
        newreno.inflation = i64::from(DUPLICATE_THRESHOLD);
        newreno.forced = Some(una);
        newreno.partial_seen = false;
    }

    pub(crate) fn leave(&mut self) {
        self.inflation = 0;
        self.implied = 0;
        self.forced = None;
    }

    pub(crate) fn time_out(sender: &mut Sender) {
        let (una, next) = (sender.una, sender.next);
        *state(sender) = NewReno { cursor: una, guard: next, ..NewReno::default() };
    }

    /// Takes a cumulative acknowledgement of `acked` segments into account. Returns how many of them may
    /// raise the window: not those whose delivery duplicates have told before, and one after a timeout, when
    /// a single retransmission may fill a large gap (RFC 3465 section 2.3).
    pub(crate) fn acknowledged_up_to(&mut self, ack: u64, acked: u32, after_timeout: bool) -> u32 {
        self.cursor = self.cursor.max(ack);
        if self.forced.is_some_and(|number| number < ack) {
            self.forced = None;
        }
        let known = self.implied.min(acked - 1);
        self.implied -= known;
        if after_timeout { 1 } else { acked - known }
    }

    pub(crate) fn note_duplicate(&mut self, duplicate: bool) {
        self.implied += u32::from(duplicate);
    }

    pub(crate) fn sent_new(&mut self, number: u64) {
        self.cursor = number + 1;
    }

    pub(crate) fn sent_again(&mut self, number: u64) {
        if self.forced == Some(number) {
            self.forced = None;
        }
        if number == self.cursor {
            self.cursor += 1;
        }
    }

    pub(crate) fn first_partial(&mut self) -> bool {
        !std::mem::replace(&mut self.partial_seen, true)
    }
}

fn state(sender: &mut Sender) -> &mut NewReno {
    match &mut sender.method {
        Method::NewReno(newreno) => newreno,
        Method::Sack(_) => unreachable!("called for NewReno"),
    }
}
