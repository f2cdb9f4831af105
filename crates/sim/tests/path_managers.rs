//! Path managers in the simulator: which subflows they open, how fast data change over and back, and what the log tells.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::{Measurements, Scope};
use anabranch_scenario::model::{self, Scenario};
use anabranch_sim::{Control, Records};
use common::{connection, parse, run, scenario, subflow};
use serde_json::Value;

/// A client on Wi-Fi, whose access point can lose its own line (`line`), and on a cellular network.
fn wifi_and_cellular(manager: &str, more: &str) -> Scenario {
    parse(&format!(
        r#"
        name = "paths"
        duration = "60 s"
        transport = {{ profile = "rfc", recovery = "sack" }}
        node = [{{ names = ["C", "A", "B", "S"] }}]
        link = [
          {{ name = "wifi", between = ["C", "A"], rate = "20 Mbit/s", delay = "5 ms", queue = "100 packets" }},
          {{ name = "line", between = ["A", "S"], rate = "100 Mbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ name = "cell", between = ["C", "B"], rate = "5 Mbit/s", delay = "30 ms", queue = "100 packets" }},
          {{ name = "core", between = ["B", "S"], rate = "100 Mbit/s", delay = "1 ms", queue = "unlimited" }},
        ]
        interface = [
          {{ node = "C", link = "wifi", radio = "wifi" }},
          {{ node = "C", link = "cell", radio = "lte" }},
        ]
        [[connection]]
        name = "flow"
        from = "C"
        to = "S"
        protocol = "mptcp"
        congestion = "reno"
        path_manager = {manager}
        subflow = [{{ name = "wifi", via = ["A"] }}, {{ name = "cell", via = ["B"], backup = true }}]
        {more}"#
    ))
}

fn change(at: &str, link: &str, up: bool) -> String {
    format!("[[change]]\nat = \"{at}\"\nlink = \"{link}\"\nup = {up}\n")
}

/// A decision as the log tells it.
struct Told {
    at_s: f64,
    subflow: String,
    action: String,
    reason: String,
    data: Value,
}

/// All decisions of a run, in order of time.
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
            if event["name"] == "anabranch-tcp:path_decision" {
                let data = event["data"].clone();
                let text = |key: &str| data[key].as_str().expect("text").to_owned();
                told.push(Told {
                    at_s: event["time"].as_f64().expect("a time") / 1e3,
                    subflow: subflow.to_owned(),
                    action: text("action"),
                    reason: text("reason"),
                    data: data.clone(),
                });
            }
        }
    }
    told.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    (run, told)
}

/// When the first decision with that reason comes after a time.
fn when(told: &[Told], reason: &str, from_s: f64) -> f64 {
    let found = told.iter().find(|told| told.at_s >= from_s && told.reason == reason);
    found.unwrap_or_else(|| panic!("no {reason} after {from_s} s")).at_s
}

/// The mean throughput of a subflow between two times, in Mbit/s.
fn mbps(run: &Measurements, name: &str, from_s: u64, to_s: u64) -> f64 {
    let scope = Scope::Subflow("flow".into(), name.into());
    let series = run.series.iter().find(|series| series.scope == scope && series.metric == "throughput_bps");
    let points = &series.expect("the subflow has a series").points;
    let within = |at: &u64| *at > from_s * 1_000_000_000 && *at <= to_s * 1_000_000_000;
    let values: Vec<f64> = points.iter().filter(|(at, _)| within(at)).map(|(_, value)| *value).collect();
    values.iter().sum::<f64>() / values.len() as f64 / 1e6
}

#[test]
fn default_uses_only_the_subflow_that_opens_the_connection() {
    let run = run(&wifi_and_cellular("\"default\"", ""), 1);
    assert_eq!(subflow(&run, "flow", "cell", "packets_sent"), 0.0);
    assert_eq!(connection(&run, "flow", "path_decisions"), 0.0);
}

#[test]
fn d2_a_full_mesh_of_two_by_two_addresses_has_four_subflows_in_the_order_of_the_rule() {
    // Local A and B, remote X and Y behind one router; the first is A-X.
    let scenario = parse(
        r#"
        name = "mesh"
        duration = "10 s"
        node = [{ names = ["C", "R", "S"] }]
        link = [
          { name = "A", between = ["C", "R"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" },
          { name = "B", between = ["C", "R"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" },
          { name = "X", between = ["R", "S"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" },
          { name = "Y", between = ["R", "S"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" },
        ]
        [[connection]]
        name = "flow"
        from = "C"
        to = "S"
        protocol = "mptcp"
        congestion = "lia"
        path_manager = "fullmesh""#,
    );
    let (run, told) = decisions(&scenario);
    let opened: Vec<&str> = told.iter().map(|told| told.subflow.as_str()).collect();
    assert_eq!(opened, ["B.X", "A.Y", "B.Y"]);
    assert!(told.iter().all(|told| (told.action.as_str(), told.reason.as_str()) == ("open", "pair")));
    for name in ["A.X", "B.X", "A.Y", "B.Y"] {
        assert!(subflow(&run, "flow", name, "packets_sent") > 100.0, "{name}");
    }
}

#[test]
fn d3_ndiffports_opens_further_subflows_on_the_same_path() {
    let scenario = |manager: &str| {
        parse(&format!(
            r#"
            name = "ports"
            duration = "10 s"
            node = [{{ names = ["C", "S"] }}]
            link = [{{ between = ["C", "S"], rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" }}]
            [[connection]]
            name = "flow"
            from = "C"
            to = "S"
            protocol = "mptcp"
            congestion = "reno"
            path_manager = {manager}"#
        ))
    };
    for (manager, subflows) in [("\"ndiffports\"", 2), ("{ name = \"ndiffports\", num_subflows = 4 }", 4)] {
        let run = run(&scenario(manager), 1);
        for number in 0..subflows {
            assert!(subflow(&run, "flow", &number.to_string(), "packets_sent") > 100.0, "{manager} {number}");
        }
        assert_eq!(connection(&run, "flow", "path_decisions"), f64::from(subflows - 1));
    }
}

#[test]
fn a_dedicated_path_carries_everything_until_it_fails() {
    let down = change("20 s", "wifi", false) + &change("40 s", "wifi", true);
    let run = run(&wifi_and_cellular("\"dedicated-backup\"", &down), 1);
    assert_eq!(mbps(&run, "cell", 2, 20), 0.0);
    assert!(mbps(&run, "cell", 25, 40) > 4.0);
}

#[test]
fn fail_over_is_at_once_when_the_link_is_seen_to_go_and_fail_back_comes_within_five_seconds() {
    let down = change("20 s", "wifi", false) + &change("35 s", "wifi", true);
    let (run, told) = decisions(&wifi_and_cellular("\"failover\"", &down));
    assert_eq!(when(&told, "preferred-failed", 10.0), 20.0);
    let back = when(&told, "preferred-returned", 35.0);
    // The hold time of 1 s, and a try at the return.
    assert!((36.0..37.0).contains(&back), "{back} s");
    assert_eq!(mbps(&run, "cell", 2, 20), 0.0);
    assert!(mbps(&run, "cell", 22, 35) > 4.0);
    // A backup still drains what it holds.
    assert!(mbps(&run, "wifi", 40, 60) > 18.0 && mbps(&run, "cell", 40, 60) < 0.1);
}

#[test]
fn fail_over_from_a_silent_path_comes_within_two_retransmission_timeouts_and_their_back_off() {
    // What dies is behind the access point: only timeouts tell. The smoothed round-trip time is at most 12 ms and a full
    // queue of 60 ms; the timeout is at its minimum of 1 s (RFC 6298), the second one comes 2 s later.
    let down = change("20 s", "line", false) + &change("35 s", "line", true);
    let (run, told) = decisions(&wifi_and_cellular("\"failover\"", &down));
    let over = when(&told, "preferred-failed", 10.0);
    assert!((22.9..23.3).contains(&over), "{over} s");
    let failed = told.iter().find(|told| told.reason == "preferred-failed").expect("it is told");
    assert_eq!(failed.data["timeouts"], 2);
    let back = when(&told, "preferred-returned", 35.0);
    assert!((36.0..40.0).contains(&back), "{back} s");
    assert!(mbps(&run, "wifi", 45, 60) > 18.0);
}

#[test]
fn with_the_timeouts_of_linux_the_tutorial_is_over_within_a_second_and_back_within_five() {
    let (_, told) = decisions(&scenario("tutorial/failover.toml", &[]));
    let over = when(&told, "preferred-failed", 10.0) - 10.0;
    let back = when(&told, "preferred-returned", 25.0) - 25.0;
    assert!((0.6..1.0).contains(&over), "{over} s");
    assert!((1.0..5.0).contains(&back), "{back} s");
}

#[test]
fn a_flapping_link_is_left_once_and_taken_back_once() {
    let flaps: String =
        (0..20).map(|flap| change(&format!("{} ms", 20_000 + 900 * flap), "wifi", flap % 2 == 1)).collect();
    let (_, told) = decisions(&wifi_and_cellular("{ name = \"failover\", hold = \"1 s\" }", &flaps));
    let count = |reason: &str, action: &str| {
        told.iter().filter(|told| told.reason == reason && told.action == action).count()
    };
    assert_eq!(count("preferred-failed", "backup"), 1);
    assert_eq!(count("preferred-returned", "regular"), 1);
}

#[test]
fn subflows_that_were_reset_come_back_with_back_off() {
    let events: String = (0..20)
        .map(|number| {
            format!(
                "[[event]]\nat = \"{} ms\"\nconnection = \"flow\"\nsubflow = \"wifi\"\naction = \"close\"\n",
                5_000 + 300 * number
            )
        })
        .collect();
    let (run, told) = decisions(&wifi_and_cellular("{ name = \"reestablish\", jitter = 0 }", &events));
    let tries: Vec<f64> = told
        .iter()
        .filter(|told| told.action == "open" && told.subflow == "wifi")
        .map(|told| told.at_s)
        .collect();
    // Within 5.7 s of resets each 300 ms: at once, then after 1, 2 and 4 s.
    let distances: Vec<f64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(tries[0], 5.0);
    assert_eq!(distances[..2], [1.0, 2.0], "{tries:?}");
    assert!(mbps(&run, "wifi", 20, 60) > 15.0);
}

#[test]
fn a_hard_cap_is_exceeded_by_at_most_a_round_trip() {
    let cap = 5_000_000.0;
    let mut scenario = wifi_and_cellular("\"cost\"", "");
    scenario.connections[0].subflows[1].backup = false;
    scenario.connections[0].subflows[1].cap_bytes = Some(cap as u64);
    let (run, told) = decisions(&scenario);
    let closed = told.iter().find(|told| told.reason == "cap-reached").expect("the cap is reached");
    let used = closed.data["used_bytes"].as_f64().expect("a number");
    // 5 Mbit/s and at most 62 ms and a full queue of 240 ms.
    assert!((cap..cap + 5e6 / 8.0 * 0.302).contains(&used), "{used}");
    assert_eq!(mbps(&run, "cell", 20, 60), 0.0);
}

#[test]
fn pcdc_silences_each_subflow_and_keeps_both_of_two_that_add_up() {
    let mut scenario = wifi_and_cellular("{ name = \"pcdc\", phase = \"4 s\", settle = \"2 s\" }", "");
    scenario.connections[0].subflows[1].backup = false;
    let (_, told) = decisions(&scenario);
    let used: Vec<(&str, f64)> = told
        .iter()
        .filter(|told| told.reason == "impact-used")
        .map(|told| (told.subflow.as_str(), told.data["impact_ppm"].as_f64().expect("a number") / 1e6))
        .collect();
    let [("wifi", wifi), ("cell", cell)] = used[..] else { panic!("{used:?}") };
    // Their shares of 25 Mbit/s, within 5 % of the whole: windows of Reno that grow and halve.
    assert!((wifi - 0.8).abs() < 0.05 && (cell - 0.2).abs() < 0.05, "{wifi} {cell}");
    assert!(told.iter().any(|told| told.reason == "silence" && told.subflow == "cell"));
}

#[test]
fn pcdc_leaves_out_a_subflow_that_holds_the_others_up() {
    // The paths of docs/mptcp.md: with a receive buffer of 500 kB, both together deliver about half of what the fast one
    // does alone, since the slow one's queue holds two seconds.
    let scenario = parse(
        r#"
        name = "unlike"
        duration = "120 s"
        transport = { profile = "rfc", receive_buffer = "500 kB", min_rto = "200 ms" }
        node = [{ names = ["S", "A", "B", "D"] }]
        link = [
          { between = ["S", "A"], rate = "8 Mbit/s", delay = "9 ms", queue = "55 packets" },
          { between = ["A", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" },
          { between = ["S", "B"], rate = "2 Mbit/s", delay = "74 ms", queue = "330 packets" },
          { between = ["B", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" },
        ]
        [[connection]]
        name = "flow"
        from = "S"
        to = "D"
        protocol = "mptcp"
        congestion = "lia"
        path_manager = { name = "pcdc", phase = "10 s", settle = "5 s" }
        subflow = [{ name = "fast", via = ["A"] }, { name = "slow", via = ["B"] }]"#,
    );
    let (run, told) = decisions(&scenario);
    let of_slow = told.iter().find(|told| told.reason == "impact-standby").expect("one is left out");
    assert_eq!(of_slow.subflow, "slow");
    let impact = of_slow.data["impact_ppm"].as_i64().expect("a number");
    assert!((-1_500_000..-500_000).contains(&impact), "{impact}");
    assert!(mbps(&run, "fast", 85, 120) > 7.5 && mbps(&run, "slow", 85, 120) < 0.05);
}

/// The same upload with a cellular path that is no backup.
fn upload(manager: &str, bytes: u64) -> Scenario {
    let mut scenario = wifi_and_cellular(manager, "");
    let connection = &mut scenario.connections[0];
    connection.subflows[1].backup = false;
    let model::Traffic::Ftp { start, .. } = connection.traffic else { panic!("it is without end") };
    connection.traffic = model::Traffic::File { start, bytes, direction: model::Direction::Upload };
    scenario
}

#[test]
fn energy_makes_lte_a_backup_where_it_takes_more_power_than_its_rate_is_worth() {
    // In a steady state X^2 / P is 20^2 / 2873 = 0.139 for Wi-Fi alone and 25^2 / 4421 = 0.141 for both: nearly even. What
    // the queue adds to the round trips of LTE decides.
    let (run, told) = decisions(&upload("\"energy\"", 20_000_000));
    let all = common::run(&upload("\"fullmesh\"", 20_000_000), 1);
    let left_out = told.iter().find(|told| told.action == "backup").expect("there is one");
    assert_eq!((left_out.subflow.as_str(), left_out.reason.as_str()), ("cell", "rate-per-energy"));
    assert!(left_out.data["energy_pj_per_bit"].as_i64().expect("a number") > 52_000);
    let sent = |run: &Measurements| subflow(run, "flow", "cell", "packets_sent");
    assert!(sent(&run) < sent(&all) / 2.0, "{} of {}", sent(&run), sent(&all));
    assert!(connection(&run, "flow", "completion_s") < 60.0);
}

#[test]
fn a_short_upload_ends_before_energy_wakes_lte_and_a_long_one_does_not() {
    let late = "{ name = \"energy\", late_bytes = \"1 MB\" }";
    let short = common::run(&upload(late, 500_000), 1);
    assert_eq!(subflow(&short, "flow", "cell", "packets_sent"), 0.0);
    assert_eq!(connection(&short, "flow", "path_decisions"), 0.0);
    let (_, told) = decisions(&upload(late, 5_000_000));
    let opened = told.iter().find(|told| told.action == "open").expect("it is opened");
    // 1 MB at 19 Mbit/s, after a handshake and a slow start of some round trips of 12 ms; seen within 100 ms.
    assert!((0.4..0.8).contains(&opened.at_s), "{} s", opened.at_s);
    assert_eq!(opened.subflow, "cell");
}

#[test]
fn a_manager_of_a_connection_that_has_fallen_back_does_nothing() {
    let mut scenario = wifi_and_cellular("\"reestablish\"", "");
    scenario.links[0].strips = anabranch_scenario::model::Strips::Mptcp;
    let run = run(&scenario, 1);
    assert_eq!(connection(&run, "flow", "fallback"), 1.0);
    assert_eq!(subflow(&run, "flow", "cell", "packets_sent"), 0.0);
}

/// Even below a bound, from one number to the next.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn a_file_arrives_under_every_path_manager_through_random_failures_of_500_seeds() {
    let info = &anabranch_policy::paths::PATH_MANAGERS;
    for seed in 0..500 {
        let mut draws = Draws(seed);
        let name = info[seed as usize % info.len()].name;
        let manager = match name {
            "pcdc" => {
                "{ name = \"pcdc\", phase = \"1 s\", settle = \"200 ms\", again_after = \"4 s\" }".to_owned()
            }
            name => format!("{name:?}"),
        };
        let mut more = String::new();
        for _ in 0..12 {
            let (at, link) = (draws.below(20_000), ["wifi", "line", "cell", "core"][draws.below(4) as usize]);
            more += &change(&format!("{at} ms"), link, draws.below(2) == 0);
        }
        // Only those that open again can bring back what the peer has reset.
        for _ in 0..if info.iter().position(|of| of.name == name) < Some(3) { 0 } else { 4 } {
            let (at, subflow) = (draws.below(20_000), ["wifi", "cell"][draws.below(2) as usize]);
            more += &format!(
                "[[event]]\nat = \"{at} ms\"\nconnection = \"flow\"\nsubflow = {subflow:?}\naction = \"close\"\n"
            );
        }
        for link in ["wifi", "line", "cell", "core"] {
            more += &change("20 s", link, true);
        }
        let mut scenario = wifi_and_cellular(&manager, &more);
        // Longer than the back-off of a timeout, or of tries, that 20 s of failures lead to.
        scenario.duration = 120_000_000_000;
        scenario.measure.to = scenario.duration;
        for link in &mut scenario.links {
            for wire in [&mut link.forward, &mut link.reverse] {
                wire.rate_bps /= 10;
            }
        }
        scenario.connections[0].traffic = anabranch_scenario::model::Traffic::File {
            start: anabranch_scenario::model::When::At(0),
            bytes: 3_000_000,
            direction: anabranch_scenario::model::Direction::Upload,
        };
        let run = run(&scenario, seed);
        assert_eq!(connection(&run, "flow", "bytes_delivered"), 3e6, "{name} with seed {seed}");
    }
}

/// A subflow that is taken for dead before its acknowledgement is due delivers nothing but this: the packets of the next
/// one acknowledge its data (RFC 8684 section 3.3.2), so that a file goes on. (Found by the swarm of random scenarios.)
#[test]
fn what_closed_subflows_have_delivered_is_acknowledged_when_the_next_one_opens() {
    let impatient =
        r#"{ name = "reestablish", dead_after = 1, retry = "10 ms", retry_max = "1 s", jitter = 1 }"#;
    let late = r#"
        transport.profile = "ns2"
        transport.initial_window = "1 packets"
        transport.delayed_ack = { timeout = "500 ms", every = "5 packets" }
        traffic = { kind = "file", size = "20 kB" }"#;
    let run = run(&wifi_and_cellular(impatient, late), 1);
    assert_eq!(connection(&run, "flow", "bytes_delivered"), 20_000.0);
}
