//! The deterministic packet-level simulator.

use std::sync::atomic::{AtomicBool, AtomicU64};

use anabranch_record::model::Measurements;
use anabranch_scenario::model::Scenario;

/// How a caller watches and stops a run.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to make the run return [`Interrupted`] soon.
    pub cancel: AtomicBool,
    /// Simulated time reached, in nanoseconds; updated now and then.
    pub reached: AtomicU64,
}

/// The run was cancelled; nothing of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Runs a scenario with a seed.
pub fn run(_scenario: &Scenario, _seed: u64, _control: &Control) -> Result<Measurements, Interrupted> {
    Ok(Measurements::default())
}
