//! A rate that follows a recording: the schedule of delivery opportunities of a mahimahi trace.
//!
//! A trace is a list of times in milliseconds. At each of them the link can send 1500 bytes: several small packets, or a
//! part of a large one, which is finished at the next time. What is left when the queue runs empty is lost. The
//! recording is repeated; its last time is its length.
//!
//! Left out: mahimahi's 4 bytes of TUN header, which later versions of it add to every packet and opportunity.

use anabranch_scenario::model::Trace;

use crate::Nanos;

const MS: Nanos = 1_000_000;

/// Where a link is in its trace.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    trace: Trace,
    period: Nanos,
    /// A time, below the period, at which a repetition begins.
    phase: Nanos,
    /// When the present repetition began; before time 0, it has wrapped around.
    base: Nanos,
    next: usize,
}

impl Schedule {
    /// A schedule that begins at time 0.
    ///
    /// # Panics
    /// If the trace has no length.
    pub(crate) fn new(trace: Trace) -> Self {
        let period = trace.period();
        assert!(period > 0, "a trace has a length");
        Self { trace, period, phase: 0, base: 0, next: 0 }
    }

    /// Lets a repetition begin at `zero`.
    pub(crate) fn begin_at(&mut self, zero: Nanos) {
        self.phase = zero % self.period;
    }

    /// Goes to the first opportunity after `now`.
    pub(crate) fn skip_to_after(&mut self, now: Nanos) {
        let since = (now + self.period - self.phase) % self.period;
        self.base = now.wrapping_sub(since);
        let at_ms = &self.trace.opportunities_ms;
        self.next = at_ms.partition_point(|&at| Nanos::from(at) * MS <= since);
    }

    /// The time of the opportunity.
    pub(crate) fn time(&self) -> Nanos {
        self.base.wrapping_add(Nanos::from(self.trace.opportunities_ms[self.next]) * MS)
    }

    /// Goes to the one after it.
    pub(crate) fn step(&mut self) {
        self.next += 1;
        if self.next == self.trace.opportunities_ms.len() {
            self.next = 0;
            self.base = self.base.wrapping_add(self.period);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(at_ms: &[u32]) -> Schedule {
        Schedule::new(Trace { opportunities_ms: at_ms.into() })
    }

    fn times(schedule: &mut Schedule, now: Nanos, count: usize) -> Vec<Nanos> {
        schedule.skip_to_after(now);
        (0..count)
            .map(|_| {
                let time = schedule.time();
                schedule.step();
                time / MS
            })
            .collect()
    }

    #[test]
    fn a_trace_repeats_after_its_last_time() {
        let mut schedule = schedule(&[2, 2, 5]);
        assert_eq!(times(&mut schedule, 0, 7), [2, 2, 5, 7, 7, 10, 12]);
        assert_eq!(times(&mut schedule, 2 * MS, 2), [5, 7], "those at this time are over");
        assert_eq!(times(&mut schedule, 5 * MS, 2), [7, 7]);
        assert_eq!(times(&mut schedule, 1001 * MS, 3), [1002, 1002, 1005]);
    }

    #[test]
    fn a_time_of_zero_and_the_last_one_of_the_repetition_before_coincide() {
        let mut schedule = schedule(&[0, 4]);
        assert_eq!(times(&mut schedule, 1, 5), [4, 4, 8, 8, 12]);
    }

    #[test]
    fn it_may_begin_anywhere_and_be_asked_for_earlier_times() {
        let mut schedule = schedule(&[2, 2, 5]);
        schedule.begin_at(1003 * MS);
        assert_eq!(times(&mut schedule, 1003 * MS, 4), [1005, 1005, 1008, 1010]);
        assert_eq!(times(&mut schedule, 0, 3), [3, 5, 5]);
    }
}
