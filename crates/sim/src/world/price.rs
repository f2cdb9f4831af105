//! What a bit costs on a subflow: the linear model of the radios on its path, for energy-aware congestion controls.
//!
//! The energy per bit at x Mbit/s is the sum of `b + theta / x` over the interfaces that the path goes through, x being
//! the window per smoothed round-trip time.
//!
//! Left out, and who could notice: promotions and tails, which make the first bits after a pause dear; other traffic
//! of the radio, with which `theta` would be shared. A sender knows the radios of both ends here, as none does outside.
//!
//! Whole numbers only, because prices move windows.

use anabranch_scenario::model::{Hop, Scenario};

/// Slope and intercept of a path's radios together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Price {
    slope_pj_per_bit: u64,
    theta_uw: u64,
}

impl Price {
    /// Of the interfaces on a path; `None` if there are none.
    pub(super) fn of(scenario: &Scenario, hops: &[Hop]) -> Option<Self> {
        let thousandths = |value: f64| (value * 1000.0).round() as u64;
        let mut on_path = scenario.interfaces.iter().filter(|interface| interface.is_on(hops)).peekable();
        on_path.peek()?;
        Some(on_path.fold(Self::default(), |sum, interface| Self {
            slope_pj_per_bit:
                sum.slope_pj_per_bit.saturating_add(thousandths(interface.radio.linear.b_mw_per_mbps)),
            theta_uw: sum.theta_uw.saturating_add(thousandths(interface.radio.linear.theta_mw)),
        }))
    }

    /// Energy per bit in nJ, at least 1, of a window of `cwnd` packets of `bytes` per round trip; 0 (unknown) before the
    /// first sample of one. Bits per microsecond are Mbit/s, and microwatts over Mbit/s are pJ/bit.
    pub(super) fn nj_per_bit(self, cwnd: u32, bytes: u32, srtt8_us: u32) -> u32 {
        if srtt8_us == 0 {
            return 0;
        }
        let bits8 = (u64::from(cwnd) * u64::from(bytes) * 64).max(1);
        let share_pj = self.theta_uw.saturating_mul(u64::from(srtt8_us)) / bits8;
        let pj = self.slope_pj_per_bit.saturating_add(share_pj).saturating_add(500);
        u32::try_from(pj / 1000).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIFI: Price = Price { slope_pj_per_bit: 137_000, theta_uw: 132_900 };
    const LTE: Price = Price { slope_pj_per_bit: 52_000, theta_uw: 1_288_000 };

    #[test]
    fn ee_mptcps_radios_take_154_and_124_nj_per_bit_at_8_and_18_mbits() {
        // 100 packets of 1000 bytes in 100 ms are 8 Mbit/s, 225 are 18.
        assert_eq!(WIFI.nj_per_bit(100, 1000, 800_000), 154, "153.61");
        assert_eq!(LTE.nj_per_bit(225, 1000, 800_000), 124, "123.56");
    }

    #[test]
    fn unknown_before_a_sample_and_never_free() {
        assert_eq!(WIFI.nj_per_bit(10, 1000, 0), 0);
        assert_eq!(Price::default().nj_per_bit(10, 1000, 800), 1);
        assert_eq!(Price { slope_pj_per_bit: 1, theta_uw: u64::MAX }.nj_per_bit(1, 1, u32::MAX), u32::MAX);
    }

    #[test]
    fn a_path_has_the_price_of_all_its_radios() {
        let text = r#"
            name = "price"
            duration = "1 s"
            node = [{ names = ["phone", "router", "tv"] }]
            link = [
                { name = "wifi", between = ["phone", "router"], rate = "8 Mbit/s", delay = "1 ms", queue = "unlimited" },
                { name = "cable", between = ["router", "tv"], rate = "8 Mbit/s", delay = "1 ms", queue = "unlimited" },
            ]
            interface = [
                { node = "phone", link = "wifi", radio = "wifi" },
                { node = "router", link = "wifi", radio = "wifi" },
            ]
            connection = [
                { name = "up", from = "phone", to = "tv", congestion = "reno" },
                { name = "wired", from = "router", to = "tv", congestion = "reno" },
            ]"#;
        let scenario =
            anabranch_scenario::load(text, "price.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let scenario = scenario.scenario;
        let price = |index: usize| Price::of(&scenario, &scenario.connections[index].subflows[0].hops);
        assert_eq!(price(0), Some(Price { slope_pj_per_bit: 274_000, theta_uw: 265_800 }));
        assert_eq!(price(1), None);
    }
}
