//! A device agent in the simulator: what its configuration decides, with times and reasons.

use std::path::Path;

use anabranch_sim::{Control, Records};
use serde_json::Value;

/// Time in milliseconds, subflow, action and reason of every decision.
type Told = (f64, String, String, String);

fn decisions(overrides: &[(&str, &str)]) -> Vec<Told> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent/handover.toml");
    let overrides: Vec<_> =
        overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let loaded = anabranch_scenario::load_path(file, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records { events: true, ..Records::default() };
    anabranch_sim::record(&loaded.scenario, 1, &Control::default(), folder.path(), records).expect("it runs");
    let text = std::fs::read_to_string(folder.path().join("events.qlog")).expect("it was written");
    let log: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut told: Vec<Told> = Vec::new();
    for trace in log["traces"].as_array().expect("traces") {
        let title = trace["title"].as_str().expect("a title");
        let (_, subflow) = title.split(" at ").next().expect("a name").split_once('/').expect("two names");
        for event in trace["events"].as_array().expect("events") {
            if event["name"] == "anabranch-tcp:path_decision" {
                let text = |key: &str| event["data"][key].as_str().expect("text").to_owned();
                let at_ms = event["time"].as_f64().expect("a time");
                told.push((at_ms, subflow.to_owned(), text("action"), text("reason")));
            }
        }
    }
    // The log has one trace per subflow: of one time, in the order of words.
    told.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (&a.2, &a.1).cmp(&(&b.2, &b.1))));
    told
}

fn words(told: &[Told]) -> Vec<(&str, &str, &str)> {
    told.iter()
        .map(|(_, subflow, action, reason)| (subflow.as_str(), action.as_str(), reason.as_str()))
        .collect()
}

#[test]
fn a_subflow_whose_link_goes_down_is_closed_at_once_and_the_spare_carries_until_the_hold_is_over() {
    let told = decisions(&[]);
    assert_eq!(
        words(&told),
        [
            ("cellular", "open", "open"),
            ("wifi", "backup", "preferred-failed"),
            ("wifi", "close", "link-down"),
            ("cellular", "regular", "preferred-failed"),
            ("wifi", "open", "open"),
            ("cellular", "backup", "preferred-returned"),
            ("wifi", "regular", "preferred-returned"),
        ]
    );
    let at = |number: usize| told[number].0;
    assert!((1..=3).all(|number| at(number) == 2000.0), "the change itself: {told:?}");
    assert_eq!(at(4), 4000.0);
    // Two round trips of 22 ms until the fourth acknowledgement of the join (RFC 8684 section 3.2), and the hold of 1 s.
    assert!((5044.0..5050.0).contains(&at(5)), "{}", at(5));
    assert_eq!(at(5), at(6));
}

#[test]
fn without_another_path_that_answers_a_subflow_is_kept_for_its_link_to_return() {
    let told = decisions(&[("link.wwan0.loss", "100 %")]);
    assert!(told.iter().all(|(_, _, _, reason)| reason != "link-down"), "{told:?}");
}
