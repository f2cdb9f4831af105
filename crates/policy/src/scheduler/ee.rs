//! EE-MPTCP (Dong, Shen, Li et al., Electronics 2022, 11(19), 3104): the subset of subflows with the most rate per energy.
//!
//! Subflows are ordered by energy per bit, `b + theta / x` with x the window per round trip. For each k the model of rounds
//! ([`super::rounds`]) says when the first k have delivered what is left, at which rates; the k with the largest
//! `O = sum X / (T sum (b X + theta))` is used. `objective = "per-power"` is the other reading of the printed formula.
//!
//! Reconstructed: the paper's algorithms are images; the fraction of its eq. (1) is lost in print. It does not say how
//! segments are placed inside the subset (here: minRTT), and sets the others to backup (here they idle).

use super::{
    SchedulerInfo, SchedulerParam, Sends,
    rounds::{Objective, Rounds, estimate},
    subset::{AFTER_TIMEOUT, Choose, HORIZON, Path, Subset, WINDOW_MAX, Weighed, best_prefix},
};

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "ee-mptcp",
    title: "EE-MPTCP: the subset with most rate per energy by its model of rounds (Dong et al. 2022)",
    tag: "B",
    params: &[OBJECTIVE, HORIZON, WINDOW_MAX, AFTER_TIMEOUT],
    sends: Sends::OneByOne,
    reckons_energy: true,
    weighs: false,
    make: |setup| {
        let &[of, horizon, most, initial] = setup.params else { unreachable!("it has four parameters") };
        let rule = Ee { objective: objective(of), most: f64::from(most), initial: f64::from(initial) };
        Box::new(Subset::new(rule, setup, horizon))
    },
};

pub(super) const OBJECTIVE: SchedulerParam = SchedulerParam::choice(
    "objective",
    &["per-energy", "per-power"],
    "per-energy|per-power: what is maximised, rate per energy or bits per power",
);

/// The objective of that choice.
pub(super) fn objective(choice: u32) -> Objective {
    if choice == 0 { Objective::PerEnergy } else { Objective::PerPower }
}

/// Names and scale of its values in logs.
pub(super) fn value_names(objective: Objective) -> ([&'static str; 2], f64) {
    match objective {
        // From Mbit/s per mJ.
        Objective::PerEnergy => (["bps_per_j", "other_bps_per_j"], 1e9),
        // From Mbit per mW.
        Objective::PerPower => (["bit_per_w", "other_bit_per_w"], 1e9),
    }
}

/// EE-MPTCP's choice.
pub(crate) struct Ee {
    pub(crate) objective: Objective,
    /// Largest window that the model predicts, in segments.
    pub(crate) most: f64,
    /// Window of the model after a timeout, in segments.
    pub(crate) initial: f64,
}

impl Choose for Ee {
    fn choose(&mut self, paths: &[Path], segments: f64, weighed: &mut Weighed) -> u32 {
        let mut paths = paths.to_vec();
        paths.sort_by(|a, b| a.energy_nj().total_cmp(&b.energy_nj()).then(a.index.cmp(&b.index)));
        best_prefix(&paths, weighed, |paths| {
            let mut rounds: Vec<Rounds> =
                paths.iter().map(|path| Rounds::new(path.start(self.initial, self.most))).collect();
            let estimate = estimate(&mut rounds, segments);
            let rates: Vec<_> =
                estimate.rates_mbps.iter().zip(paths).map(|(&rate, path)| (rate, path.radio)).collect();
            self.objective.value(&rates, estimate.time_us as f64 / 1e6)
        })
    }

    fn value_names(&self) -> ([&'static str; 2], f64) {
        value_names(self.objective)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subset::path;
    use super::*;
    use crate::energy::Linear;

    fn choose(objective: Objective, paths: &[Path]) -> u32 {
        Ee { objective, most: 1e6, initial: 1.0 }.choose(paths, 10_000.0, &mut Vec::new())
    }

    /// At their thresholds, so that the windows of the model stay about what they are.
    fn steady(index: usize, rtt_ms: u64, window: f64, radio: Linear) -> Path {
        Path { ssthresh: 1.0, ..path(index, rtt_ms, window, radio) }
    }

    #[test]
    fn a_second_radio_pays_where_it_saves_more_time_than_it_takes_power() {
        // 8 and 18 Mbit/s at first, as in check vector ee5.
        let paths = [steady(0, 10, 10.0, Linear::WIFI), steady(1, 20, 45.0, Linear::LTE)];
        assert_eq!(choose(Objective::PerEnergy, &paths), 0b11);
        // A crawling LTE takes 1288 mW for next to nothing.
        let paths = [steady(0, 10, 100.0, Linear::WIFI), steady(1, 2000, 1.0, Linear::LTE)];
        assert_eq!(choose(Objective::PerEnergy, &paths), 0b01);
        assert_eq!(choose(Objective::PerPower, &paths), 0b11, "bits per power grow with the time it takes");
    }

    #[test]
    fn a_lossy_path_is_left_out_for_what_its_rounds_will_deliver() {
        // WiFi at 8 Mbit/s goes before LTE at 7.2 by energy per bit.
        let wifi = steady(0, 10, 10.0, Linear::WIFI);
        let lte = |loss: f64| Path { loss, ..steady(1, 20, 18.0, Linear::LTE) };
        assert_eq!(choose(Objective::PerEnergy, &[wifi, lte(0.0)]), 0b11);
        assert_eq!(choose(Objective::PerEnergy, &[wifi, lte(0.3)]), 0b01, "though it has 7.2 Mbit/s now");
    }
}
