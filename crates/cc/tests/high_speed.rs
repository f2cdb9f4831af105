//! Rules of the algorithms for fast and long paths: A9 to A12 and G8 of the algorithm reference, and its check vectors
//! htcp, ctcp, hybla and scal. The definitions over real numbers are in `high_speed_yardsticks.rs`.
#![allow(unsafe_code)]

mod common;

use anabranch_cc as _; // brings the C library
use common::{Connection, acks_to_growth};
use proptest::prelude::*;

// SAFETY: these are the functions of host/formulas.c, with these types; all but weighted_increase only take and
// return numbers.
unsafe extern "C" {
    safe fn ab_formula_quartic_root(a: u64) -> u32;
    fn ab_formula_weighted_increase(cwnd: u32, left: *mut u32, weight_q10: u32, acked: u32) -> u32;
    safe fn ab_formula_hybla_rho_q10(rtt_us: u32, rtt0_us: u32, precision: u32) -> u32;
    safe fn ab_formula_hybla_slow_start_q10(rho_q10: u32, precision: u32) -> u32;
    safe fn ab_formula_hybla_rho2_q10(rho_q10: u32) -> u32;
    safe fn ab_formula_hybla_increment_q7(rho_q10: u32, cwnd: u32) -> u32;
    safe fn ab_formula_htcp_f_q10(since_us: u64, precision: u32) -> u32;
    safe fn ab_formula_htcp_scaled_q10(f_q10: u32, min_rtt_us: u32, precision: u32) -> u32;
    safe fn ab_formula_htcp_alpha_q10(f_q10: u32, beta_q10: u32) -> u32;
    safe fn ab_formula_htcp_beta_q10(min_rtt_us: u32, max_rtt_us: u32, precision: u32) -> u32;
    safe fn ab_formula_compound_increase_q8(window: u32, precision: u32) -> u32;
    safe fn ab_formula_compound_next_dwnd_q8(precision: u32, window: u32, dwnd_q8: u32, diff_q8: u32) -> u32;
}

const EXACT: u32 = 0;
const KERNEL: u32 = 1;

/// One subflow in congestion avoidance whose RTT has been `rtt_us` from the beginning.
fn avoiding(name: &str, set: &[(&str, u32)], cwnd: u32, rtt_us: u32) -> Connection {
    let mut connection = Connection::new(1, name, set);
    connection.set(0, cwnd, 2, rtt_us);
    connection.sample(0, rtt_us);
    connection
}

fn close(got: u32, scale: f64, want: f64, slack: f64) {
    let got = f64::from(got) / scale;
    assert!((got - want).abs() <= slack, "got {got}, want {want}");
}

// Fixed point.

proptest! {
    #[test]
    fn quartic_root_is_the_floor_or_one_more(a in any::<u64>(), shift in 0u32..64) {
        let (a, root) = (a >> shift, u128::from(ab_formula_quartic_root(a >> shift)));
        prop_assert!(root.saturating_sub(1).pow(4) <= u128::from(a) && u128::from(a) < (root + 1).pow(4), "{root}");
    }
}

#[test]
fn quartic_root_at_the_edges_of_every_power_of_two() {
    for bits in 0..64 {
        for a in [1u64 << bits, (1 << bits) - 1, u64::MAX >> bits] {
            let root = u128::from(ab_formula_quartic_root(a));
            let bounds = root.saturating_sub(1).pow(4)..(root + 1).pow(4);
            assert!(bounds.contains(&u128::from(a)), "{a}: {root}");
        }
    }
}

#[test]
fn g8_table() {
    let table = [(30, 12, 0), (40, 15, 0), (50, 18, 1), (100, 31, 2), (200, 53, 5)];
    for (window, root, increment) in table {
        assert_eq!(ab_formula_quartic_root(u64::from(window).pow(3)), root);
        assert_eq!(ab_formula_compound_increase_q8(window, KERNEL), increment << 8);
    }
}

proptest! {
    #[test]
    fn weighted_increase_loses_nothing(
        cwnd in 1u32..1 << 30, cnt in 0u32..1 << 30, weight_q10 in 0u32..=1 << 30, acked in 0u32..=1 << 30
    ) {
        let mut left = [cnt, 1023];
        // SAFETY: `left` has the two elements that the function reads and writes.
        let grown = unsafe { ab_formula_weighted_increase(cwnd, left.as_mut_ptr(), weight_q10, acked) };
        let credit = (u128::from(cnt) << 10) + 1023 + u128::from(acked) * u128::from(weight_q10);
        let steps = u128::from(grown - cwnd);
        if steps < 1 << 30 {
            prop_assert_eq!((u128::from(left[0]) << 10) + u128::from(left[1]) + ((steps * u128::from(cwnd)) << 10), credit);
        }
        prop_assert!(left[0] < cwnd && left[1] < 1024);
    }
}

// A9, H-TCP.

#[test]
fn htcp1_htcp2_alpha_grows_with_the_time_since_the_loss() {
    let alpha =
        |since_us, beta_q10| ab_formula_htcp_alpha_q10(ab_formula_htcp_f_q10(since_us, EXACT), beta_q10);
    close(ab_formula_htcp_f_q10(2_000_000, EXACT), 1024.0, 11.25, 0.0);
    close(alpha(2_000_000, 512), 1024.0, 11.25, 0.0);
    close(ab_formula_htcp_f_q10(3_000_000, EXACT), 1024.0, 22.0, 0.0);
    close(alpha(3_000_000, 819), 1024.0, 8.8, 0.01); // 0.8 is 819.2 / 1024
}

#[test]
fn htcp_up_to_a_second_alpha_is_that_of_a_fair_aimd() {
    for since_us in [0, 1, 999_999, 1_000_000] {
        assert_eq!(ab_formula_htcp_f_q10(since_us, EXACT), 1024);
        assert_eq!(ab_formula_htcp_f_q10(since_us, KERNEL), 1024);
    }
    assert_eq!(ab_formula_htcp_alpha_q10(1024, 512), 1024);
}

#[test]
fn a9_check_2_the_integers_of_linux() {
    let f = ab_formula_htcp_f_q10(2_000_000, KERNEL);
    assert_eq!(f, 11 << 10);
    let at_100_ms = ab_formula_htcp_scaled_q10(f, 100_000, KERNEL);
    assert_eq!(ab_formula_htcp_alpha_q10(at_100_ms, 512) >> 3, 1408);
    let at_50_ms = ab_formula_htcp_scaled_q10(f, 50_000, KERNEL);
    assert_eq!(ab_formula_htcp_alpha_q10(at_50_ms, 512) >> 3, 640);
}

proptest! {
    #[test]
    fn htcp_f_is_real_arithmetic(since_us in 0u64..1_000_000_000) {
        let d = (since_us as f64 / 1e6 - 1.0).max(0.0);
        let want = if d > 0.0 { 1.0 + 10.0 * d + (d / 2.0).powi(2) } else { 1.0 };
        let got = f64::from(ab_formula_htcp_f_q10(since_us, EXACT)) / 1024.0;
        // D has 10 bits: 10 D is off by 10/1024 at most, and (D/2)^2 by D/2048.
        prop_assert!((got - want).abs() <= 0.011 + d / 2048.0, "got {got}, want {want}");
    }

    #[test]
    fn htcp_rtt_scaling_is_real_arithmetic_within_its_bounds(min_rtt_us in 1u32..2_000_000, f in 1u32..5000) {
        let want = (f64::from(f) / (100_000.0 / f64::from(min_rtt_us)).clamp(0.5, 10.0)).max(1.0);
        let got = f64::from(ab_formula_htcp_scaled_q10(f << 10, min_rtt_us, EXACT)) / 1024.0;
        prop_assert!((got / want - 1.0).abs() <= 0.003, "got {got}, want {want}");
    }
}

#[test]
fn htcp_beta_leaves_the_queue_just_empty_within_its_bounds() {
    close(ab_formula_htcp_beta_q10(60_000, 100_000, EXACT), 1024.0, 0.6, 0.001);
    assert_eq!(ab_formula_htcp_beta_q10(100_000, 100_000, EXACT), 819);
    assert_eq!(ab_formula_htcp_beta_q10(100_000, 100_000, KERNEL), 102 << 3);
    assert_eq!(ab_formula_htcp_beta_q10(10_000, 100_000, EXACT), 512);
    assert_eq!(ab_formula_htcp_beta_q10(50_000, 0, EXACT), 512);
}

/// Rounds of `rtt_us` and of `cwnd` packets each.
fn rounds(connection: &mut Connection, n: usize, rtt_us: u32, cwnd: u32) {
    for _ in 0..n {
        connection.subflows[0].view.cwnd = cwnd;
        connection.round(0, rtt_us);
    }
    connection.subflows[0].view.cwnd = cwnd;
}

#[test]
fn htcp_decreases_by_the_rtts_once_the_throughput_is_steady() {
    let mut connection = avoiding("htcp", &[], 100, 60_000);
    rounds(&mut connection, 30, 70_000, 100);
    assert_eq!(connection.fast_retransmit(0), 50, "the first loss");
    rounds(&mut connection, 30, 70_000, 100);
    // The smoothed RTT has reached 70 ms; 60 / 70 is above 0.8.
    assert_eq!(connection.fast_retransmit(0), 79);
    rounds(&mut connection, 60, 90_000, 128);
    let kept = connection.fast_retransmit(0);
    assert!((85..=87).contains(&kept), "60 / 90 of 128, got {kept}");
}

#[test]
fn htcp_halves_when_the_throughput_has_changed_by_more_than_a_fifth() {
    for (switch, packets, want) in [(1, 140, 70), (1, 110, 88), (0, 140, 112)] {
        let mut connection = avoiding("htcp", &[("bandwidth_switch", switch)], 100, 60_000);
        rounds(&mut connection, 30, 60_000, 100);
        connection.fast_retransmit(0);
        rounds(&mut connection, 30, 60_000, packets);
        let kept = connection.fast_retransmit(0);
        assert!(kept.abs_diff(want) <= 1, "{packets} packets: {kept}, want {want}");
    }
}

#[test]
fn htcp_halves_on_paths_of_ten_milliseconds() {
    for (base_us, want) in [(10_000, 50), (11_000, 79)] {
        let mut connection = avoiding("htcp", &[], 100, base_us);
        rounds(&mut connection, 30, base_us, 100);
        connection.fast_retransmit(0);
        rounds(&mut connection, 30, base_us, 100);
        assert_eq!(connection.fast_retransmit(0), want);
    }
}

#[test]
fn htcp_takes_steps_of_20_ms_in_the_largest_rtt() {
    let mut connection = avoiding("htcp", &[("bandwidth_switch", 0)], 100, 60_000);
    rounds(&mut connection, 5, 60_000, 100);
    connection.fast_retransmit(0);
    // A smoothed RTT that jumps by 60 ms is a new path, not a queue.
    connection.subflows[0].view.srtt8_us = 8 * 120_000;
    connection.subflows[0].view.rtt_us = 120_000;
    connection.call(0, |c, x, o| c.rtt_sample(x, o));
    connection.subflows[0].view.cwnd = 100;
    assert_eq!(connection.fast_retransmit(0), 79);
}

#[test]
fn htcp_silence_is_no_time_since_the_loss() {
    let growth = |idle_us: u32| {
        let mut connection = avoiding("htcp", &[("rtt_scaling", 0)], 100, 100_000);
        connection.fast_retransmit(0);
        connection.now_us += 60_000_000;
        connection.subflows[0].view.idle_us = idle_us;
        connection.call(0, |c, x, o| c.idle_restart(x, o));
        connection.ack(0, 50);
        connection.cwnd(0)
    };
    assert_eq!(growth(60_000_000), 51);
    assert!(growth(0) > 1000, "f(60 s) is 1461");
}

#[test]
fn htcp_a_spurious_loss_is_forgotten() {
    let mut connection = avoiding("htcp", &[("rtt_scaling", 0)], 100, 100_000);
    connection.now_us += 3_000_000;
    connection.subflows[0].view.prior_cwnd = 100;
    connection.call(0, |c, x, o| c.loss(x, o));
    let cwnd = connection.call(0, |c, x, o| c.undo(x, o));
    connection.subflows[0].view.cwnd = cwnd;
    connection.ack(0, 100);
    assert_eq!(connection.cwnd(0), 122, "alpha of 3 s");
}

// A10, Compound.

#[test]
fn ctcp1_the_delay_window_grows_with_the_power_3_4_of_the_window() {
    close(ab_formula_compound_increase_q8(100, EXACT), 256.0, 2.9528, 0.005);
    close(ab_formula_compound_increase_q8(30, EXACT), 256.0, 0.602, 0.005);
    let ten_queued = ab_formula_compound_next_dwnd_q8(EXACT, 100, 0, 10 << 8);
    assert_eq!(ten_queued, ab_formula_compound_increase_q8(100, EXACT));
    assert_eq!(ab_formula_compound_increase_q8(16, EXACT), 0, "16^(3/4) / 8 is 1");
}

#[test]
fn ctcp2_the_delay_window_loses_what_is_queued_from_gamma_on() {
    assert_eq!(ab_formula_compound_next_dwnd_q8(EXACT, 100, 50 << 8, 35 << 8), 15 << 8);
    assert_eq!(ab_formula_compound_next_dwnd_q8(EXACT, 100, 50 << 8, 30 << 8), 20 << 8);
    assert_eq!(ab_formula_compound_next_dwnd_q8(EXACT, 100, 20 << 8, 35 << 8), 0);
    // Linux's diff has one fraction bit.
    assert_eq!(ab_formula_compound_next_dwnd_q8(KERNEL, 100, 50 << 8, (35 << 8) + 127), 15 << 8);
}

proptest! {
    #[test]
    fn compound_increase_is_real_arithmetic(window in 17u32..1 << 21) {
        let want = (f64::from(window).powf(0.75) / 8.0 - 1.0).max(0.0);
        let got = f64::from(ab_formula_compound_increase_q8(window, EXACT)) / 256.0;
        // The root is off by one of its last bits, and the result has 8.
        prop_assert!((got - want).abs() <= 0.02 + want / 3000.0, "got {got}, want {want}");
    }
}

/// Compound with a delay window of about `dwnd` packets in a window of 100, on a path of 100 ms.
fn compound(dwnd: u32) -> Connection {
    let mut connection = avoiding("compound", &[], 100 - dwnd, 100_000);
    while connection.cwnd(0) < 100 {
        connection.subflows[0].view.round_start = 1;
        connection.sample(0, 100_000);
        connection.ack(0, 0);
    }
    connection
}

#[test]
fn a10_a_loss_halves_the_sum_and_the_loss_window() {
    let mut connection = compound(40);
    let total = connection.cwnd(0);
    assert_eq!(connection.fast_retransmit(0), total / 2);
    // What is left of the delay window shows when a full queue takes it away: the loss window was 60.
    connection.subflows[0].view.round_start = 1;
    for _ in 0..50 {
        connection.sample(0, 1_000_000);
    }
    connection.ack(0, 0);
    assert_eq!(connection.cwnd(0), 30);
}

#[test]
fn a10_an_idle_path_is_filled_faster_than_by_reno() {
    let mut connection = avoiding("compound", &[], 100, 100_000);
    rounds_free(&mut connection, 10);
    // 10 rounds of about 3 packets, and Reno's one.
    assert!((136..=148).contains(&connection.cwnd(0)), "{}", connection.cwnd(0));
}

fn rounds_free(connection: &mut Connection, n: usize) {
    for _ in 0..n {
        connection.round(0, 100_000);
    }
}

#[test]
fn a10_below_the_low_window_and_after_a_timeout_it_is_reno() {
    let mut connection = avoiding("compound", &[], 20, 100_000);
    let mut reno = avoiding("reno", &[], 20, 100_000);
    rounds_free(&mut connection, 10);
    rounds_free(&mut reno, 10);
    assert_eq!(connection.cwnd(0), reno.cwnd(0));
    let mut connection = compound(40);
    let half = connection.cwnd(0) / 2;
    connection.timeout(0);
    assert_eq!((connection.cwnd(0), connection.ssthresh(0)), (1, half));
    rounds_free(&mut connection, 5);
    assert_eq!(connection.cwnd(0), 32, "slow start");
}

// A11, Hybla.

#[test]
fn hybla1_a_path_of_100_ms_has_rho_4() {
    for precision in [EXACT, KERNEL] {
        let rho = ab_formula_hybla_rho_q10(100_000, 25_000, precision);
        assert_eq!(rho, 4 << 10);
        assert_eq!(ab_formula_hybla_slow_start_q10(rho, precision), 15 << 10);
        assert_eq!(ab_formula_hybla_rho2_q10(rho), 16 << 10);
    }
    assert_eq!(ab_formula_hybla_increment_q7(4 << 10, 50), 40, "0.3125, where 16 / 50 is 0.32");
    let mut connection = Connection::new(1, "hybla", &[]);
    connection.sample(0, 100_000);
    connection.ack(0, 1);
    assert_eq!(connection.cwnd(0), 25);
    let mut connection = avoiding("hybla", &[], 50, 100_000);
    (0..25).for_each(|_| connection.ack(0, 1));
    assert!((57..=58).contains(&connection.cwnd(0)), "25 * 0.32 less for the growing window");
}

#[test]
fn a11_the_fractions_of_linux_are_the_roots_of_two_rounded_down() {
    let table = [128, 139, 152, 165, 181, 197, 215, 234];
    for (eighth, fraction) in (0u32..).zip(table) {
        let increment = ab_formula_hybla_slow_start_q10(1024 + 128 * eighth, KERNEL);
        assert_eq!(increment >> 3, 2 * fraction - 128, "rho = 1 + {eighth} / 8");
    }
}

proptest! {
    #[test]
    fn hybla_slow_start_is_real_arithmetic(rho_q10 in 1024u32..17 << 10) {
        let want = (f64::from(rho_q10) / 1024.0).exp2() - 1.0;
        let got = f64::from(ab_formula_hybla_slow_start_q10(rho_q10, EXACT)) / 1024.0;
        // The polynomial is off by 1.1e-4 of 2^rho, which is at most twice 2^rho - 1.
        prop_assert!((got - want).abs() <= 0.002 + 2.3e-4 * want, "got {got}, want {want}");
    }
}

#[test]
fn a11_up_to_rtt0_it_is_reno() {
    for rtt_us in [1000, 25_000] {
        let mut hybla = avoiding("hybla", &[], 21, rtt_us);
        let mut reno = avoiding("reno", &[], 21, rtt_us);
        for connection in [&mut hybla, &mut reno] {
            (0..100).for_each(|_| connection.ack(0, 1));
            connection.fast_retransmit(0);
            (0..100).for_each(|_| connection.ack(0, 1));
        }
        let [ours, renos] = [&hybla, &reno].map(|c| c.subflows[0].view);
        assert_eq!((ours.cwnd, ours.cwnd_cnt, ours.ssthresh), (renos.cwnd, renos.cwnd_cnt, renos.ssthresh));
    }
}

#[test]
fn a11_the_explosive_slow_start_of_a_long_path_ends_at_the_bounds() {
    let mut connection = Connection::new(1, "hybla", &[]);
    connection.sample(0, 600_000);
    connection.ack(0, 1);
    assert_eq!(connection.cwnd(0), 65535, "2^16 - 1 packets for one");
    let mut connection = Connection::new(1, "hybla", &[]);
    connection.subflows[0].view.ssthresh = 300;
    connection.sample(0, 600_000);
    connection.ack(0, 1);
    assert_eq!(connection.cwnd(0), 300);
}

#[test]
fn a11_the_kernels_rho_has_eighths() {
    assert_eq!(ab_formula_hybla_rho_q10(40_000, 25_000, EXACT), 1638); // 1.6
    assert_eq!(ab_formula_hybla_rho_q10(40_000, 25_000, KERNEL), 1536); // 12 / 8
    assert_eq!(ab_formula_hybla_rho_q10(u32::MAX, 1000, EXACT), 1 << 20, "at most 1024");
}

// A12, Scalable.

#[test]
fn scal1_a_loss_takes_an_eighth() {
    assert_eq!(avoiding("scalable", &[], 200, 100_000).fast_retransmit(0), 175);
    assert_eq!(avoiding("scalable", &[("variant", 1)], 3, 100_000).fast_retransmit(0), 3);
    assert_eq!(avoiding("scalable", &[("variant", 1)], 2, 100_000).fast_retransmit(0), 2);
}

#[test]
fn a12_a_hundred_acks_are_a_packet_whatever_the_window() {
    for cwnd in [200, 1000] {
        assert_eq!(acks_to_growth(&mut avoiding("scalable", &[], cwnd, 100_000), 0), 100);
        assert_eq!(acks_to_growth(&mut avoiding("scalable", &[("ai_cnt", 50)], cwnd, 100_000), 0), 50);
    }
}

#[test]
fn a12_small_windows_follow_reno_and_linux_takes_the_faster_of_the_two() {
    for (variant, cwnd, acks) in
        [(0, 15, 15), (0, 16, 100), (0, 60, 100), (1, 16, 16), (1, 60, 60), (1, 200, 100)]
    {
        let mut connection = avoiding("scalable", &[("variant", variant)], cwnd, 100_000);
        assert_eq!(acks_to_growth(&mut connection, 0), acks, "variant {variant} at {cwnd}");
    }
    assert_eq!(avoiding("scalable", &[], 15, 100_000).fast_retransmit(0), 7);
    assert_eq!(avoiding("scalable", &[], 16, 100_000).fast_retransmit(0), 14);
    assert_eq!(avoiding("scalable", &[("variant", 1)], 15, 100_000).fast_retransmit(0), 14);
}
