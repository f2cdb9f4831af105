use super::*;
use crate::emulator::testing::{MS, chain, wire};
use anabranch_link::{Medium, MediumConfig, Wire, wire_config};
use anabranch_policy::energy::Radio;
use anabranch_scenario::model::{
    self, AfterFailure, Attachment, ChangeTarget, CoDel, Discipline, Framing, Jitter, JitterDistribution,
    Link, Loss, QueueLimit, RateStep, Red, Strips, Trace, Transmitter,
};
use proptest::prelude::*;

/// Deliveries as (due, buffer), and buffers of losses.
type Fates = (Vec<(Nanos, u32)>, Vec<u32>);

/// Everything that happens up to `until`.
fn all(network: &mut Network, until: Nanos) -> Fates {
    let (mut delivered, mut lost) = (Vec::new(), Vec::new());
    while let Some(outcome) = network.advance(until) {
        match outcome {
            Outcome::Delivered { due, parcel, .. } => delivered.push((due, parcel.buffer)),
            Outcome::Lost(parcel) => lost.push(parcel.buffer),
        }
    }
    (delivered, lost)
}

fn forward(links: usize) -> Vec<Hop> {
    (0..links).map(|link| Hop::Wire { link, forward: true }).collect()
}

fn network(scenario: &Scenario, hops: &[Hop]) -> Network {
    Network::new(scenario, 7, [(hops, 0)])
}

/// The same packets over the same wires, without a network around them.
fn by_hand(wires: &[model::Wire], packets: &[(Nanos, u32)]) -> Vec<(Nanos, u32)> {
    let mut flow: Vec<(Nanos, Parcel)> = (0..)
        .zip(packets)
        .map(|(buffer, &(at, bytes))| (at, Parcel { buffer, bytes, ..Parcel::default() }))
        .collect();
    for (index, wire) in wires.iter().enumerate() {
        let rng = Streams::new(7).stream(&format!("wire/{}", 2 * index));
        let mut link = Wire::new(wire_config(wire), rng);
        let mut next = Vec::new();
        let mut take = |link: &mut Wire<Parcel>, until| {
            while link.next_arrival() <= until && link.next_arrival() != NEVER {
                let (arrives, parcel) = (link.next_arrival(), *link.front());
                if link.pop() {
                    next.push((arrives, parcel));
                }
            }
        };
        for (at, parcel) in flow {
            take(&mut link, at);
            link.offer(at, parcel);
        }
        take(&mut link, NEVER);
        flow = next;
    }
    flow.into_iter().map(|(at, parcel)| (at, parcel.buffer)).collect()
}

prop_compose! {
    fn any_wire()(
        rate_bps in 100_000_u64..100_000_000,
        delay in 0_u64..20_000_000,
        queue in prop_oneof![
            Just(QueueLimit::Unlimited),
            (1_u32..20).prop_map(QueueLimit::Packets),
            (1_500_u64..30_000).prop_map(QueueLimit::Bytes),
        ],
        loss in prop_oneof![Just(Loss::None), (0.01..0.9).prop_map(Loss::Bernoulli)],
    ) -> model::Wire {
        model::Wire { queue, loss, ..model::Wire::plain(rate_bps, delay) }
    }
}

const CODEL: CoDel = CoDel { target: 5 * MS, interval: 20 * MS, ecn: false };

prop_compose! {
    /// A wire, with whatever makes a shaped link of it.
    fn any_link()(
        wire in any_wire(),
        discipline in prop_oneof![
            2 => Just(Discipline::DropTail),
            1 => Just(Discipline::Red(Red {
                min_packets: 2, max_packets: 6, max_p: 0.1, weight: 0.2, gentle: true, ecn: false
            })),
            1 => Just(Discipline::CoDel(CODEL)),
            1 => Just(Discipline::FqCoDel { codel: CODEL, flows: 4, quantum_bytes: 1514 }),
        ],
        jitter in prop::option::of((1_u64..20_000_000, any::<bool>()).prop_map(|(range, reorder)| {
            Jitter { range, distribution: JitterDistribution::Exponential, reorder }
        })),
        bursts in any::<bool>(),
        trace in prop::option::of(Just(0)),
    ) -> model::Wire {
        let bursty = Loss::GilbertElliott { p: 0.1, r: 0.3, loss_good: 0.0, loss_bad: 1.0 };
        model::Wire { discipline, jitter, trace, loss: if bursts { bursty } else { wire.loss }, ..wire }
    }
}

/// Such links in a row.
fn chain_of_links(links: &[model::Wire]) -> Scenario {
    Scenario { traces: vec![Trace { opportunities_ms: [1, 1, 4, 9].into() }], ..chain(links) }
}

prop_compose! {
    fn any_packets()(
        steps in prop::collection::vec((0_u64..3_000_000, 40_u32..1500), 1..200)
    ) -> Vec<(Nanos, u32)> {
        let mut at = 0;
        steps.into_iter().map(|(step, bytes)| { at += step; (at, bytes) }).collect()
    }
}

proptest! {
    #[test]
    fn packets_fare_as_on_wires_driven_by_hand(
        wires in prop::collection::vec(any_wire(), 1..4),
        packets in any_packets(),
    ) {
        let mut network = network(&chain(&wires), &forward(wires.len()));
        let mut delivered = Vec::new();
        for (buffer, &(at, bytes)) in (0..).zip(&packets) {
            delivered.extend(all(&mut network, at).0);
            network.offer(at, 0, buffer, bytes, Headers::default());
        }
        delivered.extend(all(&mut network, NEVER).0);
        prop_assert_eq!(delivered, by_hand(&wires, &packets));
    }

    #[test]
    fn when_the_network_is_looked_at_changes_nothing_and_no_packet_is_forgotten(
        wires in prop::collection::vec(any_link(), 1..4),
        packets in any_packets(),
        looks in prop::collection::vec(0_u64..600_000_000, 0..50),
    ) {
        let mut often = network(&chain_of_links(&wires), &forward(wires.len()));
        let mut late = network(&chain_of_links(&wires), &forward(wires.len()));
        let (mut seen, mut expected) = (Vec::new(), Vec::new());
        let mut looks = looks;
        looks.sort_unstable();
        let mut looks = looks.into_iter().peekable();
        for (buffer, &(at, bytes)) in (0..).zip(&packets) {
            while let Some(look) = looks.next_if(|&look| look < at) {
                seen.push(all(&mut often, look));
            }
            seen.push(all(&mut often, at));
            expected.push(all(&mut late, at));
            often.offer(at, 0, buffer, bytes, Headers::default());
            late.offer(at, 0, buffer, bytes, Headers::default());
        }
        for look in looks {
            seen.push(all(&mut often, look));
        }
        seen.push(all(&mut often, NEVER));
        expected.push(all(&mut late, NEVER));
        let flat = |parts: Vec<Fates>| {
            let (delivered, lost): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            let mut lost = lost.concat();
            lost.sort_unstable();
            (delivered.concat(), lost)
        };
        let (seen, expected) = (flat(seen), flat(expected));
        prop_assert_eq!(&seen, &expected);
        let mut counters = Counters::default();
        late.count(NEVER, &mut counters);
        let route = counters.routes[0];
        prop_assert_eq!(route.packets_in, packets.len() as u64);
        prop_assert_eq!(route.packets_out, expected.0.len() as u64);
        prop_assert_eq!(route.lost_queue + route.lost_random, expected.1.len() as u64);
        prop_assert_eq!(route.packets_in, route.packets_out + route.lost_queue + route.lost_random);
    }
}

#[test]
fn the_way_back_takes_the_other_direction_of_the_link() {
    let mut scenario = chain(&[wire(8_000_000, 10 * MS)]);
    scenario.links[0].reverse = wire(800_000, 20 * MS);
    let back = [Hop::Wire { link: 0, forward: false }];
    let mut network = network(&scenario, &back);
    network.offer(0, 0, 1, 1000, Headers::default());
    assert_eq!(all(&mut network, NEVER).0, [(30 * MS, 1)]);
}

fn change(at: Nanos) -> Change {
    Change {
        at,
        target: ChangeTarget::Link { link: 0, forward: true, reverse: false },
        rate_bps: None,
        delay: None,
        loss: None,
        up: None,
    }
}

#[test]
fn changes_come_at_their_time_after_the_scenarios_beginning() {
    let mut scenario = chain(&[wire(8_000_000, 10 * MS)]);
    scenario.changes = vec![
        Change { rate_bps: Some(4_000_000), ..change(10 * MS) },
        Change { delay: Some(50 * MS), ..change(20 * MS) },
        Change { loss: Some(Loss::Bernoulli(1.0)), ..change(30 * MS) },
    ];
    let mut network = network(&scenario, &forward(1));
    network.begin_at(1000 * MS);
    assert_eq!(network.next_event(), 1010 * MS);
    // The first two have left the transmitter when the delay changes.
    let mut delivered = Vec::new();
    for (buffer, at) in [(1, 1009 * MS), (2, 1015 * MS), (3, 1025 * MS), (4, 1035 * MS)] {
        delivered.extend(all(&mut network, at).0);
        network.offer(at, 0, buffer, 1000, Headers::default());
    }
    let (rest, lost) = all(&mut network, NEVER);
    delivered.extend(rest);
    assert_eq!(delivered, [(1020 * MS, 1), (1027 * MS, 2), (1077 * MS, 3)]);
    assert_eq!(lost, [4]);
}

#[test]
fn a_link_that_goes_down_loses_what_is_on_it_and_what_comes() {
    let mut scenario = chain(&[wire(8_000_000, 10 * MS)]);
    scenario.changes =
        vec![Change { up: Some(false), ..change(5 * MS) }, Change { up: Some(true), ..change(20 * MS) }];
    let mut network = network(&scenario, &forward(1));
    let mut lost = Vec::new();
    for (buffer, at) in [(1, 4 * MS), (2, 10 * MS), (3, 30 * MS)] {
        lost.extend(all(&mut network, at).1);
        network.offer(at, 0, buffer, 1000, Headers::default());
    }
    let (delivered, rest) = all(&mut network, NEVER);
    lost.extend(rest);
    assert_eq!((delivered, lost), (vec![(41 * MS, 3)], vec![1, 2]));
    let mut counters = Counters::default();
    network.count(50 * MS, &mut counters);
    assert_eq!((counters.links[0].dropped_down, counters.routes[0].lost_down), (2, 2));
}

#[test]
fn the_queue_of_a_link_is_counted_as_of_now() {
    let mut network = network(&chain(&[wire(8_000_000, 100 * MS)]), &forward(1));
    (0..5).for_each(|buffer| network.offer(0, 0, buffer, 1000, Headers::default()));
    let mut counters = Counters::default();
    network.count(2 * MS, &mut counters);
    assert_eq!((counters.links[0].queued, counters.links[0].packets), (3, 0));
    network.count(99 * MS, &mut counters);
    assert_eq!((counters.links[0].queued, counters.links[1].queued), (0, 0));
}

fn radio() -> model::Medium {
    let only = RateStep { rate_bps: 11_000_000, loss: Loss::Bernoulli(0.3) };
    let sender = Transmitter { rates: vec![only], start: 0 };
    model::Medium {
        name: "radio".to_owned(),
        stations: vec![0, 1, 2],
        rate_bps: 11_000_000,
        transmitters: vec![sender; 3],
        fallback: None,
        basic_rate_bps: 1_000_000,
        lowest_rate_bps: 1_000_000,
        delay: 1_000,
        queue: QueueLimit::Packets(10),
        ack_loss: Loss::Bernoulli(0.05),
        slot: 20_000,
        sifs: 10_000,
        framing: Framing { preamble: 192_000, control_preamble: 192_000, symbol: None, extension: 0 },
        mac_header_bytes: 28,
        cw_min: 31,
        cw_max: 1023,
        retry_limit: 3,
        long_retry_limit: 4,
        rts_threshold_bytes: None,
        after_failure: AfterFailure::Extended,
        backoff_when_busy: true,
    }
}

#[test]
fn packets_on_a_medium_fare_as_on_one_driven_by_hand() {
    let mut scenario = chain(&[]);
    scenario.media = vec![radio()];
    let hop = |from, to| [Hop::Medium { medium: 0, from, to }];
    let (left, right) = (hop(0, 2), hop(1, 2));
    let mut network = Network::new(&scenario, 7, [(&left[..], 0), (&right[..], 1)]);
    let rng = Streams::new(7).stream("medium/0");
    let mut by_hand = Medium::new(MediumConfig::from(&radio()), rng);

    let (mut seen, mut expected) = (Vec::new(), Vec::new());
    let mut refused = 0;
    let mut bring = |medium: &mut Medium<Parcel>, until: Nanos| {
        while medium.next_event() <= until && medium.next_event() != NEVER {
            let now = medium.next_event();
            medium.advance(now, |delivery| {
                if let Delivery::Arrived(parcel) = delivery {
                    expected.push((now, parcel.buffer));
                }
            });
        }
    };
    for buffer in 0..400 {
        let (at, station) = (u64::from(buffer) * MS, buffer as usize % 2);
        seen.extend(all(&mut network, at).0);
        network.offer(at, station, buffer, 1000, Headers::default());
        bring(&mut by_hand, at);
        let parcel = Parcel { buffer, bytes: 1000, ..Parcel::default() };
        refused += usize::from(by_hand.offer(at, station, parcel).is_err());
    }
    seen.extend(all(&mut network, NEVER).0);
    bring(&mut by_hand, NEVER);
    assert!(refused > 0 && by_hand.counters().lost > 0 && by_hand.counters().airtime.collisions > 0);
    assert_eq!(seen, expected);
    let mut counters = Counters::default();
    network.count(NEVER, &mut counters);
    let lost: u64 = counters.routes.iter().map(|route| route.lost_queue + route.lost_random).sum();
    assert_eq!(lost, 400 - seen.len() as u64);
    let air = counters.links.last().and_then(|medium| medium.air);
    assert_eq!(air, Some(by_hand.counters().airtime));
}

#[test]
fn at_one_time_links_come_by_number_and_changes_last() {
    let mut scenario = chain(&[]);
    let link = |name: &str| Link {
        name: name.to_owned(),
        a: 0,
        b: 1,
        forward: wire(8_000_000, 9 * MS),
        reverse: wire(8_000_000, 9 * MS),
        strips: Strips::Nothing,
    };
    scenario.links = vec![link("first"), link("second")];
    scenario.changes = vec![Change { up: Some(false), ..change(10 * MS) }];
    let hops = [1, 0].map(|link| [Hop::Wire { link, forward: true }]);
    let mut network = Network::new(&scenario, 7, hops.iter().map(|hops| (&hops[..], 0)));
    network.offer(0, 0, 20, 1000, Headers::default());
    network.offer(0, 1, 10, 1000, Headers::default());
    assert_eq!(all(&mut network, NEVER), (vec![(10 * MS, 10), (10 * MS, 20)], vec![]));
}

fn counters(network: &mut Network, now: Nanos) -> Vec<InterfaceCounters> {
    let mut counters = Counters::default();
    network.count(now, &mut counters);
    counters.interfaces
}

#[test]
fn an_interface_has_sent_what_was_lost_on_the_way_and_received_what_arrived() {
    let lossy = model::Wire { loss: Loss::Bernoulli(0.5), ..wire(8_000_000, MS) };
    let mut scenario = chain(&[lossy]);
    let interface = |node| Interface {
        node,
        attachment: Attachment::Link { link: 0, sends_forward: node == 0 },
        radio: Radio::WIFI,
    };
    scenario.interfaces = vec![interface(1), interface(0)];
    let mut network = network(&scenario, &forward(1));
    for buffer in 0..100 {
        network.offer(0, 0, buffer, 1000, Headers::default());
    }
    let (delivered, lost) = all(&mut network, 1_000 * MS);
    assert!(!lost.is_empty() && delivered.len() + lost.len() == 100);
    let down_bytes = 1000 * delivered.len() as u64;
    let [receiver, sender] = [(0, down_bytes), (100_000, 0)]
        .map(|(up_bytes, down_bytes)| InterfaceCounters { up_bytes, down_bytes });
    assert_eq!(counters(&mut network, 1_000 * MS), [receiver, sender]);
}

#[test]
fn stations_of_a_medium_have_sent_and_received_each_packet_once() {
    let mut scenario = chain(&[]);
    scenario.media = vec![radio()];
    let interface = |station| Interface {
        node: scenario.media[0].stations[station],
        attachment: Attachment::Medium { medium: 0, station },
        radio: Radio::WIFI,
    };
    scenario.interfaces = vec![interface(0), interface(1)];
    let [from, to] = [scenario.media[0].stations[0], scenario.media[0].stations[1]];
    let mut network = network(&scenario, &[Hop::Medium { medium: 0, from, to }]);
    for buffer in 0..20 {
        network.offer(0, 0, buffer, 500, Headers::default());
    }
    let (delivered, lost) = all(&mut network, 10_000 * MS);
    let refused = 20 - delivered.len() as u64;
    assert_eq!((lost.len() as u64, delivered.is_empty()), (refused, false));
    let found = counters(&mut network, 10_000 * MS);
    assert_eq!(found[1], InterfaceCounters { up_bytes: 0, down_bytes: 500 * delivered.len() as u64 });
    assert!(found[0].up_bytes >= found[1].down_bytes && found[0].down_bytes == 0);
}
