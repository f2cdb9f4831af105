//! wVegas (parts B8 and G9 of the algorithm reference) and MPFast (B9): packets in queues divided by rate.

mod common;

use anabranch_cc::Controller;
use common::{Connection, assert_within, subflows};

const BASE_US: u32 = 100_000;

/// Subflows whose base RTT is known, and a round of each at `rtt_us`, which ends at the next ACK.
fn rounds<const N: usize>(set: &[(&str, u32)], windows: [u32; N], rtt_us: u32) -> Connection {
    let mut connection = subflows("wvegas", set, windows, [BASE_US; N]);
    for k in 0..N {
        connection.subflows[k].view.ssthresh = 2;
        connection.sample(k, BASE_US);
        connection.call(k, Controller::idle_restart); // only its sample was wanted
        for _ in 0..3 {
            connection.sample(k, rtt_us);
        }
    }
    connection
}

fn end_round(connection: &mut Connection, k: usize) {
    connection.subflows[k].view.round_start = 1;
    connection.ack(k, 1);
    connection.subflows[k].view.round_start = 0;
}

#[test]
fn wvegas1_alone_it_keeps_all_10_packets() {
    let mut connection = rounds(&[], [20], 125_000);
    end_round(&mut connection, 0);
    assert_eq!(connection.cwnd(0), 21, "4 packets queued are fewer than alpha = 10");
    assert_eq!(connection.peers[0].public[..2], [2684, 1 << 16], "G9: the rate << 24; the weight is 1");
}

#[test]
fn two_equal_subflows_divide_total_alpha() {
    for (total, want) in [(10, 21), (4, 19)] {
        let mut connection = rounds(&[("total_alpha", total)], [20, 20], 125_000);
        connection.peers[1].public[0] = 2684;
        end_round(&mut connection, 0);
        assert_eq!(connection.cwnd(0), want, "total_alpha {total}: 4 queued, alpha {}", total / 2);
        assert_eq!(connection.peers[0].public[1], 1 << 15);
    }
}

#[test]
fn alpha_follows_the_rates_and_is_at_least_2() {
    // 3 of 10: alpha = 3 < 4 queued. 1 of 10: alpha would be 1, is 2 < 4.
    for other in [2684 * 7 / 3, 2684 * 9] {
        let mut connection = rounds(&[], [20, 20], 125_000);
        connection.peers[1].public[0] = other;
        end_round(&mut connection, 0);
        assert_eq!(connection.cwnd(0), 19);
    }
}

#[test]
fn slow_start_ends_when_more_than_gamma_packets_are_queued() {
    for (rtt_us, cwnd, ssthresh) in [(125_000, 17, 16), (104_000, 21, 1000)] {
        let mut connection = rounds(&[], [20], rtt_us);
        connection.subflows[0].view.ssthresh = 1000;
        end_round(&mut connection, 0);
        assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (cwnd, ssthresh), "{rtt_us} us");
    }
}

#[test]
fn a_round_with_two_samples_makes_renos_step() {
    let mut connection = rounds(&[], [20], 125_000);
    connection.call(0, Controller::idle_restart);
    connection.sample(0, 125_000);
    connection.sample(0, 125_000);
    end_round(&mut connection, 0);
    assert_eq!((connection.cwnd(0), connection.subflows[0].view.cwnd_cnt), (20, 1));
}

#[test]
fn a_queue_at_twice_its_smallest_delay_is_drained() {
    let mut connection = rounds(&[], [20], 110_000);
    end_round(&mut connection, 0);
    assert_eq!(connection.cwnd(0), 21);
    for (rtt_us, want) in [(119_000, 22), (120_000, 10)] {
        for _ in 0..3 {
            connection.sample(0, rtt_us);
        }
        end_round(&mut connection, 0);
        // 23 * 100 / (2 * 120) = 9.6
        assert_eq!(connection.cwnd(0), want, "{rtt_us} us");
    }
    // The memory is empty again: the same delay is the smallest now.
    connection.subflows[0].view.cwnd = 20;
    for _ in 0..3 {
        connection.sample(0, 120_000);
    }
    end_round(&mut connection, 0);
    assert_eq!(connection.cwnd(0), 21);
}

#[test]
fn slow_start_leads_back_to_three_quarters_after_a_drain() {
    let mut connection = rounds(&[], [40], 110_000);
    end_round(&mut connection, 0);
    assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (41, 31));
    for _ in 0..3 {
        connection.sample(0, 120_000);
    }
    end_round(&mut connection, 0);
    assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (18, 31), "42 * 100 / (2 * 120)");
    connection.ack(0, 100);
    assert_eq!(connection.cwnd(0), 31);
}

#[test]
fn no_queueing_delay_drains_nothing() {
    let mut connection = rounds(&[], [20], BASE_US);
    end_round(&mut connection, 0);
    assert_eq!(connection.cwnd(0), 21);
}

#[test]
fn after_recovery_and_timeout_all_but_the_base_begins_anew() {
    for timeout in [false, true] {
        let mut connection = rounds(&[], [20], 125_000);
        end_round(&mut connection, 0);
        assert_ne!(connection.peers[0].public[0], 0);
        if timeout {
            connection.timeout(0);
        } else {
            assert_eq!(connection.fast_retransmit(0), 10);
        }
        assert_eq!(connection.peers[0].public[..2], [0, 0]);
        // alpha is 2 again, so that 2.5 packets queued are too many, and the base is still 100 ms.
        connection.subflows[0].view.cwnd = 25;
        connection.subflows[0].view.ssthresh = 2;
        connection.peers[1].public[0] = 1 << 40;
        connection.peers[1].usable = 1;
        connection.peers[1].srtt8_us = 800_000;
        for _ in 0..3 {
            connection.sample(0, 112_000);
        }
        end_round(&mut connection, 0);
        assert_eq!(connection.cwnd(0), 24);
    }
}

/// wVegas over real numbers, one subflow.
struct Real {
    cwnd: f64,
    ssthresh: f64,
    alpha: f64,
    rate: f64,
    delay_min_s: Option<f64>,
    sum_s: f64,
    samples: f64,
}

impl Real {
    /// The end of a round, `others` the rates of the peers.
    fn decide(&mut self, base_s: f64, others: f64) {
        self.step(base_s, others);
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
    }

    fn step(&mut self, base_s: f64, others: f64) {
        let rtt_s = self.sum_s / self.samples;
        let diff = self.cwnd * (rtt_s - base_s) / rtt_s;
        if self.cwnd < self.ssthresh {
            if diff > 1.0 {
                self.cwnd = self.cwnd.min(self.cwnd * base_s / rtt_s + 1.0);
                self.ssthresh = self.ssthresh.min(self.cwnd - 1.0);
            } else {
                self.cwnd = self.ssthresh.min(self.cwnd + 1.0);
            }
            return;
        }
        if diff >= self.alpha {
            self.rate = self.cwnd / rtt_s;
            self.alpha = (self.rate / (self.rate + others) * 10.0).floor().max(2.0);
        }
        if diff > self.alpha {
            self.cwnd -= 1.0;
            self.ssthresh = self.ssthresh.min(self.cwnd - 1.0);
        } else if diff < self.alpha {
            self.cwnd += 1.0;
        }
        let delay_s = rtt_s - base_s;
        if delay_s > 0.0 {
            let least_s = self.delay_min_s.map_or(delay_s, |least_s| least_s.min(delay_s));
            self.delay_min_s = Some(least_s);
            if delay_s >= 2.0 * least_s {
                self.cwnd *= base_s / (2.0 * rtt_s);
                self.delay_min_s = None;
            }
        }
    }
}

/// Two subflows on paths of their own, compared by what they send. The window after a drain is rounded to a whole packet,
/// half a packet off at most: 1 % at the 50 packets that these windows do not fall below.
#[test]
fn within_1_percent_of_real_numbers_over_1000_acks() {
    let base_s = f64::from(BASE_US) / 1e6;
    for (start, packets_per_s) in
        [([120, 150], [1600.0, 1400.0]), ([190, 160], [1800.0, 1800.0]), ([250, 110], [2500.0, 1150.0])]
    {
        let mut connection = subflows("wvegas", &[], start, [BASE_US; 2]);
        for k in 0..2 {
            connection.subflows[k].view.ssthresh = 2;
            for _ in 0..3 {
                connection.sample(k, BASE_US);
            }
        }
        let mut real = start.map(|cwnd| Real {
            cwnd: f64::from(cwnd),
            ssthresh: 2.0,
            alpha: 2.0,
            rate: 0.0,
            delay_min_s: None,
            sum_s: 3.0 * base_s,
            samples: 3.0,
        });
        let (mut sent, mut want) = ([0.0f64; 2], [0.0; 2]);
        while sent[0].min(sent[1]) < 1000.0 {
            for k in 0..2 {
                let rtt_s = |cwnd: f64| base_s.max(cwnd / packets_per_s[k]);
                let cwnd = f64::from(connection.cwnd(k));
                sent[k] += cwnd;
                connection.round(k, (rtt_s(cwnd) * 1e6).round() as u32);

                let others = real[1 - k].rate;
                let of = &mut real[k];
                let (packets, sample_s) = (of.cwnd.floor(), rtt_s(of.cwnd));
                want[k] += of.cwnd;
                of.sum_s += sample_s;
                of.samples += 1.0;
                of.decide(base_s, others);
                of.samples = packets - 1.0;
                of.sum_s = sample_s * of.samples;
                if of.cwnd < of.ssthresh {
                    of.cwnd = of.ssthresh.min(of.cwnd + of.samples);
                }
            }
        }
        for k in 0..2 {
            assert_within(sent[k], want[k], 1.0, &format!("{start:?}, subflow {k}"));
        }
    }
}

#[test]
fn b9_mpfast_divides_alpha_by_rate() {
    // x = (500, 166.7) packets per second, so alpha = (75, 25): 30 + (50 + 75) / 2 = 92.5.
    for (k, want) in [92, 32].into_iter().enumerate() {
        let mut connection =
            subflows("mpfast", &[("mi_threshold", 0), ("smoothing", 1)], [60, 20], [120_000; 2]);
        connection.sample(k, 100_000);
        for _ in 0..200 {
            connection.sample(k, 120_000);
        }
        connection.set(1 - k, [60, 20][1 - k], 1, 120_000);
        let cwnd = connection.cwnd(k);
        connection.set(k, cwnd, 1, 120_000);
        connection.round(k, 120_000);
        connection.round(k, 120_000);
        // Subflow 2: 10 + (16.7 + 25) / 2 = 30.8.
        assert_eq!(connection.cwnd(k), if k == 0 { want } else { 30 }, "subflow {k}");
    }
}

#[test]
fn mpfast_alone_is_fast_with_all_of_alpha() {
    let set = [("mi_threshold", 750)];
    let mut mpfast = subflows("mpfast", &set, [20], [BASE_US]);
    let mut fast = subflows("fast", &set, [20], [BASE_US]);
    for _ in 0..100 {
        for connection in [&mut mpfast, &mut fast] {
            let rtt_us = BASE_US.max(connection.cwnd(0) * 1000);
            connection.round(0, rtt_us);
        }
        assert_eq!(mpfast.cwnd(0), fast.cwnd(0));
    }
}
