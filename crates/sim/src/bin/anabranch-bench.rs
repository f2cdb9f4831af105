//! How fast the simulator is: packet-hops per second of user CPU time on one core, and peak memory.
//!
//! Prints one line per workload of `scenarios/bench/`, the median over five seeds. A packet-hop is one
//! packet through one link. Each workload runs in a process of its own, so that its peak memory is its own.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command-line tool

use std::{path::Path, process::ExitCode};

use anabranch_record::model::{Measurements, Scope};
use anabranch_sim::Control;
use rustix::time::{ClockId, clock_gettime};

const SEEDS: u64 = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, file] if flag == "--one" => one(Path::new(file)),
        files if !files.is_empty() && !files[0].starts_with('-') => all(files),
        _ => {
            eprintln!("usage: anabranch-bench SCENARIO...");
            ExitCode::from(2)
        }
    }
}

fn all(files: &[String]) -> ExitCode {
    let program = std::env::current_exe().expect("a running program has a path");
    for file in files {
        let status = std::process::Command::new(&program).args(["--one", file]).status();
        if !status.is_ok_and(|status| status.success()) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn one(file: &Path) -> ExitCode {
    let loaded = match anabranch_scenario::load_path(file, &[]) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut runs: Vec<(f64, f64)> = (1..=SEEDS)
        .map(|seed| {
            let before = cpu_seconds();
            let run = anabranch_sim::run(&loaded.scenario, seed, &Control::default());
            let seconds = cpu_seconds() - before;
            (seconds, hops(&run.expect("nobody interrupts a benchmark")))
        })
        .collect();
    runs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (seconds, hops) = runs[runs.len() / 2];
    let name = file.file_stem().unwrap_or_default().to_string_lossy().to_uppercase();
    let rate = hops / seconds / 1e6;
    println!("{name} hops={hops} seconds={seconds:.4} mhops_per_s={rate:.1} peak_mb={:.1}", peak_mb());
    ExitCode::SUCCESS
}

fn hops(run: &Measurements) -> f64 {
    let figures = &run.summary.figures;
    let figure = figures.iter().find(|figure| figure.scope == Scope::Run && figure.metric == "packet_hops");
    figure.expect("every run counts its hops").value
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Peak resident memory of this process in megabytes, from the kernel's accounting.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("nan");
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or(f64::NAN) / 1000.0
}
