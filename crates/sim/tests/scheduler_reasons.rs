//! What the log and the series tell of schedulers: why a packet went where it went, and who got how much.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use std::collections::BTreeSet;

use anabranch_policy::scheduler::{SCHEDULERS, Sends};
use anabranch_record::model::{Measurements, Scope, Series};
use anabranch_scenario::model::Scenario;
use anabranch_sim::{Control, Records};
use common::{parse, run, subflow};
use serde_json::Value;

/// Wi-Fi at 20 Mbit/s and 5 ms with some noise, 3G at 5 Mbit/s and 60 ms, a radio each.
fn two_paths(scheduler: &str, connection: &str) -> Scenario {
    parse(&format!(
        r#"
name = "reasons"
duration = "10 s"
measure = {{ from = "0 s", interval = "100 ms", scheduling = true }}
transport = {{ profile = "rfc", receive_buffer = "200 kB" }}
node = [{{ names = ["S", "near", "far", "D"] }}]
link = [
    {{ name = "wifi", between = ["S", "near"], rate = "20 Mbit/s", delay = "5 ms", queue = "100 packets", loss = "0.1 %" }},
    {{ name = "3g", between = ["S", "far"], rate = "5 Mbit/s", delay = "60 ms", queue = "100 packets" }},
    {{ name = "c", between = ["near", "D"], rate = "1 Gbit/s", delay = "1 us", queue = "unlimited" }},
    {{ name = "d", between = ["far", "D"], rate = "1 Gbit/s", delay = "1 us", queue = "unlimited" }},
]
interface = [{{ node = "S", link = "wifi", radio = "wifi" }}, {{ node = "S", link = "3g", radio = "3g" }}]
[[connection]]
name = "flow"
from = "S"
to = "D"
protocol = "mptcp"
congestion = "lia"
scheduler = "{scheduler}"
{connection}
"#
    ))
}

const FTP: &str = r#"traffic = { kind = "ftp" }
subflow = [{ name = "wifi", via = ["near"] }, { name = "3g", via = ["far"] }]"#;
const FILE: &str = r#"traffic = { kind = "file", size = "3 MB" }
subflow = [{ name = "wifi", via = ["near"] }, { name = "3g", via = ["far"] }]"#;

/// A decision as the log tells it.
#[derive(Clone, Debug)]
struct Told {
    time_ms: f64,
    subflow: String,
    data: Value,
}

impl Told {
    fn text(&self, key: &str) -> &str {
        self.data[key].as_str().expect("text")
    }

    fn number(&self, key: &str) -> i64 {
        self.data[key].as_i64().unwrap_or_else(|| panic!("no number {key} in {}", self.data))
    }
}

/// The decisions of a run in the order of time, and the run.
fn decisions(scenario: &Scenario) -> (Measurements, Vec<Told>) {
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records { events: true, ..Records::default() };
    let run =
        anabranch_sim::record(scenario, 1, &Control::default(), folder.path(), records).expect("it runs");
    let text = std::fs::read_to_string(folder.path().join("events.qlog")).expect("it was written");
    let log: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut told = Vec::new();
    for trace in log["traces"].as_array().expect("traces") {
        let title = trace["title"].as_str().expect("a title");
        let (_, subflow) = title.split(" at ").next().expect("a name").split_once('/').expect("two names");
        for event in trace["events"].as_array().expect("events") {
            if event["name"] == "anabranch-tcp:scheduler_decision" {
                let time_ms = event["time"].as_f64().expect("a time");
                told.push(Told { time_ms, subflow: subflow.to_owned(), data: event["data"].clone() });
            }
        }
    }
    told.sort_by(|a, b| a.time_ms.total_cmp(&b.time_ms));
    (run, told)
}

fn series<'a>(run: &'a Measurements, name: &str, metric: &str) -> Option<&'a Series> {
    let scope = Scope::Subflow("flow".into(), name.into());
    run.series.iter().find(|series| series.scope == scope && series.metric == metric)
}

#[test]
fn every_reason_stands_on_the_page_of_its_scheduler() {
    for info in SCHEDULERS {
        let path = format!("{}/../../docs/schedulers/{}.md", env!("CARGO_MANIFEST_DIR"), info.name);
        let page = std::fs::read_to_string(&path).expect("the page is there");
        let section = page.split("## Reasons\n").nth(1).unwrap_or_else(|| panic!("{path}: no reasons"));
        let mut codes = BTreeSet::new();
        for flow in [FTP, FILE] {
            let (_, told) = decisions(&two_paths(info.name, flow));
            codes.extend(told.iter().map(|told| told.text("reason").to_owned()));
        }
        assert!(!codes.is_empty() || info.sends == Sends::Copies, "{} tells nothing", info.name);
        for code in codes.iter().filter(|code| *code != "reinjection") {
            assert!(section.contains(&format!("| `{code}` |")), "{path} lacks the reason {code}");
        }
    }
}

#[test]
fn ecf_holds_segments_back_by_its_first_inequality_and_says_so() {
    let file = r#"traffic = { kind = "file", size = "5 MB" }
transport = { receive_buffer = "4 MB" }
subflow = [{ name = "wifi", via = ["near"] }, { name = "3g", via = ["far"] }]"#;
    let (_, told) = decisions(&two_paths("ecf", file));
    let of = |code: &str| -> Vec<&Told> { told.iter().filter(|told| told.text("reason") == code).collect() };
    let (held, needed) = (of("fast-sooner"), of("slow-needed"));
    assert!(!held.is_empty() && !needed.is_empty(), "{} held, {} needed", held.len(), needed.len());
    for told in held {
        assert_eq!((told.text("action"), told.subflow.as_str()), ("hold", "3g"));
        assert!(told.number("fast_us") < told.number("slow_us"), "{}", told.data);
    }
    for told in needed {
        assert_eq!((told.text("action"), told.subflow.as_str()), ("send", "3g"));
        assert!(told.number("fast_us") >= told.number("slow_us"), "{}", told.data);
    }
}

#[test]
fn only_changes_are_told_and_telling_changes_nothing() {
    let scenario = two_paths("minrtt", FTP);
    let (watched, told) = decisions(&scenario);
    assert_eq!(run(&scenario, 1).summary, watched.summary);
    for name in ["wifi", "3g"] {
        let of: Vec<&Told> = told.iter().filter(|told| told.subflow == name).collect();
        assert!(of.len() > 5, "numbers are told anew every second");
        for pair in of.windows(2) {
            let is_new = pair[0].text("reason") != pair[1].text("reason");
            // The scheduler's clock counts microseconds.
            assert!(is_new || pair[1].time_ms - pair[0].time_ms > 999.99, "{:?}", pair);
        }
    }
    assert!(told.len() < 100, "{} decisions", told.len());
}

#[test]
fn a_workload_is_recorded_as_it_runs_and_each_of_its_connections_tells() {
    let flows = r#"traffic = { kind = "flows", interval = "1 s", stop = "5 s", size = "1 MB" }
subflow = [{ name = "wifi", via = ["near"] }, { name = "3g", via = ["far"] }]"#;
    let scenario = two_paths("minrtt", flows);
    let (watched, told) = decisions(&scenario);
    assert_eq!(run(&scenario, 1).summary, watched.summary);
    assert!(!told.is_empty());
}

#[test]
fn subset_choosers_tell_their_subset_and_what_it_was_weighed_against() {
    let (run, told) = decisions(&two_paths("ee-mptcp", FILE));
    let chosen: Vec<&Told> = told.iter().filter(|told| told.text("reason") == "chosen").collect();
    assert!(!chosen.is_empty());
    // Before the second subflow has joined there is one subset.
    let weighed = |told: &&&Told| told.data["other_subflows"].is_i64();
    assert!(chosen.iter().filter(weighed).count() > 1, "{chosen:?}");
    for told in chosen.iter().filter(weighed) {
        assert_ne!(told.number("chosen_subflows"), told.number("other_subflows"));
        assert!(told.number("bps_per_j") >= told.number("other_bps_per_j"), "{}", told.data);
        let index = ["wifi", "3g"].iter().position(|name| *name == told.subflow).expect("one of them");
        assert_ne!(told.number("chosen_subflows") & 1 << index, 0, "{}", told.data);
    }
    let in_subset = |name| series(&run, name, "in_subset").expect("a subset is chosen").points.clone();
    let (wifi, slow) = (in_subset("wifi"), in_subset("3g"));
    assert!(wifi.iter().zip(&slow).all(|(a, b)| a.0 == b.0 && a.1 + b.1 >= 1.0), "none is empty");
}

#[test]
fn shares_of_the_data_add_up_and_follow_the_weights() {
    let talk = r#"traffic = { kind = "cbr", rate = "400 kbit/s", size = "1000 B" }
subflow = [{ name = "wifi", via = ["near"], weight = 3 }, { name = "3g", via = ["far"] }]"#;
    let run = run(&two_paths("wrr", talk), 1);
    let points = |name| series(&run, name, "data_share").expect("it is wanted").points.clone();
    let (wifi, slow) = (points("wifi"), points("3g"));
    assert!(wifi.len() > 90 && wifi.len() == slow.len());
    assert!(wifi.iter().zip(&slow).all(|(a, b)| a.0 == b.0 && (a.1 + b.1 - 1.0).abs() < 1e-12));
    // What is sent before the second subflow has joined goes over the first: two messages of 500.
    assert!((subflow(&run, "flow", "wifi", "data_share") - 0.75).abs() < 0.01);
    assert!(series(&run, "wifi", "in_subset").is_none(), "no subset is chosen");
}
