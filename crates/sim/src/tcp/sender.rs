//! The sending half: window, timers and counters; what is common to both recoveries.

use anabranch_cc::{CaState, SSTHRESH_INFINITE};
use anabranch_link::Nanos;
use anabranch_scenario::model::{Recovery, Transport};

use super::{
    ack::{Absorbed, Ack, RateSample, Verdict},
    newreno::NewReno,
    rack::Rack,
    rtt::Rtt,
    sack::Scoreboard,
    segments::{self, Segment, Segments},
};
use crate::engine::timers::{Lazy, TimerKind, Timers};

/// What may be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This segment again.
    Retransmit(u64),
    /// A new segment.
    New,
    /// Nothing.
    Wait,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderCounters {
    /// Data packets sent, retransmissions included.
    pub(crate) packets: u64,
    /// Their bytes on the wire.
    pub(crate) bytes: u64,
    /// Retransmissions.
    pub(crate) retransmits: u64,
    /// Expiries of the retransmission timer.
    pub(crate) timeouts: u32,
    /// Times that fast recovery was entered.
    pub(crate) recoveries: u64,
    /// Times that the subflow has become stale.
    pub(crate) failures: u32,
}

/// When a subflow of MPTCP is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Staleness {
    /// From a timeout until the recovery from it is over.
    WithTimeout,
    /// It is not.
    Not,
    /// While no more has been delivered than this, modulo 2^32.
    Since(u32),
}

/// The part that depends on how lost packets are found.
pub(crate) enum Method {
    NewReno(NewReno),
    Sack(Box<Scoreboard>),
    Rack(Box<Rack>),
}

/// State of one sending half.
pub(crate) struct Sender {
    /// Oldest unacknowledged segment.
    pub(crate) una: u64,
    /// Next segment to be cut.
    pub(crate) next: u64,
    pub(crate) segments: Segments,
    pub(crate) cwnd: u32,
    pub(crate) cwnd_cnt: u32,
    pub(crate) ssthresh: u32,
    pub(crate) clamp: u32,
    pub(crate) prior_cwnd: u32,
    pub(crate) state: CaState,
    /// Recovery ends when all below this is acknowledged.
    pub(crate) recover: u64,
    pub(crate) dupacks: u32,
    pub(crate) limited_transmit: bool,
    staleness: Staleness,
    pub(crate) method: Method,
    pub(crate) rtt: Rtt,
    pub(crate) timer: Lazy,
    pub(crate) counters: SenderCounters,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_since_loss: u64,
    pub(crate) bytes_between_losses: u64,
    /// Recovery episodes, those after a timeout included.
    pub(crate) loss_events: u32,
    pub(crate) delivered: u64,
    delivered_us: u32,
    first_sent_us: u32,
    app_limited_until: u64,
    cwnd_limited: bool,
    max_out: u32,
    usage_until: u64,
    round_ends: u64,
}

impl Sender {
    pub(crate) fn new(transport: &Transport) -> Self {
        let clamp = transport.window_cap.unwrap_or(u32::MAX);
        Self {
            una: 0,
            next: 0,
            segments: Segments::default(),
            cwnd: transport.initial_window.min(clamp),
            cwnd_cnt: 0,
            ssthresh: transport.initial_ssthresh.unwrap_or(SSTHRESH_INFINITE),
            clamp,
            prior_cwnd: 0,
            state: CaState::Open,
            recover: 0,
            dupacks: 0,
            limited_transmit: transport.limited_transmit,
            staleness: match transport.stale_after {
                None => Staleness::WithTimeout,
                Some(_) => Staleness::Not,
            },
            method: match transport.recovery {
                Recovery::Tahoe => Method::NewReno(NewReno::tahoe()),
                Recovery::NewReno => Method::NewReno(NewReno::default()),
                Recovery::Sack => Method::Sack(Box::new(Scoreboard::new(transport))),
                Recovery::Rack => Method::Rack(Box::new(Rack::new(Scoreboard::new(transport)))),
            },
            rtt: Rtt::new(transport),
            timer: Lazy::default(),
            counters: SenderCounters::default(),
            bytes_acked: 0,
            bytes_since_loss: 0,
            bytes_between_losses: 0,
            loss_events: 0,
            delivered: 0,
            delivered_us: 0,
            first_sent_us: 0,
            app_limited_until: 0,
            cwnd_limited: false,
            max_out: 0,
            usage_until: 0,
            round_ends: 0,
        }
    }

    /// The subflow is opened again: a number is left out, so that no acknowledgement of before is one of now, and
    /// only what is counted from the start stays.
    pub(crate) fn restart(&mut self, transport: &Transport) {
        self.timer.disarm();
        let first = self.next + 1;
        *self = Self {
            una: first,
            next: first,
            timer: self.timer,
            counters: self.counters,
            bytes_acked: self.bytes_acked,
            loss_events: self.loss_events,
            delivered: self.delivered,
            ..Self::new(transport)
        };
        if let Method::NewReno(newreno) = &mut self.method {
            newreno.sent_new(first - 1);
        }
    }

    /// Whether a subflow of MPTCP gets no data now, because what it has been given does not arrive.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        match self.staleness {
            Staleness::WithTimeout => self.state == CaState::Loss,
            Staleness::Not => false,
            Staleness::Since(delivered) => delivered == self.delivered as u32,
        }
    }

    /// Whether a timeout alone makes it stale.
    pub(crate) fn is_stale_with_timeout(&self) -> bool {
        matches!(self.staleness, Staleness::WithTimeout)
    }

    /// It gets no data from now on, until something is delivered.
    pub(crate) fn become_stale(&mut self) {
        self.staleness = Staleness::Since(self.delivered as u32);
        self.counters.failures += 1;
    }

    /// Packets taken to be in the network: RFC 6675's pipe, or what NewReno sent and is not acknowledged.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        match &self.method {
            Method::NewReno(newreno) => newreno.in_flight(self),
            Method::Sack(board) => board.pipe(self.una, self.next),
            Method::Rack(rack) => rack.board.pipe(self.una, self.next),
        }
    }

    /// Segments cut and not acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// What the window lets out next.
    #[inline]
    pub(crate) fn next_to_send(&mut self) -> Next {
        match &self.method {
            Method::NewReno(_) => NewReno::next_to_send(self),
            Method::Sack(_) => Scoreboard::next_to_send(self),
            Method::Rack(_) => Rack::next_to_send(self),
        }
    }

    /// Whether a new segment would fit the window, retransmissions aside.
    #[inline]
    pub(crate) fn can_send_new(&mut self) -> bool {
        self.next_to_send() == Next::New
    }

    /// Whether selective acknowledgements are used.
    #[inline]
    pub(crate) fn uses_sack(&self) -> bool {
        !matches!(self.method, Method::NewReno(_))
    }

    /// Takes an acknowledgement into account.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, ack: &Ack<'_>) -> Absorbed {
        let mut absorbed = Absorbed { prior_in_flight: self.in_flight(), ..Absorbed::default() };
        if ack.number > self.una {
            self.acknowledge_up_to(ack, &mut absorbed);
        }
        match &mut self.method {
            Method::NewReno(newreno) => {
                absorbed.duplicate =
                    ack.pure && ack.number == self.una && absorbed.acked == 0 && self.next > self.una;
                newreno.note_duplicate(absorbed.duplicate);
            }
            Method::Sack(_) => {
                Scoreboard::absorb(self, ack, &mut absorbed);
                if absorbed.sacked > 0 {
                    Scoreboard::find_lost(self, &mut absorbed);
                }
                self.look_for_spurious(ack, &absorbed);
                absorbed.duplicate = absorbed.acked == 0 && absorbed.sacked > 0;
            }
            Method::Rack(_) => {
                Scoreboard::absorb(self, ack, &mut absorbed);
                self.look_for_spurious(ack, &absorbed);
                Rack::absorbed(self, ack, &absorbed);
                absorbed.duplicate = absorbed.acked == 0 && absorbed.sacked > 0;
            }
        }
        if absorbed.acked > 0 {
            self.dupacks = 0;
        } else if absorbed.duplicate {
            self.dupacks += 1;
        }
        absorbed
    }

    #[inline(always)]
    fn acknowledge_up_to(&mut self, ack: &Ack<'_>, absorbed: &mut Absorbed) {
        for number in self.una..ack.number {
            let segment = self.segments.get(number);
            absorbed.acked_bytes += u64::from(segment.len);
            let fresh = segment.flags & segments::SACKED == 0;
            if fresh {
                absorbed.fresh += 1;
                self.deliver(segment, absorbed, ack.now_us);
            }
            match &mut self.method {
                Method::NewReno(_) => {}
                Method::Sack(board) => board.forget(segment.flags),
                Method::Rack(rack) => rack.acknowledged(number, segment, ack, self.rtt.min_us),
            }
        }
        absorbed.acked = (ack.number - self.una) as u32;
        self.una = ack.number;
        self.segments.settle(self.una, self.next);
        self.bytes_acked += absorbed.acked_bytes;
        self.bytes_since_loss += absorbed.acked_bytes;
        if self.una > self.round_ends {
            absorbed.round_start = true;
            self.round_ends = self.next;
        }
        let after_timeout = self.state == CaState::Loss;
        if let Method::NewReno(newreno) = &mut self.method {
            absorbed.fresh = newreno.acknowledged_up_to(self.una, absorbed.acked, after_timeout);
        }
        self.rtt.end_back_off();
    }

    /// A segment has been delivered (draft-cheng-iccrg-delivery-rate-estimation).
    #[inline]
    pub(crate) fn deliver(&mut self, segment: Segment, absorbed: &mut Absorbed, now_us: u32) {
        self.delivered += 1;
        self.delivered_us = now_us;
        let rate = &mut absorbed.rate;
        if !rate.taken || segment.delivered.wrapping_sub(rate.prior_delivered) as i32 > 0 {
            *rate = RateSample {
                prior_delivered: segment.delivered,
                delivered: 0,
                snd_us: segment.sent_us.wrapping_sub(segment.first_sent_us),
                rcv_us: now_us.wrapping_sub(segment.delivered_us),
                app_limited: segment.flags & segments::APP_LIMITED != 0,
                taken: true,
            };
            self.first_sent_us = segment.sent_us;
        }
        rate.delivered = (self.delivered as u32).wrapping_sub(rate.prior_delivered);
    }

    /// What recovery makes of what has been absorbed, and of the time that has passed.
    #[inline(always)]
    pub(crate) fn judge(&mut self, absorbed: &mut Absorbed, now: Nanos) -> Verdict {
        match &self.method {
            Method::NewReno(_) => NewReno::judge(self, absorbed),
            Method::Sack(_) => Scoreboard::judge(self, absorbed),
            Method::Rack(_) => Rack::judge(self, absorbed, now),
        }
    }

    /// A segment leaves. `number` is `next` for a new one, which `segment` then describes.
    #[inline]
    pub(crate) fn sent(&mut self, number: u64, segment: Segment, wire_bytes: u32, now_us: u32) {
        if self.in_flight() == 0 {
            self.first_sent_us = now_us;
            self.delivered_us = now_us;
        }
        self.counters.packets += 1;
        self.counters.bytes += u64::from(wire_bytes);
        let stamped = Segment {
            sent_us: now_us,
            delivered: self.delivered as u32,
            delivered_us: self.delivered_us,
            first_sent_us: self.first_sent_us,
            flags: segment.flags & !segments::APP_LIMITED
                | if self.app_limited_until > self.delivered { segments::APP_LIMITED } else { 0 },
            ..segment
        };
        if number == self.next {
            self.segments.push(self.una, number, stamped);
            self.next += 1;
            if let Method::NewReno(newreno) = &mut self.method {
                newreno.sent_new(number);
            } else if let Some(prr) = self.prr() {
                prr.sent();
            }
        } else {
            self.counters.retransmits += 1;
            *self.segments.get_mut(number) = Segment { flags: stamped.flags | segments::AGAIN, ..stamped };
            match &mut self.method {
                Method::NewReno(newreno) => newreno.sent_again(number),
                Method::Sack(_) => Scoreboard::sent_again(self, number),
                Method::Rack(_) => Rack::sent_again(self, number, now_us),
            }
            if let Some(prr) = self.prr() {
                prr.sent();
            }
            self.note_again(now_us);
        }
    }

    /// Sending has stopped: because of the window (`limited`), or for lack of data. A window that does not
    /// limit the sender must not grow (RFC 7661; the bookkeeping is that of Linux: the fullest use of the
    /// window in the last round counts).
    #[inline]
    pub(crate) fn stopped(&mut self, limited: bool) {
        self.note_usage(limited);
        if !limited && self.in_flight() < self.cwnd {
            self.app_limited_until = self.delivered + u64::from(self.in_flight()) + 1;
        }
    }

    /// When nothing is outstanding: whether anything has been sent since the subflow was opened.
    pub(crate) fn has_sent(&self) -> bool {
        self.round_ends > 0
    }

    /// When nothing is outstanding: since when nothing has been sent, in microseconds.
    pub(crate) fn silent_since_us(&self) -> u32 {
        self.first_sent_us
    }

    /// A silence is over, whether or not this sender is the one to send now.
    pub(crate) fn end_silence(&mut self, now_us: u32) {
        self.first_sent_us = now_us;
    }

    /// Sending has stopped because it is not time yet: neither the window nor the application limits it.
    pub(crate) fn paused(&mut self) {
        self.note_usage(false);
    }

    #[inline]
    fn note_usage(&mut self, limited: bool) {
        let out = (self.next - self.una) as u32;
        if self.una >= self.usage_until || limited || (!self.cwnd_limited && out > self.max_out) {
            self.cwnd_limited = limited;
            self.max_out = out;
            self.usage_until = self.next;
        }
    }

    /// Whether the window limits the sender; in slow start half of it is enough, for it may double.
    #[inline]
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited || (self.cwnd < self.ssthresh && self.cwnd < 2 * self.max_out)
    }

    /// Whether the last flight was held back by the application.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until > self.delivered
    }

    /// Whether the window may grow now: not while it is being reduced.
    #[inline]
    pub(crate) fn may_grow(&self) -> bool {
        !matches!(self.state, CaState::Recovery | CaState::Cwr)
    }

    /// Sets the retransmission timer, or sets it anew (RFC 6298 section 5).
    #[inline]
    pub(crate) fn restart_timer(&mut self, now: Nanos, timers: &mut Timers, index: u32) {
        let deadline = now + self.rtt.rto();
        if let Method::Rack(rack) = &mut self.method {
            rack.restart_retransmission(deadline);
        }
        self.timer.arm(deadline, timers, TimerKind::Retransmit, index);
    }

    /// Whether an acknowledgement of new data restarts the timer (RFC 6298 section 5.3; during NewReno's
    /// recovery only the first partial one does, RFC 6582 section 3.2).
    #[inline]
    pub(crate) fn restarts_timer(&mut self) -> bool {
        match &mut self.method {
            Method::NewReno(newreno) if self.state == CaState::Recovery => newreno.first_partial(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Alone;

    #[test]
    fn the_rate_sample_is_what_was_delivered_over_the_flight_of_the_newest_segment() {
        let mut sender = Alone::new(Recovery::NewReno, 2);
        let absorbed =
            sender.0.absorb(&Ack { number: 2, sacks: &[], pure: true, echo_us: 0, now_us: 40_000 });
        assert_eq!((absorbed.rate.delivered, absorbed.rate.rcv_us), (2, 40_000));
        assert_eq!(sender.0.delivered, 2);
    }
}
