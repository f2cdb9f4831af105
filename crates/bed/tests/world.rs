//! What the simulator can, on a real kernel: scenarios whose figures have known bounds.

mod common;

use common::turn::{Run, Turn};

/// Two paths of 8 and 4 Mbit/s between `phone` and `server`, with what else the scenario says.
fn two_paths(duration: &str, more: &str) -> String {
    format!(
        r#"
        name = "world"
        duration = "{duration}"
        node = [{{ names = ["phone", "wifi", "cell", "server"] }}]
        link = [
          {{ between = ["phone", "wifi"], rate = "8 Mbit/s", delay = "5 ms", queue = "50 packets" }},
          {{ between = ["phone", "cell"], rate = "4 Mbit/s", delay = "20 ms", queue = "50 packets" }},
          {{ between = ["wifi", "server"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ between = ["cell", "server"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
        ]

        [transport]
        profile = "linux"

        {more}
        "#
    )
}

/// An MPTCP connection over both paths, and what else its table says.
fn both_paths(traffic: &str) -> String {
    format!(
        r#"
        [[connection]]
        name = "data"
        from = "phone"
        to = "server"
        protocol = "mptcp"
        congestion = "lia"
        traffic = {{ {traffic} }}
        subflow = [{{ name = "wifi", via = ["wifi"] }}, {{ name = "cell", via = ["cell"] }}]
        "#
    )
}

fn figure(run: &Run, kind: &str, path: &[&str]) -> f64 {
    let found = path.iter().fold(&run.summary[kind], |within, name| &within[name]);
    found.as_f64().unwrap_or_else(|| panic!("{kind} {path:?} is missing: {}", run.summary))
}

/// Nothing has gone wrong but, on a busy machine, the time.
fn assert_sound(run: &Run) {
    let environment = &run.manifest["environment"];
    let invalid = environment["invalid"].as_array().expect("it is a list");
    let reasons = invalid.iter().map(|reason| reason.as_str().expect("they are sentences"));
    let serious: Vec<_> = reasons.filter(|reason| !reason.starts_with("the emulator was late")).collect();
    assert!(serious.is_empty(), "{serious:#?}");
}

#[test]
fn a_download_uses_both_paths_and_is_counted_where_it_is_sent() {
    let Some(turn) = Turn::begin("a_download_uses_both_paths_and_is_counted_where_it_is_sent") else {
        return;
    };
    let download = both_paths(r#"kind = "ftp", direction = "download""#);
    let run = turn.result(&two_paths("3 s", &download), &[]);
    assert_sound(&run);
    for (subflow, least_bps) in [("wifi", 3e6), ("cell", 1e6)] {
        let throughput_bps = figure(&run, "subflows", &["data", subflow, "throughput_bps"]);
        assert!(throughput_bps > least_bps, "{subflow}: {throughput_bps}");
        assert!(
            figure(&run, "subflows", &["data", subflow, "mean_cwnd_packets"]) > 5.0,
            "the server's window"
        );
    }
    let goodput_bps = figure(&run, "connections", &["data", "goodput_bps"]);
    assert!((5e6..11.6e6).contains(&goodput_bps), "{goodput_bps} of 12 Mbit/s less headers");
    let down = figure(&run, "links", &["phone-wifi/reverse", "throughput_bps"]);
    let up = figure(&run, "links", &["phone-wifi", "throughput_bps"]);
    assert!(up < down / 10.0, "acknowledgements alone go up: {up} and {down}");
}

#[test]
fn a_file_each_way_is_complete_when_both_have_come() {
    let Some(turn) = Turn::begin("a_file_each_way_is_complete_when_both_have_come") else { return };
    for protocol in ["tcp", "mptcp"] {
        let mut both = both_paths(r#"kind = "file", size = "500 kB", direction = "both""#);
        if protocol == "tcp" {
            both = both.replace("mptcp", "tcp").replace("lia", "reno");
            both = both.replace(r#", { name = "cell", via = ["cell"] }"#, "");
        }
        let run = turn.result(&two_paths("4 s", &both), &[]);
        assert_sound(&run);
        let of = |metric| figure(&run, "connections", &["data", metric]);
        assert_eq!(of("bytes_delivered"), 1e6, "{protocol}");
        assert_eq!(of("goodput_up_bps"), of("goodput_down_bps"), "{protocol}");
        let completion_s = of("completion_s");
        // 4 Mbit each way over at least 8 and at most 12 Mbit/s, and slow start.
        assert!((0.33..2.0).contains(&completion_s), "{protocol}: {completion_s}");
    }
}
