//! Rules of the single-path window algorithms, as a host sees them: A2 to A4 and A8 of the algorithm reference.

mod common;

use common::{Connection, acks_to_growth};

/// One subflow in congestion avoidance.
fn avoiding(name: &str, set: &[(&str, u32)], cwnd: u32, rtt_us: u32) -> Connection {
    let mut connection = Connection::new(1, name, set);
    connection.set(0, cwnd, 2, rtt_us);
    connection
}

/// Congestion avoidance with a base RTT of `base_us` and a finished round of `rtt_us` samples, then one ACK
/// that ends the round.
fn after_a_round(name: &str, set: &[(&str, u32)], cwnd: u32, base_us: u32, rtt_us: u32) -> Connection {
    let mut connection = avoiding(name, set, cwnd, base_us);
    connection.sample(0, base_us);
    connection.call(0, |c, x, o| c.recovery_exit(x, o));
    for _ in 0..cwnd {
        connection.sample(0, rtt_us);
    }
    connection.subflows[0].view.round_start = 1;
    connection.ack(0, 1);
    connection.subflows[0].view.round_start = 0;
    connection
}

#[test]
fn reno1_fast_retransmit_halves() {
    assert_eq!(avoiding("reno", &[], 20, 100_000).fast_retransmit(0), 10);
    assert_eq!(avoiding("reno", &[], 3, 100_000).fast_retransmit(0), 2);
}

#[test]
fn reno2_ten_acks_at_ten_are_one_packet() {
    let mut connection = avoiding("reno", &[], 10, 100_000);
    assert_eq!(acks_to_growth(&mut connection, 0), 10);
    assert_eq!(connection.cwnd(0), 11);
}

#[test]
fn reno_timeout_leaves_the_hosts_window_and_the_threshold() {
    let mut connection = avoiding("reno", &[], 20, 100_000);
    connection.timeout(0);
    assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (1, 10));
    connection.ack(0, 1);
    connection.ack(0, 2);
    assert_eq!(connection.cwnd(0), 4);
}

#[test]
fn slow_start_ends_at_the_threshold_and_the_rest_counts() {
    let mut connection = avoiding("reno", &[], 10, 100_000);
    connection.subflows[0].view.ssthresh = 12;
    connection.ack(0, 5);
    assert_eq!((connection.cwnd(0), connection.subflows[0].view.cwnd_cnt), (12, 3));
}

#[test]
fn vegas2_a_diff_above_beta_takes_one_packet_at_once() {
    assert_eq!(after_a_round("vegas", &[], 20, 100_000, 125_000).cwnd(0), 19);
    let linux = [("variant", 1), ("alpha", 2), ("beta", 4)];
    assert_eq!(after_a_round("vegas", &linux, 20, 100_000, 125_000).cwnd(0), 19);
}

#[test]
fn vegas3_a_diff_below_alpha_adds_one_packet() {
    let mut ns2 = after_a_round("vegas", &[], 20, 100_000, 104_000);
    assert_eq!(ns2.cwnd(0), 20);
    for _ in 1..20 {
        ns2.ack(0, 1);
    }
    assert_eq!(ns2.cwnd(0), 21, "spread over the round");
    let linux = [("variant", 1), ("alpha", 2), ("beta", 4)];
    assert_eq!(after_a_round("vegas", &linux, 20, 100_000, 104_000).cwnd(0), 21);
}

/// RFC 5681: ssthresh is at least two packets, though the window that it follows is one after a timeout.
#[test]
fn vegas_a_long_round_at_a_window_of_one_leaves_a_threshold_of_two() {
    let mut connection = avoiding("vegas", &[("variant", 1)], 1, 3_000);
    connection.sample(0, 3_000);
    connection.call(0, |c, x, o| c.recovery_exit(x, o));
    for _ in 0..5 {
        connection.sample(0, 500_000);
    }
    connection.subflows[0].view.round_start = 1;
    connection.ack(0, 1);
    assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (1, 2));
}

#[test]
fn vegas_holds_between_alpha_and_beta() {
    // diff = 20 * 10 / 110 = 1.8 packets
    let mut ns2 = after_a_round("vegas", &[], 20, 100_000, 110_000);
    for _ in 1..40 {
        ns2.ack(0, 1);
    }
    assert_eq!(ns2.cwnd(0), 20);
}

#[test]
fn vegas_uses_the_mean_where_linux_uses_the_minimum() {
    for (set, want) in [(&[][..], 19), (&[("variant", 1), ("alpha", 1), ("beta", 3)][..], 21)] {
        let mut connection = avoiding("vegas", set, 20, 100_000);
        connection.sample(0, 100_000);
        for _ in 0..9 {
            connection.sample(0, 140_000);
        }
        connection.subflows[0].view.round_start = 1;
        connection.ack(0, 1);
        assert_eq!(connection.cwnd(0), want);
    }
}

#[test]
fn vegas_slow_start_doubles_every_other_round_in_ns2_and_every_round_in_linux() {
    for (variant, want) in [(0, [2, 4, 4, 8, 8]), (1, [2, 4, 8, 16, 32])] {
        let mut connection = Connection::new(1, "vegas", &[("variant", variant)]);
        connection.set(0, 2, 1000, 100_000);
        let mut windows = Vec::new();
        for _ in 0..5 {
            windows.push(connection.cwnd(0));
            connection.round(0, 100_000);
        }
        // ns-2's rounds begin with a growing one; the first ACK of the connection ends an empty round.
        let start = windows.iter().position(|w| *w == want[1]).expect("it grows");
        assert_eq!(windows[start - 1..], want[..6 - start], "variant {variant}: {windows:?}");
    }
}

#[test]
fn vegas_leaves_slow_start_above_gamma() {
    for (variant, want) in [(0, (14, 2)), (1, (13, 13))] {
        let mut connection = Connection::new(1, "vegas", &[("variant", variant)]);
        connection.set(0, 16, 1000, 100_000);
        connection.sample(0, 100_000);
        connection.call(0, |c, x, o| c.recovery_exit(x, o));
        for _ in 0..16 {
            connection.sample(0, 125_000);
        }
        connection.subflows[0].view.round_start = 1;
        connection.subflows[0].view.acked = 0;
        connection.ack(0, 0);
        assert_eq!((connection.cwnd(0), connection.ssthresh(0)), want, "variant {variant}");
    }
}

#[test]
fn vegas_fast_retransmit_keeps_three_quarters() {
    for (cwnd, want) in [(20, 15), (4, 3), (3, 2), (2, 2)] {
        assert_eq!(avoiding("vegas", &[], cwnd, 100_000).fast_retransmit(0), want, "from {cwnd}");
        assert_eq!(avoiding("mvegas", &[], cwnd, 100_000).fast_retransmit(0), want, "from {cwnd}");
    }
    assert_eq!(avoiding("vegas", &[("variant", 1)], 20, 100_000).fast_retransmit(0), 10);
}

#[test]
fn vegas_and_fast_families_restart_from_two_packets_to_half_of_the_window() {
    for name in ["vegas", "mvegas", "fast", "mfast", "mfvl"] {
        let mut connection = avoiding(name, &[], 40, 100_000);
        connection.timeout(0);
        assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (2, 20), "{name}");
    }
    let mut linux = avoiding("vegas", &[("variant", 1)], 40, 100_000);
    linux.timeout(0);
    assert_eq!((linux.cwnd(0), linux.ssthresh(0)), (1, 20));
}

#[test]
fn a_vegas_decrease_is_not_taken_for_slow_start() {
    for name in ["vegas", "mvegas"] {
        let mut connection = avoiding(name, &[], 40, 100_000);
        connection.sample(0, 100_000);
        connection.fast_retransmit(0);
        for _ in 0..8 {
            connection.round(0, 200_000);
        }
        assert!(connection.cwnd(0) < 30 && connection.ssthresh(0) <= connection.cwnd(0), "{name}");
    }
}

#[test]
fn mvegas_counts_diff_and_band_as_g5() {
    // G5, third row, through the handlers: a 512, b 768, previous diff 4.0 packets, then diff 2194 / 256.
    let mut connection = after_a_round("mvegas", &[], 20, 100_000, 125_000);
    // First round: phi 1, diff 4.0 is inside [1 + 1, 3 + 2]: hold; the next one has a previous diff.
    connection.set(0, 30, 2, 125_000);
    for _ in 0..30 {
        connection.sample(0, 140_000);
    }
    connection.subflows[0].view.round_start = 1;
    connection.ack(0, 1);
    assert_eq!(connection.cwnd(0), 29);
}

#[test]
fn mvegas_grows_to_three_queued_packets_where_vegas_stops_at_one() {
    // diff = 20 * 11 / 111 = 1.98 packets: above Vegas's alpha, below MVegas's alpha + a = 2.
    for (name, want) in [("vegas", 20), ("mvegas", 21)] {
        let mut connection = after_a_round(name, &[], 20, 100_000, 111_000);
        for _ in 1..20 {
            connection.ack(0, 1);
        }
        assert_eq!(connection.cwnd(0), want, "{name}");
    }
}

#[test]
fn cubic_loss_and_fast_convergence() {
    let mut connection = avoiding("cubic", &[], 100, 100_000);
    assert_eq!(connection.fast_retransmit(0), 70);
    connection.set(0, 80, 2, 100_000);
    assert_eq!(connection.fast_retransmit(0), 56, "cubic2");
    assert_eq!(avoiding("cubic", &[("beta", 819)], 100, 100_000).fast_retransmit(0), 79);
}

#[test]
fn cubic_comes_back_to_the_window_of_the_loss_after_k() {
    let mut connection = avoiding("cubic", &[], 400, 50_000);
    connection.fast_retransmit(0);
    let start_us = connection.now_us;
    while connection.now_us - start_us < 6_694_000 {
        connection.round(0, 50_000); // K = cbrt(120 / 0.4) = 6.69 s
    }
    assert!((397..=401).contains(&connection.cwnd(0)), "{}", connection.cwnd(0));
    while connection.now_us - start_us < 8_694_000 {
        connection.round(0, 50_000);
    }
    assert!((401..=404).contains(&connection.cwnd(0)), "K + 2 s: {}", connection.cwnd(0));
}

#[test]
fn cubic_is_not_slower_than_its_reno_estimate_on_short_paths() {
    // 5 ms: 2 s after the loss W_est has grown by 0.53 per round trip, far above the cubic curve.
    let mut connection = avoiding("cubic", &[], 100, 5_000);
    connection.fast_retransmit(0);
    for _ in 0..400 {
        connection.round(0, 5_000);
    }
    let estimate = 100.0 + (400.0 - 30.0 / 0.53); // alpha is 1 once it is back at 100
    assert!((f64::from(connection.cwnd(0)) - estimate).abs() < 0.05 * estimate, "{}", connection.cwnd(0));
}

#[test]
fn cubic_grows_at_most_by_half_per_round() {
    let mut connection = avoiding("cubic", &[], 1000, 100_000);
    connection.fast_retransmit(0);
    connection.set(0, 10, 2, 100_000);
    connection.round(0, 100_000);
    assert!((14..=15).contains(&connection.cwnd(0)), "{}", connection.cwnd(0));
}

#[test]
fn cubic_undo_brings_the_epoch_back() {
    let mut connection = avoiding("cubic", &[], 400, 50_000);
    connection.fast_retransmit(0);
    for _ in 0..20 {
        connection.round(0, 50_000);
    }
    let mut twin = avoiding("cubic", &[], 400, 50_000);
    twin.fast_retransmit(0);
    for _ in 0..20 {
        twin.round(0, 50_000);
    }
    twin.subflows[0].view.prior_cwnd = twin.cwnd(0);
    let before = twin.subflows[0].view;
    twin.call(0, |c, x, o| c.loss(x, o));
    twin.subflows[0].view.cwnd = twin.call(0, |c, x, o| c.undo(x, o));
    assert_eq!(twin.cwnd(0), before.cwnd);
    twin.subflows[0].view.prior_cwnd = connection.subflows[0].view.prior_cwnd;
    for _ in 0..40 {
        connection.round(0, 50_000);
        twin.round(0, 50_000);
        assert_eq!(connection.cwnd(0), twin.cwnd(0));
    }
}

#[test]
fn cubic_time_without_use_of_the_window_does_not_count() {
    let mut busy = avoiding("cubic", &[], 400, 50_000);
    let mut paused = avoiding("cubic", &[], 400, 50_000);
    for connection in [&mut busy, &mut paused] {
        connection.fast_retransmit(0);
        for _ in 0..20 {
            connection.round(0, 50_000);
        }
    }
    paused.subflows[0].view.cwnd_limited = 0;
    for _ in 0..200 {
        paused.round(0, 50_000);
    }
    paused.subflows[0].view.cwnd_limited = 1;
    paused.now_us += 10_000_000;
    paused.subflows[0].view.idle_us = 10_000_000;
    paused.call(0, |c, x, o| c.idle_restart(x, o));
    for _ in 0..60 {
        busy.round(0, 50_000);
        paused.round(0, 50_000);
    }
    assert!(busy.cwnd(0).abs_diff(paused.cwnd(0)) <= 1, "{} {}", busy.cwnd(0), paused.cwnd(0));
}

#[test]
fn hystart_leaves_slow_start_when_delay_grows_and_not_below_16_packets() {
    // base 100 ms: margin 12.5 ms, so 112 ms stays and 114 ms leaves, after eight samples.
    for (cwnd, rtt_us, hystart, leaves) in
        [(32, 112_000, 1, false), (32, 114_000, 1, true), (15, 114_000, 1, false), (32, 114_000, 0, false)]
    {
        let mut connection = Connection::new(1, "cubic", &[("hystart", hystart)]);
        connection.set(0, cwnd, 1000, 100_000);
        connection.subflows[0].view.round_start = 1;
        connection.sample(0, 100_000);
        connection.now_us += 50_000;
        connection.subflows[0].view.round_start = 1;
        for sample in 1..=8 {
            connection.now_us += 5_000; // too far apart for a train
            connection.sample(0, rtt_us);
            connection.subflows[0].view.round_start = 0;
            let left = connection.ssthresh(0) == cwnd;
            assert_eq!(left, leaves && sample == 8, "cwnd {cwnd}, rtt {rtt_us}, sample {sample}");
        }
    }
}

#[test]
fn hystart_leaves_slow_start_after_a_long_train() {
    for (spacing_us, leaves) in [(1_900, true), (2_100, false)] {
        let mut connection = Connection::new(1, "cubic", &[]);
        connection.set(0, 64, 1000, 100_000);
        connection.subflows[0].view.round_start = 1;
        for _ in 0..40 {
            connection.sample(0, 100_000);
            connection.subflows[0].view.round_start = 0;
            connection.now_us += spacing_us;
        }
        assert_eq!(connection.ssthresh(0) == 64, leaves, "spacing {spacing_us}");
    }
}
