//! What endpoints do when nothing has come in time: retransmission timeouts, and the ends of reordering windows and
//! loss probes of RACK-TLP.

use anabranch_cc::Controller;
use anabranch_scenario::model::Protocol;

use super::{Phase, Side, World};
use crate::{
    engine::{heads::Key, timers::TimerKind},
    packet::unwrap,
    tcp::{
        ack::Absorbed,
        rack::{Purpose, Rack},
        segments::{LOST, RETRANSMITTED, SACKED},
        sender::Method,
    },
};

impl<K: Key> World<'_, K> {
    /// The timer of an endpoint has expired.
    pub(super) fn loss_timer(&mut self, index: usize) {
        if self.endpoints[index].phase != Phase::Established {
            self.repeat_handshake(index);
            return;
        }
        let sender = &self.endpoints[index].sender;
        if sender.outstanding() == 0 {
            return;
        }
        let purpose = match &sender.method {
            Method::Rack(rack) => rack.purpose(),
            Method::NewReno(_) | Method::Sack(_) => Purpose::Retransmission,
        };
        match purpose {
            Purpose::Retransmission => self.time_out(index),
            Purpose::Reordering => self.end_reordering(index),
            Purpose::Probe => self.probe(index),
        }
        self.time_by_rack(index);
    }

    fn time_out(&mut self, index: usize) {
        let nothing = Absorbed::default();
        let was_stale = self.endpoints[index].sender.is_stale();
        let ssthresh = self.endpoints[index]
            .sender
            .timeout_begins_episode()
            .then(|| self.congestion(index, &nothing, None, Controller::loss));
        self.endpoints[index].sender.time_out(ssthresh, self.now);
        self.congestion(index, &nothing, None, Controller::rto);
        let endpoint = &mut self.endpoints[index];
        endpoint.ecn.reduced();
        endpoint.sender.restart_timer(self.now, &mut self.timers, index as u32);
        let connection = &mut self.connections[endpoint.connection as usize];
        if connection.is_mptcp() && endpoint.sender.is_stale_with_timeout() {
            endpoint.sender.counters.failures += u32::from(!was_stale);
            let Side { send: meta, mechanics, .. } = &mut connection.sides[index & 1];
            for number in endpoint.sender.una..endpoint.sender.next {
                meta.reinject(unwrap(endpoint.sender.segments.get(number).data_seq, meta.una));
            }
            if let Some(later) = mechanics.as_mut().and_then(|mechanics| mechanics.later.as_mut()) {
                later.take_back(endpoint.subflow, meta);
            }
        }
        let number = self.endpoints[index].connection as usize;
        self.push(index);
        self.call_manager(number);
    }

    /// The reordering window of some segments is over: they are lost (RFC 8985 section 6.2, step 5). Acknowledgements
    /// have come until now, so the retransmission timeout begins anew.
    fn end_reordering(&mut self, index: usize) {
        let sender = &mut self.endpoints[index].sender;
        sender.restart_timer(self.now, &mut self.timers, index as u32);
        let mut absorbed = Absorbed { prior_in_flight: sender.in_flight(), ..Absorbed::default() };
        self.recover(index, &mut absorbed);
        self.push(index);
    }

    /// A loss probe is due (RFC 8985 section 7.3): new data if there is any, whatever the window says, else the newest
    /// segment again. A subflow of MPTCP has no data of its own that it has not sent. Then the retransmission
    /// timeout begins anew, even if nothing could be sent.
    fn probe(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        let connection = &mut self.connections[endpoint.connection as usize];
        let meta = &mut connection.sides[index & 1].send;
        let fresh = if connection.protocol == Protocol::Tcp { meta.next_len() } else { None };
        let newest = endpoint.sender.next - 1;
        let settled = endpoint.sender.segments.get(newest).flags & (SACKED | LOST | RETRANSMITTED) != 0;
        let Method::Rack(rack) = &mut endpoint.sender.method else { unreachable!("a probe is of RACK-TLP") };
        if rack.probe.expire() {
            if let Some(len) = fresh {
                let number = meta.next;
                meta.sent(number, len, 0);
                let last = !meta.has_more();
                self.send_new(index, number, len, last);
                self.note_probe(index, false);
            } else if !settled {
                self.send_again(index, newest);
                self.note_probe(index, true);
            }
        }
        self.endpoints[index].sender.restart_timer(self.now, &mut self.timers, index as u32);
    }

    fn note_probe(&mut self, index: usize, again: bool) {
        let sender = &mut self.endpoints[index].sender;
        let end = sender.next;
        if let Method::Rack(rack) = &mut sender.method {
            rack.probe.sent(end, again);
        }
    }

    /// Sets the timer of a sender with RACK-TLP for what comes next.
    #[inline]
    pub(super) fn time_by_rack(&mut self, index: usize) {
        let sender = &mut self.endpoints[index].sender;
        if let Method::Rack(_) = sender.method
            && sender.outstanding() > 0
        {
            let deadline = Rack::timer(sender).max(self.now);
            sender.timer.arm(deadline, &mut self.timers, TimerKind::Retransmit, index as u32);
        }
    }
}
