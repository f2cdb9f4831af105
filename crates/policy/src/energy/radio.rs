//! The radios that a scenario can name.

use super::{DutyCycle, Huang, Linear, Stage};

/// Both models of a radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// EE-MPTCP's.
    pub linear: Linear,
    /// Huang's.
    pub huang: Huang,
}

const fn micros(micros: u64) -> u64 {
    micros * 1_000
}

impl Radio {
    /// Wi-Fi.
    pub const WIFI: Self = Self {
        linear: Linear::WIFI,
        huang: Huang {
            alpha_up_mw_per_mbps: 283.17,
            alpha_down_mw_per_mbps: 137.01,
            beta_mw: 132.86,
            promotion: Stage { power_mw: 124.4, duration_ns: micros(79_100) },
            tail: [Stage { power_mw: 119.3, duration_ns: micros(238_100) }, Stage::NONE],
            idle: DutyCycle { power_mw: 77.2, on_ns: micros(7_600), period_ns: micros(307_600) },
        },
    };
    /// LTE.
    pub const LTE: Self = Self {
        linear: Linear::LTE,
        huang: Huang {
            alpha_up_mw_per_mbps: 438.39,
            alpha_down_mw_per_mbps: 51.97,
            beta_mw: 1288.04,
            promotion: Stage { power_mw: 1210.7, duration_ns: micros(260_100) },
            tail: [Stage { power_mw: 1060.0, duration_ns: micros(11_576_000) }, Stage::NONE],
            idle: DutyCycle { power_mw: 594.3, on_ns: micros(43_200), period_ns: micros(1_280_200) },
        },
    };
    /// 3G (UMTS). EE-MPTCP has no constants for it: its linear model has Huang's downlink slope and base power, as
    /// the other two have, rounded.
    pub const THREE_G: Self = Self {
        linear: Linear { b_mw_per_mbps: 122.12, theta_mw: 817.88 },
        huang: Huang {
            alpha_up_mw_per_mbps: 868.98,
            alpha_down_mw_per_mbps: 122.12,
            beta_mw: 817.88,
            promotion: Stage { power_mw: 659.4, duration_ns: micros(582_100) },
            tail: [
                Stage { power_mw: 803.9, duration_ns: micros(8_088_200) },
                Stage { power_mw: 601.3, duration_ns: micros(824_200) },
            ],
            idle: DutyCycle { power_mw: 374.2, on_ns: micros(55_400), period_ns: micros(5_112_400) },
        },
    };
}

/// A radio of the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioInfo {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line for lists.
    pub title: &'static str,
    /// Its constants.
    pub radio: Radio,
}

/// The radios that a scenario can name.
pub static RADIOS: [RadioInfo; 3] = [
    RadioInfo {
        name: "wifi",
        title: "Wi-Fi: EE-MPTCP 2022 (linear) and Huang et al. 2012 (with tail)",
        radio: Radio::WIFI,
    },
    RadioInfo {
        name: "lte",
        title: "LTE: EE-MPTCP 2022 (linear) and Huang et al. 2012 (with tail)",
        radio: Radio::LTE,
    },
    RadioInfo {
        name: "3g",
        title: "3G (UMTS): Huang et al. 2012 alone, tail of DCH and FACH",
        radio: Radio::THREE_G,
    },
];

impl Radio {
    /// The radio of that name.
    pub fn find(name: &str) -> Option<Self> {
        RADIOS.iter().find(|info| info.name == name).map(|info| info.radio)
    }
}
