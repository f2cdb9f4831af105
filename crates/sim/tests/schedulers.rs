//! Packet schedulers over two unequal paths: what each must do wherever it runs, and a comparison of all of them.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_policy::scheduler::SCHEDULERS;
use anabranch_record::model::Measurements;
use common::{connection, parse, run, subflow};

/// Wi-Fi at 20 Mbit/s and 5 ms, 3G at 5 Mbit/s and 60 ms, with queues of 100 packets and a radio each.
fn two_paths(scheduler: &str, transport: &str, connection: &str, more: &str) -> Measurements {
    let text = format!(
        r#"
name = "schedulers"
duration = "60 s"
measure = {{ from = "0 s", interval = "0 s", head_of_line = true }}
transport = {{ profile = "rfc", {transport} }}
node = [{{ names = ["S", "near", "far", "D"] }}]
link = [
    {{ name = "wifi", between = ["S", "near"], rate = "20 Mbit/s", delay = "5 ms", queue = "100 packets" }},
    {{ name = "3g", between = ["S", "far"], rate = "5 Mbit/s", delay = "60 ms", queue = "100 packets" }},
    {{ name = "c", between = ["near", "D"], rate = "1 Gbit/s", delay = "1 us", queue = "unlimited" }},
    {{ name = "d", between = ["far", "D"], rate = "1 Gbit/s", delay = "1 us", queue = "unlimited" }},
]
interface = [{{ node = "S", link = "wifi", radio = "wifi" }}, {{ node = "S", link = "3g", radio = "3g" }}]
{more}
[[connection]]
name = "flow"
from = "S"
to = "D"
protocol = "mptcp"
congestion = "lia"
scheduler = {scheduler}
{connection}
"#
    );
    run(&parse(&text), 1)
}

const BOTH: &str = r#"subflow = [{ name = "wifi", via = ["near"] }, { name = "3g", via = ["far"] }]"#;

fn named(name: &str) -> String {
    format!("\"{name}\"")
}

#[test]
fn c4_redundant_a_slow_path_sends_its_window_of_copies_and_the_rest_is_skipped() {
    let file = r#"traffic = { kind = "file", size = "14600 B" }"#;
    let windows = r#"segment = "1460 B", initial_window = "2 packets", join = "immediately""#;
    // Ten segments take 2 + 4 + 4 on the fast path, 40 ms; on the slow one, each of the two first takes 120 ms.
    let slow = r#"change = [{ at = "0 s", link = "3g", rate = "100 kbit/s", delay = "5 ms" }]"#;
    let both = two_paths("\"redundant\"", windows, &format!("{file}\n{BOTH}"), slow);
    assert_eq!(connection(&both, "flow", "copies"), 2.0);
    assert_eq!(subflow(&both, "flow", "3g", "packets_sent"), 2.0);
    assert_eq!(connection(&both, "flow", "duplicates"), 2.0);
    assert_eq!(connection(&both, "flow", "reinjections"), 0.0);
    let alone = format!("{file}\nsubflow = [{{ via = [\"near\"] }}]");
    let alone = two_paths("\"redundant\"", windows, &alone, slow);
    let times = [&both, &alone].map(|run| connection(run, "flow", "completion_s"));
    assert_eq!(times[0], times[1], "the slow path neither helps nor hinders");
}

#[test]
fn c9_dedicated_uses_one_subflow_until_that_ends() {
    let file = r#"traffic = { kind = "file", size = "10 MB" }"#;
    let quiet = two_paths("\"dedicated\"", "", &format!("{file}\n{BOTH}"), "");
    assert_eq!(subflow(&quiet, "flow", "3g", "packets_sent"), 0.0);
    let closed = r#"event = [{ at = "1 s", connection = "flow", subflow = "wifi", action = "close" }]"#;
    let ended = two_paths("\"dedicated\"", "", &format!("{file}\n{BOTH}"), closed);
    let sent = ["wifi", "3g"].map(|name| subflow(&ended, "flow", name, "packets_sent"));
    assert!(sent[0] > 1000.0 && sent[1] > 1000.0, "{sent:?}");
    assert!(connection(&ended, "flow", "completion_s") > 1.0);
}

#[test]
fn weights_are_the_shares_where_windows_always_have_room() {
    let talk = r#"traffic = { kind = "cbr", rate = "400 kbit/s", size = "1000 B", stop = "50 s" }"#;
    let weighed =
        r#"subflow = [{ name = "wifi", via = ["near"], weight = 3 }, { name = "3g", via = ["far"] }]"#;
    let run = two_paths("\"wrr\"", "", &format!("{talk}\n{weighed}"), "");
    let sent = ["wifi", "3g"].map(|name| subflow(&run, "flow", name, "packets_sent"));
    // What is sent before the second subflow has joined goes over the first.
    assert!((sent[0] / sent[1] - 3.0).abs() < 0.05, "{sent:?}");
}

#[test]
fn with_a_large_buffer_no_scheduler_gets_less_than_wifi_alone_or_more_than_both() {
    // Of 1500 bytes 1428 are payload; the first second of 60, in which windows grow, takes less than a hundredth.
    let payload = |mbps: f64| mbps * 1428.0 / 1500.0;
    for info in SCHEDULERS {
        let flow = format!("traffic = {{ kind = \"ftp\" }}\n{BOTH}");
        let run = two_paths(&named(info.name), "receive_buffer = \"4 MB\"", &flow, "");
        let mbps = connection(&run, "flow", "goodput_bps") / 1e6;
        let (least, most) = (0.99 * payload(20.0), payload(25.0));
        assert!(mbps > least && mbps < most, "{}: {mbps} Mbit/s", info.name);
    }
}

/// A row of the comparison: goodput and mean wait of bytes that came out of order, and how long a megabyte takes.
fn row(name: &str) -> String {
    let flow = |traffic: &str| format!("traffic = {{ {traffic} }}\n{BOTH}");
    let mut row = format!("| [`{name}`]({name}.md) |");
    for buffer in ["100 kB", "200 kB", "400 kB", "1 MB", "4 MB"] {
        let transport = format!("receive_buffer = \"{buffer}\"");
        let run = two_paths(&named(name), &transport, &flow("kind = \"ftp\""), "");
        let hol = run.summary.figures.iter().find(|figure| figure.metric == "hol_delay_mean_s");
        let hol_ms = hol.map_or(0.0, |figure| figure.value * 1e3);
        row += &format!(" {:.2} / {hol_ms:.0} |", connection(&run, "flow", "goodput_bps") / 1e6);
    }
    let megabyte = r#"kind = "flows", interval = "2 s", stop = "50 s", size = "1 MB""#;
    let run = two_paths(&named(name), "receive_buffer = \"400 kB\"", &flow(megabyte), "");
    let [p50, p95] = ["completion_p50_s", "completion_p95_s"].map(|of| connection(&run, "flow", of));
    row + &format!(" {p50:.2} / {p95:.2} |\n")
}

#[test]
fn the_comparison_in_the_docs_is_what_the_simulator_measures() {
    let rows: String = SCHEDULERS.iter().map(|info| row(info.name)).collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedulers/README.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    assert!(page.contains(&rows), "docs/schedulers/README.md must contain\n{rows}");
}
