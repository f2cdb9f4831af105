//! The one place that asks what time it is: deadlines, rates and the dates of files are real.

use std::time::{Instant, SystemTime};

/// For intervals.
#[allow(clippy::disallowed_methods, reason = "connections are real, and so are their timeouts")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A date from an offer; none if this machine cannot represent it.
pub(crate) fn date(seconds: i64, nanoseconds: u32) -> Option<SystemTime> {
    let whole = std::time::Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    base?.checked_add(std::time::Duration::from_nanos(u64::from(nanoseconds)))
}
