//! How fast the simulator is: packet-hops per second of user CPU time on one core, and peak memory.
//!
//! Prints one line per workload of `scenarios/bench/`, the median over five seeds. A packet-hop is one
//! packet through one link. Each workload runs in a process of its own, so that its peak memory is its own.
//!
//! `--ns2 DIR` lets `DIR/run.sh` measure ns-2 on the same workload in the same run and adds
//! `ns2_seconds=… ns2_ratio=…`: the user seconds of the whole ns-2 process, and how many times ours they are.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command-line tool

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anabranch_record::model::{Measurements, Scope};
use anabranch_sim::Control;
use rustix::time::{ClockId, clock_gettime};

const SEEDS: u64 = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, file] if flag == "--one" => one(Path::new(file), None),
        [flag, file, ns2] if flag == "--one" => one(Path::new(file), Some(Path::new(ns2))),
        [flag, ns2, files @ ..] if flag == "--ns2" && !files.is_empty() => all(files, Some(ns2)),
        files if !files.is_empty() && !files[0].starts_with('-') => all(files, None),
        _ => {
            eprintln!("usage: anabranch-bench [--ns2 DIR] SCENARIO...");
            ExitCode::from(2)
        }
    }
}

fn all(files: &[String], ns2: Option<&String>) -> ExitCode {
    let program = std::env::current_exe().expect("a running program has a path");
    for file in files {
        let status = Command::new(&program).args(["--one", file]).args(ns2).status();
        if !status.is_ok_and(|status| status.success()) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn one(file: &Path, ns2: Option<&Path>) -> ExitCode {
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
    let peer = match ns2.map(|directory| ns2_seconds(directory, &name)) {
        Some(Ok(ns2)) => format!(" ns2_seconds={ns2:.3} ns2_ratio={:.1}", ns2 / seconds),
        Some(Err(reason)) => {
            eprintln!("{name}: no figures of ns-2: {reason}");
            String::new()
        }
        None => String::new(),
    };
    println!("{name} hops={hops} seconds={seconds:.4} mhops_per_s={rate:.1} peak_mb={:.1}{peer}", peak_mb());
    ExitCode::SUCCESS
}

/// User seconds of ns-2 on the workload `name`, or why there are none.
fn ns2_seconds(directory: &Path, name: &str) -> Result<f64, String> {
    let script = directory.join("run.sh");
    let output = Command::new(&script).args([name, &SEEDS.to_string()]).output();
    let output = output.map_err(|error| format!("{}: {error}", script.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        return Err(text(&output.stderr));
    }
    let printed = text(&output.stdout);
    printed.parse().map_err(|_| format!("{} printed {printed:?}, not seconds", script.display()))
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
