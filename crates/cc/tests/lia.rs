//! LIA: part G2 to the bit, RFC 6356 within 1 %.

mod common;

use common::{Connection, acks_to_growth, assert_within};
use proptest::prelude::*;

const KERNEL: [(&str, u32); 1] = [("precision", 1)];

fn two(set: &[(&str, u32)], windows: [u32; 2], rtts_us: [u32; 2]) -> Connection {
    let mut connection = Connection::new(2, "lia", set);
    for k in 0..2 {
        connection.set(k, windows[k], 1, rtts_us[k]);
    }
    connection
}

#[test]
fn g2_thresholds_of_the_kernel_form() {
    for (windows, rtts, thresholds) in
        [([10, 20], [100, 50], [31, 31]), ([10, 10], [100, 100], [40, 40]), ([2, 30], [20, 200], [12, 30])]
    {
        for (k, threshold) in thresholds.into_iter().enumerate() {
            let mut connection = two(&KERNEL, windows, rtts);
            assert_eq!(acks_to_growth(&mut connection, k), threshold, "{windows:?} {rtts:?}, subflow {k}");
        }
    }
}

#[test]
fn g2_ratios_do_not_depend_on_the_scale_of_the_rtt() {
    for scale in [1, 7, 1000, 100_000] {
        let mut connection = two(&KERNEL, [10, 20], [100 * scale, 50 * scale]);
        assert_eq!(acks_to_growth(&mut connection, 0), 31, "scale {scale}");
    }
}

#[test]
fn lia1_two_subflows_grow_by_032_per_ack() {
    for k in 0..2 {
        let mut connection = two(&[], [10, 20], [100_000, 50_000]);
        assert_within(connection.change_per_ack(k, 100_000), 0.032, 0.1, "B4 check 1");
    }
}

#[test]
fn lia2_equal_subflows_grow_by_025_per_ack() {
    let mut connection = two(&[], [10, 10], [100_000, 100_000]);
    assert_within(connection.change_per_ack(0, 100_000), 0.025, 0.1, "B4 check 2");
}

#[test]
fn lia3_the_increase_is_capped_at_reno() {
    let mut connection = two(&[], [2, 30], [20_000, 200_000]);
    assert_within(connection.change_per_ack(0, 100_000), 0.08, 0.1, "B4 check 3, subflow 1");
    let mut connection = two(&[], [2, 30], [20_000, 200_000]);
    assert_within(connection.change_per_ack(1, 100_000), 1.0 / 30.0, 0.1, "B4 check 3, subflow 2");
}

/// RFC 6356: what one ACK adds to the window of subflow `k`.
fn rfc6356_step(windows: [f64; 2], rtts_s: [f64; 2], k: usize) -> f64 {
    let total: f64 = windows.iter().sum();
    let rate: f64 = (0..2).map(|j| windows[j] / rtts_s[j]).sum();
    let best = (0..2).map(|j| windows[j] / (rtts_s[j] * rtts_s[j])).fold(0.0, f64::max);
    let alpha = total * best / (rate * rate);
    (alpha / total).min(1.0 / windows[k])
}

/// Both hosts hold whole packets: a growing window is on average half a packet larger than its integer, so
/// below 20 packets no integer form stays within 1 % of the real one for 1,000 ACKs (10 and 20: 1.04 %).
#[test]
fn exact_form_is_within_1_percent_of_rfc6356_over_1000_acks() {
    for (start, rtts_ms) in [
        ([20, 30], [100, 50]),
        ([40, 40], [100, 100]),
        ([100, 60], [50, 100]),
        ([60, 300], [20, 200]),
        ([400, 900], [150, 30]),
        ([3000, 2000], [300, 20]),
    ] {
        let rtts_s = rtts_ms.map(|ms| f64::from(ms) / 1000.0);
        let mut connection = two(&[], start, rtts_ms.map(|ms| ms * 1000));
        let mut want = start.map(f64::from);
        for ack in 0..1000 {
            connection.ack(ack % 2, 1);
            want[ack % 2] += rfc6356_step(want, rtts_s, ack % 2);
        }
        for k in 0..2 {
            let counted = f64::from(connection.subflows[k].view.cwnd_cnt) * rfc6356_step(want, rtts_s, k);
            let got = f64::from(connection.cwnd(k)) + counted;
            assert_within(got, want[k], 1.0, &format!("{start:?} {rtts_ms:?}, subflow {k}"));
        }
    }
}

proptest! {
    #[test]
    fn exact_growth_is_within_1_percent_of_rfc6356_at_any_window(
        windows in [1u32..400, 1u32..400],
        rtts_us in [1_000u32..2_000_000, 1_000u32..2_000_000],
        k in 0usize..2,
    ) {
        let step = rfc6356_step(windows.map(f64::from), rtts_us.map(|us| f64::from(us) / 1e6), k);
        let acks = (300.0 / step).min(3e6) as u32;
        let got = two(&[], windows, rtts_us).change_per_ack(k, acks);
        // One increment may be in the making at the end.
        assert!((got - step).abs() <= 0.01 * step + 1.0 / f64::from(acks), "got {got}, want {step}");
    }
}

/// What the default is for: on long windows the growth of the kernel form is wrong by much more than 1 %.
#[test]
fn kernel_form_misses_the_real_growth_where_a_has_few_bits() {
    let (windows, rtts) = ([350, 350], [100_000, 100_000]);
    let want = 1.0 / 1400.0;
    assert_within(two(&[], windows, rtts).change_per_ack(0, 1_400_000), want, 0.1, "exact");
    let kernel = two(&KERNEL, windows, rtts).change_per_ack(0, 1_400_000);
    assert_within(kernel, 1.0 / 2048.0, 0.1, "kernel: A = 2, threshold 4096 / 2");
}

#[test]
fn best_subflow_is_found_at_long_round_trips() {
    // 8 x 2 s: the kernel's quotient (20 << 32) / srtt^2 is 0 for both and the last subflow wins.
    let mut connection = two(&KERNEL, [20, 10], [1_000_000, 2_000_000]);
    assert_eq!(acks_to_growth(&mut connection, 1), 31);
}

#[test]
fn a_subflow_alone_is_reno() {
    for set in [&[][..], &KERNEL] {
        let mut connection = two(set, [10, 20], [100_000, 50_000]);
        connection.peers[1].usable = 0;
        assert_eq!(acks_to_growth(&mut connection, 0), 10);
        assert_eq!(acks_to_growth(&mut connection, 0), 11);
    }
}

#[test]
fn loss_halves_the_window() {
    let mut connection = two(&[], [10, 20], [100_000, 50_000]);
    assert_eq!(connection.fast_retransmit(1), 10);
    assert_eq!(connection.cwnd(0), 10);
}

#[test]
fn a_subflow_in_recovery_counts_with_its_threshold() {
    // Subflow 2: inflated window 40, threshold 10: threshold of subflow 1 as for (10, 10).
    let mut connection = two(&[], [10, 40], [100_000, 100_000]);
    connection.peers[1].ssthresh = 10;
    connection.peers[1].ca_state = 3;
    assert_eq!(acks_to_growth(&mut connection, 0), 40);
}
