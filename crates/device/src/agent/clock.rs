//! The time of policies: since 1970, as the machine's clock was when the agent began, and from there on by a clock that nobody sets and
//! that goes on while the machine sleeps.
//!
//! So a clock that jumps moves no back-off, no hold and no look. Left out: a clock that was wrong when the agent began, as
//! on a device without a battery for it, stays wrong for the periods of data caps until the agent begins anew.

use anabranch_policy::paths::Nanos;
use nix::{
    sys::time::TimeValLike as _,
    time::{ClockId, clock_gettime},
};

/// Reads one of the kernel's clocks.
type Read = fn(ClockId) -> Nanos;

pub(super) struct Clock {
    read: Read,
    /// From `CLOCK_BOOTTIME` to the time of policies.
    offset: Nanos,
}

fn kernels(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("every Linux has this clock");
    u64::try_from(time.num_nanoseconds()).expect("the clock does not run before 1970")
}

impl Clock {
    /// The kernel's.
    pub(super) fn begin() -> Self {
        Self::reading(kernels)
    }

    fn reading(read: Read) -> Self {
        let (boot, real) = (read(ClockId::CLOCK_BOOTTIME), read(ClockId::CLOCK_REALTIME));
        Self { read, offset: real.saturating_sub(boot) }
    }

    /// The time of policies.
    pub(super) fn now(&self) -> Nanos {
        (self.read)(ClockId::CLOCK_BOOTTIME) + self.offset
    }

    /// The time of day, for logs.
    pub(super) fn of_day(&self) -> Nanos {
        (self.read)(ClockId::CLOCK_REALTIME)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const S: Nanos = 1_000_000_000;
    const HOUR: Nanos = 3_600 * S;

    thread_local! {
        /// `CLOCK_BOOTTIME` and `CLOCK_REALTIME`.
        static CLOCKS: Cell<(Nanos, Nanos)> = const { Cell::new((50 * S, 1_000_000 * S)) };
    }

    fn set(clock: ClockId) -> Nanos {
        let (boot, real) = CLOCKS.get();
        if clock == ClockId::CLOCK_BOOTTIME { boot } else { real }
    }

    #[test]
    fn a_clock_that_is_set_moves_no_time_of_policies() {
        let clock = Clock::reading(set);
        assert_eq!(clock.now(), 1_000_000 * S);
        for real in [0, 1_000_000 * S - HOUR, 1_000_000 * S + HOUR] {
            let (boot, _) = CLOCKS.get();
            CLOCKS.set((boot + S, real));
            assert_eq!((clock.now(), clock.of_day()), ((boot + S) + 999_950 * S, real));
        }
    }

    #[test]
    fn a_clock_that_was_behind_the_time_since_the_boot_does_not_end_the_agent() {
        CLOCKS.set((50 * S, 20 * S));
        assert_eq!(Clock::reading(set).now(), 50 * S);
    }

    #[test]
    fn the_kernels_clocks_give_the_time_of_day_at_the_beginning() {
        let clock = Clock::begin();
        // Between the two readings there is no more than what a busy machine leaves out.
        assert!(clock.of_day().abs_diff(clock.now()) < 10 * S);
    }
}
