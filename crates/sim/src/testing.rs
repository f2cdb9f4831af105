//! Settings and senders that the unit tests share.

use anabranch_link::Nanos;
use anabranch_scenario::model::{Join, Recovery, RtoRule, Transport};

use crate::tcp::{
    ack::{Absorbed, Ack, Verdict},
    segments::Segment,
    sender::{Next, Sender},
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
        prr: false,
        undo: false,
        ecn: false,
        opportunistic_retransmission: false,
        penalisation: false,
        receive_buffer: None,
        receive_buffer_tuning: false,
        pacing: false,
        send_buffer: None,
        send_buffer_tuning: false,
        stale_after: None,
        join: Join::Immediately,
        send_jitter: 0,
    }
}

/// A sender by itself: what it sends and what comes back is up to the test.
pub(crate) struct Alone(pub(crate) Sender, Clock);

/// What a test lets the sender see of time, in microseconds.
#[derive(Clone, Copy, Default)]
struct Clock {
    now_us: u32,
    /// The timestamp that acknowledgements echo.
    echo_us: u32,
}

impl Alone {
    /// A sender with this window, all of it sent.
    pub(crate) fn new(recovery: Recovery, window: u32) -> Self {
        Self::with(&Transport { recovery, initial_window: window, ..transport() })
    }

    /// A sender with these settings, its initial window sent.
    pub(crate) fn with(transport: &Transport) -> Self {
        let mut alone = Self(Sender::new(transport), Clock::default());
        alone.send();
        alone
    }

    /// It is so late now, and acknowledgements echo packets sent then.
    pub(crate) fn at(&mut self, now_us: u32, echo_us: u32) -> &mut Self {
        self.1 = Clock { now_us, echo_us };
        self
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
            self.0.sent(number, segment, 1040, self.1.now_us);
            sent.push(number);
        }
    }

    fn now(&self) -> Nanos {
        1000 * Nanos::from(self.1.now_us)
    }

    /// An acknowledgement comes, recovery follows it with ssthresh at half the window, and sending goes on: the
    /// verdict and the numbers of the segments sent.
    pub(crate) fn ack(&mut self, ack: u64, sacks: &[(u64, u64)]) -> (Verdict, Vec<u64>) {
        let verdict = self.absorb(ack, sacks).1;
        self.follow(verdict)
    }

    /// Nothing has come, but time has passed: the same.
    pub(crate) fn wait(&mut self) -> (Verdict, Vec<u64>) {
        let verdict = self.0.judge(&mut Absorbed::default(), self.now());
        self.follow(verdict)
    }

    fn follow(&mut self, verdict: Verdict) -> (Verdict, Vec<u64>) {
        match verdict {
            Verdict::Continue => {}
            Verdict::Enter => self.0.enter_recovery((self.0.cwnd / 2).max(2)),
            Verdict::StartOver => self.0.start_over((self.0.cwnd / 2).max(2)),
            Verdict::Leave => self.0.leave_recovery(),
            Verdict::Undo => self.0.undo(self.0.prior_cwnd),
            Verdict::Repaired => self.0.note_repaired((self.0.cwnd / 2).max(2)),
        }
        (verdict, self.send())
    }

    /// An acknowledgement comes; nothing follows.
    pub(crate) fn absorb(&mut self, ack: u64, sacks: &[(u64, u64)]) -> (Absorbed, Verdict) {
        let Clock { now_us, echo_us } = self.1;
        let ack = Ack { number: ack, sacks, pure: true, echo_us, now_us };
        let mut absorbed = self.0.absorb(&ack);
        let verdict = self.0.judge(&mut absorbed, self.now());
        (absorbed, verdict)
    }

    /// The timer expires.
    pub(crate) fn time_out(&mut self) -> Vec<u64> {
        let ssthresh = self.0.timeout_begins_episode().then_some((self.0.cwnd / 2).max(2));
        self.0.time_out(ssthresh, self.now());
        self.send()
    }
}
