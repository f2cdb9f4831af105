//! Keeps the processors of a virtual machine from falling asleep while something is measured.
//!
//! A virtual processor that has nothing to do is taken away by the machine below it, and comes back late: milliseconds
//! where that machine is busy. So each processor gets a thread that turns round and round under `SCHED_IDLE`. Where sessions
//! are scheduled as groups (`sched_autogroup_enabled`), that class yields to this session alone, so the thread looks at the
//! clock as well: when it has been kept from running, somebody else keeps the processor awake, and it rests ten times as long.
//! A real processor wakes up within microseconds and gets none.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use crate::{Nanos, clock};

/// Turns between two looks at the clock and the flag, some ten microseconds.
const TURNS: u32 = 1 << 8;
/// What the emulator does at a time, and most interrupts, take less.
const INTERRUPTION: Nanos = 1_000_000;
/// Of one rest.
const LONGEST_REST: Nanos = 100_000_000;

/// Processors that are kept awake, until the value is dropped.
pub(crate) struct Awake {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Begins with all processors that this process may use, if they are virtual; else with none.
    pub(crate) fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processors = if is_virtual() { allowed() } else { Vec::new() };
        // A thread too few only makes the measurement less punctual, which is measured.
        let start = |processor| {
            let over = Arc::clone(&over);
            thread::Builder::new().name("awake".to_owned()).spawn(move || turn(processor, &over)).ok()
        };
        let threads = processors.into_iter().filter_map(start).collect();
        Self { over, threads }
    }

    /// How many there are.
    pub(crate) fn processors(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

fn is_virtual() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        let mut flags = text.lines().filter(|line| line.starts_with("flags"));
        flags.any(|line| line.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
    })
}

fn allowed() -> Vec<usize> {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&processor| all.is_set(processor).unwrap_or(false)).collect()
}

/// Keeps one processor busy, unless the thread cannot be made to yield to all others.
fn turn(processor: usize, over: &AtomicBool) {
    let mut only = CpuSet::new();
    if only.set(processor).is_err()
        || sched_setaffinity(Pid::from_raw(0), &only).is_err()
        || yield_to_all().is_err()
    {
        return;
    }
    let mut before = clock::monotonic();
    while !over.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            std::hint::spin_loop();
        }
        let gap = clock::monotonic() - before;
        if gap > INTERRUPTION {
            thread::sleep(Duration::from_nanos((10 * gap).min(LONGEST_REST)));
        }
        before = clock::monotonic();
    }
}

fn yield_to_all() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    #[allow(unsafe_code)]
    // SAFETY: the parameters live through the call; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_at_most_one_thread_per_processor_and_all_end() {
        let awake = Awake::begin();
        assert!(awake.processors() <= allowed().len());
        assert_eq!(awake.processors() > 0, is_virtual());
        drop(awake);
    }
}
