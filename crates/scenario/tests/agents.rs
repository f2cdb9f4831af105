//! A node's agent: which connections it manages, and what its configuration makes of their paths.

use std::fs;

use anabranch_scenario::{
    Loaded, load_path,
    model::{Connection, PathManager},
};

const AGENT: &str = r#"
[[interface]]
name = "cell"
role = "metered"
radio = "lte"
[[interface]]
name = "w*"
cap = "1 MB"
radio = "wifi"
[[connection]]
port = 80
policy = "none"
[[connection]]
to = "192.0.2.0/24"
policy = { name = "cost", period = "1 h" }
[[connection]]
policy = { name = "failover", hold = "2 s" }
"#;

const SCENARIO: &str = r#"
name = "phone"
duration = "1 s"
[[node]]
name = "phone"
agent = "agent.toml"
[[node]]
names = ["a", "b", "c", "server"]
[[link]]
name = "wifi"
between = ["phone", "a"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
name = "cell"
between = ["phone", "b"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
name = "wimax"
between = ["phone", "c"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
name = "cable"
between = ["phone", "b"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
between = ["a", "server"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
between = ["b", "server"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[link]]
between = ["c", "server"]
rate = "8 Mbit/s"
delay = "5 ms"
queue = "50 packets"
[[connection]]
name = "flow"
from = "phone"
to = "server"
protocol = "mptcp"
congestion = "reno"
peer = "198.51.100.1:443"
[[connection.subflow]]
name = "radio"
via = ["c"]
[[connection.subflow]]
name = "one"
via = ["a"]
[[connection.subflow]]
name = "two"
via = ["b"]
"#;

/// The scenario beside its agent's configuration, or the message.
fn loaded(scenario: &str, agent: &str) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("agent.toml"), agent).unwrap();
    let file = folder.path().join("f.toml");
    fs::write(&file, scenario).unwrap();
    let prefix = format!("{}/", folder.path().display());
    load_path(file, &[]).map_err(|error| error.message.replace(&prefix, ""))
}

fn connection(scenario: &str, agent: &str) -> Connection {
    loaded(scenario, agent).expect("it is valid").scenario.connections.remove(0)
}

/// Name, whether it begins as a backup, whether it is a spare, its cap.
fn paths(connection: &Connection) -> Vec<(&str, bool, bool, Option<u64>)> {
    let agent = connection.agent.as_ref().expect("an agent manages it");
    let paths = connection.subflows.iter().zip(agent);
    paths
        .map(|(subflow, path)| (subflow.name.as_str(), subflow.backup, path.spare, subflow.cap_bytes))
        .collect()
}

const MEGABYTE: Option<u64> = Some(1_000_000);

#[test]
fn the_first_path_is_that_of_the_connection_and_the_others_follow_as_the_configuration_lists_them() {
    let connection = connection(SCENARIO, AGENT);
    assert_eq!(
        connection.path_manager,
        Some(PathManager {
            name: "failover".to_owned(),
            params: vec![2, 2_000_000_000, 500_000_000, 3_000_000_000, 250]
        })
    );
    assert_eq!(
        paths(&connection),
        [("radio", false, false, MEGABYTE), ("two", true, true, None), ("one", false, false, MEGABYTE)]
    );
    let lte = connection.agent.as_ref().unwrap()[1].radio.unwrap();
    assert_eq!((lte.b_mw_per_mbps, lte.theta_mw), (52.0, 1288.0));
}

#[test]
fn a_metered_interface_is_a_spare_one_but_for_policies_that_know_what_it_costs() {
    let to = SCENARIO.replace("198.51.100.1", "192.0.2.1");
    let connection = connection(&to, AGENT);
    assert_eq!(connection.path_manager.as_ref().unwrap().name, "cost");
    assert!(connection.agent.unwrap().iter().all(|path| !path.spare));
}

#[test]
fn the_first_subflow_begins_as_a_regular_one_even_where_its_interface_is_a_spare_one() {
    let first = SCENARIO.replace("name = \"radio\"\nvia = [\"c\"]", "name = \"radio\"\nvia = [\"b\"]");
    let first = first.replace("name = \"two\"\nvia = [\"b\"]", "name = \"two\"\nvia = [\"c\"]");
    let connection = connection(&first, AGENT);
    assert_eq!(
        paths(&connection),
        [("radio", false, true, None), ("one", false, false, MEGABYTE), ("two", false, false, MEGABYTE)]
    );
}

#[test]
fn a_connection_that_is_left_alone_keeps_to_its_first_subflow() {
    let connection = connection(&SCENARIO.replace(":443", ":80"), AGENT);
    assert_eq!((connection.subflows.len(), connection.agent), (1, None));
    assert_eq!(connection.path_manager.unwrap().name, "default");
}

#[test]
fn interfaces_that_are_not_allowed_have_no_path_and_without_subflows_the_topology_gives_them() {
    let listed = SCENARIO.find("[[connection.subflow]]").unwrap();
    let agent = "[[interface]]\nname = \"wifi\"\n[[interface]]\nname = \"wimax\"\n[[connection]]\npolicy = \"fullmesh\"\n";
    let connection = connection(&SCENARIO[..listed], agent);
    let names: Vec<&str> = connection.subflows.iter().map(|subflow| subflow.name.as_str()).collect();
    assert_eq!(names[0], "wifi.a-server", "it opens the connection");
    assert!(
        names[1..].iter().all(|name| name.starts_with("wifi.") || name.starts_with("wimax.")),
        "{names:?}"
    );
    assert!(names.contains(&"wimax.c-server"), "{names:?}");
}

#[test]
fn a_connection_of_tcp_is_none_of_the_agents() {
    let listed = SCENARIO.find("[[connection.subflow]]").unwrap();
    let connection = connection(&SCENARIO[..listed].replace("mptcp", "tcp"), AGENT);
    assert_eq!((connection.path_manager, connection.agent), (None, None));
}

#[test]
fn what_identifies_a_run_is_the_content_of_the_file() {
    let canonical = |agent: &str| loaded(SCENARIO, agent).unwrap().canonical;
    assert!(canonical(AGENT).contains("\"agent\":\"blake3:"));
    assert_eq!(canonical(AGENT), canonical(AGENT));
    assert_ne!(canonical(AGENT), canonical(&AGENT.replace("2 s", "3 s")));
}

/// What is wrong with an edited scenario or configuration.
#[track_caller]
fn refused(scenario: (&str, &str), agent: (&str, &str), message: &str) {
    assert!(SCENARIO.contains(scenario.0) && AGENT.contains(agent.0));
    let loaded = loaded(&SCENARIO.replacen(scenario.0, scenario.1, 1), &AGENT.replacen(agent.0, agent.1, 1));
    assert_eq!(loaded.map(|_| ()), Err(message.to_owned()));
}

#[test]
fn what_is_wrong_is_said_once_and_clearly() {
    let same = ("", "");
    refused(
        ("agent.toml", "agnt.toml"),
        same,
        "f.toml:6:9: node.phone.agent: \"agnt.toml\": no such file; expected a path from the scenario's folder",
    );
    refused(
        same,
        ("failover", "failver"),
        "f.toml:6:9: node.phone.agent: agent.toml:17:10: unknown policy `failver`, expected one of `default`, `fullmesh`, \
         `dedicated-backup`, `failover`, `reestablish`, `cost`, `energy`, `pcdc`, `impact`, `none`; the nearest name is \
         `failover`",
    );
    refused(
        ("peer = \"198.51.100.1:443\"\n", ""),
        same,
        "f.toml:48:1: connection.flow: entries of the agent's configuration match by `to` or `port`; expected `peer`, the end of \
         the server that they know",
    );
    refused(
        ("198.51.100.1:443", "198.51.100.1"),
        same,
        "f.toml:54:8: connection.flow.peer: \"198.51.100.1\"; expected an address and a port like \"192.0.2.7:443\" or \
         \"[2001:db8::7]:443\"",
    );
    refused(
        same,
        ("w*", "v*"),
        "f.toml:48:1: connection.flow: \"flow\" is opened over an interface that the agent's configuration does not allow; \
         expected an [[interface]] for \"wimax\"",
    );
    refused(
        ("via = [\"a\"]", "via = [\"c\"]"),
        same,
        "f.toml:48:1: connection.flow: subflows \"radio\" and \"one\" of \"flow\" go over one pair of addresses, of which an \
         agent opens one; expected one of the two",
    );
    refused(
        ("congestion = \"reno\"", "congestion = \"reno\"\npath_manager = \"fullmesh\""),
        same,
        "f.toml:54:16: connection.flow.path_manager: the agent of its node decides; expected one of the two",
    );
    refused(
        ("via = [\"a\"]", "via = [\"a\"]\nbackup = true"),
        same,
        "f.toml:55:1: connection.flow.subflow: `backup`: the agent of its node decides; expected the role of its interface",
    );
    let without_folder = anabranch_scenario::load(SCENARIO, "f.toml", &[]).unwrap_err().message;
    assert_eq!(
        without_folder,
        "f.toml:6:9: node.phone.agent: there is no folder to find it in; expected a scenario that is read from a file"
    );
}
