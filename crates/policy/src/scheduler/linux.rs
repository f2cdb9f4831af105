//! The scheduler of mainline Linux (`mptcp_subflow_get_send` in `net/mptcp/protocol.c`): the subflow whose queue drains first
//! gets a burst.
//!
//! A subflow is given data beyond its window, as a socket takes them into its send buffer: that lets its queue grow until
//! another drains sooner. The time to drain is `queue / pacing rate`, with the rate averaged over bursts.
//!
//! We differ in: the send buffer, which Linux counts in memory with the overhead of packets and lets grow with the window
//! (`tcp_sndbuf_expand`); here it is twice the window in segments, 20 at least. Reinjections go where minRTT would send
//! them (Linux takes a subflow with nothing under way).

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, Sends, Subflow, eligible, is_again,
    minrtt::by_rtt, minrtt::fastest,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "linux",
    title: "default of mainline Linux: the subflow whose queue drains first gets a burst",
    tag: "A",
    params: &[],
    sends: Sends::Queued,
    reckons_energy: false,
    weighs: false,
    make: |setup| Box::new(Linux { average: vec![None; setup.subflows.len()], ..Linux::default() }),
};

/// `MPTCP_SEND_BURST_SIZE`: 64 KiB less a header of 108 bytes.
const BURST_BYTES: u64 = 65_428;
/// Segments of an initial window, the least that a send buffer holds twice.
const INITIAL_WINDOW: u32 = 10;

/// The current burst, and the rate that each subflow is taken to drain at.
#[derive(Default)]
struct Linux {
    /// Bytes per second; `None` before it was first considered with a sample of the round-trip time.
    average: Vec<Option<u64>>,
    current: usize,
    /// Bytes of the current burst that have not been given out.
    left: u64,
}

fn queue_bytes(subflow: &Subflow) -> u64 {
    u64::from(subflow.unacknowledged + subflow.queued) * u64::from(subflow.segment_bytes)
}

fn has_memory(subflow: &Subflow) -> bool {
    subflow.unacknowledged + subflow.queued < 2 * subflow.cwnd.max(INITIAL_WINDOW)
}

/// Linux's rate before the first sample: as if that were 1/8 us, doubled for slow start.
fn pace(subflow: &Subflow) -> u64 {
    let unknown = u64::from(subflow.cwnd) * u64::from(subflow.segment_bytes) * 16_000_000;
    subflow.pacing_bytes_per_s.unwrap_or(unknown)
}

/// Time to drain, in units of 2^-32 s.
fn linger(queue_bytes: u64, pace: u64) -> u128 {
    // Below 2^64 times 2^32.
    (u128::from(queue_bytes) << 32) / u128::from(pace.max(1))
}

/// The average after a burst: of what the queue held at the old one, and the burst at the new rate.
fn averaged(average: u64, queue_bytes: u64, pace: u64, burst: u64) -> u64 {
    let sum = u128::from(average) * u128::from(queue_bytes) + u128::from(pace) * u128::from(burst);
    u64::try_from(sum / u128::from(burst + queue_bytes)).unwrap_or(u64::MAX)
}

impl Linux {
    fn average(&mut self, index: usize, subflow: &Subflow) -> u64 {
        let known = subflow.pacing_bytes_per_s;
        let average = &mut self.average[index];
        *average = average.or(known);
        average.unwrap_or_else(|| pace(subflow))
    }

    /// The subflow that drains first, with what is known of it.
    fn shortest(&mut self, subflows: &[Candidate], details: &dyn Details) -> Option<(usize, Subflow)> {
        let with_linger = eligible(subflows).map(|(index, _)| {
            let subflow = details.subflow(index);
            let average = self.average(index, &subflow);
            (linger(queue_bytes(&subflow), average), index, subflow)
        });
        with_linger
            .min_by_key(|&(linger, index, _)| (linger, index))
            .map(|(_, index, subflow)| (index, subflow))
    }
}

impl Scheduler for Linux {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        if is_again(subflows) {
            return fastest(subflows);
        }
        if self.left > 0 && eligible(subflows).any(|(index, _)| index == self.current) {
            let subflow = details.subflow(self.current);
            if has_memory(&subflow) {
                self.left = self.left.saturating_sub(u64::from(subflow.segment_bytes));
                return Pick::Queue(self.current);
            }
        }
        let Some((index, subflow)) = self.shortest(subflows, details) else { return Pick::Wait };
        if !has_memory(&subflow) {
            return Pick::Wait;
        }
        let connection = details.connection();
        let burst = BURST_BYTES.min(connection.window_bytes.saturating_sub(connection.unacknowledged_bytes));
        let average = self.average(index, &subflow);
        if subflow.pacing_bytes_per_s.is_some() && burst > 0 {
            self.average[index] = Some(averaged(average, queue_bytes(&subflow), pace(&subflow), burst));
        }
        self.current = index;
        self.left = burst.saturating_sub(u64::from(subflow.segment_bytes));
        Pick::Queue(index)
    }

    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason {
        let about = answer.subflow();
        if is_again(subflows) {
            return by_rtt(subflows, about);
        }
        let drains_us = |index: usize| {
            let subflow = details.subflow(index);
            let average = self.average[index].unwrap_or_else(|| pace(&subflow));
            u64::try_from((linger(queue_bytes(&subflow), average) * 1_000_000) >> 32).unwrap_or(u64::MAX)
        };
        match answer {
            Answer::Takes(_) => Reason::new(
                "drains-first",
                &[("drains_us", drains_us(about)), ("burst_left_bytes", self.left)],
            ),
            Answer::Leaves(_) => Reason::new("first-is-full", &[("drains_us", drains_us(about))]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Connection, testing::Still, testing::candidate, testing::make};
    use super::*;

    fn subflow(unacknowledged: u32, pacing: u64) -> Subflow {
        Subflow {
            cwnd: 40,
            unacknowledged,
            segment_bytes: 1000,
            pacing_bytes_per_s: Some(pacing),
            ..Subflow::default()
        }
    }

    fn still(subflows: [Subflow; 2], window_bytes: u64) -> Still {
        let connection = Connection { window_bytes, ..Connection::default() };
        Still { subflows: subflows.to_vec(), connection }
    }

    #[test]
    fn c3_the_shorter_linger_wins_and_its_average_moves_by_the_burst() {
        // 60000 B at 1.25e6 B/s are 48 ms, 10000 B at 0.625e6 B/s are 16 ms, in units of 2^-32 s.
        assert_eq!([linger(60_000, 1_250_000), linger(10_000, 625_000)], [206_158_430, 68_719_476]);
        let mut linux = make("linux", &[1; 2]);
        let both = still([subflow(60, 1_250_000), subflow(10, 625_000)], u64::MAX);
        assert_eq!(linux.pick(&[candidate(20, true); 2], &both), Pick::Queue(1));
        assert_eq!(averaged(625_000, 10_000, 1_000_000, 60_000), 946_428, "946429 B/s, rounded down");
    }

    #[test]
    fn a_burst_stays_on_its_subflow_until_65428_bytes_are_given_out() {
        let mut linux = make("linux", &[1; 2]);
        let candidates = [candidate(20, true); 2];
        let begins = still([subflow(0, 1_000_000), subflow(1, 1_000_000)], u64::MAX);
        assert_eq!(linux.pick(&candidates, &begins), Pick::Queue(0));
        // The other one drains sooner from now on.
        let goes_on = still([subflow(30, 1_000_000), subflow(0, 1_000_000)], u64::MAX);
        let given = (1..).take_while(|_| linux.pick(&candidates, &goes_on) == Pick::Queue(0)).count();
        assert_eq!(1 + given, 66, "the last segment is begun by 65428 bytes");
    }

    #[test]
    fn the_receive_window_bounds_a_burst() {
        let mut linux = make("linux", &[1; 2]);
        let candidates = [candidate(20, true); 2];
        let begins = still([subflow(0, 1_000_000), subflow(1, 1_000_000)], 2_000);
        assert_eq!(linux.pick(&candidates, &begins), Pick::Queue(0));
        let goes_on = still([subflow(2, 1_000_000), subflow(0, 1_000_000)], 2_000);
        assert_eq!(linux.pick(&candidates, &goes_on), Pick::Queue(0));
        assert_eq!(linux.pick(&candidates, &goes_on), Pick::Queue(1));
    }

    #[test]
    fn the_subflow_that_drains_first_is_waited_for_when_its_send_buffer_is_full() {
        let mut linux = make("linux", &[1; 2]);
        let full = Subflow { cwnd: 4, ..subflow(20, 10_000_000) };
        let both = still([full, subflow(20, 1_000_000)], u64::MAX);
        assert_eq!(linux.pick(&[candidate(20, false), candidate(20, true)], &both), Pick::Wait);
        let room = Subflow { unacknowledged: 19, ..full };
        let both = still([room, subflow(20, 1_000_000)], u64::MAX);
        let picked = linux.pick(&[candidate(20, false), candidate(20, true)], &both);
        assert_eq!(picked, Pick::Queue(0), "it is given data though its window is full");
    }
}
