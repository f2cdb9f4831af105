//! Whether a run's figures count.

use anabranch_scenario::model::{ChangeTarget, Hop, Scenario};

use crate::{Nanos, plan::Plan};

/// However short the paths are, this much lateness is accepted.
const LEAST_BOUND: Nanos = 2_000_000;
/// Share of the smallest one-way delay: 1 in 20, or 5 %.
const SHARE: u64 = 20;

/// The 99th percentile of the emulator's lateness above which a run does not count: the larger of 2 ms and 5 % of
/// the smallest one-way delay of any path, with changes of delay taken at their smallest.
pub fn lateness_bound(scenario: &Scenario, plan: &Plan) -> Nanos {
    let least = |hop: &Hop| -> Nanos {
        let (initial, wire, medium) = match *hop {
            Hop::Wire { link, forward } => {
                let model = &scenario.links[link];
                let delay = if forward { model.forward.delay } else { model.reverse.delay };
                (delay, Some((link, forward)), None)
            }
            Hop::Medium { medium, .. } => (scenario.media[medium].delay, None, Some(medium)),
        };
        let changes = scenario.changes.iter().filter(|change| match change.target {
            ChangeTarget::Link { link, forward, reverse } => {
                wire.is_some_and(|(hop, there)| hop == link && if there { forward } else { reverse })
            }
            ChangeTarget::Medium(changed) => medium == Some(changed),
        });
        changes.filter_map(|change| change.delay).fold(initial, Nanos::min)
    };
    let one_way = plan.paths.iter().map(|path| path.hops.iter().map(least).sum::<Nanos>());
    LEAST_BOUND.max(one_way.min().unwrap_or(0) / SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CongestionSource, plan};

    fn bound(delay: &str, change: &str) -> Nanos {
        let text = format!(
            r#"
            name = "x"
            duration = "1 s"
            node = [{{ names = ["a", "r", "b"] }}]
            link = [
              {{ between = ["a", "r"], rate = "1 Mbit/s", delay = "{delay}", queue = "9 packets" }},
              {{ between = ["r", "b"], rate = "1 Mbit/s", delay = "20 ms", queue = "9 packets" }},
            ]
            {change}
            [[connection]]
            name = "c"
            from = "a"
            to = "b"
            congestion = "reno"
            "#
        );
        let scenario = anabranch_scenario::load(&text, "test.toml", &[]).expect("it is valid").scenario;
        let plan = plan(&scenario, 1, CongestionSource::Bpf).expect("a kernel can do this");
        lateness_bound(&scenario, &plan)
    }

    #[test]
    fn the_bound_is_five_per_cent_of_the_smallest_one_way_delay_but_two_milliseconds_at_least() {
        assert_eq!(bound("80 ms", ""), 5_000_000, "of 100 ms");
        assert_eq!(bound("1 ms", ""), 2_000_000);
        let shorter = "change = [{ link = \"a-r\", at = \"0.5 s\", delay = \"40 ms\" }]";
        assert_eq!(bound("80 ms", shorter), 3_000_000, "of 60 ms, what it becomes");
    }
}
