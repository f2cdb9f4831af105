//! Names of congestion controls, and those that say how a connection recovers.

use super::{BASE, edited, message};

#[test]
fn a_name_that_is_almost_right_is_helped() {
    edited(
        r#"congestion = "reno""#,
        r#"congestion = "htpc""#,
        r#"f.toml:32:14: connection.flow.congestion: no congestion control is called "htpc"; did you mean "htcp"?"#,
    );
    edited(
        r#"congestion = "reno""#,
        r#"congestion = "newrno""#,
        r#"f.toml:32:14: connection.flow.congestion: no congestion control is called "newrno"; did you mean "newreno"?"#,
    );
}

#[test]
fn tahoe_and_newreno_say_how_the_connection_recovers() {
    edited(r#"congestion = "reno""#, r#"congestion = "newreno""#, "accepted");
    edited(r#"congestion = "reno""#, r#"congestion = { name = "tahoe" }"#, "accepted");
    edited(
        r#"congestion = "reno""#,
        r#"congestion = { name = "tahoe", beta = 0.5 }"#,
        r#"f.toml:32:32: connection.flow.congestion.beta: reno has no parameters"#,
    );
}

#[test]
fn a_recovery_that_contradicts_the_name_is_refused_wherever_it_stands() {
    let newreno = BASE.replace(r#"congestion = "reno""#, r#"congestion = "newreno""#);
    let of_file = message(&newreno, &[("transport.recovery", "sack")]);
    assert_eq!(
        of_file,
        r#"f.toml:32:14: connection.flow.congestion: newreno is reno with transport.recovery = "newreno", which is set to another; expected reno"#
    );
    assert_eq!(message(&newreno, &[("connection.flow.transport.recovery", "sack")]), of_file);
    assert_eq!(message(&newreno, &[("transport.recovery", "newreno")]), "accepted");
}

#[test]
fn subflows_recover_alike() {
    edited(
        r#"name = "radio""#,
        r#"name = "radio"
congestion = "newreno""#,
        "f.toml:35:1: connection.flow.subflow: tahoe and newreno say how the connection recovers, so all its subflows must; expected the same for each of them, or reno",
    );
}
