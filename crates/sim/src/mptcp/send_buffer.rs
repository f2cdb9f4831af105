//! A send buffer that grows with the congestion windows (`send_buffer_tuning`).
//!
//! The rule is Linux's (`tcp_sndbuf_expand`, `__mptcp_sync_sndbuf`): each subflow adds twice the memory that the largest
//! window it has had so far would take with one buffer per segment, at most the third value of `tcp_wmem`
//! (`send_buffer`); the connection may hold the sum, and the first value of `tcp_wmem` besides. The kernel charges that
//! buffer with the application's bytes. Of Linux 6.18, built without tunnels and 802.11, a connection of MPTCP whose segments are of
//! 448 B or less begins with 29,696 B, one with larger ones with 50,176 B (read from `SO_SNDBUF`, Reno).
//!
//! Left out: that a subflow whose window is full does not grow its part, a factor of three with BBR, more than ten segments
//! of reordering, and memory pressure. TCP needs no such limit here: what it has sent and not seen acknowledged is in
//! its window, which is less than half of the limit.

use anabranch_scenario::model::Transport;

/// The first value of `tcp_wmem`.
const LEAST: u64 = 4096;
/// `TCP_INIT_CWND`.
const LEAST_SEGMENTS: u32 = 10;
/// What the kernel adds to a segment before it rounds up to a power of two (`MAX_TCP_HEADER` and `skb_shared_info`), and
/// after (`sk_buff`).
const HEAD_BYTES: u64 = 256 + 320;
const DESCRIPTOR_BYTES: u64 = 256;

/// What the parts of a side's subflows have grown to.
pub(crate) struct SendTuning {
    /// Memory of one segment.
    segment: u64,
    /// The most that one subflow adds.
    max: u64,
    /// The largest window in segments of each subflow that is open; 0 of the others.
    largest: Vec<u32>,
}

impl SendTuning {
    /// Of a connection with so many subflows; `maximum_segment` is what its SYNs announce.
    pub(crate) fn new(transport: &Transport, maximum_segment: u64, subflows: usize) -> Self {
        let segment = (maximum_segment + HEAD_BYTES).next_power_of_two() + DESCRIPTOR_BYTES;
        let max = transport.send_buffer.unwrap_or(u64::MAX);
        Self { segment, max, largest: vec![0; subflows] }
    }

    /// A subflow that is open has this window.
    pub(crate) fn note(&mut self, subflow: usize, cwnd: u32) {
        let largest = &mut self.largest[subflow];
        *largest = (*largest).max(cwnd).max(LEAST_SEGMENTS);
    }

    /// A subflow has ended.
    pub(crate) fn forget(&mut self, subflow: usize) {
        self.largest[subflow] = 0;
    }

    /// Bytes that the connection may have sent and not seen acknowledged.
    pub(crate) fn limit(&self) -> u64 {
        let part = |&cwnd: &u32| (2 * u64::from(cwnd) * self.segment).min(self.max);
        self.largest.iter().map(part).fold(LEAST, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::transport;

    fn tuning(send_buffer: Option<u64>, maximum_segment: u64) -> SendTuning {
        SendTuning::new(&Transport { send_buffer, ..transport() }, maximum_segment, 2)
    }

    #[test]
    fn a_new_connection_has_what_linux_6_18_tells() {
        for (maximum_segment, bytes) in [(1460, 50_176), (536, 50_176), (448, 29_696), (440, 29_696)] {
            let mut tuning = tuning(None, maximum_segment);
            tuning.note(0, 1);
            assert_eq!(tuning.limit(), bytes, "{maximum_segment}");
        }
    }

    #[test]
    fn the_largest_windows_count_twice_and_add_up_and_no_part_exceeds_the_buffer() {
        let mut tuning = tuning(Some(400_000), 1460);
        for cwnd in [20, 50, 30] {
            tuning.note(0, cwnd);
        }
        assert_eq!(tuning.limit(), 4096 + 2 * 50 * 2304);
        tuning.note(1, 70);
        assert_eq!(tuning.limit(), 4096 + 2 * 50 * 2304 + 2 * 70 * 2304);
        tuning.note(1, 1000);
        assert_eq!(tuning.limit(), 4096 + 2 * 50 * 2304 + 400_000);
        tuning.forget(0);
        assert_eq!(tuning.limit(), 4096 + 400_000);
    }
}
