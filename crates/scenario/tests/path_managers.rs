//! What path managers make of a scenario: their parameters, and the subflows that follow from the topology.

use anabranch_scenario::load;
use anabranch_scenario::model::{Connection, Hop};

/// Node C with the links `wifi` (through A) and `cell` (through B); node S with `core` behind both, and `spare` behind B.
fn connection(manager: &str, more: &str) -> Connection {
    let wire = |name: &str, a: &str, b: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = [\"{a}\", \"{b}\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"unlimited\"\n"
        )
    };
    let links = [
        wire("wifi", "C", "A"),
        wire("cell", "C", "B"),
        wire("a", "A", "R"),
        wire("b", "B", "R"),
        wire("core", "R", "S"),
        wire("spare", "B", "S"),
    ];
    let text = format!(
        "name = \"mesh\"\nduration = \"1 s\"\nnode = [{{ names = [\"C\", \"A\", \"B\", \"R\", \"S\"] }}]\n{}\
         [[connection]]\nname = \"flow\"\nfrom = \"C\"\nto = \"S\"\nprotocol = \"mptcp\"\ncongestion = \"lia\"\n\
         path_manager = {manager}\n{more}",
        links.concat()
    );
    let mut loaded = load(&text, "f.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    loaded.scenario.connections.remove(0)
}

fn links(hops: &[Hop]) -> Vec<usize> {
    let link = |hop: &Hop| match hop {
        Hop::Wire { link, .. } => *link,
        Hop::Medium { .. } => panic!("there is no medium"),
    };
    hops.iter().map(link).collect()
}

#[test]
fn defaults_and_given_parameters_are_stored_in_the_order_of_the_registry() {
    let manager = connection("{ name = \"failover\", hold = \"2 s\", jitter = 0.125 }", "").path_manager;
    let manager = manager.expect("it has one");
    assert_eq!(manager.name, "failover");
    assert_eq!(manager.params, [2, 2_000_000_000, 500_000_000, 3_000_000_000, 125]);
    assert_eq!(connection("\"static\"", "").path_manager, None);
}

#[test]
fn pairs_of_links_are_paths_by_the_peers_then_the_local_link_after_the_first() {
    let subflows = connection("\"fullmesh\"", "").subflows;
    // The shortest path of all, over B alone, opens the connection.
    let found: Vec<(&str, Vec<usize>, bool)> = subflows
        .iter()
        .map(|subflow| (subflow.name.as_str(), links(&subflow.hops), subflow.announced))
        .collect();
    let expected = [
        ("cell.spare", vec![1, 5], false),
        ("wifi.core", vec![0, 2, 4], true),
        ("cell.core", vec![1, 3, 4], true),
        ("wifi.spare", vec![0, 2, 3, 5], false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_pair_whose_way_leads_through_an_end_is_left_out() {
    let text = "name = \"ends\"\nduration = \"1 s\"\nnode = [{ names = [\"C\", \"S\", \"stub\"] }]\n\
        link = [{ name = \"direct\", between = [\"C\", \"S\"], rate = \"1 Mbit/s\", delay = \"1 ms\", queue = \"unlimited\" },\n\
                { name = \"dead-end\", between = [\"C\", \"stub\"], rate = \"1 Mbit/s\", delay = \"1 ms\", queue = \"unlimited\" }]\n\
        connection = [{ name = \"flow\", from = \"C\", to = \"S\", protocol = \"mptcp\", congestion = \"lia\", path_manager = \"fullmesh\" }]";
    let scenario = load(text, "f.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
    let names: Vec<&str> =
        scenario.connections[0].subflows.iter().map(|subflow| subflow.name.as_str()).collect();
    assert_eq!(names, ["direct"]);
}

#[test]
fn stations_of_a_medium_reach_one_another_over_it() {
    let text = "name = \"radio\"\nduration = \"1 s\"\nnode = [{ names = [\"C\", \"AP\", \"S\"] }]\n\
        link = [{ name = \"line\", between = [\"AP\", \"S\"], rate = \"1 Mbit/s\", delay = \"1 ms\", queue = \"unlimited\" },\n\
                { name = \"wire\", between = [\"C\", \"S\"], rate = \"1 Mbit/s\", delay = \"1 ms\", queue = \"unlimited\" }]\n\
        medium = [{ name = \"air\", stations = [\"C\", \"AP\"], rate = \"11 Mbit/s\", queue = \"50 packets\" }]\n\
        connection = [{ name = \"flow\", from = \"C\", to = \"S\", protocol = \"mptcp\", congestion = \"lia\", path_manager = \"pcdc\" }]";
    let scenario = load(text, "f.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
    let names: Vec<&str> =
        scenario.connections[0].subflows.iter().map(|subflow| subflow.name.as_str()).collect();
    assert_eq!(names, ["wire", "air.line"]);
}

#[test]
fn subflows_of_the_file_are_left_as_they_are() {
    let more = "subflow = [{ via = [\"A\"] }, { name = \"second\", via = [\"B\"], backup = true }]";
    let subflows = connection("\"failover\"", more).subflows;
    let found: Vec<(&str, bool)> =
        subflows.iter().map(|subflow| (subflow.name.as_str(), subflow.backup)).collect();
    assert_eq!(found, [("0", false), ("second", true)]);
}

#[test]
fn ndiffports_without_subflows_in_the_file_repeats_the_first_path() {
    let subflows = connection("{ name = \"ndiffports\", num_subflows = 3 }", "").subflows;
    let names: Vec<&str> = subflows.iter().map(|subflow| subflow.name.as_str()).collect();
    assert_eq!(names, ["0", "1", "2"]);
    assert!(subflows.iter().all(|subflow| subflow.hops == subflows[0].hops && !subflow.announced));
}

#[test]
fn default_keeps_to_one_subflow() {
    assert_eq!(connection("\"default\"", "").subflows.len(), 1);
}
