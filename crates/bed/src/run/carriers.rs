//! Takes the carrier of interfaces away and gives it back when the scenario takes their links down and up, where an agent looks at
//! them. What the emulator does with the packets is its own affair.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{
    BedError, Nanos, clock,
    host::{Lab, tun},
    plan::Plan,
};

/// The end of a run is seen at the latest after this.
const ATTENTION: Nanos = 50_000_000;

/// A thread that does so; dropping it ends it.
pub(super) struct Carriers {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Nanos, BedError>>>,
}

impl Carriers {
    /// Begins, with the scenario's time 0 at `zero` of `CLOCK_MONOTONIC`; `None` if there is nothing to do.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub(super) fn start(plan: &Plan, lab: &Lab, zero: Nanos) -> Result<Option<Self>, BedError> {
        if plan.agents.iter().all(|agent| agent.carriers.is_empty()) {
            return Ok(None);
        }
        let devices = lab.devices()?;
        let first_of =
            |host: usize| plan.hosts[..host].iter().map(|host| host.interfaces.len()).sum::<usize>();
        let mut turns: Vec<(Nanos, usize, bool)> = Vec::new();
        for agent in &plan.agents {
            let first = first_of(agent.host);
            turns.extend(agent.carriers.iter().map(|turn| (turn.at, first + turn.interface, turn.up)));
        }
        turns.sort_by_key(|&(at, ..)| at);
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let work = move || turn_all(&turns, &devices, zero, &seen);
        let thread = thread::Builder::new().name("carriers".to_owned()).spawn(work);
        let thread = thread.map_err(BedError::system("starting a thread for carriers"))?;
        Ok(Some(Self { ended, thread: Some(thread) }))
    }

    /// Ends it; how long after its time the latest change had been made.
    ///
    /// # Errors
    /// [`BedError::System`] if the kernel refused one.
    ///
    /// # Panics
    /// If the thread did.
    pub(super) fn end(mut self) -> Result<Nanos, BedError> {
        self.ended.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is ended once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Carriers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Nobody asked for the result.
            let _ = thread.join();
        }
    }
}

fn turn_all(
    turns: &[(Nanos, usize, bool)],
    devices: &[OwnedFd],
    zero: Nanos,
    ended: &AtomicBool,
) -> Result<Nanos, BedError> {
    let mut latest = 0;
    for &(at, device, up) in turns {
        let due = zero.saturating_add(at);
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
        tun::set_carrier(&devices[device], up)
            .map_err(BedError::system("changing the carrier of a device"))?;
        latest = latest.max(clock::monotonic() - due);
    }
    Ok(latest)
}
