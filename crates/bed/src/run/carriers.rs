//! Takes the carrier of interfaces away and gives it back when the scenario takes their links down and up, where an agent looks at
//! them. What the emulator does with the packets is its own affair.

use super::timeline::Timeline;
use crate::{
    BedError, Nanos,
    host::{Lab, tun},
    plan::Plan,
};

/// Begins, with the scenario's time 0 at `zero` of `CLOCK_MONOTONIC`; `None` if there is nothing to do.
///
/// # Errors
/// [`BedError::System`].
pub(super) fn start(plan: &Plan, lab: &Lab, zero: Nanos) -> Result<Option<Timeline>, BedError> {
    if plan.agents.iter().all(|agent| agent.carriers.is_empty()) {
        return Ok(None);
    }
    let devices = lab.devices()?;
    let first_of = |host: usize| plan.hosts[..host].iter().map(|host| host.interfaces.len()).sum::<usize>();
    let mut turns: Vec<(Nanos, (usize, bool))> = Vec::new();
    for agent in &plan.agents {
        let first = first_of(agent.host);
        turns.extend(agent.carriers.iter().map(|turn| (turn.at, (first + turn.interface, turn.up))));
    }
    turns.sort_by_key(|&(at, _)| at);
    let act = move |(device, up): (usize, bool)| {
        tun::set_carrier(&devices[device], up).map_err(BedError::system("changing the carrier of a device"))
    };
    Timeline::start("carriers", turns, zero, act).map(Some)
}
