//! Weighted round-robin: as many segments per subflow in turn as its weight says.

use super::{SchedulerInfo, Sends, Setup, roundrobin::CWND_LIMITED, roundrobin::RoundRobin};

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "wrr",
    title: "weighted round-robin: subflow.weight segments per subflow in turn",
    tag: "A",
    params: &[CWND_LIMITED],
    sends: Sends::OneByOne,
    reckons_energy: false,
    weighs: true,
    make: |setup: &Setup<'_>| {
        let &[cwnd_limited] = setup.params else { unreachable!("it has one parameter") };
        let weights = setup.subflows.iter().map(|facts| facts.weight).collect();
        Box::new(RoundRobin::new(weights, cwnd_limited != 0))
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Pick, testing::make, testing::picks};

    #[test]
    fn a_round_has_as_many_segments_of_a_subflow_as_its_weight() {
        let picked = picks(&mut *make("wrr", &[3, 1, 2]), &[[true; 3]; 12]);
        let round = [0, 0, 0, 1, 2, 2].map(Pick::Subflow);
        assert_eq!(picked, [round, round].concat());
    }

    #[test]
    fn a_subflow_that_fills_up_loses_the_rest_of_its_turn() {
        let rooms = [[true, true], [false, true], [true, true], [true, true]];
        let picked = picks(&mut *make("wrr", &[3, 1]), &rooms);
        assert_eq!(picked, [0, 1, 0, 0].map(Pick::Subflow));
    }
}
