//! EE-MPTCP's model: power is linear in throughput, and nothing where nothing is carried.
//!
//! `P(x) = b x + theta` for `x > 0`, else 0 (eq. (3)). The paper's constants are the rounded downlink slopes of Huang
//! et al. 2012, although its devices upload. `x` is what the interface carries in both directions together.
//!
//! Left out, and who could notice: tails and promotions. An LTE radio that sends one packet a minute is as good as
//! off here, and nearly always awake in [`super::Huang`].

use super::{Activity, megabits, millijoules};

/// Slope and intercept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// Slope `b` in mW per Mbit/s, which is nJ/bit.
    pub b_mw_per_mbps: f64,
    /// Intercept `theta` in mW, while anything is carried.
    pub theta_mw: f64,
}

impl Linear {
    /// Wi-Fi in EE-MPTCP.
    pub const WIFI: Self = Self { b_mw_per_mbps: 137.0, theta_mw: 132.9 };
    /// LTE in EE-MPTCP.
    pub const LTE: Self = Self { b_mw_per_mbps: 52.0, theta_mw: 1288.0 };

    /// Power in mW at a throughput in Mbit/s.
    pub fn power_mw(&self, rate_mbps: f64) -> f64 {
        if rate_mbps > 0.0 { self.b_mw_per_mbps * rate_mbps + self.theta_mw } else { 0.0 }
    }

    /// Energy per bit in nJ at a steady throughput in Mbit/s: the inverse of the paper's eq. (4).
    pub fn energy_per_bit_nj(&self, rate_mbps: f64) -> f64 {
        self.power_mw(rate_mbps) / rate_mbps
    }

    /// Energy in J: the integral of the power over the bins that carry anything.
    pub fn energy_j(&self, activity: &Activity) -> f64 {
        let slope_mj = self.b_mw_per_mbps * megabits(activity.up_bytes + activity.down_bytes);
        (slope_mj + millijoules(self.theta_mw, activity.active_ns)) / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::{Bin, EnergyMeter, Radio};

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
    }

    #[test]
    fn power_and_energy_per_bit_are_those_of_the_papers_constants() {
        // The last digits are those of the check vectors.
        near(Linear::WIFI.power_mw(8.0), 1228.9, 1e-9);
        near(Linear::WIFI.energy_per_bit_nj(8.0), 153.61, 0.005);
        near(Linear::LTE.power_mw(18.0), 2224.0, 1e-9);
        near(Linear::LTE.energy_per_bit_nj(18.0), 123.56, 0.005);
        // eMTCP orders its paths by this.
        near(Linear::LTE.energy_per_bit_nj(6.0), 266.7, 0.05);
        assert_eq!(Linear::LTE.power_mw(0.0), 0.0);
    }

    #[test]
    fn ten_seconds_of_wifi_at_8_and_lte_at_18_mbits_take_34529_millijoules() {
        let energy_j = |radio: &Radio, rate_mbps: u64| {
            let mut meter = EnergyMeter::new(radio.huang);
            for _ in 0..100 {
                let bytes = rate_mbps * 1_000_000 / 8 / 10;
                meter.bin(Bin { length_ns: 100_000_000, up_bytes: bytes, down_bytes: 0 });
            }
            radio.linear.energy_j(&meter.activity())
        };
        near(energy_j(&Radio::WIFI, 8) + energy_j(&Radio::LTE, 18), 34.529, 1e-9);
    }

    #[test]
    fn no_traffic_takes_no_energy() {
        let mut meter = EnergyMeter::new(Radio::LTE.huang);
        meter.bin(Bin { length_ns: 3_600_000_000_000, up_bytes: 0, down_bytes: 0 });
        assert_eq!(Linear::LTE.energy_j(&meter.activity()), 0.0);
    }
}
