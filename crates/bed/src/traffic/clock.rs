//! The clock of a run, and waiting that ends when the run does.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::eventfd::{EfdFlags, EventFd},
};

use crate::{
    Nanos,
    clock::{monotonic, sleep_until, timespec},
};

/// The longest that an interrupt goes unnoticed.
const ATTENTION_NS: Nanos = 200_000_000;

/// Time of the scenario on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    zero_ns: u64,
}

impl Clock {
    pub(super) fn new(zero_ns: u64) -> Self {
        Self { zero_ns }
    }

    /// 0 as long as the scenario has not begun.
    pub(super) fn now(self) -> Nanos {
        monotonic().saturating_sub(self.zero_ns)
    }

    /// How long it is until `time`; 0 if it is past.
    fn until(self, time: Nanos) -> Nanos {
        self.zero_ns.saturating_add(time).saturating_sub(monotonic())
    }
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The descriptor is ready, or has an error.
    Ready,
    /// It is time.
    Due,
    /// The applications are to end.
    Stopped,
}

/// The sign for all threads to end.
#[derive(Debug)]
pub(super) struct Stop {
    clock: Clock,
    event: EventFd,
    raised: AtomicBool,
    interrupt: Arc<AtomicBool>,
}

impl Stop {
    pub(super) fn new(clock: Clock, interrupt: Arc<AtomicBool>) -> io::Result<Self> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { clock, event, raised: AtomicBool::new(false), interrupt })
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    pub(super) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.event.write(1).expect("a counter that nobody reads takes one more");
    }

    pub(super) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire) || self.interrupt.load(Ordering::Relaxed)
    }

    /// Waits until `time`, to the precision of the thread's timers.
    pub(super) fn wait_until(&self, time: Nanos) -> Wake {
        let left = self.clock.until(time);
        if left > ATTENTION_NS {
            self.poll([], Some(time.saturating_sub(ATTENTION_NS / 2)));
        }
        if self.is_raised() {
            return Wake::Stopped;
        }
        if left > 0 {
            sleep_until(self.clock.zero_ns.saturating_add(time));
        }
        Wake::Due
    }

    /// Waits until the descriptor is ready for one of the events, or until `time` if there is one.
    pub(super) fn wait_for(
        &self,
        descriptor: BorrowedFd<'_>,
        events: PollFlags,
        time: Option<Nanos>,
    ) -> Wake {
        self.poll([PollFd::new(descriptor, events)], time)
    }

    /// The same for several.
    pub(super) fn wait_for_any<'a>(
        &'a self,
        descriptors: impl IntoIterator<Item = (BorrowedFd<'a>, PollFlags)>,
        time: Option<Nanos>,
    ) -> Wake {
        self.poll(descriptors.into_iter().map(|(descriptor, events)| PollFd::new(descriptor, events)), time)
    }

    fn poll<'a>(&'a self, descriptors: impl IntoIterator<Item = PollFd<'a>>, time: Option<Nanos>) -> Wake {
        let mut watched = vec![PollFd::new(self.event.as_fd(), PollFlags::POLLIN)];
        watched.extend(descriptors);
        loop {
            if self.is_raised() {
                return Wake::Stopped;
            }
            let left = time.map_or(ATTENTION_NS, |time| self.clock.until(time));
            if left == 0 {
                return Wake::Due;
            }
            match ppoll(&mut watched, Some(timespec(left.min(ATTENTION_NS))), None) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) if self.is_raised() => return Wake::Stopped,
                Ok(_) => return Wake::Ready,
                Err(error) => panic!("polling open descriptors cannot fail, but: {error}"),
            }
        }
    }
}
