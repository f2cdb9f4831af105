//! Lets the events of subflows happen, each at its time on the run's clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{
    BedError, Nanos, clock,
    host::{Endpoints, Namespace},
    plan::{EventPlan, Plan},
};

/// The end of a run is seen at the latest after this.
const ATTENTION: Nanos = 50_000_000;

/// A thread that carries out the events of a run; dropping it ends it.
pub(super) struct Director {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Nanos, BedError>>>,
}

impl Director {
    /// Begins, with the scenario's time 0 at `zero` of `CLOCK_MONOTONIC`; `None` if the plan has no events.
    ///
    /// # Errors
    /// [`BedError::System`] if there can be no further thread.
    pub(super) fn start(plan: &Plan, hosts: &[Namespace], zero: Nanos) -> Result<Option<Self>, BedError> {
        if plan.events.is_empty() {
            return Ok(None);
        }
        let mut endpoints: Vec<_> =
            plan.hosts.iter().zip(hosts).map(|(host, namespace)| Endpoints::new(host, namespace)).collect();
        let events = plan.events.clone();
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let work = move || direct(&events, &mut endpoints, zero, &seen);
        let thread = thread::Builder::new().name("director".to_owned()).spawn(work);
        let thread = thread.map_err(BedError::system("starting a thread for events"))?;
        Ok(Some(Self { ended, thread: Some(thread) }))
    }

    /// Ends it; how long after its time the latest of the events had been carried out.
    ///
    /// # Errors
    /// As [`Endpoints::carry_out`].
    ///
    /// # Panics
    /// If the thread did.
    pub(super) fn end(mut self) -> Result<Nanos, BedError> {
        self.ended.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is ended once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Director {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Nobody asked for the result.
            let _ = thread.join();
        }
    }
}

fn direct(
    events: &[EventPlan],
    endpoints: &mut [Endpoints],
    zero: Nanos,
    ended: &AtomicBool,
) -> Result<Nanos, BedError> {
    let mut latest = 0;
    for event in events {
        let due = zero.saturating_add(event.at);
        loop {
            if ended.load(Ordering::Acquire) {
                return Ok(latest);
            }
            let now = clock::monotonic();
            if now >= due {
                break;
            }
            clock::sleep_until(due.min(now + ATTENTION));
        }
        endpoints[event.host].carry_out(event.address, event.action)?;
        latest = latest.max(clock::monotonic() - due);
    }
    Ok(latest)
}
