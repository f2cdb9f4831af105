//! The command `anabranchd`.

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use anabranch_device::{
    DeviceError,
    doctor::{Facts, Report, Standing, Tier, examine},
};
use clap::{Parser, Subcommand};

#[cfg(feature = "agent")]
mod agency;
#[cfg(feature = "cc")]
mod congestion;
#[cfg(feature = "agent")]
mod paths;
#[cfg(feature = "transfer")]
mod transfer;

/// See what this machine can do with Multipath TCP, run congestion controls in its kernel, and move files over all its interfaces.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Say what this machine can be used for, what it lacks, and what to do about it.
    ///
    /// Exit code 0: congestion controls can be loaded now and MPTCP is there. 4: something lacks.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Congestion controls as BPF programs in the kernel.
    #[cfg(feature = "cc")]
    Cc(congestion::Arguments),
    /// Endpoints, connections and subflows of Multipath TCP.
    #[cfg(feature = "agent")]
    Path(paths::Arguments),
    /// Manage the subflows of the connections that this machine opens, by the policies of a configuration.
    #[cfg(feature = "agent")]
    Agent(agency::Arguments),
    /// Send files over all interfaces at once, each with a socket of its own.
    #[cfg(feature = "transfer")]
    Send(transfer::send::Arguments),
    /// Receive files into a folder.
    #[cfg(feature = "transfer")]
    Receive(transfer::receive::Arguments),
    /// Make a key for `send` and `receive`, and print its fingerprint.
    #[cfg(feature = "transfer")]
    Keygen(transfer::keygen::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Command::parse().verb {
        Verb::Doctor { json } => doctor(json),
        #[cfg(feature = "cc")]
        Verb::Cc(arguments) => congestion::dispatch(arguments),
        #[cfg(feature = "agent")]
        Verb::Path(arguments) => paths::dispatch(arguments),
        #[cfg(feature = "agent")]
        Verb::Agent(arguments) => agency::dispatch(arguments),
        #[cfg(feature = "transfer")]
        Verb::Send(arguments) => transfer::send::run(arguments),
        #[cfg(feature = "transfer")]
        Verb::Receive(arguments) => transfer::receive::run(arguments),
        #[cfg(feature = "transfer")]
        Verb::Keygen(arguments) => transfer::keygen::run(&arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "anabranchd: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Writes a line to standard output; a reader that has gone is no error of ours.
fn print(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Prints something as JSON.
fn print_json(value: &impl serde::Serialize) {
    print(&serde_json::to_string_pretty(value).expect("numbers and text are JSON"));
}

fn doctor(as_json: bool) -> Result<ExitCode, DeviceError> {
    let facts = Facts::read(Path::new("/"), std::env::consts::ARCH);
    let report = examine(&facts);
    match as_json {
        true => print_json(&serde_json::json!({ "report": report, "facts": facts })),
        false => print_report(&report),
    }
    Ok(ExitCode::from(if report.ready { 0 } else { 4 }))
}

fn print_report(report: &Report) {
    print(match report.tier {
        Tier::A => "tier A: the kernel can run BPF congestion controls",
        Tier::B => {
            "tier B: a user-space path manager and the settings of each socket; no BPF congestion controls"
        }
        Tier::Neither => "no tier: neither BPF congestion controls nor Multipath TCP",
    });
    for finding in &report.findings {
        let standing = match finding.standing {
            Standing::Ok => "ok",
            Standing::Note => "note",
            Standing::Lack => "LACK",
        };
        print(&format!("{standing:<5} {:<15} {}", finding.what, finding.found));
        if let Some(remedy) = &finding.remedy {
            print(&format!("{:<21} {remedy}", ""));
        }
    }
}

#[cfg(all(test, feature = "agent", feature = "cc"))]
mod tests {
    use super::*;

    /// The command lines of the documents' code blocks, the systemd unit's among them.
    fn documented() -> impl Iterator<Item = &'static str> {
        let documents = [
            include_str!("../../../README.md"),
            include_str!("../../../docs/agent.md"),
            include_str!("../../../docs/device.md"),
            #[cfg(feature = "transfer")]
            include_str!("../../../docs/transfer.md"),
        ];
        documents.into_iter().flat_map(str::lines).filter_map(|line| {
            let line = line.split('#').next()?.trim();
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            let line = line.rsplit_once("=/usr/local/bin/").map_or(line, |(_, command)| command);
            let line = line.rsplit_once("=-/usr/local/bin/").map_or(line, |(_, command)| command);
            line.starts_with("anabranchd ").then_some(line)
        })
    }

    #[test]
    fn every_command_of_the_documents_parses() {
        assert!(documented().count() >= 14, "{}", documented().count());
        for line in documented() {
            let parsed = Command::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.err().expect("it is an error"));
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Command::command().debug_assert();
    }
}
