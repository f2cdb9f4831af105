//! Scenarios for the emulator's own tests.

use anabranch_scenario::model::{Link, Measure, Scenario, Strips, Wire};

use crate::Nanos;

pub(crate) const MS: Nanos = 1_000_000;

/// A wire without a queue limit or loss.
pub(crate) fn wire(rate_bps: u64, delay: Nanos) -> Wire {
    Wire::plain(rate_bps, delay)
}

/// Links in a row, alike in both directions.
pub(crate) fn chain(wires: &[Wire]) -> Scenario {
    Scenario {
        name: "chain".to_owned(),
        title: String::new(),
        description: String::new(),
        source: String::new(),
        duration: 0,
        measure: Measure {
            from: 0,
            to: 0,
            interval: 0,
            energy_bin: 1,
            memory: false,
            head_of_line: false,
            scheduling: false,
        },
        nodes: Vec::new(),
        links: wires
            .iter()
            .enumerate()
            .map(|(index, &wire)| Link {
                name: index.to_string(),
                a: index,
                b: index + 1,
                forward: wire,
                reverse: wire,
                strips: Strips::Nothing,
            })
            .collect(),
        media: Vec::new(),
        connections: Vec::new(),
        datagrams: Vec::new(),
        traces: Vec::new(),
        changes: Vec::new(),
        interfaces: Vec::new(),
        relays: Vec::new(),
        transfers: Vec::new(),
        events: Vec::new(),
    }
}
