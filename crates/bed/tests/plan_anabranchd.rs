//! What a transfer becomes when the commands carry it; pure, so it runs everywhere.

mod common;

use anabranch_bed::{
    BedError,
    plan::{CongestionSource, Plan, plan_for_anabranchd},
};
use anabranch_scenario::{
    load,
    model::{Direction, Scenario},
};
use common::texts::Transfer;

/// A file over a socket on each of two paths, with the other path as its backup.
fn scenario(transfer: &str, more: &str) -> Scenario {
    let transport = "send_buffer = \"300 kB\"";
    let text = Transfer { duration: "6 s", keys: transfer, backups: true, transport, more }.text();
    load(&text, "test.toml", &[]).expect("the scenario is valid").scenario
}

fn planned(transfer: &str) -> (Scenario, Plan) {
    plan_for_anabranchd(&scenario(transfer, ""), 1, CongestionSource::Bpf).expect("the commands can do this")
}

fn refused(transfer: &str, more: &str) -> String {
    match plan_for_anabranchd(&scenario(transfer, more), 1, CongestionSource::Bpf) {
        Err(BedError::Input(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn every_path_has_an_address_of_its_own_and_leads_to_the_one_that_listens() {
    let (_, plan) = planned("");
    let [one, other] = &plan.connections[..] else { panic!("two sockets") };
    assert_eq!((one.server_address, one.port), (other.server_address, other.port));
    assert_ne!(one.client_addresses, other.client_addresses);
    for connection in [one, other] {
        let [forth] = connection.paths[..] else { panic!("one path per socket") };
        let (there, back) = (&plan.paths[forth], &plan.paths[forth + 1]);
        let ends = (connection.client_addresses[0], one.server_address);
        assert_eq!((there.from, there.to), ends);
        assert_eq!((back.to, back.from), ends);
    }
    let names: Vec<&str> =
        plan.hosts[one.client].interfaces.iter().map(|interface| interface.link.as_str()).collect();
    assert_eq!(names, ["phone-wifi", "phone-cell"]);
}

#[test]
fn backups_are_left_to_the_command() {
    let (_, plan) = planned("");
    for host in &plan.hosts {
        let mut addresses = host.interfaces.iter().flat_map(|interface| &interface.addresses);
        assert!(addresses.all(|address| address.endpoint.is_none()), "it refuses where there are endpoints");
        assert_eq!(host.mptcp_limits, None);
        assert!(host.sysctls.iter().all(|(name, _)| name != "net.mptcp.pm_type"), "it takes the kernel's");
        let buffer = host.sysctls.iter().find(|(name, _)| name == "net.ipv4.tcp_wmem");
        assert!(buffer.expect("it is set").1.ends_with(" 300000"), "limits are the scenario's");
    }
    assert!(plan.connections.iter().all(|connection| connection.joins.is_empty()));
}

#[test]
fn the_end_that_has_the_file_connects() {
    for (direction, client) in [("upload", "phone"), ("download", "server")] {
        let (carried, plan) = planned(&format!("direction = \"{direction}\""));
        assert_eq!(plan.hosts[plan.connections[0].client].name, client);
        assert_eq!(carried.nodes[carried.connections[0].from].name, client);
        assert_eq!(carried.transfers[0].direction, Direction::Upload);
        assert!(carried.connections.iter().all(|connection| connection.traffic.data_side() == 0));
        let first = &plan.paths[plan.connections[1].paths[0]];
        let interface = &plan.hosts[first.entry.0].interfaces[first.entry.1];
        let expected = if direction == "upload" { "phone-cell" } else { "cell-server" };
        assert_eq!(interface.link, expected, "{direction}");
    }
}

#[test]
fn what_the_commands_cannot_do_is_refused_with_what_to_change() {
    let beside = r#"
        [[connection]]
        name = "beside"
        from = "phone"
        to = "server"
        congestion = "reno"
        traffic = { kind = "ftp" }
        subflow = [{ via = ["wifi"] }]
    "#;
    for (transfer, more, expected) in [
        ("give_up = \"2 s\"", "", "transfer file: give_up is the command's own affair"),
        ("", beside, "connection beside is not of the [[transfer]]"),
        (
            "",
            "[[event]]\nat = \"1 s\"\nconnection = \"on-wifi\"\nsubflow = \"other\"\naction = \"close\"\n",
            "cannot have an [[event]]",
        ),
    ] {
        let text = refused(transfer, more);
        assert!(text.contains(expected), "{text}");
        assert!(text.ends_with("expected --application own"), "{text}");
    }
}
