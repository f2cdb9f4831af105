//! Measures the detectors of shared bottlenecks that MFVL has and prints the tables of `docs/shared-bottleneck.md`:
//!
//! `cargo run --release -p anabranch-sim --example shared_bottleneck ["10 Mbit/s"]`

#![allow(clippy::print_stdout)] // the tables are what it is for

use std::path::PathBuf;

use anabranch_scenario::model::Scenario;
use anabranch_sim::{Control, Decisions};

/// Differences of the round-trip times of the two paths, in milliseconds.
const RTT_DIFFERENCES_MS: [u32; 5] = [0, 20, 50, 100, 200];
const TOPOLOGIES: [&str; 2] = ["shared", "disjoint"];
/// The scenarios as they are, and four times as large.
const SIZES: [Size; 2] = [
    Size { name: "10 Mbit/s", seeds: 10, enlarged: false },
    Size { name: "40 Mbit/s", seeds: 5, enlarged: true },
];
/// Detector and period.
const DETECTORS: [(&str, &str); 7] = [
    ("retransmissions", "10 s"),
    ("retransmissions", "25 s"),
    ("retransmissions", "50 s"),
    ("rfc8382", "350 ms"),
    ("rfc8382", "10 s"),
    ("rfc8382", "25 s"),
    ("rfc8382", "50 s"),
];

struct Size {
    name: &'static str,
    seeds: u64,
    enlarged: bool,
}

/// What makes bottlenecks and the traffic beside the subject four times as large.
fn enlarge(topology: &str) -> Vec<(String, String)> {
    let bottlenecks = match topology {
        "shared" => &[("bottleneck", "a")][..],
        _ => &[("bottleneck-a", "a"), ("bottleneck-b", "b")],
    };
    let of = |&(link, side): &(&str, &str)| {
        [
            (format!("link.{link}.rate"), "40 Mbit/s"),
            (format!("link.{link}.queue"), "160 packets"),
            (format!("connection.files-{side}.traffic.interval"), "50 ms"),
            (format!("datagram.bursts-{side}.rate"), "16 Mbit/s"),
        ]
    };
    bottlenecks.iter().flat_map(of).map(|(key, value)| (key, value.to_owned())).collect()
}

fn scenario(
    size: &Size,
    topology: &str,
    rtt_difference_ms: u32,
    (detector, period): (&str, &str),
) -> Scenario {
    let file = format!("../../scenarios/regress/shared-bottleneck/{topology}.toml");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    let near_ms = if topology == "shared" { 1 } else { 2 };
    let mut overrides = if size.enlarged { enlarge(topology) } else { Vec::new() };
    overrides.extend(
        [
            ("link.far.delay", format!("{} ms", near_ms + rtt_difference_ms / 2)),
            ("connection.subject.congestion.detector", detector.to_owned()),
            ("connection.subject.congestion.period", period.to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    anabranch_scenario::load_path(&path, &overrides).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// The decisions of the subject in all runs with these seeds.
fn decisions(scenario: &Scenario, seeds: u64) -> Decisions {
    let mut sum = Decisions::default();
    for seed in 1..=seeds {
        let of = anabranch_sim::decisions(scenario, seed, &Control::default()).expect("nobody interrupts");
        sum.all += of[0].all;
        sum.coupled += of[0].coupled;
    }
    sum
}

fn table(size: &Size, topology: &str) {
    let differences = RTT_DIFFERENCES_MS.map(|ms| format!("{ms} ms")).join(" | ");
    println!("\n{}, {topology}, {} seeds\n", size.name, size.seeds);
    println!("| detector | T | decisions | {differences} |");
    println!("|---|---|---{}|", "|---".repeat(RTT_DIFFERENCES_MS.len()));
    for (detector, period) in DETECTORS {
        let cells = RTT_DIFFERENCES_MS
            .map(|ms| decisions(&scenario(size, topology, ms, (detector, period)), size.seeds));
        let shares = cells.map(|d| format!("{:.0} %", 100.0 * f64::from(d.coupled) / f64::from(d.all)));
        println!("| `{detector}` | {period} | {} | {} |", cells[0].all, shares.join(" | "));
    }
}

fn main() {
    let only = std::env::args().nth(1);
    for size in SIZES.iter().filter(|size| only.as_deref().is_none_or(|name| name == size.name)) {
        for topology in TOPOLOGIES {
            table(size, topology);
        }
    }
}
