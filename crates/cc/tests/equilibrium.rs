//! Where algorithms settle (section F1 of the algorithm reference): the delay-based ones on a path of their own, from
//! slow start on, with their defaults; Scalable and Hybla where each packet is lost with the same probability, by
//! itself, and a loss is repaired at once.

mod common;

use common::Connection;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng as _, SeedableRng as _},
};

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

/// Uniform in [0, 1).
fn uniform(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The mean window over time, in round trips, and the one that a packet sees, over three million packets.
fn under_losses(name: &str, rtt_us: u32, loss: f64) -> (f64, f64) {
    let mut connection = Connection::new(1, name, &[]);
    connection.set(0, 100, 2, rtt_us);
    connection.sample(0, rtt_us);
    let (mut packets, mut rounds, mut seen) = (0.0, 0.0, 0.0);
    let mut random = SplitMix64::seed_from_u64(1);
    while packets < 3e6 {
        let cwnd = f64::from(connection.cwnd(0));
        packets += 1.0;
        rounds += 1.0 / cwnd;
        seen += cwnd;
        if uniform(&mut random) < loss {
            connection.fast_retransmit(0);
        } else {
            connection.ack(0, 1);
        }
    }
    (packets / rounds, seen / packets)
}

fn within_a_tenth(what: &str, got: f64, want: f64) {
    assert!((got / want - 1.0).abs() <= 0.1, "{what}: {got}, want {want}");
}

/// 0.08 / p is where the expected change of the window is 0, so it is the window that a packet sees; over time the mean
/// of its logarithm rests, which makes the mean window ln(8/7) for 1/8: 0.0749 / p.
#[test]
fn scalable_rests_at_0_08_by_the_loss_rate() {
    for loss in [1e-3, 2e-4] {
        let (over_time, seen) = under_losses("scalable", 100_000, loss);
        within_a_tenth("seen by a packet", seen, 0.08 / loss);
        within_a_tenth("over time", over_time, 0.01 / (8.0f64 / 7.0).ln() / loss);
    }
}

/// The window over time is between rho times Reno's at periodic loss, sqrt(3 / 2p), and in the fluid limit, sqrt(2 / p).
#[test]
fn hybla_rests_at_the_rate_of_reno_at_rtt0() {
    for (rtt_us, rho) in [(25_000, 1.0), (60_000, 2.4), (250_000, 10.0)] {
        let (over_time, _) = under_losses("hybla", rtt_us, 1e-3);
        let [periodic, fluid] = [1.5, 2.0].map(|k: f64| rho * (k / 1e-3).sqrt());
        assert!((periodic..=fluid).contains(&over_time), "{rtt_us} us: {over_time} in {periodic} to {fluid}");
    }
}
