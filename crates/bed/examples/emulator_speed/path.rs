//! A thread that holds every packet for a constant time on its way from one port to another.

use std::{
    collections::VecDeque,
    io,
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anabranch_bed::emulator::Summary;
use hdrhistogram::Histogram;
use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
    time::{ClockId, clock_gettime},
};

use crate::Failure;

/// Packets that are received or sent by one call, where a port can.
pub(crate) const BATCH: usize = 32;
/// The last part of a wait is spent looking.
const MARGIN: u64 = 50_000;

/// Room for a packet.
pub(crate) struct Buffer {
    pub(crate) bytes: Box<[u8; 2048]>,
    pub(crate) length: usize,
}

/// A way into the kernel.
pub(crate) trait Port: Send {
    /// Is readable when there is a packet.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// Receives packets without waiting, at most one for each buffer; returns how many.
    fn receive(&mut self, buffers: &mut [Buffer]) -> io::Result<usize>;
    /// Sends packets without waiting; those that the kernel refuses are gone.
    fn send(&mut self, packets: &[Buffer]) -> io::Result<()>;
}

/// What a thread has done.
pub(crate) struct Done {
    pub(crate) packets: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) lateness: Summary,
}

/// A thread at work.
pub(crate) struct Forwarding {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Done>>,
}

impl Forwarding {
    pub(crate) fn stop(self) -> Result<Done, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.thread.join().expect("the thread does not panic")?)
    }
}

/// Starts forwarding between two ports, under the same conditions as the emulator.
pub(crate) fn forward(mut ports: [Box<dyn Port>; 2], delay: Duration) -> Result<Forwarding, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new().spawn(move || {
        nix::sys::prctl::set_timerslack(1)?;
        let parameters = libc::sched_param { sched_priority: 10 };
        #[allow(unsafe_code)]
        // SAFETY: the parameters live through the call; 0 is the calling thread.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
        }
        run(&mut ports, delay.as_nanos() as u64, &stopped)
    })?;
    Ok(Forwarding { stop, thread })
}

fn time_of(clock: ClockId) -> u64 {
    Duration::from(clock_gettime(clock).expect("the kernel has this clock")).as_nanos() as u64
}

fn run(ports: &mut [Box<dyn Port>; 2], delay: u64, stop: &AtomicBool) -> io::Result<Done> {
    let now = || time_of(ClockId::CLOCK_MONOTONIC);
    let fresh = || Buffer { bytes: Box::new([0xff; 2048]), length: 0 };
    let mut held: VecDeque<(u64, usize, Buffer)> = VecDeque::new();
    let mut free: Vec<Buffer> = (0..1024).map(|_| fresh()).collect();
    let mut batch: Vec<Buffer> = Vec::new();
    let mut lateness = Histogram::<u64>::new_with_bounds(1, 100_000_000_000, 2).expect("bounds in order");
    while !stop.load(Ordering::Relaxed) {
        let time = now();
        while let Some(&(due, exit, _)) = held.front()
            && due <= time
        {
            while batch.len() < BATCH
                && let Some(&(due, to, _)) = held.front()
                && (due <= time && to == exit)
            {
                lateness.saturating_record(now() - due);
                batch.extend(held.pop_front().map(|(_, _, buffer)| buffer));
            }
            ports[exit].send(&batch)?;
            free.append(&mut batch);
        }
        let ready = wait(ports, held.front().map_or(u64::MAX, |&(due, ..)| due))?;
        for (index, _) in ready.into_iter().enumerate().filter(|&(_, ready)| ready) {
            while batch.len() < BATCH {
                batch.push(free.pop().unwrap_or_else(fresh));
            }
            let received = ports[index].receive(&mut batch)?;
            let due = now() + delay;
            held.extend(batch.drain(..received).map(|buffer| (due, 1 - index, buffer)));
            free.append(&mut batch);
        }
    }
    Ok(Done {
        packets: lateness.len(),
        cpu_ns: time_of(ClockId::CLOCK_THREAD_CPUTIME_ID),
        lateness: Summary {
            count: lateness.len(),
            p50_ns: lateness.value_at_quantile(0.5),
            p90_ns: lateness.value_at_quantile(0.9),
            p99_ns: lateness.value_at_quantile(0.99),
            p999_ns: lateness.value_at_quantile(0.999),
            max_ns: lateness.max(),
        },
    })
}

/// Which ports have packets, at the latest at `until` or a tenth of a second from now.
fn wait(ports: &[Box<dyn Port>; 2], until: u64) -> io::Result<[bool; 2]> {
    let mut polls = [0, 1].map(|index: usize| PollFd::new(ports[index].descriptor(), PollFlags::POLLIN));
    let mut left =
        until.saturating_sub(time_of(ClockId::CLOCK_MONOTONIC)).min(100_000_000).saturating_sub(MARGIN);
    loop {
        let timeout = TimeSpec::from_duration(Duration::from_nanos(left));
        let found = ppoll(&mut polls, Some(timeout), None)? > 0;
        if found || left > MARGIN || time_of(ClockId::CLOCK_MONOTONIC) >= until {
            let [a, b] = &polls;
            return Ok([a, b].map(|poll| poll.any().unwrap_or(true)));
        }
        left = 0;
    }
}
