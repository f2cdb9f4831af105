//! What a scenario becomes on the kernel; pure, so it runs everywhere.

use std::{collections::BTreeSet, net::IpAddr};

use anabranch_bed::{
    BedError,
    plan::{CongestionSource, Plan, Role, plan},
};
use anabranch_link::Streams;
use anabranch_scenario::{load, load_path, model::Scenario, workload::expand};

const TWO_PATHS: &str = r#"
name = "two"
duration = "5 s"
node = [{ names = ["phone", "wifi", "cell", "server"] }]
link = [
  { between = ["phone", "wifi"], rate = "20 Mbit/s", delay = "5 ms", queue = "100 packets" },
  { between = ["phone", "cell"], rate = "5 Mbit/s", delay = "60 ms", queue = "100 packets" },
  { between = ["wifi", "server"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" },
  { between = ["cell", "server"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" },
]

[transport]
profile = "linux"

[[connection]]
name = "up"
from = "phone"
to = "server"
protocol = "mptcp"
congestion = "lia"
subflow = [{ name = "wifi", via = ["wifi"] }, { name = "cell", via = ["cell"], backup = true }]
"#;

fn scenario(text: &str) -> Scenario {
    load(text, "test.toml", &[]).expect("the scenario is valid").scenario
}

fn planned(text: &str) -> Plan {
    plan(&scenario(text), 1, CongestionSource::Bpf).expect("a kernel can do this")
}

fn refused(text: &str) -> String {
    match plan(&scenario(text), 1, CongestionSource::Bpf) {
        Err(BedError::Input(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn each_subflow_has_a_client_address_on_the_interface_of_its_first_link() {
    let plan = planned(TWO_PATHS);
    let [client, server] = &plan.hosts[..] else { panic!("two hosts, for routers are the emulator's") };
    assert_eq!((client.name.as_str(), server.name.as_str()), ("phone", "server"));
    let links: Vec<&str> = client.interfaces.iter().map(|interface| interface.link.as_str()).collect();
    assert_eq!(links, ["phone-wifi", "phone-cell"]);
    let connection = &plan.connections[0];
    for (interface, address) in client.interfaces.iter().zip(&connection.client_addresses) {
        assert_eq!(interface.addresses.len(), 1);
        assert_eq!(interface.addresses[0].ip, *address);
        assert_eq!(interface.mtu, 1500);
    }
    assert_eq!(connection.congestion, "ab_lia");
    assert_eq!(plan.algorithms.len(), 1);
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
}

#[test]
fn a_path_is_known_by_its_addresses_and_its_way_back_is_the_reverse() {
    let plan = planned(TWO_PATHS);
    let pairs: BTreeSet<(IpAddr, IpAddr)> = plan.paths.iter().map(|path| (path.from, path.to)).collect();
    assert_eq!(pairs.len(), 4);
    for path in &plan.paths {
        let back = plan.paths.iter().find(|back| (back.from, back.to) == (path.to, path.from));
        let back = back.expect("every path has a way back");
        let reversed: Vec<_> = path.hops.iter().rev().map(|hop| hop.reversed()).collect();
        assert_eq!(back.hops, reversed);
        assert_eq!((back.entry, back.exit), (path.exit, path.entry));
    }
    let connection = &plan.connections[0];
    for (&path, &address) in connection.paths.iter().zip(&connection.client_addresses) {
        assert_eq!(plan.paths[path].from, address);
        assert_eq!(plan.paths[path].to, connection.server_address);
    }
}

#[test]
fn further_subflows_are_endpoints_with_their_backup_flag() {
    let plan = planned(TWO_PATHS);
    let endpoints: Vec<_> = plan.hosts[0]
        .interfaces
        .iter()
        .flat_map(|interface| &interface.addresses)
        .map(|address| address.endpoint.as_ref().map(|endpoint| (endpoint.id, endpoint.backup)))
        .collect();
    assert_eq!(endpoints, [None, Some((1, true))]);
    assert_eq!(plan.hosts[0].mptcp_limits, Some((1, 0)));
    assert_eq!(plan.hosts[1].mptcp_limits, Some((1, 0)), "the server must accept the join");
    let first_is_backup = TWO_PATHS.replace(r#"via = ["wifi"] }"#, r#"via = ["wifi"], backup = true }"#);
    let plan = planned(&first_is_backup);
    let first = &plan.hosts[0].interfaces[0].addresses[0];
    assert!(first.endpoint.as_ref().is_some_and(|endpoint| endpoint.backup && endpoint.id == 2));
}

#[test]
fn transport_settings_become_sysctls_and_route_options() {
    let plan = planned(&TWO_PATHS.replace(
        r#"profile = "linux""#,
        r#"
        profile = "linux"
        initial_window = "4 packets"
        min_rto = "300 ms"
        receive_buffer = "100 kB"
        send_buffer = "unlimited"
        window_cap = "50 packets"
        delayed_ack = "off"
        recovery = "sack"
        "#,
    ));
    let options = plan.hosts[0].interfaces[0].addresses[0].route_options.join(" ");
    assert_eq!(options, "mtu lock 1500 initcwnd 4 rto_min 300ms cwnd lock 50 quickack 1");
    let sysctl = |name: &str| {
        let found = plan.hosts[1].sysctls.iter().find(|(key, _)| key == name);
        found.unwrap_or_else(|| panic!("{name} is set")).1.clone()
    };
    assert_eq!(sysctl("net.ipv4.tcp_rmem"), "4096 100000 100000");
    assert_eq!(sysctl("net.ipv4.tcp_wmem"), "4096 16384 67108864");
    assert_eq!(sysctl("net.ipv4.tcp_recovery"), "0", "without RACK");
    assert_eq!(sysctl("net.ipv4.tcp_no_metrics_save"), "1");
}

#[test]
fn packets_have_the_size_of_the_scenario_where_the_kernel_allows_it() {
    let tcp = TWO_PATHS
        .replace("mptcp", "tcp")
        .replace("lia", "reno")
        .replace(r#", { name = "cell", via = ["cell"], backup = true }"#, "");
    let size = |profile: &str| {
        let plan = planned(&tcp.replace(r#""linux""#, profile));
        let timestamps = plan.hosts[0].sysctls.iter().find(|(name, _)| name == "net.ipv4.tcp_timestamps");
        (plan.hosts[0].interfaces[0].mtu, timestamps.expect("it is set").1.clone(), plan.notes)
    };
    assert_eq!(size(r#""linux""#), (1500, "1".to_owned(), vec![]));
    let (mtu, timestamps, notes) = size(r#""ns2""#);
    assert_eq!((mtu, timestamps.as_str()), (1040, "0"), "40 bytes leave no room for timestamps");
    assert!(notes.iter().any(|note| note.contains("before the first sample is 1 s")), "{notes:?}");
}

#[test]
fn the_draws_are_those_of_the_simulator() {
    let text = TWO_PATHS
        .replace("subflow = [", "traffic = { kind = \"ftp\", start = \"uniform(0 s, 1 s)\" }\nsubflow = [");
    let open =
        |seed| plan(&scenario(&text), seed, CongestionSource::Bpf).expect("fine").connections[0].open_at;
    let expected = |seed| Streams::new(seed).stream("start/up").below(1_000_000_000);
    assert_eq!(open(1), expected(1));
    assert_eq!(open(2), expected(2));
    assert_ne!(open(1), open(2));
}

#[test]
fn connections_that_share_a_host_must_agree_about_it() {
    let second = |change: &dyn Fn(String) -> String| {
        let (_, connection) = TWO_PATHS.split_once("[[connection]]").expect("it is there");
        format!("{TWO_PATHS}\n[[connection]]{}", change(connection.replace("\"up\"", "\"more\"")))
    };
    let same = planned(&second(&|text| text));
    assert_eq!(same.connections[0].client_addresses, same.connections[1].client_addresses);
    assert_ne!(same.connections[0].port, same.connections[1].port);
    assert_eq!(same.paths.len(), 4, "they share the addresses, so the paths too");

    let other_paths = second(&|text| text.replace(", backup = true", ""));
    let other_paths = refused(&format!("{other_paths}\n[[event]]\n{}", event("cell", "close")));
    assert!(
        other_paths.contains("up and more") && other_paths.contains("nodes of their own"),
        "{other_paths}"
    );
    let one_has_events = refused(&format!("{}\n[[event]]\n{}", second(&|text| text), event("cell", "close")));
    assert!(one_has_events.contains("differ in [[event]]"), "{one_has_events}");
    let other_buffer = refused(&second(&|text| {
        text.replace("subflow = [", "transport.receive_buffer = \"64 kB\"\nsubflow = [")
    }));
    assert!(other_buffer.contains("net.ipv4.tcp_rmem"), "{other_buffer}");
    let there_and_back = refused(&second(&|text| {
        text.replace("\"phone\"", "\"x\"").replace("\"server\"", "\"phone\"").replace("\"x\"", "\"server\"")
    }));
    assert!(there_and_back.contains("opens") && there_and_back.contains("accepts"), "{there_and_back}");
    let other_params = refused(&second(&|text| {
        text.replace("congestion = \"lia\"", "congestion = { name = \"lia\", precision = \"kernel\" }")
    }));
    assert!(other_params.contains("different parameters"), "{other_params}");
}

#[test]
fn connections_of_a_host_that_differ_have_subflows_that_user_space_opens() {
    let (_, connection) = TWO_PATHS.split_once("[[connection]]").expect("it is there");
    let swapped = connection
        .replace("\"up\"", "\"more\"")
        .replace(
            "{ name = \"wifi\", via = [\"wifi\"] }",
            "{ name = \"wifi\", via = [\"wifi\"], backup = true }",
        )
        .replace("via = [\"cell\"], backup = true", "via = [\"cell\"]");
    let plan = planned(&format!("{TWO_PATHS}\n[[connection]]{swapped}"));
    let joins = |index: usize| -> Vec<(u8, IpAddr, bool)> {
        plan.connections[index].joins.iter().map(|join| (join.id, join.address, join.backup)).collect()
    };
    let address = |index: usize, subflow: usize| plan.connections[index].client_addresses[subflow];
    assert_eq!(joins(0), [(1, address(0, 1), true)]);
    assert_eq!(joins(1), [(0, address(1, 0), true), (1, address(1, 1), false)], "the first becomes a backup");
    assert_eq!(plan.paths.len(), 8, "each has addresses of its own");
    let mut addresses = plan.hosts[0].interfaces.iter().flat_map(|interface| &interface.addresses);
    assert!(addresses.all(|address| address.endpoint.is_none()), "the kernel's path manager opens none");
    let pm_type = ("net.mptcp.pm_type".to_owned(), "1".to_owned());
    assert!(plan.hosts[0].sysctls.contains(&pm_type));
    assert!(!plan.hosts[1].sysctls.contains(&pm_type), "the server's accepts joins as ever");
}

#[test]
fn native_congestion_control_is_the_kernels_own_name() {
    let plan = plan(&scenario(&TWO_PATHS.replace("lia", "reno")), 1, CongestionSource::Native);
    let plan = plan.expect("the kernel has reno");
    assert_eq!(plan.connections[0].congestion, "reno");
    assert!(plan.algorithms.is_empty());
}

#[test]
fn bounds_that_only_our_congestion_controls_keep_are_noted_for_native_ones() {
    let text = TWO_PATHS.replace("lia", "reno");
    let capped = text.replace(r#"profile = "linux""#, "profile = \"linux\"\nwindow_cap = \"50 packets\"");
    let noted = |text: &str, source| {
        let plan = plan(&scenario(text), 1, source).expect("the kernel has reno");
        plan.notes.iter().any(|note| note.contains("window_cap"))
    };
    assert!(noted(&capped, CongestionSource::Native));
    assert!(!noted(&capped, CongestionSource::Bpf));
    assert!(!noted(&text, CongestionSource::Native));
}

#[test]
fn every_shipped_scenario_has_a_plan_or_a_reason() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut planned = 0;
    for folder in ["papers/mfvl", "tutorial", "validation", "regress", "regress/evaluation"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                continue;
            }
            let scenario = load_path(&path, &[]).expect("it is valid").scenario;
            let scenario = expand(&scenario, 1);
            match plan(&scenario, 1, CongestionSource::Bpf) {
                Ok(plan) => {
                    assert_eq!(plan.connections.len(), scenario.connections.len());
                    assert_eq!(plan.datagrams.len(), scenario.datagrams.len());
                    planned += 1;
                }
                Err(BedError::Input(text)) => {
                    assert!(text.starts_with("--engine kernel: "), "{}: {text}", path.display());
                }
                Err(other) => panic!("{}: {other}", path.display()),
            }
        }
    }
    assert!(planned >= 8, "only {planned} have a plan");
}

#[test]
fn the_connections_of_a_relay_may_differ_in_what_does_not_concern_it() {
    let text = format!(
        "{}\n[[connection]]\nname = \"on\"\nfrom = \"server\"\nto = \"wifi\"\ncongestion = \"lia\"\n\
         transport.receive_buffer = \"1 MB\"\n[[relay]]\nname = \"gateway\"\nin = \"up\"\nout = \"on\"\n",
        TWO_PATHS.replace("subflow = [", "transport.receive_buffer = \"100 kB\"\nsubflow = [")
    );
    let plan = planned(&text);
    let buffer = |host: usize| {
        let all = &plan.hosts[host].sysctls;
        all.iter().find(|(name, _)| name == "net.ipv4.tcp_rmem").expect("it is set").1.clone()
    };
    assert_eq!(plan.hosts[1].name, "server");
    assert!(buffer(1).ends_with(" 100000"), "the relay receives from the first: {}", buffer(1));
    assert!(buffer(2).ends_with(" 1000000"), "{}", buffer(2));
}

#[test]
fn sources_and_exchanges_have_a_plan() {
    for traffic in [
        r#"kind = "cbr", rate = "1 Mbit/s", size = "1 kB""#,
        r#"kind = "telemetry", period = "1 s", size = "200 B""#,
        r#"kind = "request", response = "10 kB""#,
        r#"kind = "file", size = "1 MB", direction = "download""#,
        r#"kind = "ftp", direction = "both""#,
    ] {
        let traffic = format!("traffic = {{ {traffic} }}\nsubflow = [");
        assert_eq!(planned(&TWO_PATHS.replace("subflow = [", &traffic)).connections.len(), 1);
    }
}

#[test]
fn flows_of_a_workload_share_their_addresses_and_have_ports_of_their_own() {
    let flows = r#"traffic = { kind = "flows", arrivals = "uniform", count = 300, size = "1 kB" }"#;
    let mptcp = TWO_PATHS.replace("subflow = [", &format!("{flows}\nsubflow = ["));
    let (tcp, _) = mptcp.split_once("subflow = [").expect("it is there");
    for text in [tcp.replace("mptcp", "tcp").replace("lia", "reno"), mptcp.clone()] {
        let scenario = scenario(&text);
        let plan = plan(&expand(&scenario, 1), 1, CongestionSource::Bpf).expect("a kernel can do this");
        assert_eq!(plan.connections.len(), 300);
        let ports: BTreeSet<u16> = plan.connections.iter().map(|connection| connection.port).collect();
        assert_eq!(ports.len(), 300);
        let first = &plan.connections[0];
        assert!(
            plan.connections.iter().all(|connection| connection.client_addresses == first.client_addresses)
        );
    }
}

#[test]
fn ecn_and_stale_subflows_are_sysctls_of_the_hosts() {
    let set = |plan: &Plan, name: &str| {
        let of_host = |host: &anabranch_bed::plan::Host| {
            host.sysctls.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        plan.hosts.iter().map(of_host).collect::<Vec<_>>()
    };
    let (ecn, stale) = ("net.ipv4.tcp_ecn", "net.mptcp.stale_loss_cnt");
    let plain = planned(TWO_PATHS);
    assert_eq!(set(&plain, ecn), [Some("0".to_owned()), Some("0".to_owned())]);
    assert_eq!(set(&plain, stale), [Some("4".to_owned()), Some("4".to_owned())]);
    let rfc = planned(&TWO_PATHS.replace("profile = \"linux\"", "profile = \"rfc\""));
    assert_eq!(set(&rfc, stale), [None, None], "the kernel's own");
    let wanted = planned(
        &TWO_PATHS.replace("profile = \"linux\"", "profile = \"linux\"\necn = true\nstale_after = 2"),
    );
    assert_eq!(set(&wanted, ecn), [Some("1".to_owned()), Some("1".to_owned())]);
    assert_eq!(set(&wanted, stale), [Some("2".to_owned()), Some("2".to_owned())]);
}

/// An event of the connection `up` at 1 s.
fn event(subflow: &str, action: &str) -> String {
    format!("at = \"1 s\"\nconnection = \"up\"\nsubflow = \"{subflow}\"\naction = \"{action}\"\n")
}

fn with_event(subflow: &str, action: &str) -> String {
    format!("{TWO_PATHS}\n[[event]]\n{}", event(subflow, action))
}

#[test]
fn events_are_those_of_the_address_of_their_subflow() {
    let plan = planned(&with_event("wifi", "close"));
    let [event] = plan.events[..] else { panic!("one event: {:?}", plan.events) };
    assert_eq!((event.at, event.host), (1_000_000_000, 0));
    assert_eq!(event.address, plan.connections[0].client_addresses[0]);
    let first = plan.hosts[0].interfaces[0].addresses[0].endpoint.as_ref().expect("to change it takes one");
    assert_eq!((first.role, first.present), (Role::First, true));
    assert_eq!(plan.hosts[1].mptcp_limits, Some((2, 0)), "a first subflow that opens again is a further one");
    let late = planned(&TWO_PATHS.replace("backup = true", "start = \"2 s\""));
    let cell = late.hosts[0].interfaces[1].addresses[0].endpoint.as_ref().expect("it is a further one");
    assert!(!cell.present, "it comes with its event");
    assert_eq!(late.events.len(), 1);
}

#[test]
fn an_announced_subflow_leads_to_an_address_that_the_server_signals() {
    let plan = planned(&TWO_PATHS.replace("backup = true", "announced = true, backup = true"));
    let (client, server) = (&plan.hosts[0], &plan.hosts[1]);
    let cell = &client.interfaces[1].addresses[0];
    assert_eq!(cell.endpoint, None, "the client waits");
    let signalled = server.interfaces[1].addresses.iter().find(|address| address.endpoint.is_some());
    let signalled = signalled.expect("the server signals an address");
    let endpoint = signalled.endpoint.as_ref().expect("just found");
    assert_eq!((endpoint.role, endpoint.backup), (Role::Signal, true));
    assert_eq!(cell.reaches, [signalled.ip], "the client joins it from there");
    assert_eq!(plan.paths[plan.connections[0].paths[1]].to, signalled.ip);
    assert_eq!((client.mptcp_limits, server.mptcp_limits), (Some((1, 1)), Some((1, 0))));
}

#[test]
fn what_only_the_simulator_does_with_subflows_is_refused() {
    let with = |from: &str, to: &str| refused(&TWO_PATHS.replace(from, to));
    let transport = |key: &str| with("profile = \"linux\"", &format!("profile = \"linux\"\n{key} = true"));
    for (text, about) in [
        (transport("opportunistic_retransmission"), "Linux has no opportunistic_retransmission"),
        (transport("penalisation"), "Linux has no penalisation"),
        (
            with("profile = \"linux\"", "profile = \"linux\"\nrecovery = \"tahoe\""),
            "does not recover as Tahoe",
        ),
        (
            refused(&with_event("cell", "close").replace("backup = true", "announced = true")),
            "subflow cell is announced",
        ),
    ] {
        assert!(text.contains(about), "{text}");
    }
}

#[test]
fn the_kernels_own_path_manager_opens_a_full_mesh_to_one_address() {
    let managed =
        |manager: &str| TWO_PATHS.replace("congestion =", &format!("path_manager = {manager}\ncongestion ="));
    assert_eq!(planned(&managed("\"fullmesh\"")), planned(TWO_PATHS));
    assert_eq!(
        refused(&managed("\"failover\"")),
        "--engine kernel: connection up: the kernel has no path manager failover; expected path_manager = \"fullmesh\", or the simulator"
    );
    assert_eq!(
        refused(&managed("{ name = \"ndiffports\", num_subflows = 3 }")),
        "--engine kernel: connection up: the kernel has no path manager ndiffports; expected path_manager = \"fullmesh\", or the simulator"
    );
    assert_eq!(
        refused(&managed("\"default\"")),
        "--engine kernel: connection up: with path_manager = \"default\" only the first subflow is opened; leave out the others"
    );
    // Without subflows in the file, the two interfaces of the server are two addresses.
    let from_topology: String = managed("\"fullmesh\"")
        .lines()
        .filter(|line| !line.starts_with("subflow"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    assert_eq!(
        refused(&from_topology),
        "--engine kernel: connection up: the server has one address per connection; list the subflows to it, or use the simulator"
    );
}
