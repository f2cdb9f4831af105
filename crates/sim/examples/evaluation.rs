//! Runs `scenarios/regress/evaluation/` with every congestion control and prints the tables of `docs/evaluation.md`:
//!
//! `cargo run --release -p anabranch-sim --example evaluation`

#![allow(clippy::print_stdout)] // the tables are what it is for

use std::path::PathBuf;

use anabranch_record::model::{Measurements, Scope};
use anabranch_scenario::model::Scenario;
use anabranch_sim::Control;

fn scenario(name: &str, overrides: &[(&str, &str)]) -> Scenario {
    let file = format!("../../scenarios/regress/evaluation/{name}.toml");
    let overrides: Vec<_> =
        overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    anabranch_scenario::load_path(&path, &overrides).unwrap_or_else(|error| panic!("{error}")).scenario
}

fn run(name: &str, overrides: &[(&str, &str)]) -> Measurements {
    anabranch_sim::run(&scenario(name, overrides), 1, &Control::default()).expect("nobody interrupts")
}

fn figure(run: &Measurements, scope: &Scope, metric: &str) -> f64 {
    let mut figures = run.summary.figures.iter();
    let found = figures.find(|figure| figure.scope == *scope && figure.metric == metric);
    found.unwrap_or_else(|| panic!("no {metric} of {scope:?}")).value
}

fn flow(run: &Measurements, name: &str, metric: &str) -> f64 {
    figure(run, &Scope::Connection(name.to_owned()), metric)
}

fn subflow(run: &Measurements, name: &str, metric: &str) -> f64 {
    figure(run, &Scope::Subflow("subject".to_owned(), name.to_owned()), metric)
}

fn bottleneck(run: &Measurements, metric: &str) -> f64 {
    figure(run, &Scope::Link("bottleneck".to_owned()), metric)
}

/// Goodput in Mbit/s.
fn mbps(run: &Measurements, name: &str) -> f64 {
    flow(run, name, "goodput_bps") / 1e6
}

/// A figure of a run, as a column shows it.
type Column = (&'static str, fn(&Measurements) -> String);

/// One row per congestion control; `key` is what chooses it.
fn table(name: &str, key: &str, more: &[(&str, &str)], columns: &[Column]) {
    println!("\n{name}{}\n", more.iter().map(|(key, value)| format!(", {key}={value}")).collect::<String>());
    print_header(columns.iter().map(|column| column.0));
    for algorithm in anabranch_cc::algorithms() {
        let run = run(name, &[&[(key, algorithm.name())][..], more].concat());
        let cells: Vec<String> = columns.iter().map(|column| column.1(&run)).collect();
        println!("| `{}` | {} |", algorithm.name(), cells.join(" | "));
    }
}

fn print_header<'a>(titles: impl Iterator<Item = &'a str>) {
    let titles: Vec<&str> = titles.collect();
    println!("| algorithm | {} |\n|---{}|", titles.join(" | "), "|---".repeat(titles.len()));
}

const STANDARDS: [&str; 2] = ["reno", "cubic"];
const SUBJECT: &str = "connection.subject.congestion";
const ALL: &str = "connection.*.congestion";

/// Goodput of the standard flow with the algorithm beside it, over the same with the standard's own beside it.
fn harm(name: &str) {
    println!("\n{name}\n");
    print_header(["beside Reno", "ratio", "beside CUBIC", "ratio"].into_iter());
    let standard = |subject: &str, standard: &str| {
        run(name, &[(SUBJECT, subject), ("connection.standard.congestion", standard)])
    };
    let alone = STANDARDS.map(|own| mbps(&run("friendliness", &[(ALL, own)]), "standard"));
    for algorithm in anabranch_cc::algorithms() {
        let cells = STANDARDS.iter().zip(alone).map(|(own, alone)| {
            let run = standard(algorithm.name(), own);
            let (subject, standard) = (mbps(&run, "subject"), mbps(&run, "standard"));
            format!("{subject:.2} / {standard:.2} | {:.2}", standard / alone)
        });
        println!("| `{}` | {} |", algorithm.name(), cells.collect::<Vec<_>>().join(" | "));
    }
}

/// Mean and largest time of the forty short files in milliseconds; those that did not end count as the largest.
fn short_times(run: &Measurements) -> String {
    let time = |index: usize| {
        let scope = Scope::Connection(format!("short{index}"));
        let mut figures = run.summary.figures.iter();
        let found = figures.find(|figure| figure.scope == scope && figure.metric == "completion_s");
        found.map_or(f64::INFINITY, |figure| figure.value * 1e3)
    };
    let times: Vec<f64> = (0..40).map(time).collect();
    let largest = times.iter().copied().fold(0.0, f64::max);
    format!("{:.0} / {largest:.0}", times.iter().sum::<f64>() / 40.0)
}

fn main() {
    harm("friendliness");
    harm("friendliness-multipath");
    table(
        "two-bottlenecks",
        SUBJECT,
        &[],
        &[
            ("on a, Mbit/s", |run| format!("{:.2}", subflow(run, "a", "throughput_bps") / 1e6)),
            ("on b", |run| format!("{:.2}", subflow(run, "b", "throughput_bps") / 1e6)),
            ("TCP on a", |run| format!("{:.2}", mbps(run, "on-a"))),
            ("mean TCP on b", |run| {
                format!("{:.2}", (0..4).map(|i| mbps(run, &format!("on-b{i}"))).sum::<f64>() / 4.0)
            }),
        ],
    );
    table(
        "same-algorithm",
        ALL,
        &[],
        &[
            ("Jain's index", |run| format!("{:.3}", figure(run, &Scope::Run, "jain_index"))),
            ("utilisation", |run| format!("{:.3}", bottleneck(run, "utilization"))),
            ("mean queue, packets", |run| format!("{:.1}", bottleneck(run, "mean_queue_packets"))),
            ("drops", |run| format!("{}", bottleneck(run, "drops"))),
        ],
    );
    table(
        "rtt-unfairness",
        ALL,
        &[],
        &[
            ("20 ms, Mbit/s", |run| format!("{:.2}", mbps(run, "near"))),
            ("100 ms", |run| format!("{:.2}", mbps(run, "far"))),
            ("ratio", |run| format!("{:.1}", mbps(run, "near") / mbps(run, "far"))),
        ],
    );
    table(
        "short-flows",
        SUBJECT,
        &[],
        &[
            ("files of 30 kB, mean / longest, ms", short_times),
            ("long flow, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
            ("mean queue, packets", |run| format!("{:.1}", bottleneck(run, "mean_queue_packets"))),
        ],
    );
    table(
        "bufferbloat",
        SUBJECT,
        &[],
        &[
            ("mean queue, packets", |run| format!("{:.1}", bottleneck(run, "mean_queue_packets"))),
            ("mean round trip, ms", |run| format!("{:.0}", subflow(run, "0", "mean_srtt_s") * 1e3)),
            ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
        ],
    );
    table(
        "shallow-queue",
        ALL,
        &[],
        &[
            ("share of packets dropped", |run| {
                let (drops, packets) = (bottleneck(run, "drops"), bottleneck(run, "packets"));
                format!("{:.2} %", 100.0 * drops / (drops + packets))
            }),
            ("utilisation", |run| format!("{:.3}", bottleneck(run, "utilization"))),
            ("Jain's index", |run| format!("{:.3}", figure(run, &Scope::Run, "jain_index"))),
        ],
    );
    for loss in ["1 %", "40 %"] {
        table(
            "random-loss",
            SUBJECT,
            &[("link.bottleneck.loss", loss)],
            &[
                ("goodput, Mbit/s", |run| format!("{:.3}", mbps(run, "subject"))),
                ("packets sent per second", |run| {
                    format!("{:.1}", flow(run, "subject", "packets_sent") / 50.0)
                }),
                ("timeouts", |run| format!("{}", subflow(run, "0", "timeouts"))),
            ],
        );
    }
    for (from, to) in [("22 s", "40 s"), ("42 s", "60 s"), ("62 s", "80 s")] {
        table(
            "path-changes",
            SUBJECT,
            &[("measure.from", from), ("measure.to", to)],
            &[
                ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
                ("drops", |run| format!("{}", flow(run, "subject", "drops"))),
                ("mean round trip, ms", |run| format!("{:.0}", subflow(run, "0", "mean_srtt_s") * 1e3)),
            ],
        );
    }
    table(
        "long-path",
        SUBJECT,
        &[],
        &[
            ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
            ("drops", |run| format!("{}", flow(run, "subject", "drops"))),
        ],
    );
    for (from, to) in [("10 s", "30 s"), ("32 s", "60 s")] {
        table(
            "unresponsive",
            SUBJECT,
            &[("measure.from", from), ("measure.to", to)],
            &[
                ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
                ("the call loses", |run| {
                    let sent = flow(run, "call", "packets_sent");
                    format!("{:.2} %", 100.0 * (1.0 - flow(run, "call", "packets_received") / sent))
                }),
                ("mean queue, packets", |run| format!("{:.1}", bottleneck(run, "mean_queue_packets"))),
            ],
        );
    }
    for queue in ["{ kind = 'codel' }", "{ kind = 'fq_codel' }", "{ kind = 'red', limit = '200 packets' }"] {
        table(
            "aqm",
            SUBJECT,
            &[("link.bottleneck.queue", queue)],
            &[
                ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
                ("beside Reno", |run| format!("{:.2}", mbps(run, "standard"))),
                ("mean queue, packets", |run| format!("{:.1}", bottleneck(run, "mean_queue_packets"))),
                ("drops", |run| format!("{}", bottleneck(run, "drops"))),
            ],
        );
    }
    for name in ["jitter", "reordering"] {
        table(
            name,
            SUBJECT,
            &[],
            &[
                ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
                ("retransmits", |run| format!("{}", flow(run, "subject", "retransmits"))),
                ("drops", |run| format!("{}", flow(run, "subject", "drops"))),
            ],
        );
    }
    table(
        "wireless",
        SUBJECT,
        &[],
        &[
            ("goodput, Mbit/s", |run| format!("{:.2}", mbps(run, "subject"))),
            ("neighbour", |run| format!("{:.2}", mbps(run, "neighbour"))),
            ("airtime", |run| {
                format!("{:.3}", figure(run, &Scope::Link("channel".to_owned()), "airtime_share"))
            }),
            ("mean round trip, ms", |run| format!("{:.0}", subflow(run, "0", "mean_srtt_s") * 1e3)),
        ],
    );
    for (from, to) in [("10 s", "20 s"), ("20 s", "30 s"), ("32 s", "60 s")] {
        table(
            "failover",
            SUBJECT,
            &[("measure.from", from), ("measure.to", to)],
            &[
                ("on a, Mbit/s", |run| format!("{:.2}", subflow(run, "a", "throughput_bps") / 1e6)),
                ("on b", |run| format!("{:.2}", subflow(run, "b", "throughput_bps") / 1e6)),
                ("TCP on b", |run| format!("{:.2}", mbps(run, "standard"))),
            ],
        );
    }
}
