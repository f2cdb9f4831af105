use super::*;
use crate::{
    GilbertElliott, JitterDistribution, Offer, Probability, Streams, Wire, WireConfig, queue::CoDelConfig,
    queue::RedConfig,
};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;

/// A packet with a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbered {
    number: u32,
    bytes: u32,
}

impl Frame for Numbered {
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

type Arrivals = Vec<(Nanos, u32)>;

fn plain() -> ShapedConfig {
    ShapedConfig {
        rate: Rate::Constant(8_000_000),
        delay: 10 * MS,
        limit: Limit::Unlimited,
        queue: QueueConfig::DropTail,
        loss: Loss::NONE,
        jitter: None,
    }
}

fn shaped(config: ShapedConfig) -> Shaped<Numbered> {
    let streams = Streams::new(7);
    let [loss, queue, jitter] = ["w", "w/queue", "w/jitter"].map(|name| streams.stream(name));
    Shaped::new(config, ShapedStreams { loss, queue, jitter })
}

/// All that happens up to `until`: arrivals, and numbers of the packets that were dropped.
fn run(link: &mut Shaped<Numbered>, until: Nanos, arrivals: &mut Arrivals, drops: &mut Vec<u32>) {
    while link.next_event() <= until && link.next_event() != NEVER {
        let now = link.next_event();
        link.advance(now, |fate| match fate {
            Fate::Arrived(packet) => arrivals.push((now, packet.number)),
            Fate::Dropped(packet, _) => drops.push(packet.number),
        });
    }
}

/// Packets of these sizes at these times, until all have arrived or are lost.
fn carry(link: &mut Shaped<Numbered>, packets: &[(Nanos, u32)]) -> (Arrivals, Vec<u32>) {
    let (mut arrivals, mut drops) = (Vec::new(), Vec::new());
    for (number, &(at, bytes)) in (0..).zip(packets) {
        run(link, at, &mut arrivals, &mut drops);
        link.offer(at, Numbered { number, bytes }, |fate| match fate {
            Fate::Dropped(packet, _) => drops.push(packet.number),
            Fate::Arrived(_) => unreachable!("packets arrive when the link is advanced"),
        });
    }
    run(link, NEVER, &mut arrivals, &mut drops);
    (arrivals, drops)
}

/// The same on a plain wire.
fn carry_on_wire(config: WireConfig, packets: &[(Nanos, u32)]) -> (Arrivals, Vec<u32>) {
    let mut wire = Wire::new(config, Streams::new(7).stream("w"));
    let (mut arrivals, mut drops) = (Vec::new(), Vec::new());
    let mut run = |wire: &mut Wire<Numbered>, until: Nanos, drops: &mut Vec<u32>| {
        while wire.next_arrival() <= until && wire.next_arrival() != NEVER {
            let (at, packet) = (wire.next_arrival(), *wire.front());
            if wire.pop() { arrivals.push((at, packet.number)) } else { drops.push(packet.number) }
        }
    };
    for (number, &(at, bytes)) in (0..).zip(packets) {
        run(&mut wire, at, &mut drops);
        if let Offer::Dropped(_) = wire.offer(at, Numbered { number, bytes }) {
            drops.push(number);
        }
    }
    run(&mut wire, NEVER, &mut drops);
    (arrivals, drops)
}

prop_compose! {
    fn any_packets()(steps in prop::collection::vec((0_u64..3_000_000, 40_u32..2000), 1..200)) -> Vec<(Nanos, u32)> {
        let mut at = 0;
        steps.into_iter().map(|(step, bytes)| { at += step; (at, bytes) }).collect()
    }
}

proptest! {
    #[test]
    fn with_drop_tail_and_constant_rate_packets_arrive_to_the_nanosecond_as_on_a_wire(
        packets in any_packets(),
        rate_bps in 100_000_u64..100_000_000,
        delay in prop_oneof![Just(0), 0_u64..20_000_000],
        limit in prop_oneof![
            Just(Limit::Unlimited),
            (1_u32..20).prop_map(Limit::Packets),
            (2000_u64..20_000).prop_map(Limit::Bytes),
        ],
        loss in prop_oneof![Just(Probability::ZERO), (0.01..0.9).prop_map(Probability::new)],
    ) {
        let mut link = shaped(ShapedConfig {
            rate: Rate::Constant(rate_bps), delay, limit, loss: Loss::Bernoulli(loss), ..plain()
        });
        let (arrivals, mut drops) = carry(&mut link, &packets);
        let (expected, mut expected_drops) =
            carry_on_wire(WireConfig { rate_bps, delay, limit, loss }, &packets);
        prop_assert_eq!(&arrivals, &expected);
        drops.sort_unstable();
        expected_drops.sort_unstable();
        prop_assert_eq!(drops, expected_drops);
        let bytes: u64 = arrivals.iter().map(|&(_, number)| u64::from(packets[number as usize].1)).sum();
        prop_assert_eq!(link.counters().delivered_bytes, bytes);
    }

    #[test]
    fn no_packet_is_forgotten_whatever_the_link_is(
        packets in any_packets(),
        queue in prop_oneof![
            Just(QueueConfig::Red(RedConfig {
                min_packets: 2, max_packets: 6, max_p: Probability::new(0.1), weight: 1 << 30, gentle: true, ecn: false,
            })),
            Just(QueueConfig::CoDel(CODEL)),
            Just(QueueConfig::FqCoDel(crate::queue::FqCoDelConfig { codel: CODEL, flows: 4, quantum_bytes: 500 })),
        ],
        trace in any::<bool>(),
        reorder in any::<bool>(),
        down_at in 0_u64..400_000_000,
    ) {
        let rate = if trace { recorded(&[3, 3, 4, 9]) } else { Rate::Constant(4_000_000) };
        let jitter = JitterConfig { range: 20 * MS, distribution: JitterDistribution::Exponential, reorder };
        let loss = Loss::GilbertElliott(BURSTS);
        let limit = Limit::Packets(10);
        let mut link = shaped(ShapedConfig { rate, limit, queue, loss, jitter: Some(jitter), ..plain() });
        let (mut arrivals, mut drops) = (Vec::new(), Vec::new());
        for (number, &(at, bytes)) in (0..).zip(&packets) {
            run(&mut link, at, &mut arrivals, &mut drops);
            let mut note = |fate| if let Fate::Dropped(Numbered { number, .. }, _) = fate { drops.push(number) };
            if at > down_at {
                link.set_up(at, number % 3 == 0, &mut note);
            }
            link.offer(at, Numbered { number, bytes }, &mut note);
        }
        run(&mut link, NEVER, &mut arrivals, &mut drops);
        let mut all: Vec<u32> = arrivals.iter().map(|&(_, number)| number).chain(drops.iter().copied()).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..packets.len() as u32).collect::<Vec<_>>());
        let counters = link.counters();
        prop_assert_eq!(counters.delivered as usize, arrivals.len());
        let dropped = counters.dropped_queue + counters.dropped_down + counters.lost;
        prop_assert_eq!(dropped as usize, drops.len());
        prop_assert_eq!((link.queued(), link.next_event()), (0, NEVER));
    }
}

const CODEL: CoDelConfig = CoDelConfig { target: 5 * MS, interval: 20 * MS, ecn: false };
const BURSTS: GilbertElliott = GilbertElliott {
    p: Probability::from_raw(1 << 50),
    r: Probability::from_raw(1 << 51),
    loss_good: Probability::ZERO,
    loss_bad: Probability::ONE,
    is_bad: false,
};

/// Packets of 1000 bytes, evenly spaced.
fn evenly(count: u64, spacing: Nanos) -> Vec<(Nanos, u32)> {
    (0..count).map(|n| (n * spacing, 1000)).collect()
}

#[test]
fn a_new_rate_holds_for_the_rest_of_the_packet_in_transmission() {
    let mut link = shaped(plain());
    for number in 0..2 {
        link.offer(0, Numbered { number, bytes: 1000 }, |_| unreachable!("there is room"));
    }
    link.set_rate(MS / 2, 4_000_000, |_| unreachable!("nothing is lost"));
    let (mut arrivals, mut drops) = (Vec::new(), Vec::new());
    run(&mut link, NEVER, &mut arrivals, &mut drops);
    assert_eq!(arrivals, [(MS / 2 + MS + 10 * MS, 0), (MS / 2 + 3 * MS + 10 * MS, 1)]);
}

#[test]
fn a_shorter_delay_does_not_let_a_packet_overtake() {
    let mut link = shaped(plain());
    link.offer(0, Numbered { number: 0, bytes: 1000 }, |_| unreachable!("there is room"));
    link.offer(MS, Numbered { number: 1, bytes: 1000 }, |_| unreachable!("there is room"));
    link.set_delay(MS, MS, |_| unreachable!("nothing is lost"));
    let (mut arrivals, mut drops) = (Vec::new(), Vec::new());
    run(&mut link, NEVER, &mut arrivals, &mut drops);
    assert_eq!(arrivals, [(11 * MS, 0), (11 * MS, 1)], "the second would be there at 3 ms");
}

fn with_jitter(distribution: JitterDistribution, reorder: bool) -> ShapedConfig {
    ShapedConfig { jitter: Some(JitterConfig { range: 20 * MS, distribution, reorder }), ..plain() }
}

#[test]
fn order_is_kept_unless_reordering_is_asked_for() {
    for distribution in
        [JitterDistribution::Uniform, JitterDistribution::Exponential, JitterDistribution::Normal]
    {
        let arrivals = carry(&mut shaped(with_jitter(distribution, false)), &evenly(2_000, MS)).0;
        assert!(arrivals.iter().map(|&(_, number)| number).eq(0..2_000), "{distribution:?}");
        let arrivals = carry(&mut shaped(with_jitter(distribution, true)), &evenly(2_000, MS)).0;
        assert!(arrivals.iter().any(|&(at, number)| at < 11 * MS + u64::from(number) * MS + 10 * MS));
        assert!(!arrivals.iter().map(|&(_, number)| number).eq(0..2_000), "{distribution:?}");
    }
}

#[test]
fn without_reordering_a_packet_arrives_at_the_largest_of_the_times_drawn_so_far() {
    let packets = evenly(5_000, MS);
    let arrivals = carry(&mut shaped(with_jitter(JitterDistribution::Uniform, false)), &packets).0;
    let jitter = JitterConfig { range: 20 * MS, distribution: JitterDistribution::Uniform, reorder: false };
    let mut rng = Streams::new(7).stream("w/jitter");
    let mut latest = 0;
    for (&(sent, _), &(arrives, _)) in packets.iter().zip(&arrivals) {
        latest = latest.max(sent + 11 * MS + jitter.draw(&mut rng));
        assert_eq!(arrives, latest);
    }
}

#[test]
fn the_mean_delay_with_order_kept_is_that_of_a_running_maximum() {
    // Packets of spacing s and a uniform range R = k s: the further delay D of a packet is the largest of x_0, x_1 - s, …,
    // x_{k-1} - (k - 1) s, so P(D <= d) is the product of min(1, (d + j s) / R) and E[D] its complement's integral.
    let k = 20;
    let steps = 20_000;
    let exact: f64 = (0..steps)
        .map(|step| {
            let d = (f64::from(step) + 0.5) / f64::from(steps);
            let below: f64 = (0..k).map(|j| (d + f64::from(j) / f64::from(k)).min(1.0)).product();
            (1.0 - below) / f64::from(steps)
        })
        .sum();
    let packets = evenly(200_000, MS);
    let arrivals = carry(&mut shaped(with_jitter(JitterDistribution::Uniform, false)), &packets).0;
    let delays =
        packets.iter().zip(&arrivals).map(|(&(sent, _), &(at, _))| (at - sent - 11 * MS) as f64 / 20e6);
    let mean = delays.sum::<f64>() / packets.len() as f64;
    // Neighbours draw on the same maxima: at most one in twenty is independent, with a deviation below 0.29.
    let allowed = 4.0 * 0.29 / (packets.len() as f64 / 20.0).sqrt();
    assert!((mean - exact).abs() < allowed, "{mean} for {exact}, {allowed} allowed");
    assert!(mean > 0.6, "well above the half of the draws");
}

#[test]
fn the_share_of_packets_that_are_overtaken_by_the_next_is_its_closed_form() {
    // Packet n arrives after its successor if x_n - x_{n+1} > s. For uniform draws in [0, R) that has the probability
    // (1 - s/R)^2 / 2.
    for spacing in [2 * MS, 5 * MS, 15 * MS] {
        let packets = evenly(100_000, spacing);
        let arrivals = carry(&mut shaped(with_jitter(JitterDistribution::Uniform, true)), &packets).0;
        let mut at = vec![0; packets.len()];
        arrivals.iter().for_each(|&(time, number)| at[number as usize] = time);
        let overtaken = at.windows(2).filter(|pair| pair[0] > pair[1]).count() as f64;
        let pairs = (packets.len() - 1) as f64;
        let exact = (1.0 - spacing as f64 / 20e6).powi(2) / 2.0;
        // Pairs that share a packet are not independent, but negatively correlated: the binomial error bounds theirs.
        let allowed = 4.0 * (exact * (1.0 - exact) / pairs).sqrt();
        let share = overtaken / pairs;
        assert!((share - exact).abs() < allowed, "{share} for {exact}, {allowed} allowed");
    }
}

fn recorded(at_ms: &[u32]) -> Rate {
    Rate::Trace(Trace { opportunities_ms: at_ms.into() })
}

fn traced(at_ms: &[u32]) -> ShapedConfig {
    ShapedConfig { rate: recorded(at_ms), delay: 0, ..plain() }
}

#[test]
fn an_opportunity_carries_1500_bytes_of_small_packets_or_a_part_of_a_large_one() {
    let mut link = shaped(traced(&[10, 20, 30]));
    let packets = [(0, 700), (0, 700), (0, 700), (0, 2000)];
    // 1500 B at 10 ms: 700, 700 and 100 of the third. At 20 ms its other 600 and 900 of the fourth, 1100 at 30 ms.
    assert_eq!(carry(&mut link, &packets).0, [(10 * MS, 0), (10 * MS, 1), (20 * MS, 2), (30 * MS, 3)]);
}

#[test]
fn what_an_empty_queue_leaves_of_an_opportunity_is_lost() {
    let mut link = shaped(traced(&[10, 20]));
    let packets = [(0, 100), (10 * MS, 1500), (20 * MS, 1500)];
    assert_eq!(carry(&mut link, &packets).0, [(10 * MS, 0), (20 * MS, 1), (30 * MS, 2)]);
}

#[test]
fn the_throughput_of_a_saturated_link_is_the_mean_of_its_trace() {
    let at_ms = [0, 1, 1, 5, 5, 5, 5, 40, 41, 43, 90, 90, 100];
    for bytes in [100, 1000, 1500] {
        let mut link = shaped(traced(&at_ms));
        let end = 20_000 * MS;
        let mut now = 0;
        while now <= end {
            while link.queued() < 200 {
                link.offer(now, Numbered { number: 0, bytes }, |_| unreachable!("there is room"));
            }
            now = link.next_event();
            if now <= end {
                link.advance(now, |_| {});
            }
        }
        // The opportunity at time 0 is over when the first packet comes; the one at the end is that of the next round.
        let exact = 200 * at_ms.len() as u64 * 1500;
        let carried = link.counters().delivered_bytes;
        assert!(carried <= exact && exact - carried < u64::from(bytes), "{carried} for {exact}");
    }
}

#[test]
fn losses_in_bursts_do_not_move_the_draws_of_others() {
    let loss = Loss::GilbertElliott(BURSTS);
    let packets = evenly(500, 25 * MS);
    let all = carry(&mut shaped(with_jitter(JitterDistribution::Uniform, false)), &packets).0;
    let mut lossy = shaped(ShapedConfig { loss, ..with_jitter(JitterDistribution::Uniform, false) });
    let (arrivals, drops) = carry(&mut lossy, &packets);
    assert!(drops.len() > 50, "{}", drops.len());
    // The n-th packet that is not lost has the n-th draw.
    let draws = |arrivals: &Arrivals| -> Vec<Nanos> {
        arrivals.iter().map(|&(at, number)| at - packets[number as usize].0).collect()
    };
    assert_eq!(draws(&arrivals), draws(&all)[..arrivals.len()]);
}

#[test]
fn offers_ahead_of_time_keep_their_order_and_none_is_sent_before_it_was_offered() {
    let mut link = shaped(ShapedConfig { delay: 0, queue: QueueConfig::CoDel(CODEL), ..plain() });
    for (number, at) in [(0, 0), (1, 3 * MS), (2, 2 * MS)] {
        link.offer(at, Numbered { number, bytes: 1000 }, |_| unreachable!("there is room"));
    }
    let (mut arrivals, mut drops) = (Vec::new(), Vec::new());
    run(&mut link, NEVER, &mut arrivals, &mut drops);
    assert_eq!(arrivals, [(MS, 0), (4 * MS, 1), (5 * MS, 2)]);
}
