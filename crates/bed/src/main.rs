//! The command `anabranch-bed`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand, ValueEnum};

use anabranch_bed::{
    BedError,
    host::{Interrupt, Session, supervised},
    plan::CongestionSource,
    run,
};

mod cli;

/// Run scenarios on the TCP and MPTCP of this machine's Linux kernel, over emulated links.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a scenario and write its run folder.
    Run(RunArguments),
    /// Measure whether the emulator's rate, delay, loss and queue are what is set.
    Calibrate {
        /// A shorter check, below ten seconds.
        #[arg(long)]
        quick: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Set up a scenario's hosts and links, without its traffic, until Ctrl-C.
    Emulate {
        #[command(flatten)]
        scenario: ScenarioArguments,
        /// Seed of the emulator's random losses.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Remove what a crashed bed has left.
    Clean,
}

#[derive(Args)]
struct ScenarioArguments {
    /// A scenario file.
    file: PathBuf,
    /// Replace a value of the file; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = cli::pair)]
    overrides: Vec<(String, String)>,
}

#[derive(Args)]
struct RunArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Run with this seed; 1 unless given.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run with the seeds 1 to N.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Where runs are kept.
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Make complete runs again.
    #[arg(long)]
    force: bool,
    /// Write what enters and leaves each path to packets.pcapng.
    #[arg(long)]
    capture: bool,
    /// Use the kernel's own congestion control of the scenario's name, not ours as BPF.
    #[arg(long)]
    native_congestion: bool,
    /// What sends and receives.
    #[arg(long, value_enum, default_value_t = Application::Own)]
    application: Application,
    /// Print JSON lines: progress, and each run as it ends.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Application {
    /// Our own sender and receiver, which do what the scenario says.
    Own,
    /// iperf3, under mptcpize for MPTCP.
    Iperf3,
    /// The commands `anabranchd send` and `receive`, for a scenario whose connections are those of one [[transfer]].
    Anabranchd,
    /// The same, encrypted.
    AnabranchdTls,
}

fn main() -> ExitCode {
    let command = Command::parse();
    supervised(|interrupt| dispatch(command, interrupt))
}

fn dispatch(command: Command, interrupt: &Interrupt) -> Result<(), BedError> {
    match command.verb {
        Verb::Run(arguments) => run_scenario(arguments, interrupt),
        Verb::Calibrate { quick, json } => cli::calibrate(&Session::begin()?, quick, json),
        Verb::Emulate { scenario, seed } => {
            let loaded = cli::load(&scenario.file, &scenario.overrides)?;
            cli::emulate(&loaded.scenario, seed, &Session::begin()?, interrupt)
        }
        Verb::Clean => cli::clean(),
    }
}

fn run_scenario(arguments: RunArguments, interrupt: &Interrupt) -> Result<(), BedError> {
    let loaded = cli::load(&arguments.scenario.file, &arguments.scenario.overrides)?;
    let options = run::Options {
        source: match arguments.native_congestion {
            true => CongestionSource::Native,
            false => CongestionSource::Bpf,
        },
        application: match arguments.application {
            Application::Own => run::Application::Own,
            Application::Iperf3 => run::Application::Iperf3,
            Application::Anabranchd => run::Application::Anabranchd { tls: false },
            Application::AnabranchdTls => run::Application::Anabranchd { tls: true },
        },
        capture: arguments.capture,
        force: arguments.force,
    };
    let overrides = arguments.scenario.overrides.into_iter().collect();
    let batch = run::Batch::new(&loaded, overrides, options)?;
    let seeds = match arguments.seeds {
        Some(count) => 1..=count,
        None => {
            let seed = arguments.seed.unwrap_or(1);
            seed..=seed
        }
    };
    let session = Session::begin()?;
    let mut invalid = Vec::new();
    for seed in seeds {
        let mut tell = cli::teller(arguments.json);
        let outcome = batch.run(seed, &arguments.out, &session, interrupt, &mut tell)?;
        if !outcome.invalid.is_empty() {
            invalid.push(format!("seed {seed}: {}", outcome.invalid.join("; ")));
        }
        cli::tell_run(&outcome, arguments.json);
    }
    match invalid.is_empty() {
        true => Ok(()),
        false => Err(BedError::Failed(format!("runs that do not count: {}", invalid.join(" | ")))),
    }
}
