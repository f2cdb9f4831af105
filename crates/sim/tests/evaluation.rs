//! The scenarios of `scenarios/regress/evaluation/` (RFC 6356 section 2, RFC 9743): that each says what it is for.
//! The figures of all algorithms are in `docs/evaluation.md`.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::{Measurements, Scope};
use common::{connection, figure, link, subflow};

fn run(name: &str, overrides: &[(&str, &str)]) -> Measurements {
    common::run(&common::scenario(&format!("regress/evaluation/{name}.toml"), overrides), 1)
}

const SUBJECT: &str = "connection.subject.congestion";
const ALL: &str = "connection.*.congestion";

/// Every scenario, two seconds of it, and every algorithm: nothing is refused, and data gets through.
#[test]
fn every_scenario_runs_with_every_algorithm() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/regress/evaluation");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().replace(".toml", ""))
        .collect();
    names.sort();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let of_subject = common::scenario(&format!("regress/evaluation/{name}.toml"), &[]);
        let has_subject = of_subject.connections.iter().any(|connection| connection.name == "subject");
        let key = if has_subject { SUBJECT } else { ALL };
        for algorithm in anabranch_cc::algorithms() {
            let overrides = [(key, algorithm.name()), ("measure.from", "0 s"), ("measure.to", "2 s")];
            let mut scenario = common::scenario(&format!("regress/evaluation/{name}.toml"), &overrides);
            scenario.duration = scenario.measure.to;
            let run = common::run(&scenario, 1);
            let goodput = figure(&run, &Scope::Run, "goodput_bps");
            assert!(goodput > 100e3, "{name} with {}: {goodput} bit/s", algorithm.name());
        }
    }
}

fn goodput(run: &Measurements, name: &str) -> f64 {
    connection(run, name, "goodput_bps") / 1e6
}

fn bottleneck(run: &Measurements, metric: &str) -> f64 {
    link(run, "bottleneck", metric)
}

/// RFC 6356's second goal. Two uncoupled subflows take two shares of three, and leave two thirds of what a single
/// rival would; a tenth for one run of 50 s.
#[test]
fn two_coupled_subflows_do_no_harm_and_uncoupled_ones_take_two_shares() {
    let alone = goodput(&run("friendliness", &[]), "standard");
    let left = |congestion| goodput(&run("friendliness-multipath", &[(SUBJECT, congestion)]), "standard");
    let (lia, reno) = (left("lia") / alone, left("reno") / alone);
    assert!(lia > 0.9, "LIA leaves {lia}");
    assert!((reno * 1.5 - 1.0).abs() < 0.1, "Reno leaves {reno}");
}

/// RFC 6356's third goal: on the path with four rivals LIA has less than half of what a rival has.
#[test]
fn a_coupled_flow_leaves_the_more_congested_path_to_the_others() {
    let run = run("two-bottlenecks", &[]);
    let (on_a, on_b) =
        (subflow(&run, "subject", "a", "throughput_bps"), subflow(&run, "subject", "b", "throughput_bps"));
    let rivals = (0..4).map(|i| connection(&run, &format!("on-b{i}"), "goodput_bps")).sum::<f64>() / 4.0;
    assert!(on_b < rivals / 2.0 && on_b < on_a / 4.0, "{on_a} {on_b} {rivals}");
}

/// A window that ignores delay fills the buffer to between half (after a reduction) and all; Vegas holds 1 to 3 packets.
#[test]
fn the_large_buffer_tells_loss_based_from_delay_based() {
    let queue = |congestion| bottleneck(&run("bufferbloat", &[(SUBJECT, congestion)]), "mean_queue_packets");
    let (reno, vegas) = (queue("reno"), queue("vegas"));
    assert!((450.0..1000.0).contains(&reno) && (1.0..=3.0).contains(&vegas), "{reno} {vegas}");
}

/// Whoever looks at losses or at delay finds the new capacity within 2 s, less and more. wVegas drains its queue whenever
/// the delay is twice the smallest it has seen since the last time, and the link runs empty meanwhile (its page).
#[test]
fn all_algorithms_use_what_is_left_of_the_capacity_and_what_comes_back() {
    for algorithm in anabranch_cc::algorithms() {
        for (from, to, rate) in [("22 s", "40 s", 5.0), ("42 s", "60 s", 20.0)] {
            let name = algorithm.name();
            let run = run("path-changes", &[(SUBJECT, name), ("measure.from", from), ("measure.to", to)]);
            // 1448 of 1500 bytes are payload.
            let share = goodput(&run, "subject") / (rate * 1448.0 / 1500.0);
            let least = if name == "wvegas" { 0.85 } else { 0.98 };
            assert!(share > least, "{name} has {share} of {rate} Mbit/s");
        }
    }
}

/// Four fifths of the packets lost: the timer backs off, and hardly anything is sent.
#[test]
fn heavy_loss_ends_in_backoff() {
    for algorithm in anabranch_cc::algorithms() {
        let run = run("random-loss", &[(SUBJECT, algorithm.name()), ("link.bottleneck.loss", "80 %")]);
        let sent = connection(&run, "subject", "packets_sent") / 50.0;
        assert!(sent < 5.0, "{} sends {sent} packets per second", algorithm.name());
    }
}

/// The figures of the channel: nothing is counted twice, and the channel is busy.
#[test]
fn the_wireless_channel_is_busy_and_its_figures_fit() {
    let run = run("wireless", &[]);
    let of = |metric| link(&run, "channel", metric);
    let (transmissions, retries, packets) = (of("transmissions"), of("retries"), of("packets"));
    assert!((0.8..1.0).contains(&of("airtime_share")), "{}", of("airtime_share"));
    // What arrived or was given up was begun; three queues' heads may be under way at either end of the window.
    let begun = transmissions - retries;
    assert!((begun - packets - of("losses")).abs() <= 3.0, "{begun} begun, {packets} arrived");
    assert!(of("collisions") > 0.0 && of("collisions") < retries);
}
