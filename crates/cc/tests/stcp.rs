//! STCP: the check vectors of A13, F7 and G10 of the algorithm reference, and the rules of Algorithm 1 of the paper.
#![allow(unsafe_code)]

mod common;

use anabranch_cc::SSTHRESH_INFINITE;
use common::Connection;
use proptest::prelude::*;

// SAFETY: these are the functions of host/formulas.c, with these types; the two with pointers read seven and ten elements.
unsafe extern "C" {
    fn ab_formula_stcp(path: *const u32, bandwidth: u32, what: u32) -> u64;
    safe fn ab_formula_stcp_sample(bytes: u32, gap_us: u32) -> u32;
    safe fn ab_formula_stcp_initial_window(capacity: u32, rtt_min_us: u32, mss: u32, most: u32) -> u32;
    fn ab_formula_stcp_median(samples: *const u32) -> u32;
}

const AVAILABLE: u32 = 0;
const THROUGHPUT: u32 = 1;

/// Used kbit/s, queue times 256, factor and threshold.
fn decision(path: [u32; 7], bandwidth: u32) -> [u64; 4] {
    // SAFETY: `path` has the seven elements that the function reads.
    [0, 1, 2, 3].map(|what| unsafe { ab_formula_stcp(path.as_ptr(), bandwidth, what) })
}

/// 1 Mbit/s, 1000-byte packets, 240 to 640 ms, a queue of 50.
fn path(cwnd: u32, rtt_ms: u32) -> [u32; 7] {
    [1000, 50, rtt_ms * 1000, 240_000, 640_000, 1000, cwnd]
}

#[test]
fn stcp1_a_short_queue_lets_the_window_grow() {
    let [used, queue, ecd, thresh] = decision(path(25, 300), AVAILABLE);
    // A13: 0.6667 Mbit/s, 5 packets, 1.0 and 14.4 in Mbit/s, packets and seconds; G10 in kbit/s and ms.
    assert_eq!((used, queue, ecd, thresh), (666, 5 * 256, 999_000, 14_400_000));
}

#[test]
fn stcp2_a_full_queue_holds_it_and_with_the_other_reading_does_not() {
    let [used, queue, ecd, thresh] = decision(path(80, 640), AVAILABLE);
    assert_eq!((used, queue, ecd), (1000, 50 * 256, 32_000_000));
    assert!(ecd > thresh);
    let [.., ecd, _] = decision(path(80, 640), THROUGHPUT);
    assert_eq!(ecd, 0);
}

#[test]
fn stcp3_acks_of_1000_bytes_8_ms_apart_are_1_mbit_per_s() {
    assert_eq!(ab_formula_stcp_sample(1000, 8000), 1000);
}

#[test]
fn the_margins_are_at_least_a_twentieth_of_the_capacity_and_half_of_the_queue() {
    let thresh =
        |capacity, queue| decision([capacity, queue, 300_000, 240_000, 1_000_000, 1000, 25], AVAILABLE)[3];
    assert_eq!(thresh(400, 50), 20 * 45 * 1000);
    assert_eq!(thresh(1000, 8), 500 * 4 * 1000);
    assert_eq!(thresh(500, 0), 0);
}

#[test]
fn the_initial_window_is_the_bdp_within_its_bounds() {
    let window = |capacity, rtt_us| ab_formula_stcp_initial_window(capacity, rtt_us, 1000, 50);
    assert_eq!(window(1000, 240_000), 30);
    assert_eq!((window(1000, 1000), window(100_000, 240_000)), (2, 50));
}

proptest! {
    #[test]
    fn the_median_is_that_of_the_sorted_samples(samples in proptest::array::uniform10(0u32..=1 << 28)) {
        // SAFETY: it has the ten elements that the function reads.
        let median = unsafe { ab_formula_stcp_median(samples.as_ptr()) };
        let mut sorted = samples;
        sorted.sort_unstable();
        prop_assert_eq!(median, (sorted[4] + sorted[5]) / 2);
    }

    #[test]
    fn the_decision_is_exact(
        capacity in 1u32..1 << 24, queue_max in 0u32..1000, rtt_ms in 1u32..10_000, less in 0u32..10_000,
        cwnd in 1u32..100_000, mss in 1u32..65536,
    ) {
        let least = rtt_ms.saturating_sub(less).max(1);
        let path = [capacity, queue_max, rtt_ms * 1000, least * 1000, rtt_ms * 1000, mss, cwnd];
        let [c, q, r, m, w, l] = [capacity, queue_max, rtt_ms, least, cwnd, mss].map(u128::from);
        let used = (w * l * 8 / r).min(c);
        let queue = ((w * (r - m)) << 8) / r;
        let thresh = (c.saturating_sub(500)).max(c / 20) * q.saturating_sub(5).max(q / 2) * r;
        let found = decision(path, AVAILABLE).map(u128::from);
        prop_assert_eq!(found, [used, queue, (used * queue * r) >> 8, thresh]);
        let other = decision(path, THROUGHPUT).map(u128::from);
        prop_assert_eq!(other[2], ((c - used) * queue * r) >> 8);
    }
}

/// A subflow with ten samples of 1 Mbit/s, RTTs between 240 and 640 ms, in congestion avoidance.
fn measured(set: &[(&str, u32)], cwnd: u32, ssthresh: u32) -> Connection {
    let mut connection = Connection::new(1, "stcp", &[&[("queue_max", 50)], set].concat());
    connection.subflows[0].view.ssthresh = 2;
    for _ in 0..5 {
        pair(&mut connection, 240_000, 8000);
        pair(&mut connection, 640_000, 8000);
    }
    connection.subflows[0].view.cwnd = cwnd;
    connection.subflows[0].view.ssthresh = ssthresh;
    connection
}

/// An RTT sample of an ACK for 1000 bytes that comes `gap_us` after the last.
fn pair(connection: &mut Connection, rtt_us: u32, gap_us: u32) {
    let view = &mut connection.subflows[0].view;
    (view.ack_gap_us, view.acked_bytes_gap) = (gap_us, 1000);
    connection.sample(0, rtt_us);
}

/// One ACK for one packet with an RTT.
fn ack(connection: &mut Connection, rtt_us: u32) {
    pair(connection, rtt_us, 8000);
    connection.subflows[0].view.acked = 1;
    connection.call(0, |c, x, o| c.ack(x, o));
}

#[test]
fn step_9_the_window_rests_above_the_threshold_and_step_10_it_grows_below() {
    let mut connection = measured(&[], 80, 40);
    ack(&mut connection, 640_000);
    ack(&mut connection, 640_000);
    assert_eq!(connection.cwnd(0), 80);
    ack(&mut connection, 250_000);
    assert_eq!(connection.cwnd(0), 80, "ssthresh / cwnd is a half");
    ack(&mut connection, 250_000);
    assert_eq!(connection.cwnd(0), 81);
    let mut other = measured(&[("bandwidth", THROUGHPUT)], 80, 40);
    ack(&mut other, 640_000);
    ack(&mut other, 640_000);
    assert_eq!(other.cwnd(0), 81);
}

#[test]
fn growth_is_capped_at_a_packet_per_packet_and_literally_is_not() {
    let mut capped = measured(&[], 10, 40);
    ack(&mut capped, 250_000);
    assert_eq!(capped.cwnd(0), 11);
    let mut literal = measured(&[("literal", 1)], 10, 40);
    ack(&mut literal, 250_000);
    assert_eq!(literal.cwnd(0), 14);
}

#[test]
fn ten_samples_set_the_initial_window_once() {
    let mut connection = Connection::new(1, "stcp", &[]);
    assert_eq!(connection.ssthresh(0), SSTHRESH_INFINITE);
    for _ in 0..9 {
        pair(&mut connection, 240_000, 8000);
    }
    assert_eq!(connection.cwnd(0), 10);
    pair(&mut connection, 240_000, 8000);
    assert_eq!(connection.cwnd(0), 30);
    connection.subflows[0].view.cwnd = 20;
    pair(&mut connection, 240_000, 8000);
    assert_eq!(connection.cwnd(0), 20, "once");
}

#[test]
fn the_initial_window_is_not_set_after_a_loss() {
    let mut connection = Connection::new(1, "stcp", &[]);
    connection.fast_retransmit(0);
    let before = connection.cwnd(0);
    for _ in 0..20 {
        pair(&mut connection, 240_000, 8000);
    }
    assert_eq!(connection.cwnd(0), before);
}

#[test]
fn the_first_ack_of_a_round_trip_is_no_pair_and_the_median_ignores_an_outlier() {
    for (set, want) in [(&[][..], 28), (&[("capacity", 1)][..], 30)] {
        let mut connection = Connection::new(1, "stcp", set);
        connection.subflows[0].view.cwnd = 2;
        for sample in 0..10 {
            connection.subflows[0].view.round_start = 1;
            pair(&mut connection, 240_000, 100_000);
            connection.subflows[0].view.round_start = 0;
            pair(&mut connection, 240_000, if sample == 4 { 16_000 } else { 8000 });
        }
        assert_eq!(connection.cwnd(0), want, "{set:?}");
    }
}

/// Q is 80 (640 - 240) / 640 = 50 then; afterwards 5 at a window of 25 and 300 ms.
#[test]
fn without_a_configured_queue_the_largest_estimate_counts() {
    let mut connection = measured(&[("queue_max", 0)], 80, 40);
    ack(&mut connection, 640_000);
    ack(&mut connection, 640_000);
    assert_eq!(connection.cwnd(0), 80, "32 million above 14.4 million");
    connection.subflows[0].view.cwnd = 25;
    ack(&mut connection, 300_000);
    assert_eq!(connection.cwnd(0), 26);
}

#[test]
fn a_loss_is_renos() {
    let mut connection = measured(&[], 41, 1000);
    assert_eq!(connection.fast_retransmit(0), 20);
}
