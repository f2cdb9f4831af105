//! ecMTCP and emReno (parts B10 and B11 of the algorithm reference): increases with a price of energy.

mod common;

use common::{Connection, assert_within, subflows};

/// Subflows whose energy per bit the host knows.
fn priced(
    name: &str,
    set: &[(&str, u32)],
    windows: [u32; 2],
    rtts_us: [u32; 2],
    prices: [u32; 2],
) -> Connection {
    let mut connection = subflows(name, set, windows, rtts_us);
    for (peer, price) in connection.peers.iter_mut().zip(prices) {
        peer.energy_nj_per_bit = price;
    }
    connection
}

const EQUAL: [u32; 2] = [100_000, 100_000];

#[test]
fn b10_ecmtcp_scales_lias_increase_by_the_relative_price() {
    for (k, want) in [0.0375, 0.0125].into_iter().enumerate() {
        let mut connection = priced("ecmtcp", &[], [10, 10], EQUAL, [100, 300]);
        assert_within(connection.change_per_ack(k, 1_000_000), want, 0.1, &format!("subflow {k}"));
    }
}

#[test]
fn b11_emreno_increases_in_inverse_proportion_to_the_price() {
    for (k, want) in [0.05, 0.025].into_iter().enumerate() {
        let mut connection = priced("emreno", &[], [10, 10], EQUAL, [100, 200]);
        assert_within(connection.change_per_ack(k, 1_000_000), want, 0.1, &format!("subflow {k}"));
    }
}

#[test]
fn unknown_prices_are_neutral() {
    for prices in [[0, 0], [100, 0], [0, 300]] {
        for k in 0..2 {
            let mut connection = priced("ecmtcp", &[], [10, 10], EQUAL, prices);
            assert_within(connection.change_per_ack(k, 100_000), 0.025, 0.1, &format!("LIA, {prices:?}"));
            let mut connection = priced("emreno", &[], [10, 10], EQUAL, prices);
            assert_within(connection.change_per_ack(k, 100_000), 0.05, 0.1, &format!("equal, {prices:?}"));
        }
    }
}

#[test]
fn parameters_overrule_the_prices_of_the_host() {
    let set = [("price_1", 100), ("price_2", 300)];
    for host in [[0, 0], [700, 1]] {
        let mut connection = priced("ecmtcp", &set, [10, 10], EQUAL, host);
        assert_within(connection.change_per_ack(0, 1_000_000), 0.0375, 0.1, &format!("host {host:?}"));
    }
}

#[test]
fn ecmtcp_cuts_the_increase_to_a_tenth_at_most_and_never_beats_reno() {
    let mut connection = priced("ecmtcp", &[], [10, 10], EQUAL, [1, 1000]);
    assert_within(connection.change_per_ack(1, 1_000_000), 0.0025, 0.1, "delta would be 0.002");
    // delta = 2 and alpha / w_total = 0.4: Reno's 1 / 2 is less.
    let mut connection = priced("ecmtcp", &[], [2, 2], [10_000, 1_000_000], [1, 1000]);
    assert_within(connection.change_per_ack(0, 100_000), 0.5, 0.1, "the best path");
}

#[test]
fn the_least_price_is_that_of_the_usable_subflows() {
    let mut connection = Connection::new(3, "emreno", &[]);
    for (k, price) in [300, 600, 1].into_iter().enumerate() {
        connection.set(k, 10, 1, 100_000);
        connection.peers[k].energy_nj_per_bit = price;
    }
    connection.peers[2].usable = 0;
    assert_within(connection.change_per_ack(1, 1_000_000), 0.025, 0.1, "300 of 600 nJ per bit");
}

/// The change by one ACK on subflow `k`, as the house definitions have it.
type Step = fn(windows: [f64; 2], rtts_s: [f64; 2], prices: [f64; 2], k: usize) -> f64;

fn rate(windows: [f64; 2], rtts_s: [f64; 2]) -> f64 {
    windows[0] / rtts_s[0] + windows[1] / rtts_s[1]
}

fn ecmtcp_step(windows: [f64; 2], rtts_s: [f64; 2], prices: [f64; 2], k: usize) -> f64 {
    let best = (windows[0] / rtts_s[0].powi(2)).max(windows[1] / rtts_s[1].powi(2));
    let delta = (2.0 / prices[k] / (1.0 / prices[0] + 1.0 / prices[1])).clamp(0.1, 2.0);
    (best / rate(windows, rtts_s).powi(2) * delta).min(1.0 / windows[k])
}

fn emreno_step(windows: [f64; 2], rtts_s: [f64; 2], prices: [f64; 2], k: usize) -> f64 {
    prices[0].min(prices[1]) / prices[k] / rtts_s[k] / rate(windows, rtts_s)
}

/// As LIA's: below 20 packets a whole-packet window alone is more than 1 % off.
#[test]
fn within_1_percent_of_real_numbers_over_1000_acks() {
    for (name, step) in [("ecmtcp", ecmtcp_step as Step), ("emreno", emreno_step)] {
        for (start, rtts_ms, prices) in [
            ([20, 40], [100, 50], [150, 124]),
            ([40, 40], [100, 100], [100, 300]),
            ([100, 60], [50, 100], [2000, 37]),
            ([400, 900], [150, 30], [154, 266]),
            ([3000, 2000], [300, 20], [1, 1]),
        ] {
            let rtts_s = rtts_ms.map(|ms| f64::from(ms) / 1000.0);
            let mut connection = priced(name, &[], start, rtts_ms.map(|ms| ms * 1000), prices);
            let prices = prices.map(f64::from);
            let mut want = start.map(f64::from);
            for ack in 0..1000 {
                connection.ack(ack % 2, 1);
                want[ack % 2] += step(want, rtts_s, prices, ack % 2);
            }
            for k in 0..2 {
                let part = f64::from(connection.subflows[k].view.cwnd_cnt) * step(want, rtts_s, prices, k);
                let got = f64::from(connection.cwnd(k)) + part;
                assert_within(got, want[k], 1.0, &format!("{name} {start:?} {rtts_ms:?}, subflow {k}"));
            }
        }
    }
}
