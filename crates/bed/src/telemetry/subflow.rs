//! A subflow of the scenario over all that the kernel opens for it.
//!
//! The kernel may close a subflow and open another one from the same address, whose counters begin at 0.
//! For the scenario it is one and the same, so that counters are added up over all of them.

use std::net::SocketAddr;

use super::SubflowSample;

/// What has been counted since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) bytes_acked: u64,
    pub(super) packets: u64,
    pub(super) retransmits: u64,
    /// `None` if the kernel does not tell.
    pub(super) timeouts: Option<u64>,
    pub(super) rwnd_limited_us: u64,
    pub(super) sndbuf_limited_us: u64,
}

impl Totals {
    const ZERO: Self = Self {
        bytes_acked: 0,
        packets: 0,
        retransmits: 0,
        timeouts: Some(0),
        rwnd_limited_us: 0,
        sndbuf_limited_us: 0,
    };

    fn of(sample: &SubflowSample) -> Self {
        Self {
            // The SYN counts as a byte, but is no payload.
            bytes_acked: sample.bytes_acked.saturating_sub(1),
            packets: u64::from(sample.data_segs_out),
            retransmits: u64::from(sample.total_retrans),
            timeouts: sample.total_rto.map(u64::from),
            rwnd_limited_us: sample.rwnd_limited_us,
            sndbuf_limited_us: sample.sndbuf_limited_us,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            bytes_acked: self.bytes_acked + other.bytes_acked,
            packets: self.packets + other.packets,
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts.zip(other.timeouts).map(|(a, b)| a + b),
            rwnd_limited_us: self.rwnd_limited_us + other.rwnd_limited_us,
            sndbuf_limited_us: self.sndbuf_limited_us + other.sndbuf_limited_us,
        }
    }
}

/// What tells one opening from the next. Before Linux 6.5 there is no identifier, but a port is rarely the same.
type Key = (Option<u32>, SocketAddr, SocketAddr);

/// The kernel's subflows from one address, in the order in which they appeared.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    openings: Vec<(Key, Totals)>,
    current: Option<SubflowSample>,
    min_rtt_us: Option<u32>,
}

impl Track {
    /// Takes over what the kernel tells now of the subflows from this address.
    pub(super) fn update<'a>(&mut self, samples: impl Iterator<Item = &'a SubflowSample>) {
        self.current = None;
        for sample in samples.filter(|sample| !sample.is_closed()) {
            let key = (sample.id, sample.local, sample.remote);
            let totals = Totals::of(sample);
            match self.openings.iter_mut().rfind(|(of, _)| *of == key) {
                Some((_, last))
                    if last.packets <= totals.packets && last.bytes_acked <= totals.bytes_acked =>
                {
                    *last = totals;
                }
                _ => self.openings.push((key, totals)),
            }
            self.min_rtt_us = self.min_rtt_us.into_iter().chain(sample.min_rtt_us).min();
            // Of several the youngest: the others are about to close.
            self.current = Some(sample.clone());
        }
    }

    /// No reading is to be had: the socket is not open.
    pub(super) fn lose_sight(&mut self) {
        self.current = None;
    }

    /// The subflow as it is now, if it is open.
    pub(super) fn current(&self) -> Option<&SubflowSample> {
        self.current.as_ref()
    }

    /// Whether the kernel has ever opened it.
    pub(super) fn has_been_open(&self) -> bool {
        !self.openings.is_empty()
    }

    /// Counters over all openings.
    pub(super) fn totals(&self) -> Totals {
        self.openings.iter().fold(Totals::ZERO, |sum, &(_, totals)| sum.plus(totals))
    }

    /// Smallest round-trip time that the kernel has told of.
    pub(super) fn min_rtt_us(&self) -> Option<u32> {
        self.min_rtt_us
    }
}
