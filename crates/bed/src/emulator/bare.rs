//! Scenarios of links alone, for what measures or tests the emulator itself.

use anabranch_scenario::model::{Link, Measure, Node, Scenario};

/// These links, over which nothing is sent and of which nothing is measured. Links of which only the emulator is told need no nodes.
pub(crate) fn links_alone(nodes: Vec<Node>, links: Vec<Link>) -> Scenario {
    Scenario {
        name: "links".to_owned(),
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
        nodes,
        links,
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
