//! Applications, downloads and relays over connections whose subflows come and go, or that have to do without MPTCP.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::Measurements;
use common::{connection, parse, run, subflow};

/// A connection over two equal paths, with these settings of its transport and these further tables.
fn two_paths(connection: &str, transport: &str, strips: &str, more: &str) -> Measurements {
    let text = format!(
        r#"
        name = "subflows"
        duration = "60 s"
        transport = {{ profile = "rfc", join = "established"{transport} }}
        node = [{{ names = ["C", "A", "B", "S", "T"] }}]
        link = [
          {{ between = ["C", "A"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets"{strips} }},
          {{ between = ["A", "S"], rate = "100 Mbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ between = ["C", "B"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" }},
          {{ between = ["B", "S"], rate = "100 Mbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ between = ["S", "T"], rate = "2 Mbit/s", delay = "5 ms", queue = "unlimited" }},
        ]
        [[connection]]
        name = "flow"
        from = "C"
        to = "S"
        protocol = "mptcp"
        congestion = "lia"
        subflow = [{{ name = "a", via = ["A"] }}, {{ name = "b", via = ["B"] }}]
        {connection}
        {more}"#
    );
    run(&parse(&text), 1)
}

fn event(at: &str, subflow: &str, action: &str) -> String {
    format!(
        "[[event]]\nat = \"{at}\"\nconnection = \"flow\"\nsubflow = \"{subflow}\"\naction = \"{action}\"\n"
    )
}

const DOWNLOAD: &str = r#"traffic = { kind = "file", size = "4 MB", direction = "download" }"#;

#[test]
fn a_download_without_any_subflow_goes_on_when_one_is_opened_again() {
    let events = event("2 s", "a", "close") + &event("2 s", "b", "close") + &event("20 s", "a", "open");
    let run = two_paths(DOWNLOAD, "", "", &events);
    assert_eq!(connection(&run, "flow", "bytes_delivered"), 4e6);
    let completed = connection(&run, "flow", "completion_s");
    // Nothing moves for 18 s, and what is left has one path of 4 Mbit/s.
    let undisturbed = connection(&two_paths(DOWNLOAD, "", "", ""), "flow", "completion_s");
    assert!(completed > undisturbed + 18.0, "{completed} s, undisturbed {undisturbed} s");
}

#[test]
fn an_application_writes_on_whatever_subflow_is_left() {
    let requests = r#"traffic = { kind = "request", response = "20 kB", think = "100 ms", count = 40 }"#;
    for (action, again) in [("close", false), ("remove", false), ("close", true)] {
        let again = if again { event("3 s", "a", "open") } else { String::new() };
        let run = two_paths(requests, "", "", &(event("1 s", "a", action) + &again));
        assert_eq!(connection(&run, "flow", "messages"), 40.0, "{action} {again}");
    }
}

#[test]
fn rfc_8684_3_7_a_relay_feeds_on_a_connection_that_has_fallen_back() {
    let onward = r#"traffic = { kind = "file", size = "1 MB" }
        [[connection]]
        name = "onward"
        from = "S"
        to = "T"
        congestion = "reno"
        [[relay]]
        name = "gateway"
        in = "flow"
        out = "onward"
        buffer = "20 kB""#;
    for (strips, fallback) in [("", None), (", strips = \"mptcp\"", Some(1.0))] {
        let run = two_paths(onward, ", receive_buffer = \"30 kB\"", strips, "");
        let fell_back = fallback.map(|_| connection(&run, "flow", "fallback"));
        assert_eq!(fell_back, fallback);
        assert_eq!(connection(&run, "onward", "bytes_delivered"), 1e6, "{strips}");
        assert!(connection(&run, "gateway", "buffer_max_bytes") <= 2e4);
    }
}

#[test]
fn what_waits_at_the_opener_counts_too() {
    let run = two_paths(DOWNLOAD, ", receive_buffer = \"100 kB\"", "", "[measure]\nhead_of_line = true");
    assert!(connection(&run, "flow", "out_of_order_max_bytes") > 0.0);
    assert!(connection(&run, "flow", "hol_blocked_s") > 0.0);
    assert!(connection(&run, "flow", "hol_delay_mean_s") <= connection(&run, "flow", "hol_delay_max_s"));
}

/// The third packet of a handshake echoes the copy of the answer that it confirms, so that a lost one does not make the
/// acceptor's first sample of the round-trip time, and so its timeout, many seconds long. (Found by the swarm.)
#[test]
fn rfc_7323_4_3_a_repeated_answer_does_not_lengthen_the_first_round_trip() {
    let scenario = parse(
        r#"
        name = "handshake"
        duration = "1 h"
        transport = { profile = "linux" }
        node = [{ names = ["C", "S"] }]
        link = [{ between = ["C", "S"], rate = "1 Mbit/s", delay = "10 ms", queue = "10 packets", loss = "30 %" }]
        [[connection]]
        name = "flow"
        from = "C"
        to = "S"
        protocol = "mptcp"
        congestion = "reno"
        traffic = { kind = "file", size = "1 B", direction = "download" }
        "#,
    );
    for seed in 1..=100 {
        let run = run(&scenario, seed);
        let srtt = subflow(&run, "flow", "0", "mean_srtt_s");
        assert!(srtt < 0.1, "{srtt} s over a path of 20 ms, seed {seed}");
    }
}
