//! Scenarios for the emulator's own tests.

use anabranch_scenario::model::{Link, Scenario, Strips, Wire};

use super::bare::links_alone;
use crate::Nanos;

pub(crate) const MS: Nanos = 1_000_000;

/// A wire without a queue limit or loss.
pub(crate) fn wire(rate_bps: u64, delay: Nanos) -> Wire {
    Wire::plain(rate_bps, delay)
}

/// Links in a row, alike in both directions.
pub(crate) fn chain(wires: &[Wire]) -> Scenario {
    let link = |(index, &wire): (usize, &Wire)| Link {
        name: index.to_string(),
        a: index,
        b: index + 1,
        forward: wire,
        reverse: wire,
        strips: Strips::Nothing,
    };
    links_alone(Vec::new(), wires.iter().enumerate().map(link).collect())
}
