//! The model of Huang et al., "A Close Examination of Performance and Power Characteristics of 4G LTE Networks"
//! (MobiSys 2012): promotion, transfer, tail and idle.
//!
//! An idle radio is promoted before it carries a packet. While it transfers, it takes
//! `alpha_up x_up + alpha_down x_down + beta`. After the last packet it stays awake for its tail, which every packet
//! begins anew; then it is idle and wakes up now and then to listen.
//!
//! The constants of the presets are those of the paper's tables 3 and 4 as the algorithm reference gives them; they
//! were not compared with the paper's text again. Those of 3G are from this paper alone.
//!
//! Left out, and who could notice: DRX inside of the tail (its wake-ups are in the tail's mean power here); the
//! promotion of 3G from FACH to DCH (a packet in the second stage of the tail goes on at once, and pays nothing for
//! it); the time that a promotion takes: its energy is counted, but no packet waits for it.

use super::{Activity, megabits, millijoules};

/// A stretch of constant power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Power in mW.
    pub power_mw: f64,
    /// Its length.
    pub duration_ns: u64,
}

impl Stage {
    /// A stage that does not happen.
    pub const NONE: Self = Self { power_mw: 0.0, duration_ns: 0 };
}

/// An idle radio that wakes up periodically: DRX of 3G and LTE, beacons of Wi-Fi.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DutyCycle {
    /// Power in mW while it is awake.
    pub power_mw: f64,
    /// How long it is awake each time.
    pub on_ns: u64,
    /// Time from one wake-up to the next, above 0.
    pub period_ns: u64,
}

impl DutyCycle {
    /// Mean power in mW.
    pub fn mean_power_mw(&self) -> f64 {
        self.power_mw * (self.on_ns as f64 / self.period_ns as f64)
    }
}

/// Constants of a radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Huang {
    /// Uplink slope in mW per Mbit/s, which is nJ/bit.
    pub alpha_up_mw_per_mbps: f64,
    /// Downlink slope in mW per Mbit/s.
    pub alpha_down_mw_per_mbps: f64,
    /// Power of a transfer beside its slopes, in mW.
    pub beta_mw: f64,
    /// From idle to transfer.
    pub promotion: Stage,
    /// After the last packet, one after the other; 3G has two, DCH and FACH, the others one.
    pub tail: [Stage; 2],
    /// After the tail.
    pub idle: DutyCycle,
}

/// Energy by state, in joules.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateEnergy {
    /// Of promotions.
    pub promotion_j: f64,
    /// While something was carried.
    pub active_j: f64,
    /// Of tails.
    pub tail_j: f64,
    /// While idle.
    pub idle_j: f64,
}

impl StateEnergy {
    /// Of all states.
    pub fn total_j(&self) -> f64 {
        self.without_tail_j() + self.tail_j
    }

    /// Of all states but the tail.
    pub fn without_tail_j(&self) -> f64 {
        self.promotion_j + self.active_j + self.idle_j
    }
}

impl Huang {
    /// Energy of what a meter has seen.
    pub fn energy(&self, activity: &Activity) -> StateEnergy {
        let promotion_mj = millijoules(self.promotion.power_mw, self.promotion.duration_ns);
        let slopes_mj = self.alpha_up_mw_per_mbps * megabits(activity.up_bytes)
            + self.alpha_down_mw_per_mbps * megabits(activity.down_bytes);
        let [first, second] = self.tail;
        let tail_mj = millijoules(first.power_mw, activity.tail_ns[0])
            + millijoules(second.power_mw, activity.tail_ns[1]);
        StateEnergy {
            promotion_j: promotion_mj * activity.promotions as f64 / 1e3,
            active_j: (slopes_mj + millijoules(self.beta_mw, activity.active_ns)) / 1e3,
            tail_j: tail_mj / 1e3,
            idle_j: millijoules(self.idle.mean_power_mw(), activity.idle_ns) / 1e3,
        }
    }

    /// How long the whole tail is.
    pub(super) fn tail_ns(&self) -> u64 {
        self.tail[0].duration_ns + self.tail[1].duration_ns
    }
}
