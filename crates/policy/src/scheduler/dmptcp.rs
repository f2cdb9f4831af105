//! The fastest subflows, as many as make the completion earliest: DMPTCP (Dong et al., JNCA 2018), with the round model of
//! EE-MPTCP, its successor, and its Part H2 reading: of k = 1, 2, … subflows by round-trip time that k whose estimated
//! time is least, the smaller of equals.

use super::{
    SchedulerInfo, Sends,
    rounds::{Rounds, estimate},
    subset::{AFTER_TIMEOUT, Choose, HORIZON, Path, Subset, WINDOW_MAX, Weighed, best_prefix},
};

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "dmptcp",
    title: "DMPTCP, house definition: the fastest subflows that complete earliest (after Dong et al. 2018)",
    tag: "C",
    params: &[HORIZON, WINDOW_MAX, AFTER_TIMEOUT],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: false,
    make: |setup| {
        let &[horizon, most, initial] = setup.params else { unreachable!("it has three parameters") };
        let rule = Dmptcp { most: f64::from(most), initial: f64::from(initial) };
        Box::new(Subset::new(rule, setup, horizon))
    },
};

struct Dmptcp {
    most: f64,
    initial: f64,
}

impl Choose for Dmptcp {
    fn choose(&mut self, paths: &[Path], segments: f64, weighed: &mut Weighed) -> u32 {
        let mut paths = paths.to_vec();
        paths.sort_by_key(|path| (path.rtt_us, path.index));
        best_prefix(&paths, weighed, |paths| {
            let mut rounds: Vec<Rounds> =
                paths.iter().map(|path| Rounds::new(path.start(self.initial, self.most))).collect();
            -(estimate(&mut rounds, segments).time_us as f64)
        })
    }

    fn value_names(&self) -> ([&'static str; 2], f64) {
        (["completion_us", "other_completion_us"], 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subset::path;
    use super::*;
    use crate::energy::Linear;

    #[test]
    fn h2_a_slow_path_is_used_only_if_everything_ends_earlier() {
        let mut rule = Dmptcp { most: 1e6, initial: 1.0 };
        let paths = [path(0, 100, 50.0, Linear::WIFI), path(1, 20, 10.0, Linear::WIFI)];
        // 10, 30, 70, 150 segments after 20, 40, 60, 80 ms on the fast one; the slow one's first round ends at 100 ms.
        assert_eq!(rule.choose(&paths, 150.0, &mut Vec::new()), 0b10, "80 ms alone");
        // After 100 ms the fast one has 310, both have 360.
        assert_eq!(rule.choose(&paths, 310.0, &mut Vec::new()), 0b10, "100 ms either way: the fewer");
        assert_eq!(rule.choose(&paths, 340.0, &mut Vec::new()), 0b11, "100 ms, 120 ms alone");
    }
}
