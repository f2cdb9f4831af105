//! When the packets of a UDP flow leave: the simulator's rule.

use anabranch_bed::{Nanos, traffic::Schedule};
use anabranch_link::{ByteTime, Streams};
use proptest::prelude::*;

/// The rule as the simulator follows it: from packet to packet.
fn step_by_step(on: &[(Nanos, Nanos)], gap: Nanos) -> Vec<Nanos> {
    let mut times = Vec::new();
    for &(start, end) in on.iter().filter(|(start, end)| start < end) {
        let mut now = start;
        while now < end {
            times.push(now);
            now += gap;
        }
    }
    times
}

proptest! {
    #[test]
    fn departures_are_those_of_the_simulator(
        rate_bps in 1_000_000_u64..1_000_000_000,
        packet_bytes in 64_u32..9000,
        lengths in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 0..5),
    ) {
        let mut at = 0;
        let on: Vec<_> = lengths.iter().map(|(off, on)| {
            let start = at + off;
            at = start + on;
            (start, at)
        }).collect();
        let schedule = Schedule::new(&on, rate_bps, packet_bytes);
        let expected = step_by_step(&on, ByteTime::new(rate_bps).of(packet_bytes).max(1));
        prop_assert_eq!(schedule.packets(), expected.len() as u64);
        prop_assert_eq!(schedule.departures().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_spacing_is_the_time_of_a_packet_at_the_rate() {
    let schedule = Schedule::new(&[(0, 80_000_000), (100_000_000, 108_000_000)], 1_000_000, 1000);
    assert_eq!(schedule.spacing(), 8_000_000);
    let departures: Vec<_> = schedule.departures().collect();
    assert_eq!(departures[..2], [0, 8_000_000]);
    assert_eq!(departures[10..], [100_000_000], "an interval's end is not in it");
}

#[test]
fn a_drawn_start_moves_all_packets_of_its_interval() {
    let drawn = Schedule::new(&[(51_234_567, 80_000_000)], 1_000_000, 1000);
    let departures: Vec<_> = drawn.departures().collect();
    assert_eq!(departures, [51_234_567, 59_234_567, 67_234_567, 75_234_567]);
}

#[test]
fn drawn_departures_are_those_of_the_simulator_too() {
    let text = r#"
        name = "noise"
        duration = "20 s"
        node = [{ names = ["C", "S"] }]
        link = [{ between = ["C", "S"], rate = "10 Mbit/s", delay = "1 ms", queue = "unlimited" }]
        [[datagram]]
        name = "noise"
        from = "C"
        to = "S"
        rate = "1 Mbit/s"
        packet = "500 B"
        pattern = "poisson"
        on = [["1 s", "9 s"], ["10 s", "19 s"]]
        phase_jitter = "200 ms"
        "#;
    let scenario = anabranch_scenario::load(text, "noise.toml", &[]).expect("it is valid").scenario;
    let (model, streams) = (&scenario.datagrams[0], Streams::new(5));
    let mut phases = streams.stream("datagram/noise");
    let on: Vec<_> = model.intervals(|bound| phases.below(bound)).collect();
    let schedule =
        Schedule::with_pattern(&on, model.rate_bps, 500, model.pattern, || model.pattern_draws(streams));
    let simulated: Vec<Nanos> = model.departures(streams).collect();
    assert!(simulated.len() > 3_000);
    assert_eq!(schedule.departures().collect::<Vec<_>>(), simulated);
    assert_eq!(schedule.packets(), simulated.len() as u64);
}
