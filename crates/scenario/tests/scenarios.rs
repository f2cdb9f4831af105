//! The scenario files of the repository.

use std::path::{Path, PathBuf};

use anabranch_scenario::model::{Datagram, Direction, Hop, Loss, QueueLimit, Scenario, Traffic, When};
use anabranch_scenario::{load_path, schema};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scenario(file: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    load_path(root().join("scenarios").join(file), &overrides)
        .unwrap_or_else(|error| panic!("{error}"))
        .scenario
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}

fn all_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    files_below(&root().join("scenarios"), &mut files);
    files.sort();
    assert!(files.len() >= 13, "{files:?}");
    files
}

/// The nodes a path passes, by name.
fn stops(scenario: &Scenario, from: usize, hops: &[Hop]) -> String {
    let mut nodes = vec![scenario.nodes[from].name.as_str()];
    for hop in hops {
        let node = match *hop {
            Hop::Wire { link, forward: true } => scenario.links[link].b,
            Hop::Wire { link, forward: false } => scenario.links[link].a,
            Hop::Medium { to, .. } => to,
        };
        nodes.push(&scenario.nodes[node].name);
    }
    nodes.join(" ")
}

#[test]
fn every_file_loads() {
    for file in all_files() {
        load_path(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn every_file_matches_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("scenario.json", schema).expect("the schema has no bad references");
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile("scenario.json", &mut schemas).expect("the schema is valid");
    for file in all_files() {
        let canonical = load_path(&file, &[]).expect("it loads").canonical;
        let instance: serde_json::Value =
            serde_json::from_str(&canonical).expect("the canonical form is JSON");
        schemas.validate(&instance, index).unwrap_or_else(|error| panic!("{}: {error}", file.display()));

        let mut wrong = instance;
        wrong["duration"] = serde_json::json!("10 parsec");
        assert!(schemas.validate(&wrong, index).is_err(), "{}: a wrong unit passes", file.display());
    }
}

#[test]
fn the_schema_in_the_docs_is_current() {
    let committed =
        std::fs::read_to_string(root().join("docs/schema/scenario.schema.json")).unwrap_or_default();
    let committed: serde_json::Value = serde_json::from_str(&committed).unwrap_or_default();
    let current: serde_json::Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    assert!(committed == current, "run: cargo run -p anabranch-scenario --example write_reference");
}

#[test]
fn the_reference_in_the_docs_is_current() {
    let page = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap_or_default();
    assert!(
        page.ends_with(&anabranch_scenario::reference()),
        "run: cargo run -p anabranch-scenario --example write_reference"
    );
}

#[test]
fn the_set_ups_of_mfvl_share_topology_and_background() {
    let [one, two, three, four] =
        [1, 2, 3, 4].map(|number| scenario(&format!("papers/mfvl/setup{number}.toml"), &[]));
    for other in [&two, &three, &four] {
        assert_eq!(one.nodes, other.nodes);
        assert_eq!(one.links, other.links);
        assert_eq!(one.media, other.media);
        assert_eq!(one.measure, other.measure);
        assert_eq!(one.connections[0].transport, other.connections[0].transport);
        assert_eq!(one.connections[0].traffic, other.connections[0].traffic);
    }
    assert_eq!(one.datagrams, two.datagrams);
    assert_eq!(one.datagrams, three.datagrams);
    let faster: Vec<Datagram> =
        one.datagrams.iter().map(|flow| Datagram { rate_bps: 2_000_000, ..flow.clone() }).collect();
    assert_eq!(four.datagrams, faster);
}

#[test]
fn the_paths_of_mfvl_are_those_of_figure_3() {
    let setup = scenario("papers/mfvl/setup3.toml", &[]);
    let meter = &setup.connections[0];
    assert_eq!(stops(&setup, meter.from, &meter.subflows[0].hops), "S GW1 R1 R2 GW3 D");
    assert_eq!(stops(&setup, meter.from, &meter.subflows[1].hops), "S GW2 R3 R4 GW4 D");
    assert_eq!(stops(&setup, setup.datagrams[0].from, &setup.datagrams[0].hops), "N1 R1 R2 N2");
    assert_eq!(stops(&setup, setup.datagrams[1].from, &setup.datagrams[1].hops), "N3 R3 R4 N4");
}

#[test]
fn the_variants_of_mfvl_are_reached_by_overrides() {
    let names = |file: &str, overrides: &[(&str, &str)]| {
        let setup = scenario(file, overrides);
        let names = setup.connections[0].subflows.iter().map(|subflow| subflow.congestion.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    let lia = [("connection.meter.congestion", "lia")];
    assert_eq!(names("papers/mfvl/setup1.toml", &[]), "mvegas mvegas");
    assert_eq!(names("papers/mfvl/setup1.toml", &[("connection.meter.congestion", "mfast")]), "mfast mfast");
    assert_eq!(names("papers/mfvl/setup1.toml", &lia), "lia lia");
    assert_eq!(names("papers/mfvl/setup2.toml", &[]), "mvegas mfast");
    assert_eq!(
        names("papers/mfvl/setup2.toml", &[("connection.meter.subflow.*.congestion", "lia")]),
        "lia lia"
    );
    assert_eq!(names("papers/mfvl/setup3.toml", &[]), "mfvl mfvl");
    assert_eq!(names("papers/mfvl/setup3.toml", &lia), "lia lia");
    let swept = scenario("papers/mfvl/setup4.toml", &[("datagram.*.rate", "0.1 Mbit/s")]);
    assert!(swept.datagrams.iter().all(|flow| flow.rate_bps == 100_000));
}

#[test]
fn the_benchmarks_are_as_measured_with_the_peers() {
    let [a, b, c] = ["a", "b", "c"].map(|name| scenario(&format!("bench/{name}.toml"), &[]));
    assert_eq!((a.connections.len(), b.connections.len(), c.connections.len()), (10, 200, 1));
    assert_eq!((a.duration, b.duration, c.duration), (100_000_000_000, 20_000_000_000, 50_000_000_000));
    assert_eq!(
        (a.links[0].forward.rate_bps, a.links[0].forward.queue),
        (100_000_000, QueueLimit::Packets(100))
    );
    assert_eq!(
        (b.links[0].forward.rate_bps, b.links[0].forward.queue),
        (1_000_000_000, QueueLimit::Packets(1000))
    );
    assert!(a.links[1..].iter().chain(&b.links[1..]).all(|link| {
        link.forward.rate_bps == 1_000_000_000
            && link.forward.delay == 1_000_000
            && link.forward == link.reverse
    }));
    let second = 1_000_000_000;
    assert!(a.connections.iter().all(|flow| {
        flow.traffic
            == Traffic::Ftp {
                start: When::Uniform { from: 0, to: second },
                stop: None,
                direction: Direction::Upload,
            }
    }));
    assert!(b.connections.iter().all(|flow| {
        flow.traffic
            == Traffic::Ftp {
                start: When::Uniform { from: 0, to: 2 * second },
                stop: None,
                direction: Direction::Upload,
            }
    }));
    assert!(a.connections.iter().chain(&b.connections).all(|flow| flow.transport.send_jitter == 8_000));
    let meter = &c.connections[0];
    assert_eq!(stops(&c, meter.from, &meter.subflows[0].hops), "S A0 B0 D");
    assert_eq!(stops(&c, meter.from, &meter.subflows[1].hops), "S A1 B1 D");
    assert_eq!(stops(&c, c.datagrams[1].from, &c.datagrams[1].hops), "CS1 A1 B1 CD1");
    assert_eq!(meter.transport.window_cap, Some(100));
    assert!(c.links.iter().all(|link| link.forward.loss == Loss::None));
}
