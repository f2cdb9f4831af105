//! A connection of a few subflows whose host is the test: it decides every round-trip time and every event.
#![allow(dead_code)] // every test binary uses its own part

pub(crate) mod mfvl;

use anabranch_cc::{
    CaState, Conn, Context, Controller, MAX_PEERS, OUT_CWND, OUT_CWND_CNT, OUT_PUB, OUT_SSTHRESH, Out, Peer,
    SSTHRESH_INFINITE, View, find,
};

/// One subflow: its controller and what the host knows about it.
pub(crate) struct Subflow {
    pub(crate) controller: Controller,
    pub(crate) view: View,
}

/// A connection. Subflows are addressed by index.
pub(crate) struct Connection {
    pub(crate) subflows: Vec<Subflow>,
    pub(crate) peers: [Peer; MAX_PEERS],
    pub(crate) conn: Conn,
    pub(crate) now_us: u64,
}

/// A controller with some parameters set by name and defaults for the others.
pub(crate) fn controller(name: &str, set: &[(&str, u32)]) -> Controller {
    let algorithm = find(name).unwrap_or_else(|| panic!("{name} is not in the registry"));
    let mut values: Vec<u32> = algorithm.params().iter().map(|p| p.default).collect();
    for (key, value) in set {
        let index = algorithm.params().iter().position(|p| p.name == *key);
        values[index.unwrap_or_else(|| panic!("{name} has no parameter {key}"))] = *value;
    }
    Controller::new(algorithm, &values)
}

impl Connection {
    /// `n` subflows under the same algorithm, initialised, window 10, in slow start, no RTT sample yet.
    pub(crate) fn new(n: usize, name: &str, set: &[(&str, u32)]) -> Self {
        let view = View {
            cwnd: 10,
            cwnd_clamp: 1 << 20,
            ssthresh: SSTHRESH_INFINITE,
            mss: 1000,
            acked: 1,
            acked_sacked: 1,
            cwnd_limited: 1,
            n_usable: n as u8,
            ..View::default()
        };
        let subflows = (0..n)
            .map(|k| Subflow {
                controller: controller(name, set),
                view: View { self_index: k as u8, ..view },
            })
            .collect();
        let conn = Conn { n: n as u32, ..Conn::default() };
        let mut connection = Self { subflows, peers: [Peer::default(); MAX_PEERS], conn, now_us: 1_000_000 };
        for k in 0..n {
            connection.publish(k);
        }
        for k in 0..n {
            connection.call(k, |c, x, o| c.init(x, o));
        }
        connection
    }

    /// Window, threshold and round-trip time of subflow `k`, as if they had always been so.
    pub(crate) fn set(&mut self, k: usize, cwnd: u32, ssthresh: u32, rtt_us: u32) {
        let view = &mut self.subflows[k].view;
        view.cwnd = cwnd;
        view.ssthresh = ssthresh;
        view.rtt_us = rtt_us;
        view.srtt8_us = 8 * rtt_us;
        self.publish(k);
    }

    fn publish(&mut self, k: usize) {
        let view = self.subflows[k].view;
        let peer = &mut self.peers[k];
        peer.cwnd = view.cwnd;
        peer.ssthresh = view.ssthresh;
        peer.mss = view.mss;
        peer.srtt8_us = view.srtt8_us;
        peer.base_rtt_us = view.min_rtt_us;
        peer.usable = 1;
        peer.in_slow_start = (view.cwnd < view.ssthresh) as u8;
        peer.ca_state = view.ca_state;
    }

    /// Makes one call and applies the answer.
    pub(crate) fn call<R>(
        &mut self,
        k: usize,
        event: impl FnOnce(&mut Controller, Context<'_>, &mut Out) -> R,
    ) -> R {
        self.publish(k);
        let subflow = &mut self.subflows[k];
        subflow.view.now_us = self.now_us;
        let mut out = Out::default();
        let context = Context { view: &subflow.view, peers: &self.peers, conn: &mut self.conn };
        let result = event(&mut subflow.controller, context, &mut out);
        if out.mask & OUT_CWND != 0 {
            subflow.view.cwnd = out.cwnd;
        }
        if out.mask & OUT_CWND_CNT != 0 {
            subflow.view.cwnd_cnt = out.cwnd_cnt;
        }
        if out.mask & OUT_SSTHRESH != 0 {
            subflow.view.ssthresh = out.ssthresh;
        }
        if out.mask & OUT_PUB != 0 {
            self.peers[k].public = out.public;
        }
        self.publish(k);
        result
    }

    /// An RTT sample, without an ACK that lets the window grow.
    pub(crate) fn sample(&mut self, k: usize, rtt_us: u32) {
        let view = &mut self.subflows[k].view;
        view.rtt_us = rtt_us;
        view.rtt_valid = 1;
        view.min_rtt_us = if view.min_rtt_us == 0 { rtt_us } else { view.min_rtt_us.min(rtt_us) };
        view.srtt8_us =
            if view.srtt8_us == 0 { 8 * rtt_us } else { view.srtt8_us - view.srtt8_us / 8 + rtt_us };
        self.call(k, |c, x, o| c.rtt_sample(x, o));
    }

    /// One ACK for `acked` packets without an RTT sample.
    pub(crate) fn ack(&mut self, k: usize, acked: u32) {
        let view = &mut self.subflows[k].view;
        view.acked = acked;
        view.acked_sacked = acked;
        view.delivered += u64::from(acked);
        view.rtt_valid = 0;
        self.call(k, |c, x, o| c.ack(x, o));
    }

    /// One ACK for `acked` packets that `interval_us` brought, for a rate algorithm.
    pub(crate) fn rate(&mut self, k: usize, acked: u32, interval_us: u32) {
        let view = &mut self.subflows[k].view;
        (view.acked, view.acked_sacked) = (acked, acked);
        (view.rs_delivered, view.rs_interval_us) = (acked, interval_us);
        view.rs_prior_delivered = view.delivered;
        view.delivered += u64::from(acked);
        self.call(k, |c, x, o| c.rate(x, o));
    }

    /// One round of `cwnd` single-packet ACKs, each with the sample `rtt_us`, spread over that time.
    pub(crate) fn round(&mut self, k: usize, rtt_us: u32) {
        let packets = self.subflows[k].view.cwnd;
        let start_us = self.now_us;
        for packet in 0..packets {
            self.now_us = start_us + u64::from(rtt_us) * u64::from(packet + 1) / u64::from(packets);
            self.subflows[k].view.round_start = (packet == 0) as u8;
            self.sample(k, rtt_us);
            let view = &mut self.subflows[k].view;
            view.rtt_valid = 1;
            view.acked = 1;
            view.delivered += 1;
            view.in_flight = view.cwnd;
            view.prior_in_flight = view.cwnd;
            self.call(k, |c, x, o| c.ack(x, o));
        }
    }

    /// A fast retransmit and its end for a rate algorithm: the window stays with it.
    pub(crate) fn rate_recovery(&mut self, k: usize) {
        self.peers[k].loss_events += 1;
        let ssthresh = self.call(k, |c, x, o| c.loss(x, o));
        for state in [CaState::Recovery, CaState::Open] {
            let view = &mut self.subflows[k].view;
            (view.ssthresh, view.ca_state) = (ssthresh, state as u8);
            view.rs_losses = u32::from(state == CaState::Recovery);
            self.rate(k, 1, 1000);
        }
    }

    /// A fast retransmit and its end: the window becomes the returned threshold.
    pub(crate) fn fast_retransmit(&mut self, k: usize) -> u32 {
        self.subflows[k].view.prior_cwnd = self.subflows[k].view.cwnd;
        self.peers[k].loss_events += 1;
        let ssthresh = self.call(k, |c, x, o| c.loss(x, o));
        let view = &mut self.subflows[k].view;
        view.ssthresh = ssthresh;
        view.ca_state = CaState::Recovery as u8;
        self.publish(k);
        let view = &mut self.subflows[k].view;
        view.cwnd = ssthresh;
        view.cwnd_cnt = 0;
        view.ca_state = CaState::Open as u8;
        self.call(k, |c, x, o| c.recovery_exit(x, o));
        ssthresh
    }

    /// A timeout: `loss`, window 1, `rto`; the episode stays open.
    pub(crate) fn timeout(&mut self, k: usize) {
        let view = &mut self.subflows[k].view;
        view.prior_cwnd = view.cwnd;
        self.peers[k].loss_events += 1;
        let ssthresh = self.call(k, |c, x, o| c.loss(x, o));
        let view = &mut self.subflows[k].view;
        view.ssthresh = ssthresh;
        view.cwnd = 1;
        view.cwnd_cnt = 0;
        view.ca_state = CaState::Loss as u8;
        self.call(k, |c, x, o| c.rto(x, o));
        self.subflows[k].view.ca_state = CaState::Open as u8;
    }

    /// Change of the window per ACK on subflow `k` if the windows are put back after every step.
    pub(crate) fn change_per_ack(&mut self, k: usize, acks: u32) -> f64 {
        let frozen = self.cwnd(k);
        let mut change = 0;
        for _ in 0..acks {
            self.ack(k, 1);
            change += i64::from(self.cwnd(k)) - i64::from(frozen);
            self.subflows[k].view.cwnd = frozen;
        }
        change as f64 / f64::from(acks)
    }

    /// The window of subflow `k`.
    pub(crate) fn cwnd(&self, k: usize) -> u32 {
        self.subflows[k].view.cwnd
    }

    /// The slow-start threshold of subflow `k`.
    pub(crate) fn ssthresh(&self, k: usize) -> u32 {
        self.subflows[k].view.ssthresh
    }
}

/// Subflows in congestion avoidance that have always had these windows and round-trip times.
pub(crate) fn subflows<const N: usize>(
    name: &str,
    set: &[(&str, u32)],
    windows: [u32; N],
    rtts_us: [u32; N],
) -> Connection {
    let mut connection = Connection::new(N, name, set);
    for k in 0..N {
        connection.set(k, windows[k], 1, rtts_us[k]);
    }
    connection
}

/// Single-packet ACKs until the window of subflow `k` changes.
pub(crate) fn acks_to_growth(connection: &mut Connection, k: usize) -> u32 {
    let before = connection.cwnd(k);
    for acks in 1..1_000_000 {
        connection.ack(k, 1);
        if connection.cwnd(k) != before {
            return acks;
        }
    }
    panic!("a million ACKs and no growth");
}

/// Asserts that `got` is within `percent` of `want`.
pub(crate) fn assert_within(got: f64, want: f64, percent: f64, what: &str) {
    let off = (got - want).abs() / want.abs() * 100.0;
    assert!(off <= percent, "{what}: got {got}, want {want}, off by {off:.2} %, allowed {percent} %");
}
