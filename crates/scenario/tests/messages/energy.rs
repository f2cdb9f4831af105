//! Interfaces and their radios.

use super::{BASE, edited, message};

/// One interface after the base: its header is in line 52.
#[track_caller]
fn interface(keys: &str, expected: &str) {
    assert_eq!(message(&format!("{BASE}[[interface]]\n{keys}\n"), &[]), expected);
}

#[test]
fn an_interface_is_at_a_node_and_on_a_link_of_it() {
    interface("node = \"S\"\nlink = \"wlan\"\nradio = \"wifi\"", "accepted");
    interface("node = \"S\"\nlink = \"access\"\nradio = \"lte\"", "accepted");
    interface(
        "node = \"T\"\nlink = \"wlan\"\nradio = \"wifi\"",
        r#"f.toml:53:8: interface.0.node: no node is called "T"; did you mean "S"?"#,
    );
    interface(
        "node = \"S\"\nlink = \"wlam\"\nradio = \"wifi\"",
        r#"f.toml:54:8: interface.0.link: no link or medium is called "wlam"; did you mean "wlan"?"#,
    );
    interface(
        "node = \"D\"\nlink = \"access\"\nradio = \"wifi\"",
        r#"f.toml:53:8: interface.0.node: "D" is not attached to "access"; expected one of S, R1"#,
    );
    interface(
        "node = \"R1\"\nlink = \"wlan\"\nradio = \"wifi\"",
        r#"f.toml:53:8: interface.0.node: "R1" is not attached to "wlan"; expected one of S, R2, D"#,
    );
    interface(
        "node = \"S\"\nlink = \"wlan\"\nradio = \"wifi\"\n[[interface]]\nnode = \"S\"\nlink = \"wlan\"\nradio = \"lte\"",
        r#"f.toml:58:8: interface.1.link: the second interface of "S" on "wlan"; expected one of each node and link"#,
    );
    interface(
        "node = \"S{i}\"\nlink = \"wlan\"\nradio = \"wifi\"",
        "f.toml:53:8: interface.0.node: {i} needs a family; expected the key count beside it",
    );
}

#[test]
fn a_radio_is_known_and_its_constants_have_units() {
    interface(
        "node = \"S\"\nlink = \"wlan\"",
        "f.toml:52:1: interface.0.radio: missing; expected one of wifi, lte, 3g",
    );
    interface(
        "node = \"S\"\nlink = \"wlan\"\nradio = \"4g\"",
        r#"f.toml:55:9: interface.0.radio: "4g" is not known; expected one of wifi, lte, 3g; did you mean "3g"?"#,
    );
    let power = |power: &str, expected: &str| {
        interface(
            &format!("node = \"S\"\nlink = \"wlan\"\nradio = \"lte\"\npower = {{ {power} }}"),
            expected,
        );
    };
    power(r#"theta = "1.3 W", b = "137 nJ/bit""#, "accepted");
    power(
        "theta = 1288",
        r#"f.toml:56:19: interface.0.power.theta: 1288 has no unit; expected a power such as "1288 mW" (units: uW, mW, W)"#,
    );
    power(
        r#"b = "137 mW/(Mbit/s)""#,
        r#"f.toml:56:15: interface.0.power.b: "137 mW/(Mbit/s)" has the unknown unit "mW/(Mbit/s)"; expected an energy per bit such as "52 nJ/bit" (units: pJ/bit, nJ/bit, uJ/bit); did you mean "137 nJ/bit"?"#,
    );
    power(
        r#"beta = "2 kW""#,
        r#"f.toml:56:18: interface.0.power.beta: "2 kW" has the unknown unit "kW"; expected a power such as "1288 mW" (units: uW, mW, W)"#,
    );
    power(r#"tails = "1 W""#, r#"f.toml:56:11: interface.0.power.tails: unknown key; did you mean "tail"?"#);
    power(
        r#"idle_on = "2 s""#,
        "f.toml:56:21: interface.0.power.idle_on: a wake-up is longer than idle_period; expected at most that",
    );
}

#[test]
fn bins_are_not_too_many_where_there_are_interfaces() {
    let short = "from = \"1 s\"\nenergy_bin = \"1 us\"";
    edited(
        r#"from = "1 s""#,
        &short.replace("1 us", "0 s"),
        r#"f.toml:5:14: measure.energy_bin: 0 ns is too small; the least is 1 ns; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    let text = BASE.replace(r#"from = "1 s""#, &short.replace("1 us", "500 ns"));
    assert_eq!(message(&text, &[]), "accepted");
    let text = format!("{text}[[interface]]\nnode = \"S\"\nlink = \"wlan\"\nradio = \"wifi\"\n");
    assert_eq!(
        message(&text, &[]),
        "f.toml:5:14: measure.energy_bin: 500 ns makes more than 10000000 bins in 10 s; expected more"
    );
}
