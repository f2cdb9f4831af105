//! How fast the simulator is: packet-hops per second of user CPU time on one core, and peak memory.
//!
//! Prints one line per workload of `scenarios/bench/`: of the speed the median over five seeds, of the peak
//! memory the most. A packet-hop is one packet through one link. Every run is a process of its own, so that
//! its peak memory is its own.
//!
//! `--ns2 DIR` lets `DIR/run.sh` measure ns-2 on the same workload in the same run and adds
//! `ns2_seconds=… ns2_ratio=…`: the user seconds of the whole ns-2 process, and how many times ours they are;
//! where ns-2 cannot run the workload, `ns2_runs=…` says what it ran instead.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command-line tool

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anabranch_record::model::{Measurements, Scope};
use anabranch_sim::Control;
use nix::sys::resource::{UsageWho, getrusage};

const SEEDS: u64 = 5;

/// What one run took.
#[derive(Clone, Copy)]
struct Run {
    hops: f64,
    seconds: f64,
    peak_mb: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [flag, file, seed] if flag == "--one" => {
            seed.parse().map_err(|_| "a seed is a number".into()).and_then(|seed| {
                let run = one(Path::new(file), seed)?;
                println!("{} {} {}", run.hops, run.seconds, run.peak_mb);
                Ok(())
            })
        }
        [flag, ns2, files @ ..] if flag == "--ns2" && !files.is_empty() => {
            files.iter().try_for_each(|file| workload(Path::new(file), Some(Path::new(ns2))))
        }
        files if !files.is_empty() && !files[0].starts_with('-') => {
            files.iter().try_for_each(|file| workload(Path::new(file), None))
        }
        _ => Err("usage: anabranch-bench [--ns2 DIR] SCENARIO...".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn workload(file: &Path, ns2: Option<&Path>) -> Result<(), String> {
    let mut runs = (1..=SEEDS).map(|seed| in_child(file, seed)).collect::<Result<Vec<Run>, String>>()?;
    runs.sort_by(|a, b| (a.seconds / a.hops).total_cmp(&(b.seconds / b.hops)));
    let Run { hops, seconds, .. } = runs[runs.len() / 2];
    let peak_mb = runs.iter().map(|run| run.peak_mb).fold(0.0, f64::max);
    let name = file.file_stem().unwrap_or_default().to_string_lossy().to_uppercase();
    let rate = hops / seconds / 1e6;
    let peer = match ns2.map(|directory| ns2_seconds(directory, &name)) {
        Some(Ok((ns2, instead))) => {
            let instead = instead.map(|what| format!(" ns2_runs={what}")).unwrap_or_default();
            format!(" ns2_seconds={ns2:.3} ns2_ratio={:.1}{instead}", ns2 / seconds)
        }
        Some(Err(reason)) => {
            eprintln!("{name}: no figures of ns-2: {reason}");
            String::new()
        }
        None => String::new(),
    };
    println!("{name} hops={hops} seconds={seconds:.4} mhops_per_s={rate:.1} peak_mb={peak_mb:.1}{peer}");
    Ok(())
}

/// User seconds of ns-2 on the workload `name` and, if it runs something else, what; or why there are none.
fn ns2_seconds(directory: &Path, name: &str) -> Result<(f64, Option<String>), String> {
    let script = directory.join("run.sh");
    let output = Command::new(&script).args([name, &SEEDS.to_string()]).output();
    let output = output.map_err(|error| format!("{}: {error}", script.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut words = printed.split_whitespace();
    let seconds = words.next().and_then(|word| word.parse().ok());
    let seconds = seconds.ok_or_else(|| format!("{} printed {printed:?}, not seconds", script.display()))?;
    Ok((seconds, words.next().map(str::to_owned)))
}

fn in_child(file: &Path, seed: u64) -> Result<Run, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .arg("--one")
        .arg(file)
        .arg(seed.to_string())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [hops, seconds, peak_mb] if output.status.success() => Ok(Run { hops, seconds, peak_mb }),
        _ => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn one(file: &Path, seed: u64) -> Result<Run, String> {
    let loaded = anabranch_scenario::load_path(file, &[]).map_err(|error| error.to_string())?;
    let before = cpu_seconds();
    let run = anabranch_sim::run(&loaded.scenario, seed, &Control::default());
    let seconds = cpu_seconds() - before;
    let run = run.map_err(|_| "interrupted".to_owned())?;
    Ok(Run { hops: hops(&run), seconds, peak_mb: peak_mb() })
}

fn hops(run: &Measurements) -> f64 {
    let figures = &run.summary.figures;
    let figure = figures.iter().find(|figure| figure.scope == Scope::Run && figure.metric == "packet_hops");
    figure.expect("every run counts its hops").value
}

fn cpu_seconds() -> f64 {
    let time = getrusage(UsageWho::RUSAGE_SELF).expect("the kernel counts our time").user_time();
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// Peak resident memory of this process in megabytes, from the kernel's accounting.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("nan");
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or(f64::NAN) / 1000.0
}
