//! What the congestion controls cost in the kernel: prints the tables of `docs/kernel-cost.md`.
//!
//! As root, on a machine with nothing else to do:
//! `cargo run --release -p anabranch-kernel --example overhead`
//!
//! Times per call are those of the kernel (`BPF_STATS_RUN_TIME`), on a bulk transfer over veth with nothing in its way, so
//! that the processor is the bottleneck; with the statistics on, every call costs more than its time says. Goodput is
//! measured without them.

#![allow(clippy::print_stdout)] // the tables are what it is for

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    collections::HashSet,
    os::fd::{FromRawFd as _, OwnedFd},
    time::{Duration, Instant},
};

use anabranch_cc::Hosts;
use anabranch_kernel::Attached;
use common::{
    lab::Lab,
    transfer::{Connection, End},
};
use libbpf_rs::{
    libbpf_sys,
    query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo},
};
use socket2::Protocol;

const PAIRS: usize = 20;
/// Of one transfer.
const DURATION: Duration = Duration::from_secs(4);
/// Student's t, 97.5 %, 19 degrees of freedom.
const T_19: f64 = 2.093;

fn main() {
    println!("## Verification\n");
    println!(
        "| algorithm | programs | instructions verified | largest | translated, bytes | machine code, bytes |"
    );
    println!("|---|---|---|---|---|---|");
    let both = || anabranch_cc::algorithms().iter().filter(|one| one.hosts() == Hosts::Both);
    for algorithm in both() {
        let (_attached, programs) = load(algorithm.name());
        let verified = programs.iter().map(|program| program.verified_insns);
        println!(
            "| `{}` | {} | {} | {} | {} | {} |",
            algorithm.name(),
            programs.len(),
            verified.clone().sum::<u32>(),
            verified.max().expect("there are programs"),
            programs.iter().map(|program| program.xlated_prog_insns.len()).sum::<usize>(),
            programs.iter().map(|program| program.jited_prog_insns.len()).sum::<usize>(),
        );
    }

    println!(
        "\n## Time per call\n\n| algorithm | calls | all, ns per call | dearest hook, ns per call |\n|---|---|---|---|"
    );
    for algorithm in both() {
        let (attached, before) = load(algorithm.name());
        let congestion: &'static str = attached.kernel_name().leak();
        {
            let _statistics = statistics();
            transfer(congestion);
        }
        let ids: HashSet<u32> = before.iter().map(|program| program.id).collect();
        let after = programs().filter(|program| ids.contains(&program.id) && program.run_cnt > 0);
        let runs: Vec<(String, u64, u64)> = after
            .map(|program| {
                (program.name.to_string_lossy().into_owned(), program.run_cnt, program.run_time_ns)
            })
            .collect();
        let (calls, ns) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.1, sum.1 + run.2));
        let often = runs.iter().filter(|run| run.1 * 100 >= calls);
        let dearest = often.max_by_key(|run| run.2 / run.1).expect("a transfer makes calls");
        println!(
            "| `{}` | {calls} | {} | {} (`{}`) |",
            algorithm.name(),
            ns / calls.max(1),
            dearest.2 / dearest.1,
            dearest.0.trim_start_matches("ab_hook_")
        );
    }

    println!("\n## Goodput beside the kernel's own\n");
    let (_attached, _) = load("reno");
    let mut differences = Vec::new();
    for pair in 0..PAIRS {
        let (mut own, mut ours) = (0.0, 0.0);
        // Which of the two is first changes, so that a drift hits both alike.
        for turn in [pair % 2, 1 - pair % 2] {
            match turn {
                0 => own = transfer("reno"),
                _ => ours = transfer("ab_reno"),
            }
        }
        differences.push(100.0 * (ours / own - 1.0));
    }
    let mean = differences.iter().sum::<f64>() / PAIRS as f64;
    let variance = differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (PAIRS - 1) as f64;
    let half = T_19 * (variance / PAIRS as f64).sqrt();
    println!(
        "{PAIRS} interleaved pairs of {} ms: `ab_reno` over `reno` {mean:+.2} % (95 % interval {:+.2} to {:+.2} %).",
        DURATION.as_millis(),
        mean - half,
        mean + half
    );
}

fn programs() -> impl Iterator<Item = ProgramInfo> {
    let code = ProgInfoQueryOptions::default().include_xlated_prog_insns(true).include_jited_prog_insns(true);
    ProgInfoIter::with_query_opts(code)
        .filter(|program| program.name.to_string_lossy().starts_with("ab_hook"))
}

/// The algorithm, registered, and its programs.
fn load(name: &str) -> (Attached, Vec<ProgramInfo>) {
    let others: HashSet<u32> = programs().map(|program| program.id).collect();
    let attached = Attached::load_with_defaults(name).unwrap_or_else(|error| panic!("{error}"));
    let own = programs().filter(|program| !others.contains(&program.id)).collect();
    (attached, own)
}

/// Has the kernel keep times while the value lives.
fn statistics() -> OwnedFd {
    #[allow(unsafe_code)]
    // SAFETY: the call takes a number and returns a descriptor that is ours, or a negative number.
    unsafe {
        let descriptor = libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME);
        assert!(descriptor >= 0, "the kernel keeps no statistics: {descriptor}");
        OwnedFd::from_raw_fd(descriptor)
    }
}

/// A bulk transfer over veth; goodput in bytes per second.
#[allow(clippy::disallowed_methods)] // real time is what is measured
fn transfer(congestion: &'static str) -> f64 {
    let lab = Lab::unshaped();
    let end = End { protocol: Protocol::TCP, congestion };
    let connection = Connection::open(&lab, end, end);
    let begun = Instant::now();
    let bytes = connection.stream(DURATION);
    bytes as f64 / begun.elapsed().as_secs_f64()
}
