//! A transfer carried by the real commands, `anabranchd send` and `anabranchd receive`.

mod common;

use std::path::Path;

use common::{texts::Transfer, turn::Turn};

/// A file over a socket on each of two paths of 8 and 4 Mbit/s.
fn transfer(direction: &str, duration: &str) -> String {
    Transfer {
        duration,
        keys: &format!("direction = \"{direction}\""),
        backups: false,
        transport: "send_buffer = \"200 kB\"",
        more: "[measure]\ninterval = \"20 ms\"\nmemory = true",
    }
    .text()
}

/// The turn, if the commands have been built too: they lie beside this crate's program, or a variable says where.
fn begin(test: &str) -> Option<Turn> {
    let beside = Path::new(env!("CARGO_BIN_EXE_anabranch-bed")).with_file_name("anabranchd");
    if std::env::var_os("ANABRANCHD").is_none() && !beside.exists() {
        common::skip_for(test, "anabranchd is not built", "cargo build -p anabranch-device");
        return None;
    }
    Turn::begin(test)
}

#[test]
fn the_commands_carry_a_file_over_both_paths_either_way_and_encrypted() {
    let test = "the_commands_carry_a_file_over_both_paths_either_way_and_encrypted";
    let Some(turn) = begin(test) else { return };
    for (direction, application) in
        [("upload", "anabranchd"), ("download", "anabranchd"), ("upload", "anabranchd-tls")]
    {
        let run = turn.result(&transfer(direction, "6 s"), &["--application", application]);
        run.assert_sound();
        assert_eq!(run.manifest["overrides"]["kernel.application"], application);
        let of = |name, metric| run.figure("connections", &[name, metric]);
        assert_eq!(of("file", "bytes_transferred"), 2e6, "{direction}, {application}");
        // 16 Mbit over 12 Mbit/s less headers, slow start, the start of two programs, and a chunk on the slow path.
        let completion_s = of("file", "completion_s");
        assert!((1.3..5.0).contains(&completion_s), "{direction}, {application}: {completion_s} s");
        let paths = ["on-wifi", "on-cell"].map(|name| of(name, "bytes_delivered"));
        assert_eq!(paths[0] + paths[1], 2e6, "what came twice is not counted, for no path has died");
        assert!(paths.iter().all(|bytes| *bytes > 1e5), "both paths carry data: {paths:?}");
        let (sender, receiver) =
            if direction == "upload" { ("phone", "server") } else { ("server", "phone") };
        let held = |node, metric| run.figure("nodes", &[node, metric]);
        let peak = held(sender, "send_memory_peak_bytes");
        // Linux lets a socket of MPTCP hold more than the limit of its buffer: here 1.4, with small ones 2.4 times as much.
        assert!((10e3..3.0 * 400e3).contains(&peak), "{direction}: two buffers of 200 kB held {peak} bytes");
        assert!(held(receiver, "receive_memory_peak_bytes") > 0.0);
        assert!(held(receiver, "send_memory_peak_bytes") < peak / 2.0, "it answers only");
        let facts = &run.manifest["environment"]["facts"];
        assert!(facts["further_subflows"].as_f64() >= Some(2.0), "each socket has a backup: {facts}");
        assert!(run.path.join("anabranchd.json").exists());
    }
}

#[test]
fn a_file_that_does_not_arrive_in_time_counts_as_far_as_it_came() {
    let Some(turn) = begin("a_file_that_does_not_arrive_in_time_counts_as_far_as_it_came") else { return };
    let run = turn.result(&transfer("upload", "1 s"), &["--application", "anabranchd"]);
    run.assert_sound();
    let of_file = &run.summary["connections"]["file"];
    assert!(of_file["completion_s"].is_null());
    let arrived = of_file["bytes_transferred"].as_f64().expect("it is a number");
    assert!((1e4..2e6).contains(&arrived), "{arrived} bytes in a second at 12 Mbit/s");
}

#[test]
fn without_the_program_it_is_said_how_to_get_it() {
    let Some(turn) = Turn::begin("without_the_program_it_is_said_how_to_get_it") else { return };
    let mut command = turn.command(&transfer("upload", "1 s"), &["--application", "anabranchd"]);
    let output = command.env("ANABRANCHD", "/no/such/program").output().expect("the bed starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("/no/such/program is not installed") && said.contains("make device"), "{said}");
}
