//! Energy of invented counters of the emulator.

use anabranch_bed::{emulator::InterfaceCounters, telemetry::EnergySampler};
use anabranch_record::model::{Figure, Scope};
use anabranch_scenario::model::Scenario;

const MS: u64 = 1_000_000;

fn scenario(interfaces: &str) -> Scenario {
    let text = format!(
        r#"
name = "phone"
duration = "10 s"
measure = {{ from = "1 s", to = "9 s" }}
node = [{{ names = ["phone", "server"] }}]
link = [{{ name = "lte", between = ["phone", "server"], rate = "8 Mbit/s", delay = "10 ms", queue = "50 packets" }}]
connection = [{{ name = "up", from = "phone", to = "server", congestion = "reno" }}]
{interfaces}"#
    );
    anabranch_scenario::load(&text, "phone.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

const LTE: &str = "interface = [{ node = \"phone\", link = \"lte\", radio = \"lte\" }]";

/// Readings that come late by so much, at 1 MB/s.
fn run(late: impl Fn(u64) -> u64) -> EnergySampler {
    let mut energy = EnergySampler::new(&scenario(LTE));
    while let Some(due) = energy.due() {
        let now = due + late(due);
        energy.take(now, &[InterfaceCounters { up_bytes: now / 1_000, down_bytes: 0 }]);
    }
    energy
}

fn figure(figures: &[Figure], metric: &str) -> f64 {
    let scope = Scope::Interface("phone".into(), "lte".into());
    let found = figures.iter().find(|one| one.scope == scope && one.metric == metric);
    found.unwrap_or_else(|| panic!("no {metric}")).value
}

#[test]
fn without_interfaces_nothing_is_due() {
    let energy = EnergySampler::new(&scenario(""));
    assert_eq!((energy.due(), energy.figures(0).len(), energy.series().count()), (None, 0, 0));
}

#[test]
fn a_steady_flow_takes_what_the_linear_model_says() {
    let energy = run(|_| 0);
    let figures = energy.figures(8_000_000);
    assert_eq!(figure(&figures, "bytes_up"), 8e6);
    // 8 s at 8 Mbit/s.
    assert!((figure(&figures, "energy_linear_j") - (52.0 * 8.0 + 1288.0) * 8.0 / 1e3).abs() < 1e-9);
    let series: Vec<_> = energy.series().collect();
    assert_eq!(series.iter().map(|one| one.metric).collect::<Vec<_>>(), ["power_linear_w", "power_huang_w"]);
    assert_eq!(series[0].points.len(), 100);
}

#[test]
fn late_readings_make_bins_of_other_lengths_and_the_same_sum() {
    // Up to 150 ms late, more than a bin.
    let late = run(|due| due * 7 % (150 * MS));
    let figures = late.figures(8_000_000);
    let seconds = figure(&figures, "active_s");
    assert!((7.8..8.2).contains(&seconds), "{seconds}");
    let linear_j = (52.0 * figure(&figures, "bytes_up") * 8.0 / 1e6 + 1288.0 * seconds) / 1e3;
    assert!((figure(&figures, "energy_linear_j") - linear_j).abs() < 1e-9);
    let all: Vec<_> = late.series().collect();
    assert!(all[1].points.is_sorted_by_key(|point| point.0));
}
