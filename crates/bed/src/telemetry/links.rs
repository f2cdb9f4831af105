//! The links whose queues are looked at: those that can be full, and media.

use anabranch_scenario::model::{QueueLimit, Scenario};

use super::sampler::{Mean, Points};

/// A link whose queue is looked at.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) name: String,
    /// Index into [`Readings::links`].
    pub(super) position: usize,
    pub(super) rate_bps: u64,
    /// Whether the queue may mark packets.
    pub(super) marks: bool,
    pub(super) series: Points,
    pub(super) queue: Mean,
}

/// Those of a scenario, in its order, media last.
pub(super) fn links_of(scenario: &Scenario) -> Vec<Link> {
    let link = |name, position, rate_bps, marks| Link {
        name,
        position,
        rate_bps,
        marks,
        series: Points::new(),
        queue: Mean::default(),
    };
    let mut links = Vec::new();
    for (index, model) in scenario.links.iter().enumerate() {
        for (direction, wire, suffix) in [(0, &model.forward, ""), (1, &model.reverse, "/reverse")] {
            if wire.queue != QueueLimit::Unlimited {
                let (name, marks) = (format!("{}{suffix}", model.name), wire.discipline.marks());
                links.push(link(name, 2 * index + direction, wire.rate_bps, marks));
            }
        }
    }
    for (index, medium) in scenario.media.iter().enumerate() {
        links.push(link(medium.name.clone(), 2 * scenario.links.len() + index, medium.rate_bps, false));
    }
    links
}
