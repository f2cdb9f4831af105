//! The engine's machine in earnest: `CLOCK_MONOTONIC` and TUN devices.

use std::{
    fs::File,
    io::{self, IoSliceMut, Read as _, Write as _},
    os::fd::AsFd as _,
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{eventfd::EventFd, time::TimeSpec},
    time::{ClockId, clock_gettime},
};

use super::engine::Machine;
use crate::{BedError, Nanos};

/// The time of a clock in nanoseconds.
pub(crate) fn time_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("the kernel has this clock");
    time.tv_sec() as Nanos * 1_000_000_000 + time.tv_nsec() as Nanos
}

/// Devices, and a bell that wakes whoever waits for them.
pub(crate) struct Devices<'a> {
    files: &'a [File],
    bell: &'a EventFd,
    /// One per device, then the bell.
    polls: Vec<PollFd<'a>>,
}

impl<'a> Devices<'a> {
    pub(crate) fn new(files: &'a [File], bell: &'a EventFd) -> Self {
        let descriptors = files.iter().map(|file| file.as_fd()).chain([bell.as_fd()]);
        let polls = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
        Self { files, bell, polls }
    }
}

impl Machine for Devices<'_> {
    #[inline]
    fn now(&mut self) -> Nanos {
        time_of(ClockId::CLOCK_MONOTONIC)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<bool> {
        ready.clear();
        let timeout = Duration::from_nanos(until.saturating_sub(self.now()));
        // A day is as good as for ever, and fits any time_t.
        let timeout = TimeSpec::from_duration(timeout.min(Duration::from_secs(86_400)));
        match ppoll(&mut self.polls, Some(timeout), None) {
            Ok(0) | Err(nix::Error::EINTR) => return Ok(false),
            result => result.map_err(io::Error::from)?,
        };
        let has_events = |poll: &PollFd| poll.revents().is_none_or(|events| !events.is_empty());
        let (bell, devices) = self.polls.split_last().expect("the bell is always there");
        ready.extend(devices.iter().enumerate().filter(|(_, poll)| has_events(poll)).map(|(index, _)| index));
        let rang = has_events(bell);
        if rang {
            self.bell.read().map_err(io::Error::from)?;
        }
        Ok(rang)
    }

    #[inline]
    fn read(&mut self, device: usize, start: &mut [u8], rest: &mut [u8]) -> io::Result<usize> {
        (&self.files[device]).read_vectored(&mut [IoSliceMut::new(start), IoSliceMut::new(rest)])
    }

    #[inline]
    fn write(&mut self, device: usize, packet: &[u8]) -> io::Result<()> {
        (&self.files[device]).write(packet).map(|_| ())
    }
}

/// Makes the calling thread as punctual as the system permits; says whether it runs under `SCHED_FIFO` now.
///
/// # Errors
/// [`BedError::System`] if the kernel refuses exact timers.
pub(crate) fn make_punctual() -> Result<bool, BedError> {
    nix::sys::prctl::set_timerslack(1)
        .map_err(io::Error::from)
        .map_err(BedError::system("asking for exact timers"))?;
    // Above every ordinary thread and below the kernel's own at 50.
    let parameters = libc::sched_param { sched_priority: 10 };
    #[allow(unsafe_code)]
    // SAFETY: the parameters live through the call; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    Ok(result == 0)
}
