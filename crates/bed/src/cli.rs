//! What the command reads and prints.

use std::{
    io::{self, Write as _},
    path::Path,
};

use anabranch_bed::{
    BedError,
    calibrate::{self, Calibration},
    host::{self, Interrupt, Session},
    plan::Plan,
    run::{self, Outcome, Progress},
};
use anabranch_scenario::{Loaded, load_path, model::Scenario};
use serde_json::json;

/// Reads `KEY=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// Reads a scenario file.
pub(crate) fn load(file: &Path, overrides: &[(String, String)]) -> Result<Loaded, BedError> {
    load_path(file, overrides).map_err(|error| BedError::Input(error.message))
}

/// Writes a line to standard output; a reader that has gone is no error of ours.
pub(crate) fn print(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Tells of progress: as JSON lines, or not at all.
pub(crate) fn teller(as_json: bool) -> impl FnMut(Progress) {
    move |progress| {
        if as_json {
            print(
                &json!({
                    "event": "progress",
                    "seed": progress.seed,
                    "attempt": progress.attempt,
                    "reached_s": progress.reached as f64 / 1e9,
                    "duration_s": progress.duration as f64 / 1e9,
                })
                .to_string(),
            );
        }
    }
}

/// Tells of a run that has ended.
pub(crate) fn tell_run(outcome: &Outcome, as_json: bool) {
    if as_json {
        print(
            &json!({
                "event": "run",
                "seed": outcome.seed,
                "path": outcome.path,
                "reused": outcome.reused,
                "damaged": outcome.damaged,
                "valid": outcome.invalid.is_empty(),
                "invalid": outcome.invalid,
            })
            .to_string(),
        );
        return;
    }
    let state = match (outcome.reused, outcome.invalid.is_empty()) {
        (true, _) => "reused from",
        (false, true) => "in",
        (false, false) => "does not count, in",
    };
    print(&format!("seed {}: run {state} {}", outcome.seed, outcome.path.display()));
    for reason in &outcome.invalid {
        print(&format!("  {reason}"));
    }
}

/// Runs the calibration and prints its table.
pub(crate) fn calibrate(session: &Session, quick: bool, as_json: bool) -> Result<(), BedError> {
    let calibration = calibrate::calibrate(session, quick)?;
    if as_json {
        print(&serde_json::to_string_pretty(&calibration).expect("finite numbers and text are JSON"));
    } else {
        print_table(&calibration);
    }
    match calibration.passed() {
        true => Ok(()),
        false => Err(BedError::Failed("the emulator is not calibrated on this machine".to_owned())),
    }
}

fn print_table(calibration: &Calibration) {
    for line in calibration.to_string().lines() {
        print(line);
    }
}

/// Removes leftovers and says which.
pub(crate) fn clean() -> Result<(), BedError> {
    let removed = host::clean()?;
    match removed.is_empty() {
        true => print("nothing to remove"),
        false => removed.iter().for_each(|what| print(&format!("removed {what}"))),
    }
    Ok(())
}

/// Sets up hosts and links until Ctrl-C, and says how to use them.
pub(crate) fn emulate(
    scenario: &Scenario,
    seed: u64,
    session: &Session,
    interrupt: &Interrupt,
) -> Result<(), BedError> {
    let report = run::hold(scenario, seed, session, interrupt, describe)?;
    let lateness = report.lateness.summary();
    print(&format!(
        "{} packets passed, 99 % of them at most {:.0} us late",
        lateness.count,
        lateness.p99_ns as f64 / 1e3
    ));
    Ok(())
}

fn describe(scenario: &Scenario, plan: &Plan, names: &[String]) {
    for (host, name) in plan.hosts.iter().zip(names) {
        print(&format!("{name}    (enter it: ip netns exec {name} bash)"));
        for interface in &host.interfaces {
            let addresses: Vec<String> =
                interface.addresses.iter().map(|address| address.ip.to_string()).collect();
            print(&format!("  {}  {}  {}", interface.name, interface.link, addresses.join(" ")));
        }
    }
    let mut workload = None;
    for (model, connection) in scenario.connections.iter().zip(&plan.connections) {
        // One of many flows of the same addresses will do.
        if model.member_of.is_some() && model.member_of == workload {
            continue;
        }
        workload.clone_from(&model.member_of);
        let (client, server) = (&names[connection.client], &names[connection.server]);
        let wrapper = match model.protocol {
            anabranch_scenario::model::Protocol::Tcp => "",
            anabranch_scenario::model::Protocol::Mptcp => "mptcpize run ",
        };
        print(&format!("connection {}, for example with iperf3:", model.name));
        print(&format!("  ip netns exec {server} {wrapper}iperf3 -s -1"));
        print(&format!(
            "  ip netns exec {client} {wrapper}iperf3 -c {} -B {} -C {}",
            connection.server_address, connection.client_addresses[0], connection.congestion
        ));
    }
    print("Ctrl-C ends it.");
}
