//! Timers: a heap of (time, id) with lazy re-arming.
//!
//! A retransmission timer moves with every ACK but rarely fires. So the heap holds at most one live entry
//! per timer, at or before its deadline; when that entry comes up early, it is put back at the deadline.

use anabranch_link::{NEVER, Nanos};

/// What a timer is for. The order of the variants decides between timers of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum TimerKind {
    /// A link changes.
    Change,
    /// The measurement window begins or ends.
    Window,
    /// A point of the series.
    Sample,
    /// A bin of the interfaces' traffic ends.
    EnergyBin,
    /// A connection is opened.
    Open,
    /// An application stops writing.
    Stop,
    /// An application wants to be woken (connection).
    Application,
    /// Something happens to a subflow.
    Event,
    /// A path manager looks (connection).
    Paths,
    /// A datagram is sent.
    Datagram,
    /// A delayed acknowledgement is due (endpoint).
    DelayedAck,
    /// The retransmission timer of an endpoint; RACK-TLP sets it for its reordering windows and probes too, which it
    /// never waits for at the same time (RFC 8985 section 8).
    Retransmit,
    /// The pacer of an endpoint lets the next burst out.
    Pace,
    /// The data level of a side has made no progress for a while (twice the connection, and the side).
    Data,
}

/// A timer: its kind and what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId {
    pub(crate) kind: TimerKind,
    pub(crate) index: u32,
}

/// The heap, four children per node.
#[derive(Default)]
pub(crate) struct Timers {
    heap: Vec<(Nanos, TimerId)>,
}

impl Timers {
    /// Time of the first entry.
    #[inline]
    pub(crate) fn first(&self) -> Nanos {
        self.heap.first().map_or(NEVER, |entry| entry.0)
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, time: Nanos, kind: TimerKind, index: u32) {
        self.heap.push((time, TimerId { kind, index }));
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= self.heap[at] {
                break;
            }
            self.heap.swap(parent, at);
            at = parent;
        }
    }

    /// Removes the first entry.
    pub(crate) fn pop(&mut self) -> Option<(Nanos, TimerId)> {
        if self.heap.is_empty() {
            return None;
        }
        let first = self.heap.swap_remove(0);
        let mut at = 0;
        loop {
            let children = 4 * at + 1..(4 * at + 5).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if self.heap[at] <= self.heap[least] {
                break;
            }
            self.heap.swap(at, least);
            at = least;
        }
        Some(first)
    }
}

/// A timer that is often moved and rarely fires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lazy {
    deadline: Nanos,
    /// Time of the live entry in the heap; entries at other times are stale.
    queued_at: Nanos,
}

impl Default for Lazy {
    fn default() -> Self {
        Self { deadline: NEVER, queued_at: NEVER }
    }
}

impl Lazy {
    /// Whether it will fire.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.deadline != NEVER
    }

    /// Sets or moves the deadline.
    #[inline]
    pub(crate) fn arm(&mut self, deadline: Nanos, timers: &mut Timers, kind: TimerKind, index: u32) {
        self.deadline = deadline;
        if deadline < self.queued_at {
            self.queued_at = deadline;
            timers.push(deadline, kind, index);
        }
    }

    /// Time until its deadline; 0 if it is not armed or late.
    pub(crate) fn left(&self, now: Nanos) -> Nanos {
        if self.is_armed() { self.deadline.saturating_sub(now) } else { 0 }
    }

    /// Stops it.
    #[inline]
    pub(crate) fn disarm(&mut self) {
        self.deadline = NEVER;
    }

    /// An entry of this timer has come up: true if the deadline has been reached.
    pub(crate) fn fires(&mut self, now: Nanos, timers: &mut Timers, id: TimerId) -> bool {
        if now != self.queued_at {
            return false;
        }
        self.queued_at = NEVER;
        if self.deadline > now {
            if self.deadline != NEVER {
                self.arm(self.deadline, timers, id.kind, id.index);
            }
            return false;
        }
        self.deadline = NEVER;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_come_out_in_order(times in prop::collection::vec((0_u64..50, 0_u32..9), 0..200)) {
            let mut timers = Timers::default();
            for &(time, index) in &times {
                timers.push(time, TimerKind::Open, index);
            }
            let mut sorted = times;
            sorted.sort_unstable();
            let out: Vec<_> = std::iter::from_fn(|| timers.pop()).map(|(t, id)| (t, id.index)).collect();
            prop_assert_eq!(out, sorted);
        }
    }

    #[test]
    fn a_moved_timer_fires_once_at_its_last_deadline() {
        let mut timers = Timers::default();
        let mut timer = Lazy::default();
        for deadline in [10, 30, 20] {
            timer.arm(deadline, &mut timers, TimerKind::Retransmit, 0);
        }
        let mut fired = Vec::new();
        while let Some((time, id)) = timers.pop() {
            if timer.fires(time, &mut timers, id) {
                fired.push(time);
            }
        }
        assert_eq!(fired, [20]);
    }

    #[test]
    fn a_disarmed_timer_does_not_fire() {
        let mut timers = Timers::default();
        let mut timer = Lazy::default();
        timer.arm(10, &mut timers, TimerKind::Retransmit, 0);
        timer.disarm();
        let (time, id) = timers.pop().expect("the entry is still there");
        assert!(!timer.fires(time, &mut timers, id));
        assert!(timers.pop().is_none());
    }
}
