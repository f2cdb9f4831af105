//! ES-MPTCP (Dong, Shen, Li et al., Electronics 2022, 11(3), 490), a house definition: EE-MPTCP's target with the rates that
//! subflows have now, a window per round trip, in place of those that its model predicts. Only the paper's abstract and
//! introduction were at hand.

use super::{
    SchedulerInfo, Sends,
    ee::OBJECTIVE,
    rounds::Objective,
    subset::{Choose, Path, Subset, Weighed, best_prefix},
};

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "es-mptcp",
    title: "ES-MPTCP, house definition: the subset with most rate per energy as measured (after Dong et al. 2022)",
    tag: "C",
    params: &[OBJECTIVE],
    sends: Sends::OneByOne,
    reckons_energy: true,
    weighs: false,
    make: |setup| {
        let &[objective] = setup.params else { unreachable!("it has one parameter") };
        // What is left to send scales the objective of every subset alike.
        Box::new(Subset::new(Es { objective: super::ee::objective(objective) }, setup, 1))
    },
};

struct Es {
    objective: Objective,
}

impl Choose for Es {
    fn choose(&mut self, paths: &[Path], segments: f64, weighed: &mut Weighed) -> u32 {
        let mut paths = paths.to_vec();
        paths.sort_by(|a, b| a.energy_nj().total_cmp(&b.energy_nj()).then(a.index.cmp(&b.index)));
        best_prefix(&paths, weighed, |paths| {
            let rates: Vec<_> = paths.iter().map(|path| (path.rate_mbps(), path.radio)).collect();
            let rate: f64 = rates.iter().map(|path| path.0).sum();
            let megabits = segments * paths[0].segment_bits / 1e6;
            self.objective.value(&rates, megabits / rate)
        })
    }

    fn value_names(&self) -> ([&'static str; 2], f64) {
        super::ee::value_names(self.objective)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subset::path;
    use super::*;
    use crate::energy::Linear;

    #[test]
    fn ee5_with_measured_rates_both_by_rate_per_energy_and_lte_alone_by_bits_per_power() {
        // 10 and 45 segments of 8000 bits per 10 and 20 ms.
        let paths = [path(0, 10, 10.0, Linear::WIFI), path(1, 20, 45.0, Linear::LTE)];
        assert_eq!((paths[0].rate_mbps(), paths[1].rate_mbps()), (8.0, 18.0));
        assert_eq!(Es { objective: Objective::PerEnergy }.choose(&paths, 10_000.0, &mut Vec::new()), 0b11);
        assert_eq!(Es { objective: Objective::PerPower }.choose(&paths, 10_000.0, &mut Vec::new()), 0b10);
    }
}
