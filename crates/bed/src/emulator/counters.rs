//! What the emulator counts, and how late it was.

use anabranch_link::{Drop, medium::AirCounters};
use hdrhistogram::Histogram;

use crate::Nanos;

/// The state of the emulated network at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Time of `CLOCK_MONOTONIC` at which all of this held.
    pub at_ns: Nanos,
    /// Direction `2 * link` runs forward, `2 * link + 1` back; then the media.
    pub links: Vec<LinkCounters>,
    /// In the order in which the routes were given.
    pub routes: Vec<RouteCounters>,
    /// In the order of the scenario.
    pub interfaces: Vec<InterfaceCounters>,
    /// Packets that were no IP packets or matched no route, such as router solicitations.
    pub strays: u64,
    /// The largest packet that has entered.
    pub largest_bytes: u32,
    /// How late packets have left so far.
    pub lateness: Summary,
}

impl Counters {
    /// Packets that the kernel refused to take at their exit.
    pub fn refused(&self) -> u64 {
        self.routes.iter().map(|route| route.refused).sum()
    }
}

/// One direction of a wire, or a medium, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets in the queue now, the one in transmission included; of a medium, at all stations.
    pub queued: u32,
    /// Packets that arrived at the far end.
    pub packets: u64,
    /// Bytes that arrived at the far end.
    pub bytes: u64,
    /// Packets that the queue dropped.
    pub dropped_queue: u64,
    /// Packets that met a link that was down.
    pub dropped_down: u64,
    /// Packets lost at random, or given up by a medium.
    pub lost: u64,
    /// Packets that the queue marked instead of dropping them.
    pub marked: u64,
    /// What happened on the air of a medium.
    pub air: Option<AirCounters>,
}

/// What an interface has carried since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Bytes that its node has sent, those lost on the way included.
    pub up_bytes: u64,
    /// Bytes that its node has received.
    pub down_bytes: u64,
}

/// The packets of one route since the start. What entered has left, been lost, been refused or is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Packets that entered.
    pub packets_in: u64,
    /// Packets that left.
    pub packets_out: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Packets that a queue dropped.
    pub lost_queue: u64,
    /// Packets that met a link that was down.
    pub lost_down: u64,
    /// Packets lost at random, or given up by a medium.
    pub lost_random: u64,
    /// Packets that the kernel refused at the exit.
    pub refused: u64,
}

impl RouteCounters {
    pub(crate) fn count(&mut self, why: Drop) {
        match why {
            Drop::Queue => self.lost_queue += 1,
            Drop::Down => self.lost_down += 1,
            Drop::Loss => self.lost_random += 1,
        }
    }
}

/// Quantiles of a time that was measured again and again, in nanoseconds, within 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// How often it was measured.
    pub count: u64,
    /// Median.
    pub p50_ns: Nanos,
    /// 90th percentile.
    pub p90_ns: Nanos,
    /// 99th percentile.
    pub p99_ns: Nanos,
    /// 99.9th percentile.
    pub p999_ns: Nanos,
    /// Maximum.
    pub max_ns: Nanos,
}

/// A distribution of times with a relative error below 1 %.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

/// Times above this count as this.
const LONGEST: Nanos = 100_000_000_000;

impl Times {
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are in order"))
    }

    #[inline]
    pub(crate) fn record(&mut self, time: Nanos) {
        self.0.saturating_record(time);
    }

    /// Count, quantiles and maximum.
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.0.len(),
            p50_ns: self.0.value_at_quantile(0.5),
            p90_ns: self.0.value_at_quantile(0.9),
            p99_ns: self.0.value_at_quantile(0.99),
            p999_ns: self.0.value_at_quantile(0.999),
            max_ns: self.0.max(),
        }
    }

    /// The cells that are not empty, ascending: the highest time that falls into one, and how many did.
    pub fn cells(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0.iter_recorded().map(|cell| (cell.value_iterated_to(), cell.count_at_value()))
    }
}

/// A finished emulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// The counters at the end.
    pub counters: Counters,
    /// How long after it was due each packet was written to its exit.
    pub lateness: Times,
    /// How long the thread did not look at the devices, each time it turned to something else: a packet that
    /// came meanwhile entered late by up to this.
    pub gaps: Times,
    /// Processor time of the thread, with what the kernel did in it to receive the packets.
    pub cpu_ns: Nanos,
    /// How often the thread waited for packets or for time to pass.
    pub wakeups: u64,
    /// The thread ran under `SCHED_FIFO`, which takes `CAP_SYS_NICE`.
    pub realtime: bool,
    /// The system's last reason to refuse a packet, such as `EIO` of an interface that is down.
    pub refusal: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut times = Times::new();
        (1..=100_000).for_each(|time| times.record(time));
        let summary = times.summary();
        assert_eq!((summary.count, Times::new().summary()), (100_000, Summary::default()));
        for (found, exact) in [(summary.p50_ns, 50_000), (summary.p99_ns, 99_000), (summary.max_ns, 100_000)]
        {
            assert!(found.abs_diff(exact) * 100 <= exact, "{found} for {exact}");
        }
        assert_eq!(times.cells().map(|(_, count)| count).sum::<u64>(), 100_000);
    }

    #[test]
    fn a_time_beyond_the_bounds_is_counted_as_the_longest() {
        let mut times = Times::new();
        times.record(Nanos::MAX);
        let max = times.summary().max_ns;
        assert!(max.abs_diff(LONGEST) * 100 <= LONGEST, "{max}");
    }
}
