//! FAST and MFast, as a host sees them: A6 and A7 of the algorithm reference.

mod common;

use common::Connection;

/// Congestion avoidance with the base RTT and average RTT as given, and no multiplicative increase.
fn averaged(name: &str, set: &[(&str, u32)], cwnd: u32, base_us: u32, avg_us: u32) -> Connection {
    let mut connection =
        Connection::new(1, name, &[&[("mi_threshold", 0), ("update_interval", 0)], set].concat());
    connection.set(0, cwnd, 2, avg_us);
    connection.sample(0, base_us);
    for _ in 0..20_000 {
        connection.sample(0, avg_us);
    }
    connection
}

/// The window after one update round, and after the round of rest that follows.
fn update(connection: &mut Connection, rtt_us: u32) -> [u32; 2] {
    connection.round(0, rtt_us); // the update
    connection.round(0, rtt_us); // ends it and rests
    let updated = connection.cwnd(0);
    connection.subflows[0].view.round_start = 0;
    connection.ack(0, 1);
    [updated, connection.cwnd(0)]
}

#[test]
fn fast1_a_window_with_alpha_packets_queued_stays() {
    let mut connection = averaged("fast", &[("alpha", 20)], 100, 100_000, 125_000);
    assert_eq!(update(&mut connection, 125_000), [100, 100]);
}

#[test]
fn fast2_an_update_at_most_doubles() {
    let mut connection = averaged("fast", &[], 5, 100_000, 101_000);
    assert_eq!(update(&mut connection, 101_000)[0], 10);
}

#[test]
fn mfast1_and_mfast2() {
    let mut connection = averaged("mfast", &[], 60, 150_000, 200_000);
    assert_eq!(update(&mut connection, 200_000), [66, 66]); // 66.25
    let mut connection = averaged("mfast", &[], 75, 150_000, 225_000);
    assert_eq!(update(&mut connection, 225_000), [75, 75]);
}

#[test]
fn the_fraction_of_a_window_is_carried() {
    // 66.25, then 33.125 + 0.25 (49.6875 + 100) = 70.547, then 73.229: 66, 70, 73. Dropping fractions: 66, 70, 72.
    let mut connection = averaged("mfast", &[], 60, 150_000, 200_000);
    let windows = [0; 3].map(|_| {
        connection.round(0, 200_000);
        connection.round(0, 200_000);
        connection.cwnd(0)
    });
    assert_eq!(windows, [66, 70, 73]);
}

#[test]
fn an_update_is_spread_over_its_round_and_the_window_rests_in_the_next() {
    let mut connection =
        averaged("fast", &[("alpha", 60), ("update_interval", 10_000)], 100, 100_000, 125_000);
    let mut seen = Vec::new();
    for round in 0..2 {
        let start_us = connection.now_us;
        for packet in 0..100u32 {
            connection.now_us = start_us + 1250 * u64::from(packet + 1);
            connection.subflows[0].view.round_start = (packet == 0) as u8;
            connection.sample(0, 125_000);
            connection.ack(0, 1);
            seen.push((round, connection.cwnd(0)));
        }
    }
    let windows: Vec<u32> = seen.iter().filter(|(round, _)| *round == 0).map(|(_, cwnd)| *cwnd).collect();
    let steps = windows.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((10..=12).contains(&steps), "10 ms apart in 125 ms: {steps} steps");
    assert!(windows.windows(2).all(|pair| pair[1] - pair[0] <= 2), "20 packets in 12 steps: {windows:?}");
    assert!(
        seen.iter().filter(|(round, _)| *round == 1).all(|(_, cwnd)| *cwnd == 120),
        "100 / 2 + (80 + 60) / 2"
    );
}

#[test]
fn without_queues_the_window_doubles_per_round() {
    for name in ["fast", "mfast"] {
        let mut connection = Connection::new(1, name, &[]);
        connection.set(0, 10, 2, 100_000);
        connection.sample(0, 100_000);
        connection.round(0, 100_700);
        assert_eq!(connection.cwnd(0), 20, "{name}: the average is less than 0.75 ms above the base");
    }
}

#[test]
fn slow_start_ends_when_more_than_ss_exit_packets_are_queued() {
    // 20 * (rtt - 100) / rtt packets: 0.99 at 105.2 ms, 1.05 at 105.6 ms.
    for (rtt_us, leaves) in [(105_200, false), (105_600, true)] {
        let mut connection = Connection::new(1, "fast", &[]);
        connection.set(0, 20, 1000, 100_000);
        connection.sample(0, 100_000);
        connection.sample(0, rtt_us);
        connection.call(0, |c, x, o| c.ack(x, o));
        assert_eq!(connection.ssthresh(0) == 20, leaves, "{rtt_us}");
    }
}

#[test]
fn beta_makes_a_zone_in_which_the_window_rests() {
    // 100 * 25 / 125 = 20 packets queued.
    for (beta, want) in [(0, 96), (19, 96), (21, 100), (40, 100)] {
        let mut connection = averaged("fast", &[("alpha", 12), ("beta", beta)], 100, 100_000, 125_000);
        assert_eq!(update(&mut connection, 125_000)[0], want, "beta {beta}");
    }
}

#[test]
fn a_loss_halves_and_the_equation_starts_anew() {
    let mut connection = averaged("fast", &[("alpha", 20)], 100, 100_000, 125_000);
    connection.round(0, 125_000);
    assert_eq!(connection.fast_retransmit(0), 50);
    // From 50, with the window of the loss forgotten: 25 + 0.5 (40 + 20) = 55.
    assert_eq!(update(&mut connection, 125_000)[0], 55);
}

#[test]
fn the_average_follows_a_256th_in_ns2_and_a_quarter_in_the_paper() {
    for (smoothing, step) in [(0, 100_000.0 / 256.0), (1, 100_000.0 / 4.0)] {
        let mut connection = Connection::new(1, "fast", &[("smoothing", smoothing)]);
        connection.set(0, 9, 2, 100_000);
        connection.sample(0, 100_000);
        connection.sample(0, 200_000);
        let bytes = connection.subflows[0].controller.state_bytes();
        let average_q8 = u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"));
        assert!((average_q8 as f64 / 256.0 - 100_000.0 - step).abs() < 0.01, "{smoothing}");
    }
}
