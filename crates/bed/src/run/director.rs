//! Lets the events of subflows happen, each at its time on the run's clock.

use super::timeline::Timeline;
use crate::{
    BedError, Nanos,
    host::{Endpoints, Namespace},
    plan::{EventPlan, Plan},
};

/// Begins, with the scenario's time 0 at `zero` of `CLOCK_MONOTONIC`; `None` if the plan has no events. Its end fails as
/// [`Endpoints::carry_out`].
///
/// # Errors
/// [`BedError::System`] if there can be no further thread.
pub(super) fn start(plan: &Plan, hosts: &[Namespace], zero: Nanos) -> Result<Option<Timeline>, BedError> {
    if plan.events.is_empty() {
        return Ok(None);
    }
    let mut endpoints: Vec<_> =
        plan.hosts.iter().zip(hosts).map(|(host, namespace)| Endpoints::new(host, namespace)).collect();
    let steps = plan.events.iter().map(|&event| (event.at, event)).collect();
    let act = move |event: EventPlan| endpoints[event.host].carry_out(event.address, event.action);
    Timeline::start("events", steps, zero, act).map(Some)
}
