//! Settings and senders that the unit tests share.

use anabranch_scenario::model::{Join, Recovery, RtoRule, Transport};

use crate::tcp::{
    segments::Segment,
    sender::{Absorbed, Next, Sender, Verdict},
};

/// A transport with the values of the `ns2` profile.
pub(crate) fn transport() -> Transport {
    Transport {
        segment_bytes: 1000,
        header_bytes: 40,
        ack_bytes: 40,
        initial_window: 2,
        initial_ssthresh: None,
        window_cap: None,
        initial_rto: 3_000_000_000,
        min_rto: 200_000_000,
        rto_granularity: 10_000_000,
        max_rto: 60_000_000_000,
        rto_rule: RtoRule::Rfc6298,
        delayed_ack: None,
        limited_transmit: true,
        recovery: Recovery::NewReno,
        receive_buffer: None,
        receive_buffer_tuning: false,
        pacing: false,
        send_buffer: None,
        join: Join::Immediately,
        send_jitter: 0,
    }
}

/// A sender by itself: what it sends and what comes back is up to the test.
pub(crate) struct Alone(pub(crate) Sender);

impl Alone {
    /// A sender with this window, all of it sent.
    pub(crate) fn new(recovery: Recovery, window: u32) -> Self {
        Self::with(&Transport { recovery, initial_window: window, ..transport() })
    }

    /// A sender with these settings, its initial window sent.
    pub(crate) fn with(transport: &Transport) -> Self {
        let mut alone = Self(Sender::new(transport));
        alone.send();
        alone
    }

    /// Sends what the window lets out, with data in plenty: the numbers of the segments.
    pub(crate) fn send(&mut self) -> Vec<u64> {
        let mut sent = Vec::new();
        loop {
            let (number, segment) = match self.0.next_to_send() {
                Next::Wait => return sent,
                Next::New => (self.0.next, Segment { len: 1000, ..Segment::default() }),
                Next::Retransmit(number) => (number, self.0.segments.get(number)),
            };
            self.0.sent(number, segment, 1040, 0);
            sent.push(number);
        }
    }

    /// An acknowledgement comes, recovery follows it with ssthresh at half the window, and sending goes on: the
    /// verdict and the numbers of the segments sent.
    pub(crate) fn ack(&mut self, ack: u64, sacks: &[(u64, u64)]) -> (Verdict, Vec<u64>) {
        let verdict = self.absorb(ack, sacks).1;
        match verdict {
            Verdict::Continue => {}
            Verdict::Enter => self.0.enter_recovery((self.0.cwnd / 2).max(2)),
            Verdict::Leave => self.0.leave_recovery(),
        }
        (verdict, self.send())
    }

    /// An acknowledgement comes; nothing follows.
    pub(crate) fn absorb(&mut self, ack: u64, sacks: &[(u64, u64)]) -> (Absorbed, Verdict) {
        let absorbed = self.0.absorb(ack, sacks, true, 0);
        (absorbed, self.0.judge(&absorbed))
    }

    /// The timer expires.
    pub(crate) fn time_out(&mut self) -> Vec<u64> {
        let ssthresh = self.0.timeout_begins_episode().then_some((self.0.cwnd / 2).max(2));
        self.0.time_out(ssthresh);
        self.send()
    }
}
