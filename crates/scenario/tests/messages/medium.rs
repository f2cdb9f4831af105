//! What a shared medium may say of its physical layer, its rates and its stations.

use super::edited;

/// The base with more keys in its medium.
#[track_caller]
fn with(more: &str, expected: &str) {
    edited(r#"queue = "50 packets""#, &format!("queue = \"50 packets\"\n{more}"), expected);
}

#[test]
fn what_is_right_is_accepted() {
    with(
        r#"phy = "802.11g"
after_failure = "eifs"
rates = [{ rate = "6 Mbit/s" }, { rate = "11 Mbit/s", loss = "10 %" }]
fallback = {}
transmitter = [{ station = "D", rate = "6 Mbit/s" }, { station = "S", loss = "1 %", rates = [{ rate = "11 Mbit/s" }] }]"#,
        "accepted",
    );
}

#[test]
fn a_physical_layer_is_one_of_the_presets() {
    with(
        r#"phy = "802.11x""#,
        r#"f.toml:27:7: medium.wlan.phy: "802.11x" is not known; expected one of 802.11b, 802.11a, 802.11g, 802.11n; did you mean "802.11b"?"#,
    );
}

#[test]
fn rates_ascend_and_hold_the_one_to_begin_with() {
    with(
        r#"rates = [{ rate = "11 Mbit/s" }, { rate = "2 Mbit/s" }]"#,
        "f.toml:27:43: medium.wlan.rates.1.rate: 2 Mbit/s after 11 Mbit/s; expected rates in ascending order",
    );
    with(
        r#"rates = [{ rate = "1 Mbit/s" }, { rate = "2 Mbit/s" }]"#,
        "f.toml:25:8: medium.wlan.rate: 11 Mbit/s is not among the rates; expected one of 1 Mbit/s, 2 Mbit/s",
    );
    with("rates = []", "f.toml:27:9: medium.wlan.rates: the array is empty; expected at least one rate");
}

#[test]
fn a_fallback_needs_rates() {
    with(
        "fallback = { down = 1 }",
        "f.toml:27:12: medium.wlan.fallback: no station has several rates; expected the key rates as well",
    );
}

#[test]
fn a_transmitter_is_that_of_one_station() {
    with(
        r#"transmitter = [{ station = "R1" }]"#,
        r#"f.toml:27:28: medium.wlan.transmitter.0.station: no station of the medium is called "R1"; did you mean "R2"?"#,
    );
    with(
        r#"transmitter = [{ station = "D" }, { station = "D" }]"#,
        "f.toml:27:47: medium.wlan.transmitter.1.station: the second transmitter of this station; expected one",
    );
}

#[test]
fn a_loss_belongs_to_a_rate() {
    with(
        r#"rates = [{ rate = "11 Mbit/s" }]
transmitter = [{ station = "D", loss = 0.1 }]"#,
        "f.toml:28:40: medium.wlan.transmitter.0.loss: the medium's rates have a loss each; expected no such key, or rates beside it",
    );
}

#[test]
fn a_change_cannot_replace_several_rates() {
    let medium = r#"queue = "50 packets""#;
    let with_rates = format!("{medium}\nrates = [{{ rate = \"1 Mbit/s\" }}, {{ rate = \"11 Mbit/s\" }}]");
    let text = super::BASE.replace(medium, &with_rates).replace(r#"link = "access""#, r#"link = "wlan""#);
    assert_eq!(
        super::message(&text, &[]),
        "f.toml:52:8: change.0.loss: the medium has rates or transmitter, each with its own; expected no such key"
    );
}

#[test]
fn losses_in_bursts_are_those_of_the_whole_channel() {
    with(
        r#"loss = { kind = "gilbert-elliott", p = 0.01, r = 0.2 }
rates = [{ rate = "11 Mbit/s" }]"#,
        "f.toml:27:8: medium.wlan.loss: losses in bursts beside rates; expected a probability",
    );
}
