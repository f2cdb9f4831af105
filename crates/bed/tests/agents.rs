//! A scenario with a device agent: what it becomes on the kernel, and that both engines decide alike.

mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anabranch_agent_config::{Config, Role};
use anabranch_bed::{
    BedError,
    plan::{CarrierPlan, CongestionSource, Plan, plan},
};
use anabranch_scenario::{load_path, model::Scenario};
use anabranch_sim::{Control, Records};
use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent/handover.toml")
}

fn scenario(overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<_> =
        overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    load_path(example(), &overrides).unwrap_or_else(|error| panic!("{error}")).scenario
}

fn planned(scenario: &Scenario) -> Plan {
    plan(scenario, 1, CongestionSource::Bpf).expect("a kernel can do this")
}

#[test]
fn the_agents_configuration_has_the_names_and_addresses_of_the_bed() {
    let plan = planned(&scenario(&[]));
    let [agent] = &plan.agents[..] else { panic!("one node has an agent") };
    let host = &plan.hosts[agent.host];
    assert_eq!(host.name, "phone");
    assert!(host.sysctls.contains(&("net.mptcp.pm_type".to_owned(), "1".to_owned())));
    let addresses = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    assert!(addresses.clone().all(|address| address.endpoint.is_none()), "subflows are the agent's");
    assert!(plan.connections[0].joins.is_empty());
    let config = Config::parse(&agent.config, "agent.toml").expect("it is valid");
    let roles: Vec<_> = config.interfaces.iter().map(|rule| (rule.name.as_str(), rule.role)).collect();
    assert_eq!(roles, [("if0", Role::Primary), ("if1", Role::Metered)]);
    let connection = &plan.connections[0];
    let policy = config.policy(connection.server_address, connection.port).expect("it is managed");
    assert_eq!((policy.info.name, policy.values[1]), ("failover", 1_000_000_000));
    assert_eq!(config.policy(connection.server_address, connection.port + 1), None);
    let turn = |at, up| CarrierPlan { at, interface: 0, up };
    assert_eq!(agent.carriers, [turn(2_000_000_000, false), turn(4_000_000_000, true)]);
}

#[test]
fn connections_of_an_agents_node_share_one_address_per_interface() {
    let mut scenario = scenario(&[]);
    let mut second = scenario.connections[0].clone();
    second.name = "second".to_owned();
    second.subflows.reverse();
    scenario.connections.push(second);
    let plan = planned(&scenario);
    let [one, two] = &plan.connections[..] else { panic!("two connections") };
    assert!(one.client_addresses.iter().eq(two.client_addresses.iter().rev()));
    assert_ne!(one.server_address, two.server_address);
    let host = &plan.hosts[plan.agents[0].host];
    assert!(host.interfaces.iter().all(|interface| interface.addresses.len() == 1));
}

#[track_caller]
fn refused(scenario: &Scenario, message: &str) {
    match plan(scenario, 1, CongestionSource::Bpf) {
        Err(BedError::Input(text)) => assert_eq!(text, format!("--engine kernel: {message}")),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn what_an_agents_node_cannot_have_is_refused() {
    let mut accepts = scenario(&[]);
    let mut back = accepts.connections[0].clone();
    (back.name, back.from, back.to) = ("back".to_owned(), back.to, back.from);
    (back.path_manager, back.agent) = (None, None);
    accepts.connections.push(back);
    refused(
        &accepts,
        "node phone has an agent and accepts back; the agent would open subflows from the server's address: give the two \
         nodes of their own",
    );
    let mut events = scenario(&[]);
    let action = anabranch_scenario::model::Action::Close;
    events.events.push(anabranch_scenario::model::Event { at: 1, connection: 0, subflow: 0, action });
    refused(
        &events,
        "connection upload: [[event]]s act on endpoints, which an agent does not have; leave them out, take its link down by a \
         [[change]], or use the simulator",
    );
    let mut differs = scenario(&[]);
    let mut second = differs.connections[0].clone();
    (second.name, second.transport.initial_window) = ("second".to_owned(), 3);
    differs.connections.push(second);
    refused(
        &differs,
        "connection second: at node phone, which has an agent, all connections begin at the same addresses, and this one \
         differs in its transport from one before it",
    );
}

/// Time in milliseconds, link, action and reason of a decision.
type Told = (f64, String, String, String);

fn in_simulator(scenario: &Scenario) -> Vec<Told> {
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records { events: true, ..Records::default() };
    anabranch_sim::record(scenario, 1, &Control::default(), folder.path(), records).expect("it runs");
    let text = fs::read_to_string(folder.path().join("events.qlog")).expect("it was written");
    let log: Value = serde_json::from_str(&text).expect("it is JSON");
    let links = BTreeMap::from([("wifi", "wlan0"), ("cellular", "wwan0")]);
    let mut told: Vec<Told> = Vec::new();
    for trace in log["traces"].as_array().expect("traces") {
        let title = trace["title"].as_str().expect("a title");
        let (_, subflow) = title.split(" at ").next().expect("a name").split_once('/').expect("two names");
        for event in trace["events"].as_array().expect("events") {
            if event["name"] == "anabranch-tcp:path_decision" {
                let text = |key: &str| event["data"][key].as_str().expect("text").to_owned();
                let at_ms = event["time"].as_f64().expect("a time");
                told.push((at_ms, links[subflow].to_owned(), text("action"), text("reason")));
            }
        }
    }
    told.sort_by(|a, b| a.0.total_cmp(&b.0));
    told
}

/// What was decided within one look, in the order of words: the simulator's log has one trace per subflow, so that the order within a
/// look is not in it.
fn looks(mut told: Vec<Told>) -> Vec<Told> {
    const LOOK_MS: f64 = 20.0;
    let mut begins = 0;
    while begins < told.len() {
        let ends = told.iter().position(|later| later.0 >= told[begins].0 + LOOK_MS).unwrap_or(told.len());
        told[begins..ends].sort_by(|a, b| (&a.1, &a.2).cmp(&(&b.1, &b.2)));
        begins = ends;
    }
    told
}

/// Runs the example on the kernel as a user does; the agent's log.
fn on_kernel(out: &Path, daemon: &Path) -> Vec<Value> {
    let run = Command::new(env!("CARGO_BIN_EXE_anabranch-bed"))
        .args(["run", "--native-congestion", "--out"])
        .args([out, &example()])
        .env("ANABRANCHD", daemon)
        .output()
        .expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let folders = fs::read_dir(out.join("agent-handover")).expect("a run folder");
    let folder = folders.map(|entry| entry.expect("it can be read").path()).find(|path| path.is_dir());
    let folder = folder.expect("one run");
    let log =
        files(&folder).into_iter().find(|file| file.ends_with("agent-phone.jsonl")).expect("the agent's log");
    assert!(files(&folder).iter().any(|file| file.ends_with("agent-phone.toml")), "and its configuration");
    let log = fs::read_to_string(log).expect("it can be read");
    log.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// All files in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn both_engines_take_the_same_decisions_for_the_same_reasons_at_the_same_times() {
    const TEST: &str = "both_engines_take_the_same_decisions_for_the_same_reasons_at_the_same_times";
    let Some(daemon) = common::daemon(TEST) else { return };
    let out = tempfile::tempdir().expect("a folder");
    let log = on_kernel(out.path(), &daemon);
    let simulated = looks(in_simulator(&scenario(&[])));
    let decided = log.iter().filter(|line| line.get("reason").is_some() && line.get("error").is_none());
    let decided: Vec<Told> = decided
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or_else(|| panic!("{key} in {line}")).to_owned();
            (line["t_ms"].as_f64().expect("a time"), text("link"), text("event"), text("reason"))
        })
        .collect();
    let decided = looks(decided);
    let words = |told: &[Told]| -> Vec<[String; 3]> {
        told.iter().map(|(_, link, action, reason)| [link.clone(), action.clone(), reason.clone()]).collect()
    };
    assert_eq!(words(&decided), words(&simulated), "{decided:?}\n{simulated:?}");
    // The kernel tells of carriers at most once a second (linkwatch: the first at once, the next up to a second later); looks are
    // 5 ms apart; the handshake takes a round trip; the machine may be busy.
    for (kernel, simulator) in decided.iter().zip(&simulated) {
        let late_ms = kernel.0 - simulator.0;
        assert!((-50.0..1_200.0).contains(&late_ms), "{kernel:?} and {simulator:?}");
    }
}
