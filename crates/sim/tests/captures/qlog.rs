//! `events.qlog` against what the main schema of qlog demands and what `docs/run-folder.md` promises.

use std::{collections::BTreeMap, fs};

use anabranch_record::model::Scope;
use anabranch_sim::Records;
use serde_json::{Value, json};

use crate::runs::{Recorded, eventful, mptcp, tcp};

const SCHEMA: &str = "urn:anabranch:qlog:events:anabranch-tcp";

fn logged(text: &str) -> (Recorded, Value) {
    let run = Recorded::with(text, 1, Records { events: true, ..Records::default() });
    let text = fs::read_to_string(run.folder.path.join("events.qlog")).expect("it was written");
    let log = serde_json::from_str(&text).expect("it is JSON");
    (run, log)
}

fn list<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} is a list"))
}

/// Events of a kind in a trace.
fn events<'v>(trace: &'v Value, kind: &str) -> Vec<&'v Value> {
    let name = format!("anabranch-tcp:{kind}");
    list(trace, "events").iter().filter(|event| event["name"] == *name).collect()
}

/// Names and types of the members that an event may have, those that it must have first.
fn members(kind: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        "packet_sent" => (
            &["raw", "flags", "offset"],
            &["ack", "sack", "data_offset", "data_ack", "window", "is_retransmission"],
        ),
        "packet_received" => {
            (&["raw", "flags", "offset"], &["ack", "sack", "data_offset", "data_ack", "window"])
        }
        "packet_lost" => (&["offset", "payload_length"], &[]),
        "metrics_updated" => (
            &[],
            &[
                "congestion_window",
                "ssthresh",
                "bytes_in_flight",
                "packets_in_flight",
                "smoothed_rtt",
                "rtt_variance",
                "min_rtt",
            ],
        ),
        "congestion_state_updated" => (&["new"], &["old"]),
        "timeout" => (&["count", "next"], &[]),
        "subflow_state_updated" => (&["old", "new", "by"], &["tuple"]),
        // The numbers are minRTT's.
        "scheduler_decision" => (&["action", "reason"], &["srtt_us", "fastest_srtt_us"]),
        other => panic!("the schema has no event {other}"),
    }
}

fn check_event(event: &Value) {
    let name = event["name"].as_str().expect("every event has a name");
    let kind = name.strip_prefix("anabranch-tcp:").expect("of our namespace");
    let data = event["data"].as_object().expect("every event has data");
    let (required, optional) = members(kind);
    assert!(required.iter().all(|name| data.contains_key(*name)), "{event}");
    assert!(!data.is_empty(), "{event}");
    for (name, value) in data {
        assert!(required.contains(&name.as_str()) || optional.contains(&name.as_str()), "{event}");
        let is_right = match name.as_str() {
            "raw" => value["length"].is_u64() && value["payload_length"].is_u64(),
            "flags" => value.as_array().is_some_and(|flags| flags.iter().all(Value::is_string)),
            "sack" => value.as_array().is_some_and(|ranges| {
                ranges.iter().all(|range| range[0].as_u64() < range[1].as_u64() && range[2].is_null())
            }),
            "is_retransmission" => value.as_bool() == Some(true),
            "old" | "new" | "by" | "tuple" | "action" | "reason" => value.is_string(),
            "smoothed_rtt" | "rtt_variance" | "min_rtt" | "next" => value.is_f64(),
            _ => value.is_u64(),
        };
        assert!(is_right, "{name} of {event}");
    }
}

#[test]
fn the_file_is_what_the_main_schema_demands() {
    for (text, traces) in [
        (tcp("ns2", "v4"), 1),
        (tcp("linux", "v6"), 1),
        (mptcp("linux", "v4"), 2),
        (eventful("linux", "v6"), 3),
    ] {
        let (_, log) = logged(&text);
        assert_eq!(log["file_schema"], "urn:ietf:params:qlog:file:contained");
        assert_eq!(log["serialization_format"], "application/qlog+json");
        assert_eq!(list(&log, "traces").len(), traces, "one per subflow");
        for trace in list(&log, "traces") {
            assert_eq!(*list(trace, "event_schemas"), [SCHEMA]);
            assert_eq!(trace["vantage_point"]["type"], "client");
            assert_eq!(trace["vantage_point"]["name"], "S");
            assert_eq!(trace["common_fields"]["group_id"], "up");
            assert_eq!(trace["common_fields"]["time_format"], "relative_to_epoch");
            // A monotonic clock has no known epoch (section "Timestamps").
            let reference = &trace["common_fields"]["reference_time"];
            assert_eq!(
                (&reference["clock_type"], &reference["epoch"]),
                (&"monotonic".into(), &"unknown".into())
            );
            let times: Vec<f64> =
                list(trace, "events").iter().map(|event| event["time"].as_f64().expect("a time")).collect();
            assert!(times.is_sorted());
            list(trace, "events").iter().for_each(check_event);
        }
    }
}

#[test]
fn counts_are_those_of_the_summary() {
    for text in
        [tcp("ns2", "v4"), tcp("rfc", "v4"), tcp("linux", "v6"), mptcp("rfc", "v6"), mptcp("linux", "v4")]
    {
        let (run, log) = logged(&text);
        let mut sums = BTreeMap::from([("packets_sent", 0), ("retransmits", 0), ("timeouts", 0)]);
        for trace in list(&log, "traces") {
            let data = |event: &&&Value| event["data"]["raw"]["payload_length"] != 0;
            let again = |event: &&&Value| event["data"]["is_retransmission"] == true;
            let sent = events(trace, "packet_sent");
            *sums.entry("packets_sent").or_default() += sent.iter().filter(data).count() as u64;
            *sums.entry("retransmits").or_default() += sent.iter().filter(again).count() as u64;
            let timeouts = events(trace, "timeout");
            *sums.entry("timeouts").or_default() +=
                timeouts.last().map_or(0, |event| event["data"]["count"].as_u64().expect("a count"));
            let lost = events(trace, "packet_lost").len();
            let resent = sent.iter().filter(again).count();
            assert!(lost > 0 && resent > 0, "{lost} lost, {resent} sent again");
        }
        let of_subflows = |metric: &str| {
            let figures = &run.measured.summary.figures;
            let ours =
                figures.iter().filter(|one| matches!(one.scope, Scope::Subflow(..)) && one.metric == metric);
            ours.map(|one| one.value as u64).sum::<u64>()
        };
        for (metric, sum) in sums {
            assert_eq!(sum, of_subflows(metric), "{metric}");
        }
    }
}

#[test]
fn every_loss_that_a_reader_can_count_has_been_told() {
    // By duplicates alone, whatever is sent again has been taken for lost.
    let (_, log) = logged(&tcp("ns2", "v4"));
    let trace = &list(&log, "traces")[0];
    let again = |event: &&Value| event["data"]["is_retransmission"] == true;
    let resent = events(trace, "packet_sent").into_iter().filter(again);
    let offsets = |events: &mut dyn Iterator<Item = &Value>| -> Vec<u64> {
        events.map(|event| event["data"]["offset"].as_u64().expect("an offset")).collect()
    };
    assert_eq!(offsets(&mut resent.into_iter()), offsets(&mut events(trace, "packet_lost").into_iter()));
}

#[test]
fn joins_are_told_with_their_states() {
    let (_, log) = logged(&mptcp("rfc", "v4"));
    let states = |trace: &Value| -> Vec<String> {
        let new = |event: &&Value| event["data"]["new"].as_str().expect("a state").to_owned();
        events(trace, "subflow_state_updated").iter().map(new).collect()
    };
    let by = |trace: &Value| events(trace, "subflow_state_updated")[0]["data"]["by"].clone();
    let traces = list(&log, "traces");
    assert_eq!(states(&traces[0]), ["syn_sent", "established"]);
    assert_eq!(states(&traces[1]), ["syn_sent", "pre_established", "established"]);
    assert_eq!((by(&traces[0]), by(&traces[1])), ("mp_capable".into(), "mp_join".into()));
}

#[test]
fn equal_seeds_give_equal_logs_and_figures_do_not_depend_on_them() {
    let text = mptcp("linux", "v4");
    let read = || fs::read(logged(&text).0.folder.path.join("events.qlog")).expect("it was written");
    assert!(read() == read());
    let mut watched = logged(&text).0.measured;
    watched.written.clear();
    assert_eq!(watched, Recorded::with(&text, 1, Records::default()).measured);
}

/// The events of a trace at a time in milliseconds, by kind.
fn at<'v>(trace: &'v Value, time_ms: f64, kind: &str) -> Vec<&'v Value> {
    events(trace, kind).into_iter().filter(|event| event["time"].as_f64() == Some(time_ms)).collect()
}

#[test]
fn a_subflow_that_is_opened_again_begins_with_offset_0_and_another_port() {
    let (_, log) = logged(&eventful("rfc", "v4"));
    let trace = &list(&log, "traces")[1];
    let opened = at(trace, 2500.0, "subflow_state_updated");
    assert_eq!(
        (&opened[0]["data"]["old"], &opened[0]["data"]["new"]),
        (&"closed".into(), &"syn_sent".into())
    );
    let first = trace["common_fields"]["tuple"].as_str().expect("addresses");
    let again = opened[0]["data"]["tuple"].as_str().expect("addresses");
    assert_eq!(first, "10.64.1.2:32769-10.64.0.1:10001");
    assert_eq!(again, "10.64.1.2:32772-10.64.0.1:10001", "behind those of the three subflows");
    let since = |event: &&Value| event["time"].as_f64() >= Some(2500.0);
    let sent: Vec<&Value> = events(trace, "packet_sent").into_iter().filter(since).collect();
    let payload = |event: &Value| event["data"]["raw"]["payload_length"].as_u64().expect("a length");
    let data = sent.iter().filter(|event| payload(event) > 0 && event["data"]["is_retransmission"].is_null());
    let mut next = 0;
    let life: Vec<_> = data.take_while(|event| event["time"].as_f64() < Some(3500.0)).collect();
    for event in &life {
        assert_eq!(event["data"]["offset"].as_u64(), Some(next));
        next += payload(event);
    }
    assert!(life.len() > 50, "{}", life.len());
    let metrics = events(trace, "metrics_updated").into_iter().find(since).expect("it is new");
    assert!(metrics["data"]["congestion_window"].is_u64(), "all is told again: {metrics}");
}

#[test]
fn what_events_of_the_scenario_change_is_told_when_they_happen() {
    let (_, log) = logged(&eventful("rfc", "v4"));
    let traces = list(&log, "traces");
    let closed = at(&traces[1], 2000.0, "subflow_state_updated");
    assert_eq!(closed[0]["data"]["new"], "closed");
    let flags = |trace: usize, time_ms: f64| -> Vec<String> {
        at(&traces[trace], time_ms, "packet_sent")
            .iter()
            .map(|event| event["data"]["flags"].to_string())
            .collect()
    };
    assert_eq!(flags(1, 1000.0)[0], r#"["ack","mp_prio_backup"]"#);
    assert_eq!(flags(1, 1500.0)[0], r#"["ack","mp_prio_regular"]"#);
    assert_eq!(flags(1, 2000.0), [r#"["ack","rst"]"#]);
    assert!(flags(0, 3500.0).contains(&r#"["ack","remove_addr"]"#.to_owned()));
    let received = events(&traces[0], "packet_received");
    assert!(received.iter().any(|event| event["data"]["flags"] == json!(["ack", "add_addr"])));
    assert!(flags_of_all(&traces[0]).contains(&r#"["ack","add_addr_echo"]"#.to_owned()));
}

fn flags_of_all(trace: &Value) -> Vec<String> {
    events(trace, "packet_sent").iter().map(|event| event["data"]["flags"].to_string()).collect()
}

/// An application that is woken by a timer sends at once; its bytes are under way from then on, not from the next
/// acknowledgement on.
#[test]
fn what_timers_of_applications_change_is_told_when_they_expire() {
    let telemetry = r#"{ kind = "telemetry", period = "500 ms", size = "200 B" }"#;
    let file = r#"{ kind = "file", size = "1000123 B" }"#;
    let text = tcp("rfc", "v4").replace(file, telemetry).replace("loss = \"1 %\"", "loss = \"0 %\"");
    assert!(text.contains("telemetry"));
    let (_, log) = logged(&text);
    let trace = &list(&log, "traces")[0];
    let published: Vec<f64> = events(trace, "packet_sent")
        .iter()
        .filter(|event| event["data"]["raw"]["payload_length"] == 200)
        .map(|event| event["time"].as_f64().expect("a time"))
        .collect();
    assert!(published.len() >= 38, "{published:?}");
    for time_ms in published {
        let told = at(trace, time_ms, "metrics_updated");
        let last = told.last().unwrap_or_else(|| panic!("nothing is told at {time_ms} ms"));
        assert_eq!(last["data"]["packets_in_flight"], 1, "at {time_ms} ms");
    }
}
