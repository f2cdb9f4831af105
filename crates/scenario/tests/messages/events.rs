//! Events of subflows, late subflows, and middleboxes.

use super::{BASE, edited, message};

/// The base with an event of a subflow at its end.
#[track_caller]
fn event(connection: &str, subflow: &str, expected: &str) {
    let event = format!(
        "loss = \"1 %\"\n[[event]]\nat = \"1 s\"\nconnection = \"{connection}\"\nsubflow = \"{subflow}\"\naction = \"open\""
    );
    edited("loss = \"1 %\"", &event, expected);
}

#[test]
fn events_are_of_a_subflow_of_mptcp() {
    event("flow", "radio", "accepted");
    event(
        "flwo",
        "radio",
        r#"f.toml:54:14: event.0.connection: no connection is called "flwo"; did you mean "flow"?"#,
    );
    event(
        "cbr",
        "0",
        "f.toml:54:14: event.0.connection: only connections have subflows; expected the name of one",
    );
    event(
        "flow",
        "wire",
        r#"f.toml:55:11: event.0.subflow: no subflow of "flow" is called "wire"; did you mean "wired"?"#,
    );
    let tcp = BASE
        .replace("protocol = \"mptcp\"", "protocol = \"tcp\"")
        .replace("[[connection.subflow]]\nname = \"radio\"\n", "")
        + "[[event]]\nat = \"1 s\"\nconnection = \"flow\"\nsubflow = \"wired\"\naction = \"open\"\n";
    assert_eq!(
        message(&tcp, &[]),
        r#"f.toml:52:14: event.0.connection: the one subflow of tcp has no events; expected a connection with protocol = "mptcp""#
    );
}

#[test]
fn the_first_subflow_opens_with_the_connection() {
    edited(
        "name = \"wired\"",
        "name = \"wired\"\nstart = \"1 s\"",
        "f.toml:37:9: connection.flow.subflow.wired.start: the first subflow opens with the connection; expected no such key, or traffic.start",
    );
    edited(
        "name = \"wired\"",
        "name = \"wired\"\nannounced = true",
        "f.toml:37:13: connection.flow.subflow.wired.announced: the first subflow opens with the connection; expected no such key, or traffic.start",
    );
    edited(
        "name = \"radio\"",
        "name = \"radio\"\nstart = \"1 s\"\nannounced = true",
        "f.toml:40:9: connection.flow.subflow.radio.start: beside announced; expected one of the two",
    );
}

#[test]
fn a_connection_that_may_fall_back_does_not_join_at_once() {
    edited(
        "queue = \"100 packets\"",
        "queue = \"100 packets\"\nstrips = \"joins\"",
        r#"f.toml:28:1: connection: flow joins its subflows at once, but access strips options; expected transport.join = "established""#,
    );
}
