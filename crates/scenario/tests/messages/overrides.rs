//! Overrides and parameters of congestion controls.

use super::{BASE, message};

#[test]
fn an_override_is_named_in_its_message() {
    for (overrides, expected) in [
        (
            &[("transport.windowcap", "50 packets")][..],
            r#"--set transport.windowcap: unknown key; did you mean "window_cap"?"#,
        ),
        (
            &[("transport.window_cap", "50")][..],
            r#"--set transport.window_cap: 50 has no unit; expected a number of packets such as "100 packets" (units: packets) or "unlimited""#,
        ),
        (
            &[("transport.window_cap", "50 pkt")][..],
            r#"--set transport.window_cap: "50 pkt" has the unknown unit "pkt"; expected a number of packets such as "100 packets" (units: packets) or "unlimited"; did you mean "50 packets"?"#,
        ),
        (
            &[("connection.flow.congestion", "renno")][..],
            r#"--set connection.flow.congestion: no congestion control is called "renno"; did you mean "reno"?"#,
        ),
        (
            &[("connection.flow.congestion.alpha", "3")][..],
            "--set connection.flow.congestion.alpha: reno has no parameters",
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", periode = "1 s" }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.periode: mfvl has no such parameter; did you mean "period"?"#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", period = 50 }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.period: 50 is a number; expected a time from "1 ms" to "1 h""#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", period = "500 ns" }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.period: "500 ns" is not a whole number of microseconds; expected a time from "1 ms" to "1 h""#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", period = "1500 ns" }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.period: "1500 ns" is not a whole number of microseconds; expected a time from "1 ms" to "1 h""#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", interval = "100 s" }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.interval: "100 s" is out of range; expected a time from "1 us" to "1 min""#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", bn_thresh = 1.001 }"#)][..],
            "--set connection.flow.congestion: connection.flow.congestion.bn_thresh: 1.001 is out of range; expected a number from 0 to 1",
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", bn_thresh = -1 }"#)][..],
            "--set connection.flow.congestion: connection.flow.congestion.bn_thresh: -1 is negative; expected a number from 0 to 1",
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", bn_thresh = nan }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.bn_thresh: "nan" is not a finite number; expected a number from 0 to 1"#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", literal = 1 }"#)][..],
            "--set connection.flow.congestion: connection.flow.congestion.literal: 1 is a number; expected true or false",
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", detector = "pairs" }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.detector: "pairs" is not known; expected one of retransmissions, rfc8382"#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", initial_fast = 9 }"#)][..],
            "--set connection.flow.congestion: connection.flow.congestion.initial_fast: 9 is out of range; expected an integer from 0 to 8",
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "mfvl", initial_fast = 0.5 }"#)][..],
            "--set connection.flow.congestion: connection.flow.congestion.initial_fast: 0.5 is not whole; expected an integer from 0 to 8",
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "vegas", alpha = 2 }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.alpha: 2 is a number; expected a number of packets from "1 packet" to "1000 packets""#,
        ),
        (
            &[("connection.flow.congestion", r#"{ name = "vegas", alpha = "2 packetz" }"#)][..],
            r#"--set connection.flow.congestion: connection.flow.congestion.alpha: "2 packetz" has the unknown unit "packetz"; expected a number of packets from "1 packet" to "1000 packets""#,
        ),
        (
            &[("connection.flwo.congestion", "reno")][..],
            r#"--set connection.flwo.congestion: no element is called "flwo"; expected a name, an index below 1 or *; did you mean "flow"?"#,
        ),
        (
            &[("connection.7.congestion", "reno")][..],
            r#"--set connection.7.congestion: no element is called "7"; expected a name, an index below 1 or *"#,
        ),
        (
            &[("link.access.between.0", "R9")][..],
            r#"--set link.access.between.0: no node is called "R9"; did you mean "R1"?"#,
        ),
        (&[("duration.x", "1")][..], r#"--set duration.x: "10 s" is text, which has no key "x""#),
        (
            &[("duration", "4 parsec")][..],
            r#"--set duration: "4 parsec" has the unknown unit "parsec"; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
        ),
        (
            &[("link..rate", "1")][..],
            "--set link..rate: not a key; expected names with dots between, such as link.r1-r2.rate",
        ),
        (&[("", "1")][..], "--set: not a key; expected names with dots between, such as link.r1-r2.rate"),
        (
            &[(r#"link."access"#, "1")][..],
            r#"--set link."access: not a key; expected names with dots between, such as link.r1-r2.rate"#,
        ),
        (
            &[("measure", "{ form = '1 s' }")][..],
            r#"--set measure: measure.form: unknown key; did you mean "from"?"#,
        ),
        (
            &[("duration", "20 s"), ("link.access.rate", "0 bit/s")][..],
            r#"--set link.access.rate: 0 bit/s is too small; the least is 1 bit/s; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
        ),
    ] {
        assert_eq!(message(BASE, overrides), expected);
    }
}
