//! eMPTCP (Lim et al., CoNEXT 2015), a house definition: the radio, or all of them, that take the least energy per bit at the
//! rates predicted.
//!
//! For each single subflow and for all together the energy per bit is `sum P(x) / sum x`; the least is used, and given up only
//! for one that is `hysteresis` better. Rates are predicted by double exponential smoothing (Holt) of a window per round
//! trip, one value per choice.
//!
//! We differ in: the paper reads its regions from a table measured on a device, and its constants were not at hand. Left out:
//! opening the cellular subflow late (the path manager `energy` does that).

use super::{
    SchedulerInfo, SchedulerParam, SchedulerUnit, Sends,
    subset::{Choose, Path, Subset, Weighed},
};
use crate::energy::Linear;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "emptcp",
    title: "eMPTCP, house definition: the subflow, or all, with least energy per bit (after Lim et al. 2015)",
    tag: "C",
    params: &[
        SchedulerParam::new(
            "hysteresis",
            SchedulerUnit::Permille,
            100,
            (0, 1000),
            "by which share another choice has to be better",
        ),
        SchedulerParam::new(
            "level_gain",
            SchedulerUnit::Permille,
            500,
            (1, 1000),
            "weight of a new rate in its prediction",
        ),
        SchedulerParam::new(
            "trend_gain",
            SchedulerUnit::Permille,
            500,
            (0, 1000),
            "weight of a new slope in its prediction",
        ),
    ],
    sends: Sends::OneByOne,
    reckons_energy: true,
    weighs: false,
    make: |setup| {
        let thousandths = |value: u32| f64::from(value) / 1000.0;
        let &[hysteresis, level, trend] = setup.params else { unreachable!("it has three parameters") };
        let rule = Emptcp {
            hysteresis: thousandths(hysteresis),
            gains: (thousandths(level), thousandths(trend)),
            rates: vec![None; setup.subflows.len()],
            current: 0,
        };
        // What is left to send plays no part.
        Box::new(Subset::new(rule, setup, 1))
    },
};

/// Holt's linear trend.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Predicted {
    level: f64,
    trend: f64,
}

impl Predicted {
    fn next(before: Option<Self>, value: f64, (level_gain, trend_gain): (f64, f64)) -> Self {
        let Some(before) = before else { return Self { level: value, trend: 0.0 } };
        let level = level_gain * value + (1.0 - level_gain) * (before.level + before.trend);
        let trend = trend_gain * (level - before.level) + (1.0 - trend_gain) * before.trend;
        Self { level, trend }
    }

    /// One step ahead; a rate is not negative.
    fn value(self) -> f64 {
        (self.level + self.trend).max(f64::MIN_POSITIVE)
    }
}

struct Emptcp {
    hysteresis: f64,
    gains: (f64, f64),
    rates: Vec<Option<Predicted>>,
    current: u32,
}

/// Energy per bit in nJ of paths that send at these rates together.
fn energy_nj(paths: &[(f64, Linear)]) -> f64 {
    let power: f64 = paths.iter().map(|(rate, radio)| radio.power_mw(*rate)).sum();
    let rate: f64 = paths.iter().map(|path| path.0).sum();
    power / rate
}

impl Choose for Emptcp {
    fn choose(&mut self, paths: &[Path], _: f64, weighed: &mut Weighed) -> u32 {
        let mut rates = Vec::with_capacity(paths.len());
        for path in paths {
            let predicted = Predicted::next(self.rates[path.index], path.rate_mbps(), self.gains);
            self.rates[path.index] = Some(predicted);
            rates.push((predicted.value(), path.radio));
        }
        let single = paths.iter().zip(&rates).map(|(path, &rate)| (1 << path.index, energy_nj(&[rate])));
        let all = paths.iter().fold(0, |bits, path| bits | 1 << path.index);
        let mut options: Vec<(u32, f64)> = single.collect();
        options.push((all, energy_nj(&rates)));
        weighed.extend(&options);
        let mut best = options[0];
        for &option in &options[1..] {
            if option.1 < best.1 {
                best = option;
            }
        }
        let current = options.iter().find(|option| option.0 == self.current);
        let stays = current.is_some_and(|current| best.1 > (1.0 - self.hysteresis) * current.1);
        if !stays {
            self.current = best.0;
        }
        self.current
    }

    /// The less, the better.
    fn value_names(&self) -> ([&'static str; 2], f64) {
        (["energy_pj_per_bit", "other_energy_pj_per_bit"], -1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subset::path;
    use super::*;

    fn rule() -> Emptcp {
        Emptcp { hysteresis: 0.1, gains: (1.0, 0.0), rates: vec![None; 2], current: 0 }
    }

    /// Wi-Fi and LTE at these rates in Mbit/s.
    fn paths(wifi: f64, lte: f64) -> [Path; 2] {
        [path(0, 8, wifi, Linear::WIFI), path(1, 8, lte, Linear::LTE)]
    }

    #[test]
    fn c8_2_lte_at_18_beats_wifi_at_8_and_both() {
        let energies = [
            energy_nj(&[(8.0, Linear::WIFI)]),
            energy_nj(&[(18.0, Linear::LTE)]),
            energy_nj(&[(8.0, Linear::WIFI), (18.0, Linear::LTE)]),
        ];
        for (energy, expected) in energies.into_iter().zip([153.6, 123.6, 132.8]) {
            assert!((energy - expected).abs() <= 0.05, "{energy} is not {expected}");
        }
        assert_eq!(rule().choose(&paths(8.0, 18.0), 1.0, &mut Vec::new()), 0b10);
    }

    #[test]
    fn another_choice_has_to_be_a_tenth_better() {
        let mut rule = rule();
        assert_eq!(rule.choose(&paths(8.0, 2.0), 1.0, &mut Vec::new()), 0b01, "153.6 against 696");
        // LTE at 15 takes 137.9 nJ per bit, at 16 it takes 132.5; a tenth below 153.6 is 138.2.
        assert_eq!(rule.choose(&paths(8.0, 14.0), 1.0, &mut Vec::new()), 0b01, "144 is not enough");
        assert_eq!(rule.choose(&paths(8.0, 15.0), 1.0, &mut Vec::new()), 0b10);
    }

    #[test]
    fn holt_follows_a_line_one_step_ahead() {
        let mut predicted = None;
        for step in 0..60 {
            predicted = Some(Predicted::next(predicted, 3.0 + 2.0 * f64::from(step), (0.5, 0.5)));
        }
        let value = predicted.map_or(0.0, Predicted::value);
        assert!((value - (3.0 + 2.0 * 60.0)).abs() < 1e-6, "{value}");
    }
}
