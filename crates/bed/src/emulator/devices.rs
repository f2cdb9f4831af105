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
    time::ClockId,
};

use super::engine::Machine;
use crate::{BedError, Nanos, clock::time_of};

/// Devices, and a bell that wakes whoever waits for them.
pub(crate) struct Devices<'a> {
    files: &'a [File],
    bell: &'a EventFd,
    /// One per device, then the bell.
    polls: Vec<PollFd<'a>>,
    /// A sleep ends this much before its time, and the rest is spent looking at the devices.
    margin: Nanos,
}

/// The largest margin: the processor is for the applications, too.
const LARGEST_MARGIN: Nanos = 60_000;
/// A wait that long is as good as one without an end, and fits every `time_t`.
const DAY: Nanos = 86_400 * 1_000_000_000;

impl<'a> Devices<'a> {
    pub(crate) fn new(files: &'a [File], bell: &'a EventFd) -> Self {
        let descriptors = files.iter().map(|file| file.as_fd()).chain([bell.as_fd()]);
        let polls = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
        Self { files, bell, polls, margin: 0 }
    }
}

impl Devices<'_> {
    /// Looks at the devices, for as long as `time` if there is nothing to see; says whether there is.
    fn look(&mut self, time: Nanos) -> io::Result<bool> {
        let timeout = TimeSpec::from_duration(Duration::from_nanos(time.min(DAY)));
        match ppoll(&mut self.polls, Some(timeout), None) {
            Err(nix::Error::EINTR) => Ok(false),
            result => Ok(result.map_err(io::Error::from)? > 0),
        }
    }

    /// A sleep took so much too long: the margin follows, quickly upwards and slowly downwards, so that it
    /// covers most sleeps.
    fn overslept(&mut self, time: Nanos) {
        let time = time.min(LARGEST_MARGIN);
        if time > self.margin {
            self.margin += (time - self.margin) / 4;
        } else {
            self.margin -= (self.margin - time) / 64;
        }
    }
}

impl Machine for Devices<'_> {
    #[inline]
    fn now(&mut self) -> Nanos {
        time_of(ClockId::CLOCK_MONOTONIC)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<bool> {
        ready.clear();
        let wake_at = until.saturating_sub(self.margin);
        let sleep = wake_at.saturating_sub(self.now());
        if !self.look(sleep)? {
            let mut now = self.now();
            if now < wake_at {
                return Ok(false);
            }
            if sleep > 0 {
                self.overslept(now - wake_at);
            }
            loop {
                if now >= until {
                    return Ok(false);
                }
                if self.look(0)? {
                    break;
                }
                now = self.now();
            }
        }
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
