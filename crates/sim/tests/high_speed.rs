//! H-TCP, Compound, Hybla and Scalable: one flow beside the same workload in ns-2 and ns-3, beside a model of rounds that
//! shares no code with the simulator, and at a loss rate beside the relations of the algorithm reference (F1).
//!
//! The figures are in `docs/validation.md`. Peers use SACK, so it is used here.

#![allow(clippy::print_stdout)] // the figures are shown with --nocapture

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use std::ops::RangeInclusive;

use common::{connection, link, subflow};

/// Bits of a full packet on the wire, in all scenarios here.
const PACKET_BITS: f64 = 1040.0 * 8.0;
const PAYLOAD_BITS: f64 = 8000.0;

fn within(what: &str, value: f64, range: RangeInclusive<f64>) {
    println!("{what}: {value:.4}, expected {range:?}");
    assert!(range.contains(&value), "{what}: {value} is not in {range:?}");
}

/// What is measured of one flow through 10 Mbit/s, 40 ms and 50 packets, from 10 s to 60 s.
struct Single {
    /// Part of what the link can carry of payload: packets of different headers compare.
    goodput: f64,
    drops: f64,
    mean_cwnd: f64,
}

fn single_flow(congestion: &str, params: &[(&str, &str)]) -> Single {
    let keys: Vec<_> = params.iter().map(|(key, _)| format!("connection.flow.congestion.{key}")).collect();
    let mut overrides = vec![("connection.flow.congestion", congestion), ("transport.recovery", "sack")];
    overrides.extend(keys.iter().zip(params).map(|(key, (_, value))| (key.as_str(), *value)));
    let run = common::run(&common::scenario("validation/single-flow.toml", &overrides), 1);
    let single = Single {
        goodput: connection(&run, "flow", "goodput_bps") / (10e6 * PAYLOAD_BITS / PACKET_BITS),
        drops: link(&run, "bottleneck", "drops"),
        mean_cwnd: subflow(&run, "flow", "0", "mean_cwnd_packets"),
    };
    let Single { goodput, drops, mean_cwnd } = single;
    println!("{congestion} {params:?}: goodput {goodput:.4}, {drops} drops, mean cwnd {mean_cwnd:.1}");
    single
}

/// Within 2 % of a peer's goodput and a tenth of its window: the least and the most that the peers have.
fn fills_the_path_as_the_peers(ours: &Single, goodput: [f64; 2], cwnd: [f64; 2]) {
    within("goodput", ours.goodput, 0.98 * goodput[0]..=1.02 * goodput[1]);
    within("mean cwnd", ours.mean_cwnd, 0.9 * cwnd[0]..=1.1 * cwnd[1]);
}

/// Within a fifth of the least and the most that the peers have.
fn drops_as_the_peers(ours: &Single, drops: [f64; 2]) {
    within("drops", ours.drops, 0.8 * drops[0]..=1.2 * drops[1]);
}

/// Drops of one flow there in 50 s, round by round.
///
/// Assumed: windows are real numbers; `grow(w, d)` is the growth of a window in a round, with `d` seconds since the
/// last loss; what grows beyond path and queue is dropped, whole packets, until the first drop is known a round trip
/// later; the recovery takes one round trip, too, with a full queue at its beginning.
fn round_model_drops(keep: f64, grow: impl Fn(f64, f64) -> f64) -> f64 {
    let (rate_pps, base_s, queue) = (10e6 / PACKET_BITS, 0.04, 50.0);
    let full = rate_pps * base_s + queue;
    let full_rtt_s = full / rate_pps;
    let (mut window, mut since_loss_s, mut time_s, mut drops) = (keep * full, 0.0, 0.0, 0.0);
    while time_s < 50.0 {
        let rtt_s = f64::max(base_s, window / rate_pps);
        let growth = grow(window, since_loss_s);
        if window + growth <= full {
            window += growth;
            since_loss_s += rtt_s;
            time_s += rtt_s;
            continue;
        }
        let until_drop_s = rtt_s * (full - window) / growth;
        drops += growth.ceil();
        window = keep * (full + growth);
        since_loss_s = full_rtt_s;
        time_s += until_drop_s + 2.0 * full_rtt_s;
    }
    drops
}

/// The 10 % that closed forms have beside packets (see `closed_forms.rs`).
fn as_the_rounds(ours: &Single, keep: f64, grow: impl Fn(f64, f64) -> f64) {
    let expected = round_model_drops(keep, grow);
    within("drops beside the rounds", ours.drops / expected, 0.9..=1.1);
}

#[test]
fn the_round_model_is_right_about_reno() {
    as_the_rounds(&single_flow("reno", &[]), 0.5, |_, _| 1.0);
}

/// ns-2's Linux compound: the only peer.
#[test]
fn a_single_compound_flow_does_as_in_ns2() {
    for precision in ["exact", "kernel"] {
        let ours = single_flow("compound", &[("precision", precision)]);
        fills_the_path_as_the_peers(&ours, [1.0, 1.0], [79.974, 79.974]);
        drops_as_the_peers(&ours, [15.0, 15.0]);
    }
}

/// f(D) of H-TCP by RTT scaling at 40 ms.
fn htcp_growth(d: f64) -> f64 {
    let f = if d > 1.0 { 1.0 + 10.0 * (d - 1.0) + ((d - 1.0) / 2.0).powi(2) } else { 1.0 };
    f64::max(f / 2.5, 1.0)
}

/// The same with Linux's whole numbers.
fn htcp_growth_in_whole_numbers(d: f64) -> f64 {
    let f = if d > 1.0 { 1.0 + 10.0 * (d - 1.0) + ((d - 1.0) / 2.0).powi(2) } else { 1.0 };
    f64::max((f.floor() / 2.5).floor(), 1.0)
}

/// ns-2's Linux htcp, 92 drops and 73.1 packets, and ns-3's two: 52 and 63 drops, 84.8 and 73.6 packets. beta is
/// 40 ms / 81.6 ms, less than its least value, so alpha is f.
#[test]
fn a_single_htcp_flow_with_whole_numbers_does_as_in_ns2() {
    let ours = single_flow("htcp", &[("precision", "kernel")]);
    fills_the_path_as_the_peers(&ours, [0.9996, 1.0], [73.092, 84.82]);
    drops_as_the_peers(&ours, [52.0, 92.0]);
    as_the_rounds(&ours, 0.5, |_, d| htcp_growth_in_whole_numbers(d));
}

/// With its equation as printed it grows by up to a packet more per round trip, and loses as much more, as the model of
/// rounds says; goodput and window are the peers'.
#[test]
fn a_single_htcp_flow_with_fractions_loses_what_its_faster_growth_says() {
    let ours = single_flow("htcp", &[]);
    fills_the_path_as_the_peers(&ours, [0.9996, 1.0], [73.092, 84.82]);
    as_the_rounds(&ours, 0.5, |_, d| htcp_growth(d));
}

/// ns-2's Linux hybla: 0.9924, 58 drops, 75.9 packets. Its increments are whole 1/128 packets: 1.5 packets per round
/// trip of a full window instead of 2.25.
#[test]
fn a_single_hybla_flow_in_eighths_does_as_in_ns2() {
    let ours = single_flow("hybla", &[("precision", "kernel")]);
    fills_the_path_as_the_peers(&ours, [0.9924, 0.9924], [75.904, 75.904]);
    drops_as_the_peers(&ours, [58.0, 58.0]);
    as_the_rounds(&ours, 0.5, |window, _| (288.0 / window).floor() / 128.0 * window);
}

/// ns-3's Hybla has RTT0 = 60 ms, so that rho is 1 here: 16 drops, 77.9 packets.
#[test]
fn a_single_hybla_flow_with_rtt0_above_the_rtt_does_as_in_ns3() {
    let ours = single_flow("hybla", &[("rtt0", "60 ms")]);
    fills_the_path_as_the_peers(&ours, [0.9998, 1.0], [77.851, 77.869]);
    drops_as_the_peers(&ours, [16.0, 16.0]);
}

/// With rho = 1.6 it grows by 2.56 packets per round trip, and loses three at a time.
#[test]
fn a_single_hybla_flow_with_fractions_loses_what_its_faster_growth_says() {
    let ours = single_flow("hybla", &[]);
    fills_the_path_as_the_peers(&ours, [0.9924, 1.0], [75.904, 77.869]);
    as_the_rounds(&ours, 0.5, |_, _| 1.6 * 1.6);
}

/// ns-2's Linux scalable and ns-3's: 0.9927 and 1, 142 to 152 drops, 87.7 to 92.8 packets. All have 50 where Linux now
/// has 100.
#[test]
fn a_single_scalable_flow_with_fifty_does_as_in_ns2_and_ns3() {
    for variant in ["paper", "linux"] {
        let ours = single_flow("scalable", &[("variant", variant), ("ai_cnt", "50 packets")]);
        fills_the_path_as_the_peers(&ours, [0.9927, 1.0], [87.69, 92.802]);
        drops_as_the_peers(&ours, [142.0, 152.0]);
        as_the_rounds(&ours, 0.875, |window, _| window / 50.0);
    }
}

/// With 100 it loses half as often, and one packet at a time instead of two.
#[test]
fn a_single_scalable_flow_with_a_hundred_loses_what_its_slower_growth_says() {
    let ours = single_flow("scalable", &[]);
    fills_the_path_as_the_peers(&ours, [0.9927, 1.0], [87.69, 92.802]);
    as_the_rounds(&ours, 0.875, |window, _| window / 100.0);
}

/// Tahoe has no peer. From each of its losses on the link is idle for the propagation delay, until the retransmission
/// is known to have arrived, and then in each round trip for what windows of 2, 4, 8, 16 and 32 leave of it.
#[test]
fn a_single_tahoe_flow_loses_the_time_of_a_slow_start_at_each_loss() {
    let (base_s, packet_s) = (0.04, PACKET_BITS / 10e6);
    let idle_s: f64 = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].iter().map(|window| base_s - window * packet_s).sum();
    let overrides = [("connection.flow.congestion", "tahoe")];
    let run = common::run(&common::scenario("validation/single-flow.toml", &overrides), 1);
    let drops = link(&run, "bottleneck", "drops");
    within("drops", drops, 15.0..=16.0);
    let lost = 1.0 - connection(&run, "flow", "goodput_bps") / (10e6 * PAYLOAD_BITS / PACKET_BITS);
    within("lost time beside that of the slow starts", lost / (drops * idle_s / 50.0), 0.9..=1.1);
}

/// Packets per second, and mean window, of an unlimited sender at a loss rate.
fn rate(congestion: &str, loss: f64, delay: &str, duration: &str) -> (f64, f64) {
    let run = common::run(&common::parse(&lossy(congestion, loss, delay, duration)), 1);
    (connection(&run, "flow", "goodput_bps") / PAYLOAD_BITS, subflow(&run, "flow", "0", "mean_cwnd_packets"))
}

/// An unlimited sender on a path that loses packets and queues none.
fn lossy(congestion: &str, loss: f64, delay: &str, duration: &str) -> String {
    format!(
        r#"
name = "lossy"
duration = "{duration}"
measure = {{ from = "20 s", interval = "0 s" }}
transport = {{ profile = "ns2", recovery = "sack", initial_ssthresh = "100 packets" }}
node = [{{ names = ["s", "d"] }}]

[[link]]
between = ["s", "d"]
rate = "10 Gbit/s"
delay = "{delay}"
queue = "unlimited"
loss = {loss}
reverse = {{ loss = 0 }}

[[connection]]
name = "flow"
from = "s"
to = "d"
congestion = "{congestion}"
"#
    )
}

/// Between the closed forms of periodic loss, 1.22 / (RTT0 sqrt(p)), and of the fluid limit, sqrt(2 / p) / RTT0, at any
/// RTT, and within 10 % of Reno at RTT0.
#[test]
fn hybla_has_the_rate_of_reno_at_rtt0_whatever_its_rtt() {
    let loss = 1e-4_f64;
    let (reno, _) = rate("reno", loss, "12500 us", "1020 s");
    for delay in ["12500 us", "25 ms", "50 ms", "100 ms"] {
        let (hybla, _) = rate("hybla", loss, delay, "1020 s");
        within(&format!("beside Reno, {delay}"), hybla / reno, 0.9..=1.1);
        let [periodic, fluid] = [1.5, 2.0].map(|k: f64| (k / loss).sqrt() / 0.025);
        within(&format!("packets/s, {delay}"), hybla, periodic..=fluid);
    }
    let (shorter, _) = rate("hybla", loss, "5 ms", "520 s");
    within("below RTT0 it is Reno of its own RTT", shorter / reno, 2.5 * 0.9..=2.5 * 1.1);
}

/// The mean over time. From E[d ln w] = 0, a = p E[w] ln(8/7): 0.0749 / p, whether losses are periodic or random. The
/// 0.08 / p = a / (b p) of F1 follows from E[dw] = 0 and is E[w^2] / E[w], the window that a packet sees;
/// `crates/cc/tests/equilibrium.rs` has it.
#[test]
fn scalable_has_the_window_of_its_response_function_at_any_rtt() {
    for (loss, delay, duration) in
        [(1e-3, "10 ms", "220 s"), (1e-4, "10 ms", "220 s"), (1e-4, "50 ms", "1020 s")]
    {
        let (_, window) = rate("scalable", loss, delay, duration);
        let expected = 0.01 / (8.0_f64 / 7.0).ln() / loss;
        within(&format!("mean window, loss {loss}, {delay}"), window / expected, 0.9..=1.1);
    }
}
