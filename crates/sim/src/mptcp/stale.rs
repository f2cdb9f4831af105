//! When a subflow is stale, as Linux finds it (`stale_after`, there `net.mptcp.stale_loss_cnt`): the state of one side of a
//! connection. What is done about it is in `world/stale.rs`.
//!
//! The facts are those of Linux 6.18 (`mptcp_pm_subflow_chk_stale`, `mptcp_subflow_get_retrans`): a timer of the data level
//! runs while data acknowledgements make no progress. Each time it expires, the subflows that have data under way are
//! looked at, and one of which nothing has been heard since the last time is one count worse.

use anabranch_link::Nanos;

use crate::engine::timers::Lazy;

/// Bytes that are sent again at most when the timer expires and a subflow is idle: a fragment of the kernel's send
/// queue, 32 KiB.
pub(crate) const HEAD_BYTES: u64 = 32 << 10;
/// The period of the timer while no subflow has one that could tell it (`TCP_RTO_MIN`).
pub(crate) const LEAST_PERIOD: Nanos = 200_000_000;

/// The timer and what it has found.
pub(crate) struct Watchdog {
    pub(crate) timer: Lazy,
    /// When the data level has last made progress, or has last been looked at.
    pub(crate) progress_at: Nanos,
    /// The progress from which the timer runs.
    pub(crate) runs_from: Nanos,
    /// How long it will run from the next progress on.
    pub(crate) period: Nanos,
    /// Counts that a subflow may reach without being stale.
    after: u32,
    subflows: Vec<Silence>,
}

/// How long nothing has been heard of a subflow.
#[derive(Clone, Copy, Default)]
struct Silence {
    /// Expiries without a sign of life.
    count: u32,
    /// Packets delivered when it began.
    delivered: u64,
}

impl Watchdog {
    /// For a side with so many subflows.
    pub(crate) fn new(after: u32, subflows: usize) -> Self {
        Self {
            timer: Lazy::default(),
            progress_at: 0,
            runs_from: 0,
            period: LEAST_PERIOD,
            after,
            subflows: vec![Silence::default(); subflows],
        }
    }

    /// The timer has expired while a subflow has data under way and has delivered so many packets in all. Whether it
    /// has been silent for too long, if there is another one to take its place.
    pub(crate) fn look_at(&mut self, subflow: usize, delivered: u64) -> bool {
        let silence = &mut self.subflows[subflow];
        if silence.count > 0 && silence.delivered != delivered {
            *silence = Silence::default();
            return false;
        }
        *silence = Silence { count: silence.count.saturating_add(1), delivered };
        silence.count > self.after
    }

    /// Expiries without a sign of life.
    pub(crate) fn count(&self, subflow: usize) -> u32 {
        self.subflows[subflow].count
    }

    /// Whether a subflow has been heard of recently enough to take the place of one that is stale.
    pub(crate) fn is_lively(&self, subflow: usize) -> bool {
        self.count(subflow) < self.after.saturating_sub(1).max(1)
    }

    /// The subflow has ended; the next one of its place begins anew.
    pub(crate) fn forget(&mut self, subflow: usize) {
        self.subflows[subflow] = Silence::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_is_stale_with_the_expiry_after_so_many_without_a_sign_of_life() {
        let mut watchdog = Watchdog::new(4, 2);
        let looks: Vec<bool> = (0..6).map(|_| watchdog.look_at(0, 100)).collect();
        assert_eq!(looks, [false, false, false, false, true, true]);
        assert!(!watchdog.is_lively(0) && watchdog.is_lively(1));
    }

    #[test]
    fn a_sign_of_life_ends_the_count_and_begins_none() {
        let mut watchdog = Watchdog::new(4, 1);
        assert!((0..4).all(|_| !watchdog.look_at(0, 100)));
        assert!(!watchdog.look_at(0, 101));
        assert_eq!(watchdog.count(0), 0);
        assert!((0..4).all(|_| !watchdog.look_at(0, 101)));
        assert!(watchdog.look_at(0, 101));
    }

    #[test]
    fn the_substitute_has_at_most_two_counts_less_than_it_may() {
        for (after, most) in [(1, 0), (2, 0), (4, 2)] {
            let mut watchdog = Watchdog::new(after, 1);
            let lively = (0..10).take_while(|_| {
                let lively = watchdog.is_lively(0);
                watchdog.look_at(0, 7);
                lively
            });
            assert_eq!(lively.count(), most + 1, "stale_after = {after}");
        }
    }
}
