//! The clock of the test bed: `CLOCK_MONOTONIC` in nanoseconds.

use nix::{
    errno::Errno,
    sys::time::{TimeSpec, TimeValLike as _},
    time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep},
};

use crate::Nanos;

/// What a clock of the kernel shows.
///
/// # Panics
/// If the kernel has no such clock.
pub fn time_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("every Linux has the clocks that are asked for");
    u64::try_from(time.num_nanoseconds()).expect("the clock does not run before 1970")
}

/// `CLOCK_MONOTONIC`.
pub fn monotonic() -> Nanos {
    time_of(ClockId::CLOCK_MONOTONIC)
}

/// Sleeps until a time of `CLOCK_MONOTONIC`.
pub fn sleep_until(time: Nanos) {
    let due = timespec(time);
    while let Err(Errno::EINTR) =
        clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &due)
    {}
}

/// For system calls; what is too long for them is as long as they can.
pub fn timespec(nanoseconds: Nanos) -> TimeSpec {
    TimeSpec::nanoseconds(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}
