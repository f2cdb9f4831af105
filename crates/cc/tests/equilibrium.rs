//! Where the delay-based algorithms settle on a path of their own (section F1 of the algorithm reference), from slow
//! start on, with their defaults.

mod common;

use common::Connection;

/// Packets that the path holds without a queue, and its base round-trip time.
const BASE_US: u32 = 150_000;
const PACKETS_PER_S: f64 = 375.0; // 3 Mbit/s, 1000-byte packets
const FILLING: f64 = 56.25;

/// Windows at the start of the last hundred of a thousand rounds.
fn settled(name: &str, set: &[(&str, u32)]) -> (f64, f64) {
    let mut connection = Connection::new(1, name, set);
    connection.subflows[0].view.cwnd = 2;
    let mut windows = Vec::new();
    for _ in 0..1000 {
        let cwnd = f64::from(connection.cwnd(0));
        windows.push(cwnd);
        connection.round(0, BASE_US.max((cwnd / PACKETS_PER_S * 1e6) as u32));
    }
    let last = &windows[900..];
    (last.iter().copied().fold(f64::MAX, f64::min), last.iter().copied().fold(0.0, f64::max))
}

#[test]
fn vegas_keeps_between_alpha_and_beta_packets_queued() {
    for set in [&[][..], &[("variant", 1), ("alpha", 2), ("beta", 4)]] {
        let (low, high) = settled("vegas", set);
        let (alpha, beta) = if set.is_empty() { (1.0, 3.0) } else { (2.0, 4.0) };
        assert!(low >= FILLING + alpha - 1.0 && high <= FILLING + beta + 1.0, "{low} to {high}");
    }
}

#[test]
fn mvegas_keeps_two_to_six_packets_queued() {
    let (low, high) = settled("mvegas", &[]);
    assert!(low >= FILLING + 2.0 - 1.0 && high <= FILLING + 6.0 + 1.0, "{low} to {high}");
}

#[test]
fn fast_keeps_alpha_packets_queued() {
    for alpha in [20, 100] {
        let (low, high) = settled("fast", &[("alpha", alpha)]);
        let want = FILLING + f64::from(alpha);
        assert!(low >= want - 1.5 && high <= want + 1.5, "alpha {alpha}: {low} to {high}, want {want}");
    }
}

#[test]
fn mfast_settles_at_sigma_times_alpha_and_the_path() {
    let (low, high) = settled("mfast", &[]);
    let want = 0.5 * (100.0 + FILLING);
    assert!(low >= want - 1.5 && high <= want + 1.5, "{low} to {high}, want {want}");
}
