//! Every way to be wrong has one clear message. Each case changes one line of a correct scenario.

mod congestion;
mod energy;
mod events;
mod medium;
mod overrides;
mod path_managers;
mod relay;
mod scheduler;
mod structure;
mod traffic;
mod transfer;
mod values;

use anabranch_scenario::load;

const BASE: &str = r#"name = "test"
duration = "10 s"
[measure]
from = "1 s"
[transport]
profile = "ns2"
[[node]]
names = ["S", "R1", "R2", "D", "alone"]
[[link]]
name = "access"
between = ["S", "R1"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[link]]
between = ["R1", "D"]
rate = "1 Mbit/s"
delay = "50 ms"
queue = "64 kB"
loss = 0.001
reverse = { queue = "unlimited" }
[[medium]]
name = "wlan"
stations = ["S", "R2", "D"]
rate = "11 Mbit/s"
queue = "50 packets"
[[connection]]
name = "flow"
from = "S"
to = "D"
protocol = "mptcp"
congestion = "reno"
scheduler = "minrtt"
traffic = { kind = "ftp", start = "uniform(0 s, 1 s)", stop = "9 s" }
[[connection.subflow]]
name = "wired"
via = ["R1"]
[[connection.subflow]]
name = "radio"
[[datagram]]
name = "cbr"
from = "R1"
to = "D"
rate = "100 kbit/s"
packet = "1000 B"
on = [["1 s", "2 s"], ["3 s", "4 s"]]
phase_jitter = "10 ms"
[[change]]
at = "5 s"
link = "access"
loss = "1 %"
"#;

#[track_caller]
fn message(text: &str, overrides: &[(&str, &str)]) -> String {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    match load(text, "f.toml", &overrides) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.message,
    }
}

#[track_caller]
fn edited(from: &str, to: &str, expected: &str) {
    assert_eq!(BASE.matches(from).count(), 1, "{from:?} must occur once");
    assert_eq!(message(&BASE.replace(from, to), &[]), expected);
}

#[test]
fn the_base_of_these_cases_is_correct() {
    assert_eq!(message(BASE, &[]), "accepted");
}
