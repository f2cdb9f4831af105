//! The command as a user runs it: what it writes, what it says, and that it leaves nothing behind.

mod common;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{
    texts::{BOTH, TWO_PATHS, connection},
    turn::Turn,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// One TCP flow and one UDP flow for a second.
const SHORT: &str = r#"
name = "short"
duration = "1 s"
node = [{ names = ["client", "server"] }]
link = [{ name = "path", between = ["client", "server"], rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets" }]
datagram = [{ name = "noise", from = "client", to = "server", rate = "1 Mbit/s", packet = "1000 B" }]

[transport]
profile = "linux"

[[connection]]
name = "flow"
from = "client"
to = "server"
congestion = "cubic"
"#;

/// Two subflows of LIA, over IPv6 if `ip` says so.
fn two_paths(ip: &str) -> String {
    format!(
        r#"
        name = "two-paths"
        duration = "3 s"
        {TWO_PATHS}
        [transport]
        profile = "linux"
        {}"#,
        connection("up", BOTH, &format!("ip = \"{ip}\""))
    )
}

/// What a bed could leave behind on this machine.
#[derive(Debug, PartialEq)]
struct Traces {
    namespaces: BTreeSet<String>,
    interfaces: BTreeSet<String>,
    congestion_controls: String,
    processes: BTreeSet<u32>,
    states: BTreeSet<String>,
    staged: BTreeSet<String>,
}

impl Traces {
    fn now(out: &Path) -> Self {
        let names = |folder: &str| -> BTreeSet<String> {
            let entries = fs::read_dir(folder).into_iter().flatten();
            entries
                .map(|entry| entry.expect("it can be read").file_name().into_string().expect("text"))
                .collect()
        };
        let is_bed = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.starts_with("anabranch-bed"))
        };
        let all = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        Self {
            namespaces: names("/run/netns"),
            interfaces: names("/sys/class/net"),
            congestion_controls: all.expect("every kernel has some"),
            processes: names("/proc").iter().filter_map(|name| name.parse().ok()).filter(is_bed).collect(),
            states: names("/run/anabranch"),
            staged: staged(out),
        }
    }

    /// Waits until everything is as it was, at most ten seconds; the kernel removes namespaces and BPF objects
    /// a little after their last user has gone.
    fn wait_for(&self, out: &Path, what: &str) {
        let begun = now();
        loop {
            let found = Self::now(out);
            if found == *self {
                return;
            }
            assert!(now() - begun < Duration::from_secs(10), "{what}: {found:#?} where there was {self:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a test may give up after a while")]
fn now() -> Instant {
    Instant::now()
}

/// Unfinished run folders below a folder.
fn staged(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        if name.starts_with('.') {
            found.insert(name);
        }
        if path.is_dir() {
            found.extend(staged(&path));
        }
    }
    found
}

#[test]
fn ten_runs_in_a_row_leave_their_folders_and_nothing_else() {
    let Some(turn) = Turn::begin("ten_runs_in_a_row_leave_their_folders_and_nothing_else") else { return };
    let before = Traces::now(turn.path());
    let output = turn.run(SHORT, &["--seeds", "10"]);
    // A busy machine may make runs invalid, which is exit code 1; they are written all the same.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    before.wait_for(turn.path(), "after ten runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.lines().filter(|line| line.starts_with("seed ")).count(), 10, "{said}");
}

#[test]
fn ten_interrupted_runs_leave_nothing() {
    let Some(turn) = Turn::begin("ten_interrupted_runs_leave_nothing") else { return };
    let before = Traces::now(turn.path());
    for round in 0..10 {
        let signal = if round % 2 == 0 { Signal::SIGINT } else { Signal::SIGKILL };
        let mut child = start(&mut turn.command(SHORT, &["--json", "--set", "duration=30 s"]));
        read_lines(&mut child, round);
        kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
        let status = child.wait().expect("it is our child");
        if signal == Signal::SIGINT {
            assert_eq!(status.code(), Some(130), "round {round}");
        }
        before.wait_for(turn.path(), &format!("round {round}, {signal}"));
    }
    let folders = fs::read_dir(turn.path().join("runs")).into_iter().flatten().count();
    assert_eq!(folders, 0, "no run has ended");
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts")
}

/// Waits for so many lines of progress; 0: until the program holds the host's lock, so that the set-up is interrupted.
fn read_lines(child: &mut Child, lines: usize) {
    let begun = now();
    while !Path::new("/run/anabranch").exists() {
        assert!(now() - begun < Duration::from_secs(10), "the program does not begin");
        thread::sleep(Duration::from_millis(1));
    }
    let mut reader = BufReader::new(child.stdout.take().expect("it is a pipe"));
    for _ in 0..lines {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("it is text") > 0, "the run has ended");
    }
}

#[test]
fn a_run_has_the_simulators_files_and_names_its_machine() {
    let Some(turn) = Turn::begin("a_run_has_the_simulators_files_and_names_its_machine") else { return };
    let run = turn.result(SHORT, &["--capture"]);
    assert_eq!(run.manifest["engine"], "kernel");
    assert!(run.manifest["version"].as_str().is_some_and(|version| version.contains('@')));
    let environment = &run.manifest["environment"];
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("every kernel has one");
    assert_eq!(environment["kernel"], release.trim());
    assert!(environment["facts"]["emulator_lateness_p99_us"].is_number());
    assert_eq!(environment["sysctls"]["client"]["net.ipv4.tcp_recovery"], "1", "profile linux has RACK");
    for file in ["summary.csv", "series.parquet", "counters.json", "packets.pcapng"] {
        assert!(run.path.join(file).is_file(), "{file}");
    }
    let flow = &run.summary["connections"]["flow"];
    let goodput_bps = flow["goodput_bps"].as_f64().expect("it is measured");
    assert!((5e6..9.7e6).contains(&goodput_bps), "{goodput_bps} of 9 Mbit/s that the other flow leaves");
    assert_eq!(run.summary["connections"]["noise"]["packets_sent"], 125.0, "1 Mbit/s of 1000 bytes for 1 s");
    let again = turn.result(SHORT, &["--capture"]);
    assert_eq!(again.event["reused"], run.event["valid"], "a run that counts is not made again");
}

#[test]
fn both_subflows_carry_data_under_our_own_lia_over_ipv4_and_ipv6() {
    let Some(turn) = Turn::begin("both_subflows_carry_data_under_our_own_lia_over_ipv4_and_ipv6") else {
        return;
    };
    for ip in ["v4", "v6"] {
        let run = turn.result(&two_paths(ip), &[]);
        let fallen = run.manifest["environment"]["invalid"].to_string().contains("fall");
        assert!(!fallen, "{}", run.manifest["environment"]);
        for (subflow, least_bps) in [("wifi", 3e6), ("cell", 1e6)] {
            let throughput = run.summary["subflows"]["up"][subflow]["throughput_bps"].as_f64();
            assert!(throughput.is_some_and(|bps| bps > least_bps), "{ip} {subflow}: {throughput:?}");
        }
    }
}

#[test]
fn the_first_connection_to_a_host_keeps_the_window_cap_and_the_initial_ssthresh() {
    let name = "the_first_connection_to_a_host_keeps_the_window_cap_and_the_initial_ssthresh";
    let Some(turn) = Turn::begin(name) else { return };
    let long = SHORT.replace("1 s", "2 s").replace("5 ms", "50 ms").replace("cubic", "reno");
    let with = |key: &str| {
        let text = long.replace(r#"profile = "linux""#, &format!("profile = \"linux\"\n{key}"));
        let summary = turn.result(&text, &[]).summary;
        let value = |of: &serde_json::Value| of.as_f64().expect("it is measured");
        let window = value(&summary["subflows"]["flow"]["0"]["mean_cwnd_packets"]);
        (window, value(&summary["connections"]["flow"]["goodput_bps"]))
    };
    // Ten packets of 1448 B in each round trip of 100 ms, where the link has room for 60.
    let (window, goodput_bps) = with(r#"window_cap = "10 packets""#);
    assert!(window <= 10.0, "{window}");
    assert!((0.9e6..1.17e6).contains(&goodput_bps), "{goodput_bps}");
    // From 12 on a packet more with each of 20 round trips; slow start reaches the link's 60 in three.
    let (window, _) = with(r#"initial_ssthresh = "12 packets""#);
    assert!((12.0..32.0).contains(&window), "{window}");
}

#[test]
fn iperf3_takes_the_place_of_our_sender_and_its_json_lies_in_the_folder() {
    let name = "iperf3_takes_the_place_of_our_sender_and_its_json_lies_in_the_folder";
    let Some(turn) = Turn::begin(name) else { return };
    let installed = |program| Command::new(program).arg("--version").output().is_ok();
    if !installed("iperf3") || !installed("mptcpize") {
        common::skip_for(name, "iperf3 or mptcpize is missing", "apt-get install -y iperf3 mptcpize");
        return;
    }
    let run = turn.result(&two_paths("v4"), &["--application", "iperf3"]);
    let said = fs::read(run.path.join("iperf3-up.json")).expect("it lies in the folder");
    let said: serde_json::Value = serde_json::from_slice(&said).expect("it is JSON");
    let received = said["end"]["sum_received"]["bits_per_second"].as_f64();
    assert_eq!(run.summary["connections"]["up"]["goodput_bps"].as_f64(), received);
    assert!(received.is_some_and(|bps| bps > 4e6), "{received:?}");
    assert_eq!(run.manifest["overrides"]["kernel.application"], "iperf3");
}

#[test]
fn what_a_kernel_cannot_do_is_bad_input_and_touches_nothing() {
    let Some(turn) = Turn::begin("what_a_kernel_cannot_do_is_bad_input_and_touches_nothing") else { return };
    let before = Traces::now(turn.path());
    let differing = two_paths("v4").replace(
        r#"{ name = "cell", via = ["cell"] }"#,
        r#"{ name = "cell", via = ["cell"], congestion = "reno" }"#,
    );
    for (scenario, expected) in [
        (differing.as_str(), "differ in congestion control"),
        ("name = 1", "scenario.toml:1"),
        (&SHORT.replace("1000 B", "20 B"), "IP and UDP headers take 28 B"),
    ] {
        let output = turn.run(scenario, &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with("error: ") && error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let nowhere = turn.run(SHORT, &["--out", "/proc/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", String::from_utf8_lossy(&nowhere.stderr));
    assert_eq!(Traces::now(turn.path()), before);
}
