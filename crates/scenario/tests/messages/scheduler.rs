//! Names and parameters of schedulers, weights and radios.

use super::{edited, message};

const MINRTT: &str = r#"scheduler = "minrtt""#;

#[test]
fn a_name_that_is_near_another_brings_that_and_one_that_is_not_the_list() {
    edited(
        MINRTT,
        r#"scheduler = "min-rtt""#,
        r#"f.toml:33:13: connection.flow.scheduler: no scheduler is called "min-rtt"; did you mean "minrtt"?"#,
    );
    edited(
        MINRTT,
        r#"scheduler = "quick""#,
        r#"f.toml:33:13: connection.flow.scheduler: no scheduler is called "quick"; expected one of minrtt, roundrobin, wrr, linux, redundant, blest, ecf, dedicated, emtcp, emptcp, dmptcp, es-mptcp, ee-mptcp, otias, daps"#,
    );
    edited(
        MINRTT,
        "scheduler = 5",
        r#"f.toml:33:13: connection.flow.scheduler: 5 is a number; expected a scheduler such as "minrtt" or a table such as { name = "blest", lambda = 1.2 }"#,
    );
    edited(
        MINRTT,
        "scheduler = { lambda = 1.2 }",
        "f.toml:33:13: connection.flow.scheduler.name: missing; expected a scheduler",
    );
    edited(
        MINRTT,
        "scheduler = { name = 7 }",
        "f.toml:33:22: connection.flow.scheduler.name: 7 is a number; expected the name of a scheduler in quotes",
    );
}

#[test]
fn parameters_are_those_of_the_scheduler_and_in_their_range() {
    edited(MINRTT, r#"scheduler = { name = "blest", lambda = 1.25 }"#, "accepted");
    edited(
        MINRTT,
        r#"scheduler = { name = "minrtt", lambda = 1 }"#,
        "f.toml:33:32: connection.flow.scheduler.lambda: minrtt has no parameters",
    );
    edited(
        MINRTT,
        r#"scheduler = { name = "blest", lamda = 1 }"#,
        r#"f.toml:33:31: connection.flow.scheduler.lamda: blest has no such parameter; did you mean "lambda"?"#,
    );
    edited(
        MINRTT,
        r#"scheduler = { name = "blest", lambda = 1.4 }"#,
        "f.toml:33:40: connection.flow.scheduler.lambda: 1.4 is out of range; expected a number from 1 to 1.3",
    );
    edited(
        MINRTT,
        r#"scheduler = { name = "roundrobin", num_segments = 0 }"#,
        "f.toml:33:51: connection.flow.scheduler.num_segments: 0 is out of range; expected an integer from 1 to 1000",
    );
    edited(
        MINRTT,
        r#"scheduler = { name = "roundrobin", cwnd_limited = 1 }"#,
        "f.toml:33:51: connection.flow.scheduler.cwnd_limited: 1 is a number; expected true or false",
    );
}

#[test]
fn a_weight_is_for_weighted_round_robin_alone() {
    edited(
        r#"name = "wired""#,
        "name = \"wired\"\nweight = 3",
        r#"f.toml:37:10: connection.flow.subflow.wired.weight: minrtt looks at no weights; expected scheduler = "wrr""#,
    );
    let wrr = super::BASE.replace(MINRTT, r#"scheduler = "wrr""#);
    let weighed = wrr.replace(r#"name = "wired""#, "name = \"wired\"\nweight = 3");
    assert_eq!(message(&weighed, &[]), "accepted");
    assert_eq!(
        message(&weighed.replace("weight = 3", "weight = 0"), &[]),
        "f.toml:37:10: connection.flow.subflow.wired.weight: 0 is a number; expected an integer from 1 to 1000"
    );
}

#[test]
fn schedulers_that_reckon_with_energy_need_a_radio_on_every_path() {
    edited(
        MINRTT,
        r#"scheduler = "emtcp""#,
        "f.toml:27:1: connection: emtcp reckons with the energy of radios, and subflow wired of flow goes by none; expected an [[interface]] on its path",
    );
}
