//! How long data waits at the data level for earlier data: head-of-line blocking.
//!
//! What the subflows hold back until their own gaps are filled is not here: a segment comes when its subflow could
//! deliver it.

use std::collections::BTreeMap;

use anabranch_link::Nanos;

/// What has waited so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    /// Time during which something was held.
    pub(crate) blocked: Nanos,
    /// Bytes that were held and have been delivered.
    pub(crate) bytes: u64,
    /// How long they waited, in bytes times nanoseconds.
    pub(crate) byte_time: u128,
    /// The longest that one waited.
    pub(crate) longest: Nanos,
}

impl Waited {
    /// What has waited at both ends of a connection.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            blocked: self.blocked + other.blocked,
            bytes: self.bytes + other.bytes,
            byte_time: self.byte_time + other.byte_time,
            longest: self.longest.max(other.longest),
        }
    }
}

/// The segments that wait now, and what has waited.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Since when, by number.
    since: BTreeMap<u64, Nanos>,
    /// Since when something has been held; counts while something is.
    blocked_since: Nanos,
    waited: Waited,
}

impl Waits {
    /// A segment is held from now on.
    pub(crate) fn begin(&mut self, number: u64, now: Nanos) {
        if self.since.is_empty() {
            self.blocked_since = now;
        }
        self.since.insert(number, now);
    }

    /// A segment of `len` bytes is let go.
    pub(crate) fn end(&mut self, number: u64, len: u64, now: Nanos) {
        let Some(since) = self.since.remove(&number) else { return };
        let (wait, waited) = (now - since, &mut self.waited);
        waited.bytes += len;
        waited.byte_time += u128::from(len) * u128::from(wait);
        waited.longest = waited.longest.max(wait);
        if self.since.is_empty() {
            waited.blocked += now - self.blocked_since;
        }
    }

    /// What has waited until now.
    pub(crate) fn until(&self, now: Nanos) -> Waited {
        let blocked = if self.since.is_empty() { 0 } else { now - self.blocked_since };
        Waited { blocked: self.waited.blocked + blocked, ..self.waited }
    }
}
