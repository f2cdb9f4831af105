//! Names and parameters of path managers, and what does not go with them.

use super::{BASE, edited, message};

/// The base with a path manager.
fn managed(manager: &str) -> String {
    BASE.replace("scheduler = \"minrtt\"", &format!("path_manager = {manager}"))
}

#[test]
fn a_name_that_is_almost_right_is_helped() {
    assert_eq!(
        message(&managed("\"fulmesh\""), &[]),
        "f.toml:33:16: connection.flow.path_manager: no path manager is called \"fulmesh\"; did you mean \"fullmesh\"?"
    );
    assert_eq!(message(&managed("\"static\""), &[]), "accepted");
    assert_eq!(message(&managed("{ name = \"failover\" }"), &[]), "accepted");
    assert_eq!(
        message(&managed("{ hold = \"1 s\" }"), &[]),
        "f.toml:33:16: connection.flow.path_manager.name: missing; expected a path manager"
    );
    assert_eq!(
        message(&managed("3"), &[]),
        "f.toml:33:16: connection.flow.path_manager: 3 is a number; expected a path manager such as \"fullmesh\" or a table such as { name = \"fullmesh\" }"
    );
}

#[test]
fn parameters_have_names_units_and_ranges() {
    let cases = [
        (
            "{ name = \"failover\", holt = \"1 s\" }",
            "f.toml:33:37: connection.flow.path_manager.holt: failover has no such parameter; did you mean \"hold\"?",
        ),
        (
            "{ name = \"failover\", hold = 1 }",
            "f.toml:33:44: connection.flow.path_manager.hold: 1 is a number; expected a time from \"0 ns\" to \"1 h\"",
        ),
        (
            "{ name = \"failover\", hold = \"2 h\" }",
            "f.toml:33:44: connection.flow.path_manager.hold: \"2 h\" is out of range; expected a time from \"0 ns\" to \"1 h\"",
        ),
        (
            "{ name = \"failover\", jitter = 1.5 }",
            "f.toml:33:46: connection.flow.path_manager.jitter: 1.5 is out of range; expected a number from 0 to 1 with at most three decimals",
        ),
        (
            "{ name = \"ndiffports\", num_subflows = 33 }",
            "f.toml:33:54: connection.flow.path_manager.num_subflows: 33 is out of range; expected an integer from 1 to 32",
        ),
        (
            "{ name = \"energy\", late_bytes = 1000 }",
            "f.toml:33:48: connection.flow.path_manager.late_bytes: 1000 is a number; expected a size from \"0 B\" to \"1000 GB\"",
        ),
        (
            "{ name = \"energy\", late_bytes = \"2000 GB\" }",
            "f.toml:33:48: connection.flow.path_manager.late_bytes: \"2000 GB\" is out of range; expected a size from \"0 B\" to \"1000 GB\"",
        ),
        (
            "{ name = \"cost\", hard = 1 }",
            "f.toml:33:40: connection.flow.path_manager.hard: 1 is a number; expected true or false",
        ),
        (
            "{ name = \"default\", hold = \"1 s\" }",
            "f.toml:33:36: connection.flow.path_manager.hold: default has no parameters",
        ),
        (
            "{ name = \"static\", hold = \"1 s\" }",
            "f.toml:33:35: connection.flow.path_manager.hold: static has no parameters",
        ),
    ];
    for (manager, expected) in cases {
        assert_eq!(message(&managed(manager), &[]), expected);
    }
}

#[test]
fn a_parameter_can_be_set_from_outside_where_the_file_has_a_name() {
    let named = managed("\"failover\"");
    assert_eq!(message(&named, &[("connection.flow.path_manager.hold", "2 s")]), "accepted");
    assert_eq!(
        message(&named, &[("connection.flow.path_manager.hold", "2 d")]),
        "--set connection.flow.path_manager.hold: \"2 d\" has the unknown unit \"d\"; expected a time from \"0 ns\" to \"1 h\""
    );
}

#[test]
fn tcp_has_no_path_manager() {
    let tcp = managed("\"fullmesh\"").replace("protocol = \"mptcp\"\n", "");
    assert_eq!(
        message(&tcp, &[]),
        "f.toml:32:16: connection.flow.path_manager: tcp has one subflow and none to manage; expected protocol = \"mptcp\""
    );
}

#[test]
fn a_path_manager_and_a_start_of_a_subflow_exclude_each_other() {
    let text = managed("\"fullmesh\"").replace("name = \"radio\"", "name = \"radio\"\nstart = \"1 s\"");
    assert_eq!(
        message(&text, &[]),
        "f.toml:40:9: connection.flow.subflow.radio.start: the path manager \"fullmesh\" opens subflows; expected one of the two"
    );
}

#[test]
fn a_cap_needs_the_path_manager_that_looks_at_it() {
    edited(
        "name = \"radio\"",
        "name = \"radio\"\ncap = \"5 MB\"",
        "f.toml:40:7: connection.flow.subflow.radio.cap: nothing looks at it; expected path_manager = \"cost\"",
    );
    let text = managed("\"cost\"").replace("name = \"radio\"", "name = \"radio\"\ncap = \"5 MB\"");
    assert_eq!(message(&text, &[]), "accepted");
}

#[test]
fn a_mesh_has_at_most_32_pairs() {
    let mut text =
        "name = \"mesh\"\nduration = \"1 s\"\nnode = [{ names = [\"C\", \"R\", \"S\"] }]\n".to_owned();
    for number in 0..6 {
        for (side, node) in [("c", "C"), ("s", "S")] {
            text += &format!(
                "[[link]]\nname = \"{side}{number}\"\nbetween = [\"{node}\", \"R\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"unlimited\"\n"
            );
        }
    }
    text += "[[connection]]\nname = \"flow\"\nfrom = \"C\"\nto = \"S\"\nprotocol = \"mptcp\"\ncongestion = \"lia\"\npath_manager = \"fullmesh\"\n";
    assert_eq!(
        message(&text, &[]),
        "f.toml:76:1: connection.flow: 36 pairs of addresses; expected at most 32, or [[connection.subflow]]s"
    );
}

#[test]
fn the_energy_of_radios_needs_a_radio_on_every_path() {
    assert_eq!(
        message(&managed("\"energy\""), &[]),
        "f.toml:27:1: connection: energy reckons with the energy of radios, and subflow wired of flow goes by none; expected an [[interface]] on its path"
    );
}
