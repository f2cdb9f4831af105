//! The pure formulas: fixed-point helpers over their whole range, integer check vectors of part G.
#![allow(unsafe_code)]

use anabranch_cc as _; // brings the C library
use proptest::prelude::*;

// SAFETY: these are the functions of host/formulas.c, with these types; all but mvegas_step only take and
// return numbers.
unsafe extern "C" {
    safe fn ab_formula_mul_div(a: u64, b: u32, c: u32) -> u64;
    safe fn ab_formula_product_greater(a: u32, b: u64, c: u32, d: u64) -> u32;
    safe fn ab_formula_bit_length(a: u64) -> u32;
    safe fn ab_formula_cube_root(a: u64) -> u32;
    safe fn ab_formula_ewma(average: u64, sample: u64, n: u32) -> u64;
    safe fn ab_formula_cubic_k(below: u32) -> u32;
    safe fn ab_formula_cubic_window_q8(origin: u32, k: u32, t: u32, precision: u32) -> u64;
    safe fn ab_formula_cubic_w_max(cwnd: u32, w_max: u32, beta_q10: u32, fast_convergence: u32) -> u32;
    safe fn ab_formula_vegas_diff_q8(cwnd: u32, base_us: u32, rtt_us: u32) -> u32;
    safe fn ab_formula_vegas_diff_linux(cwnd: u32, base_us: u32, rtt_us: u32) -> u64;
    fn ab_formula_mvegas_step(band: *mut u32, beta_dec: u32, diff_q8: u32) -> u32;
    safe fn ab_formula_fast_equation_q10(
        alpha: u32,
        gamma_q10: u32,
        sigma_q10: u32,
        w_q10: u32,
        old_q10: u32,
        base_us: u32,
        avg_q8: u64,
    ) -> u32;
}

const EXACT: u32 = 0;
const KERNEL: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Hold,
    Up,
    Down,
}

/// One decision of MVegas with alpha 1, beta 3, k 2. The band is a, b, previous diff, all times 256.
fn mvegas(a: u32, b: u32, prev: Option<u32>, diff: u32, multiply: bool) -> (Step, u32, u32) {
    let mut band = [a, b, prev.unwrap_or(0), prev.is_some() as u32];
    // SAFETY: `band` has the four elements that the function reads and writes.
    let step = unsafe { ab_formula_mvegas_step(band.as_mut_ptr(), multiply as u32, diff) };
    assert_eq!(band[2..], [diff, 1]);
    ([Step::Hold, Step::Up, Step::Down][step as usize], band[0], band[1])
}

/// Any magnitude, not only large numbers.
fn any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

proptest! {
    #[test]
    fn mul_div_is_exact_and_saturates(a in any_size(), b in any::<u32>(), c in 1..=u32::MAX) {
        let exact = u128::from(a) * u128::from(b) / u128::from(c);
        prop_assert_eq!(ab_formula_mul_div(a, b, c), u64::try_from(exact).unwrap_or(u64::MAX));
    }

    #[test]
    fn product_greater_is_exact(a in any::<u32>(), b in any_size(), c in any::<u32>(), d in any_size()) {
        let exact = u128::from(a) * u128::from(b) > u128::from(c) * u128::from(d);
        prop_assert_eq!(ab_formula_product_greater(a, b, c, d) != 0, exact);
    }

    #[test]
    fn product_greater_is_exact_for_neighbours(a in 1..=u32::MAX, b in any_size(), d in any_size()) {
        let product = u128::from(a) * u128::from(b);
        prop_assert_eq!(ab_formula_product_greater(a, b, a, b), 0);
        prop_assert_eq!(ab_formula_product_greater(a, b, a, d) != 0, product > u128::from(a) * u128::from(d));
    }

    #[test]
    fn bit_length_counts_bits(a in any_size()) {
        prop_assert_eq!(ab_formula_bit_length(a), 64 - a.leading_zeros());
    }

    #[test]
    fn cube_root_is_the_floor_or_one_more(a in any_size()) {
        let root = u128::from(ab_formula_cube_root(a));
        prop_assert!(root.saturating_sub(1).pow(3) <= u128::from(a) && u128::from(a) < (root + 1).pow(3), "{root}");
    }

    #[test]
    fn ewma_stays_between_and_moves_by_a_part(average in any_size(), sample in any_size(), n in 1..=u32::MAX) {
        let next = ab_formula_ewma(average, sample, n);
        prop_assert!(next >= average.min(sample) && next <= average.max(sample));
        prop_assert_eq!(next.abs_diff(average), average.abs_diff(sample) / u64::from(n));
    }
}

#[test]
fn a_zero_divisor_counts_as_one() {
    assert_eq!(ab_formula_mul_div(7, 6, 0), 42);
    assert_eq!(ab_formula_ewma(10, 20, 0), 20);
}

#[test]
fn cube_root_at_the_edges_of_every_power_of_two() {
    for bits in 0..64 {
        for a in [1u64 << bits, (1 << bits) - 1, u64::MAX >> bits] {
            let root = u128::from(ab_formula_cube_root(a));
            assert!(
                root.saturating_sub(1).pow(3) <= u128::from(a) && u128::from(a) < (root + 1).pow(3),
                "{a}"
            );
        }
    }
}

#[test]
fn g7_cube_root_and_targets() {
    assert_eq!(ab_formula_cube_root(2_681_735_677 * 30), 4316);
    let k = ab_formula_cubic_k(30);
    assert_eq!(k, 4316);
    let targets = [0, 2048, k, k + 2048].map(|t| ab_formula_cubic_window_q8(100, k, t, KERNEL));
    assert_eq!(targets, [71 << 8, 96 << 8, 100 << 8, 103 << 8]);
}

/// C (t - K)^3 + W_max over real numbers, seconds.
fn w_cubic(w_max: f64, k_s: f64, t_s: f64) -> f64 {
    0.4 * (t_s - k_s).powi(3) + w_max
}

#[test]
fn cubic1_k_and_the_window_it_comes_back_to() {
    let k_s = (30.0f64 / 0.4).cbrt();
    assert!((k_s - 4.2172).abs() < 1e-4);
    assert!((w_cubic(100.0, k_s, 2.0) - 95.640).abs() < 1e-3);
    assert!((w_cubic(100.0, k_s, k_s + 2.0) - 103.2).abs() < 1e-9);
    assert!((f64::from(ab_formula_cubic_k(30)) / 1024.0 - k_s).abs() < 0.003);
}

proptest! {
    #[test]
    fn cubic_targets_are_real_arithmetic(w_max in 10u32..100_000, below in 1u32..50, t in 0u32..30_000) {
        let below = (below * w_max / 100).max(1);
        let k = ab_formula_cubic_k(below);
        let want = w_cubic(f64::from(w_max), (f64::from(below) / 0.4).cbrt(), f64::from(t) / 1024.0);
        let [exact, kernel] = [EXACT, KERNEL].map(|precision| ab_formula_cubic_window_q8(w_max, k, t, precision));
        // 410 for 409.6 is 0.1 %; K has 1/1024 s.
        let slack = 0.02 + 0.002 * (want - f64::from(w_max)).abs() + 0.001 * want;
        prop_assert!((exact as f64 / 256.0 - want).abs() <= slack, "got {}, want {want}", exact as f64 / 256.0);
        // Linux drops the fraction of the distance from W_max.
        let distance = exact.abs_diff(u64::from(w_max) << 8) >> 8 << 8;
        prop_assert_eq!(kernel.abs_diff(u64::from(w_max) << 8), distance);
    }

    #[test]
    fn cubic_targets_saturate(origin in any::<u32>(), k in any::<u32>(), t in any::<u32>()) {
        let (origin_q8, target) = (u64::from(origin) << 8, ab_formula_cubic_window_q8(origin, k, t, EXACT));
        let in_range = if t < k { target <= origin_q8 } else { target >= origin_q8 };
        prop_assert!(in_range && target.abs_diff(origin_q8) <= 410 << 22, "{target}");
    }
}

#[test]
fn cubic2_fast_convergence() {
    assert_eq!(ab_formula_cubic_w_max(80, 100, 717, 1), 68);
    assert_eq!(ab_formula_cubic_w_max(80, 100, 717, 0), 80);
    assert_eq!(ab_formula_cubic_w_max(100, 80, 717, 1), 100);
}

#[test]
fn vegas1_queued_packets() {
    assert_eq!(ab_formula_vegas_diff_q8(20, 100_000, 125_000), 4 << 8);
    assert_eq!(ab_formula_vegas_diff_linux(20, 100_000, 125_000), 5);
    assert_eq!(ab_formula_vegas_diff_q8(20, 100_000, 104_000), 196); // 0.769
    assert_eq!(ab_formula_vegas_diff_linux(20, 100_000, 104_000), 0); // 0.8
}

#[test]
fn vegas_diff_does_not_overflow() {
    assert_eq!(ab_formula_vegas_diff_q8(u32::MAX, 1, u32::MAX), ((1 << 24) - 1) * 256 - 1);
    assert_eq!(
        ab_formula_vegas_diff_linux(u32::MAX, 1, u32::MAX),
        u64::from(u32::MAX) * u64::from(u32::MAX - 1)
    );
    assert_eq!(ab_formula_vegas_diff_q8(100, 2000, 1000), 0);
}

#[test]
fn g5_table() {
    let diff = ab_formula_vegas_diff_q8(20, 100_000, 105_000);
    assert_eq!(diff, 243);
    assert_eq!(mvegas(256, 512, None, diff, false), (Step::Up, 512, 768));
    assert_eq!(mvegas(256, 512, Some(512), diff, false), (Step::Up, 512, 768));
    let diff = ab_formula_vegas_diff_q8(30, 100_000, 140_000);
    assert_eq!(diff, 2194);
    assert_eq!(mvegas(512, 768, Some(1024), diff, false), (Step::Down, 512, 649));
}

#[test]
fn mvegas1_phi_2_widens_the_band() {
    assert_eq!(mvegas(256, 512, Some(2 << 8), 1 << 8, false), (Step::Up, 2 << 8, 3 << 8));
}

#[test]
fn mvegas2_phi_half_lowers_the_upper_edge() {
    assert_eq!(mvegas(2 << 8, 3 << 8, Some(4 << 8), 8 << 8, false), (Step::Down, 2 << 8, 640)); // 2.5
}

#[test]
fn mvegas3_between_the_edges_it_holds() {
    assert_eq!(mvegas(256, 512, Some(3 << 8), 4 << 8, false), (Step::Hold, 256, 512));
}

#[test]
fn mvegas_edges_themselves_hold() {
    assert_eq!(mvegas(256, 512, Some(2 << 8), 2 << 8, false).0, Step::Hold);
    assert_eq!(mvegas(256, 512, Some(2 << 8), (2 << 8) - 1, false).0, Step::Up);
    assert_eq!(mvegas(256, 512, Some(5 << 8), 5 << 8, false).0, Step::Hold);
    assert_eq!(mvegas(256, 512, Some(5 << 8), (5 << 8) + 1, false).0, Step::Down);
}

#[test]
fn mvegas_guards_of_phi() {
    // diff 0 after 0: phi 1. a = min(2, 1 + 1), b = min(3, 2 + 1).
    assert_eq!(mvegas(256, 512, Some(0), 0, false), (Step::Up, 512, 768));
    // The product reading shows phi: b = max(2, min(3, 3 * 0.5)) = 2 here, and 2.25 for phi = 3/4.
    assert_eq!(mvegas(512, 768, Some(4 << 8), 8 << 8, true), (Step::Down, 512, 512));
    assert_eq!(mvegas(512, 768, Some(6 << 8), 8 << 8, true), (Step::Down, 512, 576));
    // b never falls below alpha + 1.
    assert_eq!(mvegas(512, 512, Some(8 << 8), 8 << 8, false), (Step::Down, 512, 512));
}

#[test]
fn fast1_fixed_point_and_doubling() {
    let fast = |w: u32, avg_us: u64, alpha| {
        ab_formula_fast_equation_q10(alpha, 512, 1024, w << 10, w << 10, 100_000, avg_us << 8)
    };
    assert_eq!(fast(100, 125_000, 20), 100 << 10);
    assert_eq!(fast(5, 100_000, 100), 10 << 10);
}

#[test]
fn mfast1_mfast2_mfast3() {
    let mfast = |w: u32, base_us, avg_us: u64| {
        ab_formula_fast_equation_q10(100, 512, 512, w << 10, w << 10, base_us, avg_us << 8)
    };
    assert_eq!(mfast(60, 150_000, 200_000), 67_840); // 66.25
    assert_eq!(mfast(75, 150_000, 225_000), 75 << 10);
    assert_eq!(mfast(100, 150_000, 150_000), 100 << 10);
}

proptest! {
    #[test]
    fn fast_equation_is_real_arithmetic_truncated(
        alpha in 1u32..2000,
        gamma_q10 in 1u32..=1024,
        sigma_q10 in 512u32..=1024,
        w_q10 in 2u32 << 10..1 << 24,
        old_q10 in 2u32 << 10..1 << 24,
        base_us in 100u32..1_000_000,
        queue_us in 0u32..1_000_000,
    ) {
        let (gamma, sigma) = (f64::from(gamma_q10) / 1024.0, f64::from(sigma_q10) / 1024.0);
        let [w, old] = [w_q10, old_q10].map(|q10| f64::from(q10) / 1024.0);
        let share = f64::from(base_us) / f64::from(base_us + queue_us);
        let want = (2.0 * w).min((1.0 - gamma) * w + sigma * gamma * (share * old + f64::from(alpha))).max(2.0);
        let avg_q8 = u64::from(base_us + queue_us) << 8;
        let got = ab_formula_fast_equation_q10(alpha, gamma_q10, sigma_q10, w_q10, old_q10, base_us, avg_q8);
        // sigma * gamma has 10 bits: its truncation weighs at most 2^-10 of the bracket.
        let slack = (old + f64::from(alpha)) / 1024.0 + 0.01;
        prop_assert!((f64::from(got) / 1024.0 - want).abs() <= slack, "got {}, want {want}", f64::from(got) / 1024.0);
    }
}
