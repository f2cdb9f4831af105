//! Loss recovery by duplicate acknowledgements (RFC 5681 section 3.2, RFC 6582), go-back-N after a timeout.
//!
//! Where we differ: the window that recovery inflates is kept apart from cwnd, so congestion control and
//! coupling see ssthresh all along; the inflation is bounded by the window cap like cwnd itself.

use anabranch_cc::CaState;

use super::{
    ack::{Absorbed, Verdict},
    sender::{Method, Next, Sender},
};

/// Duplicate acknowledgements that mean loss (RFC 5681 section 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;

/// State of NewReno recovery, and of Tahoe's, which shares all but what the third duplicate leads to.
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
    /// The third duplicate is answered as a timeout (see `tahoe.rs`).
    starts_over: bool,
}

impl NewReno {
    /// Tahoe's.
    pub(crate) fn tahoe() -> Self {
        Self { starts_over: true, ..Self::default() }
    }

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
        window.max(1).min(i64::from(sender.clamp)) as u64
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
                if newreno.starts_over { Verdict::StartOver } else { Verdict::Enter }
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
        let newreno = state(sender);
        let starts_over = newreno.starts_over;
        *newreno = NewReno { cursor: una, guard: next, starts_over, ..NewReno::default() };
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
        Method::Sack(_) | Method::Rack(_) => unreachable!("called for NewReno"),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::{Recovery, Transport};

    use super::*;
    use crate::tcp::ack::Ack;
    use crate::testing::{Alone, transport};

    fn sender() -> Alone {
        Alone::new(Recovery::NewReno, 10)
    }

    fn duplicates(sender: &mut Alone, ack: u64, count: usize) -> Verdict {
        (0..count).map(|_| sender.ack(ack, &[]).0).last().expect("at least one")
    }

    #[test]
    fn rfc_6582_3_2_duplicates_up_to_recover_do_not_begin_another_recovery() {
        let mut sender = sender();
        assert_eq!(duplicates(&mut sender, 0, 3), Verdict::Enter);
        let recover = sender.0.recover;
        assert_eq!(recover, 12, "limited transmit included");
        duplicates(&mut sender, 0, 6);
        assert_eq!(sender.ack(recover, &[]).0, Verdict::Leave);
        assert_eq!(
            duplicates(&mut sender, recover, 3),
            Verdict::Continue,
            "they do not cover more than recover"
        );
        assert_eq!(sender.ack(recover + 1, &[]).0, Verdict::Continue);
        assert_eq!(duplicates(&mut sender, recover + 1, 3), Verdict::Enter);
    }

    #[test]
    fn rfc_6582_3_2_duplicates_of_a_timeouts_retransmissions_do_not_begin_a_recovery() {
        let mut sender = sender();
        sender.time_out();
        assert_eq!(sender.ack(10, &[]).0, Verdict::Leave);
        assert_eq!(duplicates(&mut sender, 10, 3), Verdict::Continue);
    }

    #[test]
    fn rfc_6582_3_2_only_the_first_partial_acknowledgement_restarts_the_timer() {
        let mut sender = sender();
        assert!(sender.0.restarts_timer());
        duplicates(&mut sender, 0, 3);
        sender.ack(2, &[]);
        assert!(sender.0.restarts_timer());
        sender.ack(4, &[]);
        assert!(!sender.0.restarts_timer());
        sender.ack(sender.0.recover, &[]);
        assert!(sender.0.restarts_timer());
    }

    #[test]
    fn rfc_3042_without_limited_transmit_duplicates_let_out_nothing() {
        let mut sender =
            Alone::with(&Transport { initial_window: 10, limited_transmit: false, ..transport() });
        assert_eq!(sender.ack(0, &[]).1, [] as [u64; 0]);
        assert_eq!(sender.ack(0, &[]).1, [] as [u64; 0]);
        assert_eq!(sender.ack(0, &[]).1, [0]);
    }

    #[test]
    fn rfc_5681_2_an_acknowledgement_that_carries_data_is_no_duplicate() {
        let mut sender = sender();
        let absorbed = sender.0.absorb(&Ack { number: 0, sacks: &[], pure: false, echo_us: 0, now_us: 0 });
        assert!(!absorbed.duplicate);
        assert_eq!(sender.0.dupacks, 0);
    }

    #[test]
    fn the_window_cap_bounds_the_inflated_window() {
        let mut sender = Alone::with(&Transport { initial_window: 10, window_cap: Some(10), ..transport() });
        duplicates(&mut sender, 0, 30);
        assert_eq!(sender.0.outstanding(), 10);
    }

    #[test]
    fn rfc_3465_2_3_an_acknowledgement_after_a_timeout_counts_as_one_segment() {
        let mut sender = sender();
        sender.time_out();
        assert_eq!(sender.absorb(6, &[]).0.fresh, 1);
    }

    #[test]
    fn what_duplicates_have_told_does_not_raise_the_window_again() {
        let mut sender = sender();
        duplicates(&mut sender, 0, 2);
        assert_eq!(sender.absorb(5, &[]).0.fresh, 3);
    }
}
