//! Workloads become connections: what `traffic = { kind = "flows" }` stands for with a given seed.
//!
//! Both engines call [`expand`] before they build anything, so both open the same flows at the same times with the same
//! sizes. Each flow is a connection of its own, with the paths, the congestion control and the transport of the
//! entry, and [`Connection::member_of`] says where it belongs. Left out: flows that share a connection, as of a
//! browser that keeps it open, and flows that depend on one another.

use std::borrow::Cow;

use anabranch_draw::{Streams, distribution::exponential};

use crate::model::{Arrivals, Connection, Event, Flows, Nanos, Relay, Scenario, Traffic, Transfer, When};

/// A flow of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// When it is opened.
    pub start: Nanos,
    /// What it carries.
    pub bytes: u64,
}

/// The scenario with its workloads as connections, those of one workload one after the other in its place, each
/// with the events of its entry. A scenario without workloads is itself.
pub fn expand(scenario: &Scenario, seed: u64) -> Cow<'_, Scenario> {
    let is_workload = |connection: &Connection| matches!(connection.traffic, Traffic::Flows(_));
    if !scenario.connections.iter().any(is_workload) {
        return Cow::Borrowed(scenario);
    }
    let mut connections = Vec::new();
    let mut places = Vec::with_capacity(scenario.connections.len() + 1);
    for model in &scenario.connections {
        places.push(connections.len());
        let Traffic::Flows(flows) = &model.traffic else {
            connections.push(model.clone());
            continue;
        };
        let members = members(flows, &model.name, scenario.duration, Streams::new(seed));
        connections.extend(members.into_iter().enumerate().map(|(number, member)| Connection {
            name: format!("{}/{number}", model.name),
            member_of: Some(model.name.clone()),
            traffic: Traffic::File {
                start: When::At(member.start),
                bytes: member.bytes,
                direction: flows.direction,
            },
            ..model.clone()
        }));
    }
    places.push(connections.len());
    let relays = scenario.relays.iter().map(|relay| {
        let (input, output) = (places[relay.input], places[relay.output]);
        Relay { input, output, ..relay.clone() }
    });
    let transfers = scenario.transfers.iter().map(|transfer| {
        let over = transfer.over.iter().map(|&connection| places[connection]).collect();
        Transfer { over, ..transfer.clone() }
    });
    let events = scenario.events.iter().flat_map(|event| {
        let members = places[event.connection]..places[event.connection + 1];
        members.map(|connection| Event { connection, ..*event })
    });
    let (relays, transfers, events) = (relays.collect(), transfers.collect(), events.collect());
    Cow::Owned(Scenario { connections, relays, transfers, events, ..scenario.clone() })
}

/// The flows of the workload `name`, in the order in which they are opened.
pub fn members(flows: &Flows, name: &str, duration: Nanos, streams: Streams) -> Vec<Member> {
    let start = flows.start.draw(|bound| streams.stream(&format!("start/{name}")).below(bound));
    let stop = flows.stop.unwrap_or(duration).min(duration);
    let mut times = streams.stream(&format!("workload/{name}/arrivals"));
    let starts: Vec<Nanos> = match flows.arrivals {
        Arrivals::Poisson { interval, count } => {
            let mut at = start;
            let arrivals = std::iter::from_fn(|| {
                at = at.saturating_add(exponential(&mut times, interval));
                (at < stop).then_some(at)
            });
            let most = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
            arrivals.take(most).collect()
        }
        Arrivals::Uniform { count } => {
            let span = stop.saturating_sub(start);
            let mut starts: Vec<Nanos> = (0..count).map(|_| start + times.below(span)).collect();
            starts.sort_unstable();
            starts
        }
        Arrivals::Synchronised { count } => (0..count).map(|_| start).collect(),
    };
    let mut sizes = streams.stream(&format!("workload/{name}/sizes"));
    let members = starts.into_iter().map(|start| Member { start, bytes: flows.size.draw(&mut sizes).max(1) });
    members.filter(|member| member.start < duration).collect()
}

#[cfg(test)]
mod tests {
    use anabranch_draw::{Distribution, distribution::Pareto};

    use super::*;
    use crate::model::Direction;

    const SECOND: Nanos = 1_000_000_000;

    fn flows(arrivals: Arrivals) -> Flows {
        Flows {
            start: When::At(2 * SECOND),
            stop: Some(1_002 * SECOND),
            direction: Direction::Upload,
            arrivals,
            size: Distribution::Pareto(Pareto::with_mean(20_000, 1_200, Some(1_000_000))),
        }
    }

    fn drawn(arrivals: Arrivals, seed: u64) -> Vec<Member> {
        members(&flows(arrivals), "web", 2_000 * SECOND, Streams::new(seed))
    }

    #[test]
    fn poisson_arrivals_are_as_many_as_expected_within_three_standard_errors() {
        let arrivals = Arrivals::Poisson { interval: SECOND / 10, count: None };
        let counts: Vec<f64> = (0..40).map(|seed| drawn(arrivals, seed).len() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 40.0;
        // 10,000 expected in 1000 s; the variance of a Poisson variable is its mean.
        assert!((mean - 1e4).abs() <= 3.0 * (1e4_f64 / 40.0).sqrt(), "{mean}");
    }

    #[test]
    fn the_mean_size_is_the_given_one_within_three_standard_errors() {
        let sizes: Vec<f64> = (0..40)
            .flat_map(|seed| drawn(Arrivals::Uniform { count: 2_000 }, seed))
            .map(|member| member.bytes as f64)
            .collect();
        let n = sizes.len() as f64;
        let mean = sizes.iter().sum::<f64>() / n;
        let variance = sizes.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        assert!((mean - 20_000.0).abs() <= 3.0 * (variance / n).sqrt(), "{mean}");
    }

    #[test]
    fn each_flow_has_the_events_of_its_entry_and_other_connections_keep_theirs() {
        let loaded = crate::load(
            r#"
            name = "events"
            duration = "10 s"
            node = [{ names = ["S", "A", "D"] }]
            link = [
              { between = ["S", "D"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" },
              { between = ["S", "A"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" },
              { between = ["A", "D"], rate = "1 Mbit/s", delay = "1 ms", queue = "unlimited" },
            ]
            [[connection]]
            name = "flows"
            from = "S"
            to = "D"
            protocol = "mptcp"
            congestion = "lia"
            traffic = { kind = "flows", arrivals = "synchronised", count = 3, size = "1 kB" }
            subflow = [{}, { via = ["A"], start = "2 s" }]
            [[connection]]
            name = "file"
            from = "S"
            to = "D"
            protocol = "mptcp"
            congestion = "lia"
            traffic = { kind = "file", size = "1 kB" }
            subflow = [{}, { via = ["A"] }]
            [[event]]
            at = "1 s"
            connection = "file"
            subflow = "1"
            action = "close"
            "#,
            "events.toml",
            &[],
        );
        let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
        let expanded = expand(&scenario, 1);
        let events: Vec<_> = expanded.events.iter().map(|event| (event.at, event.connection)).collect();
        assert_eq!(events, [(SECOND, 3), (2 * SECOND, 0), (2 * SECOND, 1), (2 * SECOND, 2)]);
    }

    #[test]
    fn arrivals_keep_to_their_span_order_and_count() {
        for arrivals in [
            Arrivals::Poisson { interval: SECOND, count: Some(300) },
            Arrivals::Uniform { count: 300 },
            Arrivals::Synchronised { count: 300 },
        ] {
            let members = drawn(arrivals, 7);
            assert_eq!(members.len(), 300);
            assert!(members.is_sorted_by_key(|member| member.start));
            assert!(members.iter().all(|member| (2 * SECOND..1_002 * SECOND).contains(&member.start)));
            let at_once = members.iter().all(|member| member.start == 2 * SECOND);
            assert_eq!(at_once, matches!(arrivals, Arrivals::Synchronised { .. }));
        }
    }

    #[test]
    fn the_seed_decides_and_sizes_do_not_depend_on_the_kind_of_arrivals() {
        let uniform = drawn(Arrivals::Uniform { count: 50 }, 1);
        assert_eq!(uniform, drawn(Arrivals::Uniform { count: 50 }, 1));
        assert_ne!(uniform, drawn(Arrivals::Uniform { count: 50 }, 2));
        let bytes = |members: &[Member]| members.iter().map(|member| member.bytes).collect::<Vec<_>>();
        assert_eq!(bytes(&uniform), bytes(&drawn(Arrivals::Synchronised { count: 50 }, 1)));
    }
}
