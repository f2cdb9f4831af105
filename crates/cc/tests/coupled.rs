//! The coupled relatives of Reno (parts B2, B3, B5, B6, G3 and G4 of the algorithm reference): check vectors, and the
//! definitions over real numbers within 1 % over 1,000 ACKs.

mod common;

use common::{Connection, acks_to_growth, assert_within, subflows};

const EQUAL: [u32; 2] = [100_000, 100_000];
const FAIR: [(&str, u32); 1] = [("a", 1)];
const KERNEL: [(&str, u32); 1] = [("precision", 1)];

/// An OLIA connection of two whose subflows have carried so many bytes since their last loss.
fn olia(windows: [u32; 2], rtts_us: [u32; 2], distances: [u64; 2]) -> Connection {
    olia_with(&[], windows, rtts_us, distances)
}

fn olia_with(set: &[(&str, u32)], windows: [u32; 2], rtts_us: [u32; 2], distances: [u64; 2]) -> Connection {
    let mut connection = subflows("olia", set, windows, rtts_us);
    for (peer, distance) in connection.peers.iter_mut().zip(distances) {
        peer.bytes_since_loss = distance;
    }
    connection
}

/// What OLIA's subflow `k` has gained or lost towards its next packet.
fn olia_change(connection: &Connection, k: usize) -> f64 {
    let bytes = connection.subflows[k].controller.state_bytes();
    let change_q40 = u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"));
    (change_q40 as f64) / (1u64 << 40) as f64 - 1.0
}

#[test]
fn b2_ewtcp_grows_by_its_weight() {
    for (set, want) in [(&[][..], 0.070_71), (&FAIR, 0.025)] {
        let mut connection = subflows("ewtcp", set, [10, 10], EQUAL);
        assert_within(connection.change_per_ack(0, 100_000), want, 0.1, "n = 2, w = 10");
    }
}

#[test]
fn ewtcp_weights_of_every_number_of_subflows_are_the_root_and_the_square() {
    let n_of = |set: &[(&str, u32)], n: usize| {
        let mut connection = Connection::new(n, "ewtcp", set);
        for k in 0..n {
            connection.set(k, 100, 1, 50_000);
        }
        connection.change_per_ack(0, 1_000_000) * 100.0
    };
    for n in 1..=8usize {
        assert_within(n_of(&[], n), 1.0 / (n as f64).sqrt(), 0.1, &format!("nsdi, {n}"));
        assert_within(n_of(&FAIR, n), 1.0 / (n * n) as f64, 1.0, &format!("fair, {n}"));
    }
}

#[test]
fn b3_coupled_grows_by_one_over_the_total_and_a_loss_takes_half_of_the_total() {
    let mut connection = subflows("coupled", &[], [10, 20], EQUAL);
    assert_within(connection.change_per_ack(0, 100_000), 1.0 / 30.0, 0.1, "windows 10 and 20");
    assert_eq!(connection.fast_retransmit(0), 1);
    let mut connection = subflows("coupled", &[], [10, 20], EQUAL);
    assert_eq!(connection.fast_retransmit(1), 5);
    let mut connection = subflows("coupled", &[], [11, 20], EQUAL);
    assert_eq!(connection.fast_retransmit(1), 4, "20 - 15.5 = 4.5");
    assert_eq!(connection.subflows[1].view.cwnd_cnt, 2, "and half a packet is kept");
}

#[test]
fn b3_semicoupled_grows_by_a_over_the_total_and_a_loss_halves() {
    let mut connection = subflows("semicoupled", &[], [10, 20], EQUAL);
    assert_within(connection.change_per_ack(0, 100_000), 1.0 / 30.0, 0.1, "a = 1");
    assert_eq!(connection.fast_retransmit(0), 5);
    let mut connection = subflows("semicoupled", &[("a", 512)], [10, 20], EQUAL);
    assert_within(connection.change_per_ack(0, 100_000), 1.0 / 60.0, 0.1, "a = 1/2");
    let mut connection = subflows("semicoupled", &[("a", 8192)], [10, 20], EQUAL);
    assert_within(connection.change_per_ack(0, 100_000), 0.1, 0.1, "never faster than Reno");
}

#[test]
fn olia1_windows_move_to_the_best_path_that_is_not_the_largest() {
    for (k, want) in [0.061_111, -0.002_777_8].into_iter().enumerate() {
        let mut connection = olia([10, 20], EQUAL, [30_000, 10_000]);
        assert_within(connection.change_per_ack(k, 1_000_000), want, 0.1, &format!("subflow {k}"));
    }
}

#[test]
fn olia2_without_collected_paths_alpha_is_0() {
    for (k, want) in [0.011_111, 0.022_222].into_iter().enumerate() {
        let mut connection = olia([10, 20], EQUAL, [10_000, 30_000]);
        assert_within(connection.change_per_ack(k, 1_000_000), want, 0.1, &format!("subflow {k}"));
    }
}

#[test]
fn g3_the_step_of_one_packet_truncated_to_the_kernels_10_bits() {
    for (distances, steps) in [([30_000, 10_000], [62.0, -2.0]), ([10_000, 30_000], [11.0, 22.0])] {
        for (k, step) in steps.into_iter().enumerate() {
            let mut connection = olia([10, 20], EQUAL, distances);
            connection.ack(k, 1);
            assert_eq!((olia_change(&connection, k) * 1024.0).trunc(), step, "{distances:?}, subflow {k}");
        }
    }
}

#[test]
fn olia_ranks_by_the_longer_of_the_two_distances_over_the_squared_rtt() {
    // The last interval counts, too: the vector of olia1 with the distance of subflow 1 before its loss.
    let mut connection = olia([10, 20], EQUAL, [0, 10_000]);
    connection.peers[0].bytes_between_losses = 30_000;
    assert_within(connection.change_per_ack(0, 100_000), 0.061_111, 0.1, "l1");
    // 4 times the distance at twice the round-trip time ties: both are best, so subflow 1 is collected.
    for (distance, collected) in [(40_000, true), (40_001, true), (39_999, false)] {
        // Subflow 2 loses to a collected one: 20 / (20 + 5)^2 is more than 1 / (2 * 20), so its growth is slower.
        let slow = 20.0 / 625.0 - if collected { 1.0 / 40.0 } else { 0.0 };
        let got = olia([10, 20], [200_000, 100_000], [distance, 10_000]).change_per_ack(1, 1_000_000);
        assert_within(got, slow, 0.1, &format!("distance {distance}"));
    }
}

#[test]
fn olia_compares_distances_of_terabytes_exactly() {
    for (first, collected) in [(1u64 << 44, true), ((1 << 44) - (1 << 20), false)] {
        let mut connection = olia([10, 20], EQUAL, [first, 1 << 44]);
        let got = connection.change_per_ack(0, 100_000);
        assert_within(got, 0.011_111 + if collected { 0.05 } else { 0.0 }, 0.1, "10 and 20 packets");
    }
}

#[test]
fn olia_takes_a_packet_from_the_largest_window_and_ssthresh_follows() {
    let mut connection = olia([10, 20], EQUAL, [30_000, 10_000]);
    connection.subflows[1].view.ssthresh = 20;
    assert_eq!(acks_to_growth(&mut connection, 1), 360, "1 / 0.0027778");
    assert_eq!((connection.cwnd(1), connection.ssthresh(1)), (19, 19));
}

#[test]
fn olia_takes_no_packet_below_its_least_window_and_gives_none_to_a_smaller_one() {
    // Of windows 1 and 2 the larger one loses 1/36 of a packet per ACK: 2/9 less than alpha, 1/4.
    for (set, shrunk) in [(&[][..], 1), (&[("least_window", 2)], 2), (&[("least_window", 10)], 2)] {
        let mut connection = olia_with(set, [1, 2], EQUAL, [30_000, 10_000]);
        for _ in 0..40 {
            connection.ack(1, 1);
        }
        assert_eq!(connection.cwnd(1), shrunk, "{set:?}");
    }
}

#[test]
fn olia_halves_to_its_least_window_with_several_subflows() {
    for (least, [from_2, from_9, from_30]) in [(1, [1, 4, 15]), (2, [2, 4, 15]), (10, [2, 9, 15])] {
        for (window, want) in [(2, from_2), (9, from_9), (30, from_30)] {
            let mut connection = subflows("olia", &[("least_window", least)], [window, 20], EQUAL);
            assert_eq!(connection.fast_retransmit(0), want, "least {least}, window {window}");
        }
    }
    let mut alone = subflows("olia", &[("least_window", 10)], [9, 20], EQUAL);
    alone.peers[1].usable = 0;
    assert_eq!(alone.fast_retransmit(0), 4, "alone it is Reno");
}

#[test]
fn balia1_increase_and_decrease() {
    let two = |set| subflows("balia", set, [10, 20], EQUAL);
    for (k, want) in [0.02, 0.022_222].into_iter().enumerate() {
        assert_within(two(&[]).change_per_ack(k, 100_000), want, 0.1, &format!("subflow {k}"));
    }
    let mut connection = two(&[]);
    assert_eq!(connection.fast_retransmit(0), 2, "10 - 7.5");
    assert_eq!(connection.subflows[0].view.cwnd_cnt, 1, "and half a packet is kept");
    assert_eq!(two(&[]).fast_retransmit(1), 10);
}

#[test]
fn balia2_equal_subflows() {
    let mut connection = subflows("balia", &[], [10, 10], EQUAL);
    assert_within(connection.change_per_ack(0, 100_000), 0.025, 0.1, "(10, 10)");
    assert_eq!(connection.fast_retransmit(0), 5);
}

#[test]
fn g4_packets_per_increase_and_ssthresh_of_the_kernel_form() {
    let two = || {
        let mut connection = subflows("balia", &KERNEL, [10, 20], EQUAL);
        for k in 0..2 {
            connection.subflows[k].view.mss = 1460;
            connection.set(k, [10, 20][k], 1, 100_000);
        }
        connection
    };
    assert_eq!([0, 1].map(|k| acks_to_growth(&mut two(), k)), [50, 45]);
    assert_eq!([0, 1].map(|k| two().fast_retransmit(k)), [3, 10]);
}

#[test]
fn balia_takes_at_most_three_quarters_and_keeps_the_fraction_of_a() {
    // a = 1.2: 60 - 60 / 2 * 1.2 = 24. The kernel form counts a as 1.
    assert_eq!(subflows("balia", &[], [60, 72], EQUAL).fast_retransmit(0), 24);
    assert_eq!(subflows("balia", &KERNEL, [60, 72], EQUAL).fast_retransmit(0), 30);
    // a = 100.
    assert_eq!(subflows("balia", &[], [8, 800], EQUAL).fast_retransmit(0), 2);
}

#[test]
fn ssthresh_of_one_packet_only_with_several_subflows() {
    for (name, with_peer) in [("olia", 1), ("balia", 1), ("coupled", 1), ("ewtcp", 2), ("semicoupled", 2)] {
        assert_eq!(subflows(name, &[], [2, 20], EQUAL).fast_retransmit(0), with_peer, "{name}");
        let mut alone = subflows(name, &[], [2, 20], EQUAL);
        alone.peers[1].usable = 0;
        assert_eq!(alone.fast_retransmit(0), 2, "{name} alone");
    }
}

#[test]
fn a_subflow_in_recovery_counts_with_its_threshold() {
    // Inflated window 40, threshold 10: as (10, 10).
    for (name, want) in [("coupled", 0.05), ("semicoupled", 0.05), ("olia", 0.025), ("balia", 0.025)] {
        let mut connection = subflows(name, &[], [10, 40], EQUAL);
        connection.peers[1].ssthresh = 10;
        connection.peers[1].ca_state = 3;
        assert_within(connection.change_per_ack(0, 100_000), want, 0.1, name);
    }
}

/// The change by one ACK on subflow `k`, as the papers define it.
type Step = fn(windows: [f64; 2], rtts_s: [f64; 2], k: usize) -> f64;

fn rate(windows: [f64; 2], rtts_s: [f64; 2]) -> f64 {
    windows[0] / rtts_s[0] + windows[1] / rtts_s[1]
}

/// With subflow 1 the best path.
fn olia_step(windows: [f64; 2], rtts_s: [f64; 2], k: usize) -> f64 {
    let linked = windows[k] / (rtts_s[k] * rate(windows, rtts_s)).powi(2);
    let alpha = match windows[0].total_cmp(&windows[1]) {
        std::cmp::Ordering::Less if k == 0 => 0.5,
        std::cmp::Ordering::Less => -0.5,
        _ => 0.0,
    };
    linked + alpha / windows[k]
}

fn balia_step(windows: [f64; 2], rtts_s: [f64; 2], k: usize) -> f64 {
    let rates = [windows[0] / rtts_s[0], windows[1] / rtts_s[1]];
    let a = rates[0].max(rates[1]) / rates[k];
    rates[k] / (rtts_s[k] * rate(windows, rtts_s).powi(2)) * (1.0 + a) / 2.0 * (4.0 + a) / 5.0
}

/// Algorithm, parameters, definition.
type Case = (&'static str, &'static [(&'static str, u32)], Step);

/// As LIA's: below 20 packets a whole-packet window alone is more than 1 % off.
#[test]
fn within_1_percent_of_real_numbers_over_1000_acks() {
    let cases: [Case; 6] = [
        ("ewtcp", &[], |w, _, k| 0.5f64.sqrt() / w[k]),
        ("ewtcp", &FAIR, |w, _, k| 0.25 / w[k]),
        ("coupled", &[], |w, _, _| 1.0 / (w[0] + w[1])),
        ("semicoupled", &[("a", 512)], |w, _, _| 0.5 / (w[0] + w[1])),
        ("balia", &[], balia_step),
        ("olia", &[], olia_step),
    ];
    for (name, set, step) in cases {
        for (start, rtts_ms) in [
            ([20, 40], [100, 50]),
            ([40, 40], [100, 100]),
            ([100, 60], [50, 100]),
            ([60, 300], [20, 200]),
            ([400, 900], [150, 30]),
            ([3000, 2000], [300, 20]),
        ] {
            let rtts_s = rtts_ms.map(|ms| f64::from(ms) / 1000.0);
            let mut connection = subflows(name, set, start, rtts_ms.map(|ms| ms * 1000));
            // Subflow 1 of OLIA is best whatever the round-trip times.
            connection.peers[0].bytes_since_loss = 1 << 40;
            connection.peers[1].bytes_since_loss = 1;
            let mut want = start.map(f64::from);
            for ack in 0..1000 {
                connection.ack(ack % 2, 1);
                want[ack % 2] += step(want, rtts_s, ack % 2);
            }
            for k in 0..2 {
                let part = match name {
                    "olia" => olia_change(&connection, k),
                    _ => f64::from(connection.subflows[k].view.cwnd_cnt) * step(want, rtts_s, k),
                };
                let got = f64::from(connection.cwnd(k)) + part;
                assert_within(got, want[k], 1.0, &format!("{name} {start:?} {rtts_ms:?}, subflow {k}"));
            }
        }
    }
}

#[test]
fn halving_keeps_the_half_packet_in_olias_own_count() {
    let mut connection = olia([21, 40], EQUAL, [1, 1]);
    assert_eq!(connection.fast_retransmit(0), 10);
    assert!((olia_change(&connection, 0) - 0.5).abs() < 1e-9);
}
