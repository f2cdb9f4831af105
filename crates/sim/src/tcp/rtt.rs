//! Round-trip time and retransmission timeout (RFC 6298).

use anabranch_link::Nanos;
use anabranch_scenario::model::{RtoRule, Transport};

/// The longest sample, 537 s: eight of them fit 32 bits. Longer ones (a deep queue before a slow link) count as
/// this much, above the maximum of any sensible timeout.
const LONGEST_SAMPLE_US: u32 = u32::MAX / 8;

/// Estimator of one subflow. `srtt8_us` and `mdev4_us` carry 3 and 2 fraction bits, as in the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    pub(crate) srtt8_us: u32,
    pub(crate) mdev4_us: u32,
    /// 0 before the first sample.
    pub(crate) min_us: u32,
    initial_rto: Nanos,
    min_rto: Nanos,
    granularity: Nanos,
    max_rto: Nanos,
    rule: RtoRule,
    backoff: u32,
}

impl Rtt {
    pub(crate) fn new(transport: &Transport) -> Self {
        Self {
            srtt8_us: 0,
            mdev4_us: 0,
            min_us: 0,
            initial_rto: transport.initial_rto,
            min_rto: transport.min_rto,
            granularity: transport.rto_granularity,
            max_rto: transport.max_rto,
            rule: transport.rto_rule,
            backoff: 0,
        }
    }

    /// A sample in microseconds (RFC 6298 section 2, equations 2.2 and 2.3); ends the back-off.
    #[inline]
    pub(crate) fn sample(&mut self, rtt_us: u32) {
        let rtt_us = rtt_us.clamp(1, LONGEST_SAMPLE_US);
        if self.srtt8_us == 0 {
            self.srtt8_us = 8 * rtt_us;
            self.mdev4_us = 2 * rtt_us;
            self.min_us = rtt_us;
        } else {
            let deviation = rtt_us.abs_diff(self.srtt8_us >> 3);
            self.mdev4_us = self.mdev4_us - (self.mdev4_us >> 2) + deviation;
            self.srtt8_us = self.srtt8_us - (self.srtt8_us >> 3) + rtt_us;
            self.min_us = self.min_us.min(rtt_us);
        }
        self.backoff = 0;
    }

    /// The timeout with its back-off (RFC 6298 sections 2.3 to 2.5 and 5.5).
    #[inline]
    pub(crate) fn rto(&self) -> Nanos {
        let base = if self.srtt8_us == 0 {
            self.initial_rto
        } else {
            let srtt = u64::from(self.srtt8_us) * 125;
            let spread = (u64::from(self.mdev4_us) * 1000).max(self.granularity);
            match self.rule {
                RtoRule::Rfc6298 => (srtt + spread).max(self.min_rto),
                RtoRule::Linux => srtt + spread.max(self.min_rto),
            }
        };
        base.saturating_mul(1 << self.backoff.min(20)).min(self.max_rto)
    }

    /// Expiries since the last sample or acknowledgement of new data.
    pub(crate) fn expiries(&self) -> u32 {
        self.backoff
    }

    /// The timer has expired: double the timeout (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Whether the last timeout has not yet been followed by an acknowledgement of new data.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// New data has been acknowledged.
    #[inline]
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::transport;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_sample_moves_the_estimates_as_rfc_6298_says() {
        let mut rtt = Rtt::new(&Transport { min_rto: 0, ..transport() });
        rtt.srtt8_us = 8 * 100_000;
        rtt.mdev4_us = 4 * 50_000;
        rtt.sample(200_000);
        assert_eq!((rtt.srtt8_us, rtt.mdev4_us), (8 * 112_500, 4 * 62_500));
        assert_eq!(rtt.rto(), 362_500_000, "check vector rto1: 0.3625 s");
    }

    #[test]
    fn the_first_sample_gives_three_times_itself() {
        let mut rtt = Rtt::new(&Transport { min_rto: 0, ..transport() });
        rtt.sample(100_000);
        assert_eq!(rtt.rto(), 300 * MS);
    }

    #[test]
    fn extreme_samples_and_timeouts_do_not_overflow() {
        let mut rtt = Rtt::new(&transport());
        for sample in [u32::MAX, u32::MAX, 0, u32::MAX, u32::MAX] {
            rtt.sample(sample);
        }
        assert!(rtt.srtt8_us >> 3 > 300_000_000, "{} us", rtt.srtt8_us >> 3);
        assert_eq!(rtt.rto(), 60_000 * MS, "the maximum");

        let year = 31_536_000_000 * MS;
        let mut patient = Rtt::new(&Transport { initial_rto: year, max_rto: 10 * year, ..transport() });
        for _ in 0..40 {
            patient.back_off();
        }
        assert_eq!(patient.rto(), 10 * year);
    }

    #[test]
    fn the_minimum_bounds_the_whole_or_the_spread() {
        let mut rfc = Rtt::new(&Transport { min_rto: 200 * MS, ..transport() });
        let mut linux = Rtt::new(&Transport { min_rto: 200 * MS, rto_rule: RtoRule::Linux, ..transport() });
        for _ in 0..100 {
            rfc.sample(10_000);
            linux.sample(10_000);
        }
        assert_eq!(rfc.rto(), 200 * MS);
        assert_eq!(linux.rto(), 210 * MS);
    }

    #[test]
    fn a_steady_round_trip_leaves_the_clock_granularity_as_spread() {
        let mut rtt = Rtt::new(&Transport { min_rto: 0, rto_granularity: 10 * MS, ..transport() });
        for _ in 0..100 {
            rtt.sample(300_000);
        }
        assert_eq!(rtt.rto(), 310 * MS, "RFC 6298 section 2.3: srtt + max(G, 4 rttvar)");
    }

    #[test]
    fn every_expiry_doubles_the_timeout_up_to_its_maximum() {
        let mut rtt = Rtt::new(&Transport { initial_rto: 1000 * MS, max_rto: 5000 * MS, ..transport() });
        let mut timeouts = Vec::new();
        for _ in 0..4 {
            timeouts.push(rtt.rto() / MS);
            rtt.back_off();
        }
        assert_eq!(timeouts, [1000, 2000, 4000, 5000]);
        rtt.end_back_off();
        assert_eq!(rtt.rto(), 1000 * MS);
    }
}
