//! Random scenarios, each run under supervision (`world::audit`) and with both widths of the event key.
//!
//! A failing plan is printed by proptest; put its text into a named test below.

mod plan;
mod strategies;

use anabranch_link::Frame as _;
use anabranch_record::model::{Measurements, Scope};
use anabranch_scenario::model::Scenario;
use proptest::{prelude::*, sample::select};

use self::{
    plan::{Plan, Settings},
    strategies::plan,
};
use crate::{
    Control,
    packet::Packet,
    run, run_with,
    world::audit::{self, run_marked},
};

/// Runs a scenario under supervision, and again with either key.
fn check(scenario: &Scenario, seed: u64) {
    let supervised = audit::run::<u64>(scenario, seed);
    let narrow = run_with::<u64>(scenario, seed, &Control::default()).expect("nobody interrupts");
    let wide = run_with::<u128>(scenario, seed, &Control::default()).expect("nobody interrupts");
    let chosen = run(scenario, seed, &Control::default()).expect("nobody interrupts");
    assert_eq!(supervised, narrow, "the same seed gives the same measurements");
    assert_eq!(narrow, wide, "the width of the key changes nothing");
    assert_eq!(narrow, chosen);
    check_energy(scenario, &narrow);
}

/// The energies of the states, and the power of all bins, add up to that of each interface.
fn check_energy(scenario: &Scenario, run: &Measurements) {
    for interface in &scenario.interfaces {
        let (node, link) = interface.names(scenario);
        let scope = Scope::Interface(node.to_owned(), link.to_owned());
        let figure = |metric: &str| {
            let found = run.summary.figures.iter().find(|of| of.scope == scope && of.metric == metric);
            found.unwrap_or_else(|| panic!("no {metric} of {scope:?}")).value
        };
        let near = |what: &str, sum: f64, expected: f64| {
            assert!((sum - expected).abs() <= 1e-9 * expected.max(1.0), "{what}: {sum} is not {expected}");
        };
        let states =
            ["promotion", "active", "tail", "idle"].map(|of| figure(&format!("energy_huang_{of}_j")));
        near("states", states.iter().sum(), figure("energy_huang_j"));
        for (power, energy) in [("power_linear_w", "energy_linear_j"), ("power_huang_w", "energy_huang_j")] {
            let found = run.series.iter().find(|of| of.scope == scope && of.metric == power);
            let points = &found.expect("there is power over time").points;
            let begins = std::iter::once(0).chain(points.iter().map(|point| point.0));
            let bins = points.iter().zip(begins).map(|(&(end, w), begin)| w * (end - begin) as f64 / 1e9);
            near(power, bins.sum(), figure(energy));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_keep_every_invariant(plan in plan(), seed in 0_u64..1000) {
        check(&plan.scenario(), seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_keep_every_invariant_when_packets_are_marked(
        plan in plan(),
        every in 1_u32..40,
        seed in 0_u64..1000,
    ) {
        let marked = Plan { settings: Settings { ecn: true, ..plan.settings }, ..plan };
        let mut seen = 0;
        let mark = |packet: &mut Packet| if packet.is_ecn_capable() {
            seen += 1;
            if seen % every == 0 {
                packet.mark();
            }
        };
        run_marked::<u64>(&marked.scenario(), seed, mark);
    }
}

/// Every path manager with its defaults, and some in a hurry.
fn managers() -> Vec<String> {
    let hurried = [
        r#"{ name = "failover", hold = "100 ms", retry = "50 ms" }"#,
        r#"{ name = "pcdc", phase = "500 ms", settle = "0 s", again_after = "3 s" }"#,
        r#"{ name = "energy", late_bytes = "50 kB", late_after = "500 ms", dead_after = 2, retry = "50 ms" }"#,
        r#"{ name = "reestablish", dead_after = 1, retry = "10 ms", retry_max = "1 s", jitter = 1 }"#,
    ];
    let names = anabranch_policy::paths::PATH_MANAGERS.iter().map(|info| format!("{:?}", info.name));
    names.chain(hurried.map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_keep_every_invariant_under_every_path_manager(
        plan in plan(),
        manager in select(managers()),
        seed in 0_u64..1000,
    ) {
        check(&Plan { tcp: false, manager: Some(manager), ..plan }.scenario(), seed);
    }
}

fn extreme(traffic: &str, more: &str) -> Scenario {
    let text = format!(
        r#"
        name = "extreme"
        duration = "10 h"
        measure.interval = "10 min"
        node = [{{ names = ["S", "D"] }}]
        connection = [{{ name = "flow", from = "S", to = "D", congestion = "reno", traffic = {{ {traffic} }} }}]
        {more}"#
    );
    anabranch_scenario::load(&text, "extreme.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

#[test]
fn round_trips_of_many_minutes_do_not_overflow_the_estimator() {
    let more = r#"
        link = [{ between = ["S", "D"], rate = "100 bit/s", delay = "1 s", queue = "unlimited" }]
        transport.max_rto = "2 h""#;
    check(&extreme(r#"kind = "ftp""#, more), 1);
}

#[test]
fn the_largest_acknowledgement_has_room_for_sack_blocks() {
    let more = r#"
        link = [{ between = ["S", "D"], rate = "10 Mbit/s", delay = "1 ms", queue = "5 packets" }]
        transport.ack = "65535 B""#;
    check(&extreme(r#"kind = "file", size = "100 kB""#, more), 1);
}
