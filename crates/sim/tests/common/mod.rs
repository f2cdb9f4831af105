//! Runs scenarios and picks figures out of what they measured.
#![allow(dead_code)] // every test binary uses a part

use std::path::PathBuf;

use anabranch_record::model::{Measurements, Scope};
use anabranch_scenario::model::Scenario;
use anabranch_sim::Control;

/// The file `path` below `scenarios/`, with overrides.
pub(crate) fn scenario(path: &str, overrides: &[(&str, &str)]) -> Scenario {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(path);
    let overrides: Vec<_> =
        overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    anabranch_scenario::load_path(&file, &overrides).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// A scenario given as text.
pub(crate) fn parse(text: &str) -> Scenario {
    anabranch_scenario::load(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// A run that nobody interrupts.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> Measurements {
    anabranch_sim::run(scenario, seed, &Control::default()).expect("nobody interrupts a test")
}

/// A figure of a connection.
pub(crate) fn connection(run: &Measurements, name: &str, metric: &str) -> f64 {
    figure(run, &Scope::Connection(name.into()), metric)
}

/// A figure of a subflow.
pub(crate) fn subflow(run: &Measurements, connection: &str, name: &str, metric: &str) -> f64 {
    figure(run, &Scope::Subflow(connection.into(), name.into()), metric)
}

/// A figure of a link.
pub(crate) fn link(run: &Measurements, name: &str, metric: &str) -> f64 {
    figure(run, &Scope::Link(name.into()), metric)
}

/// A figure.
pub(crate) fn figure(run: &Measurements, scope: &Scope, metric: &str) -> f64 {
    let figures = &run.summary.figures;
    let found = figures.iter().find(|figure| figure.scope == *scope && figure.metric == metric);
    found.unwrap_or_else(|| panic!("no {metric} of {scope:?}")).value
}

/// The mean of a figure over runs.
pub(crate) fn mean(runs: &[Measurements], pick: impl Fn(&Measurements) -> f64) -> f64 {
    runs.iter().map(pick).sum::<f64>() / runs.len() as f64
}
