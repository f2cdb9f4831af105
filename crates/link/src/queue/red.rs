//! Random early detection: S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993; the gentle variant of Floyd's note of 2000.
//!
//! Each arrival moves an average of the queue, `avg += w (q - avg)`; after an idle time it is moved as if so many small
//! packets had found an empty queue as could have been sent meanwhile. Between `min` and `max` an arrival is dropped with
//! a probability that grows from 0 to `max_p`, spread so that the number of packets from one drop to the next is
//! uniform on 1 to 1/p; from `max` on every arrival is dropped. Gentle: from `max` to twice `max` the probability grows
//! from `max_p` to 1.
//!
//! We differ in: the pseudo-code of the paper's figure 2 sets its count to 0 after a drop, which would make the distance
//! between two drops uniform on 1 to 1/p - 1; we follow the derivation of section 7. The queue is counted in packets, the
//! one in transmission included.
//!
//! Left out: counting in bytes, and adapting `max_p` (Adaptive RED). Who mixes small and large packets would notice
//! the first.

use super::{Discipline, Fifo, Held, mark};
use crate::{ByteTime, Frame, Limit, Nanos, Probability, Rng};

/// Size of the small packet that an idle time is measured in.
const SMALL_PACKET_BYTES: u32 = 500;
/// Averages and weights count units of 2^-32.
const SCALE: u32 = 32;
const ONE: u64 = 1 << SCALE;

/// Settings of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedConfig {
    /// Below this average nothing is dropped early.
    pub min_packets: u32,
    /// From this average on everything is, unless gentle; above `min_packets`.
    pub max_packets: u32,
    /// Probability of a drop at `max_packets`.
    pub max_p: Probability,
    /// Weight of the newest queue length in the average, in units of 2^-32, from 1 to 2^32.
    pub weight: u64,
    /// Whether the probability grows on to 1 at twice `max_packets`.
    pub gentle: bool,
    /// Whether packets that can be are marked instead of dropped.
    pub ecn: bool,
}

/// What an average asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Accept,
    /// Drop or mark with this probability, before it is spread.
    Perhaps(Probability),
    /// RFC 3168 section 7: a packet is not marked any more where all are dropped.
    Drop,
}

pub(super) struct Red<P> {
    config: RedConfig,
    limit: Limit,
    fifo: Fifo<P>,
    /// Packets, in units of 2^-32.
    average: u64,
    small_packet: Nanos,
    idle_since: Nanos,
    /// Packets since the last drop or mark, while the average was above `min`.
    since_drop: u64,
    rng: Rng,
    marked: u64,
}

impl<P: Frame> Red<P> {
    pub(super) fn new(config: RedConfig, limit: Limit, rate_bps: u64, rng: Rng) -> Self {
        Self {
            config,
            limit,
            fifo: Fifo::new(),
            average: 0,
            small_packet: small_packet(rate_bps),
            idle_since: 0,
            since_drop: 0,
            rng,
            marked: 0,
        }
    }

    fn average_in(&mut self, now: Nanos, queue: u32) {
        if queue == 0 {
            let packets = now.saturating_sub(self.idle_since) / self.small_packet;
            self.average = times(self.average, power(ONE - self.config.weight, packets));
            self.idle_since = now;
        }
        let queue = u64::from(queue) << SCALE;
        if queue >= self.average {
            self.average += times(queue - self.average, self.config.weight);
        } else {
            self.average -= times(self.average - queue, self.config.weight);
        }
    }

    fn verdict(&self) -> Verdict {
        let RedConfig { min_packets, max_packets, max_p, gentle, .. } = self.config;
        let (min, max) = (u64::from(min_packets) << SCALE, u64::from(max_packets) << SCALE);
        let part = |from: u64, length: u64, of: u64| {
            (u128::from(of) * u128::from(self.average - from) / u128::from(length)) as u64
        };
        let max_p = max_p.raw();
        let certain = Probability::ONE.raw();
        match self.average {
            average if average < min => Verdict::Accept,
            average if average < max => Verdict::Perhaps(Probability::from_raw(part(min, max - min, max_p))),
            average if gentle && average < 2 * max => {
                Verdict::Perhaps(Probability::from_raw(max_p + part(max, max, certain - max_p)))
            }
            _ => Verdict::Drop,
        }
    }

    /// Draws; the probability of the n-th packet since the last drop is `p / (1 - n p)`.
    fn hits(&mut self, p: Probability) -> bool {
        let certain = u128::from(Probability::ONE.raw());
        let p = u128::from(p.raw());
        let spread = match certain.saturating_sub(u128::from(self.since_drop) * p) {
            rest if rest <= p => Probability::ONE,
            rest => Probability::from_raw((p * certain / rest) as u64),
        };
        let hits = self.rng.chance(spread);
        self.since_drop = if hits { 0 } else { self.since_drop + 1 };
        hits
    }
}

impl<P: Frame> Discipline<P> for Red<P> {
    fn enqueue(&mut self, now: Nanos, mut packet: P, sending: Held, gone: &mut dyn FnMut(P)) {
        let held = self.fifo.held().and(sending);
        self.average_in(now, held.packets);
        let drops = match self.verdict() {
            Verdict::Accept => {
                self.since_drop = 0;
                false
            }
            Verdict::Perhaps(p) => self.hits(p) && !mark(self.config.ecn, &mut packet, &mut self.marked),
            Verdict::Drop => {
                self.since_drop = 0;
                true
            }
        };
        if drops || held.leaves_no_room(self.limit, packet.bytes()) {
            gone(packet);
        } else {
            self.fifo.push(now, packet);
        }
    }

    fn dequeue(&mut self, _now: Nanos, _gone: &mut dyn FnMut(P)) -> Option<P> {
        self.fifo.pop().map(|(_, packet)| packet)
    }

    fn rest(&mut self, now: Nanos) {
        self.idle_since = now;
    }

    fn set_rate(&mut self, rate_bps: u64) {
        self.small_packet = small_packet(rate_bps);
    }

    fn waiting(&self) -> Held {
        self.fifo.held()
    }

    fn clear(&mut self, gone: &mut dyn FnMut(P)) {
        self.fifo.clear(gone);
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}

fn small_packet(rate_bps: u64) -> Nanos {
    ByteTime::new(rate_bps).of(SMALL_PACKET_BYTES).max(1)
}

/// The product of two numbers in units of 2^-32, rounded down.
fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> SCALE) as u64
}

/// `base^exponent` of a base up to 1, in units of 2^-32.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, Tagged, dequeue, enqueue, packet};
    use super::*;
    use crate::Streams;

    const CONFIG: RedConfig = RedConfig {
        min_packets: 10,
        max_packets: 30,
        max_p: Probability::ONE,
        weight: ONE,
        gentle: false,
        ecn: false,
    };

    /// At 4 Mbit/s a small packet takes 1 ms.
    fn red(config: RedConfig) -> Red<Tagged> {
        Red::new(config, Limit::Unlimited, 4_000_000, Streams::new(31).stream("red"))
    }

    fn with_max_p(max_p: f64) -> RedConfig {
        RedConfig { max_p: Probability::new(max_p), ..CONFIG }
    }

    /// Fills the queue without asking the discipline.
    fn fill(red: &mut Red<Tagged>, packets: u64) {
        (0..packets).for_each(|number| red.fifo.push(0, packet(0, number, 1000)));
    }

    /// Distances from one drop to the next at a constant queue of `packets`.
    fn distances(red: &mut Red<Tagged>, packets: u64, drops: usize) -> Vec<u32> {
        fill(red, packets);
        let mut distances = vec![0];
        while distances.len() <= drops {
            *distances.last_mut().expect("not empty") += 1;
            if enqueue(red, 0, packet(0, 0, 1000)).is_empty() {
                dequeue(red, 0);
            } else {
                distances.push(0);
            }
        }
        distances.truncate(drops);
        distances
    }

    #[test]
    fn the_average_follows_its_closed_form() {
        let weight = ONE / 512;
        let mut red = red(RedConfig { weight, ..CONFIG });
        for n in 1..=2000 {
            red.average_in(0, 100);
            let expected = 100.0 * (1.0 - (1.0_f64 - 1.0 / 512.0).powi(n));
            let average = red.average as f64 / ONE as f64;
            assert!(
                (average - expected).abs() < 1e-6,
                "{average} for {expected} after {n}, rounding allowed"
            );
        }
    }

    #[test]
    fn an_idle_time_counts_as_the_small_packets_that_could_have_been_sent() {
        let weight = ONE / 512;
        let mut red = red(RedConfig { weight, ..CONFIG });
        red.average = 50 * ONE;
        Discipline::<Tagged>::rest(&mut red, 100 * MS);
        red.average_in(400 * MS, 0);
        let expected = 50.0 * (1.0_f64 - 1.0 / 512.0).powi(300 + 1);
        let average = red.average as f64 / ONE as f64;
        assert!((average - expected).abs() < 1e-5, "{average} for {expected}");
    }

    #[test]
    fn the_probability_grows_from_min_to_max_and_gently_to_twice_max() {
        let mut red = red(with_max_p(0.1));
        let mut at = |packets: u64, gentle: bool| {
            (red.config.gentle, red.average) = (gentle, packets * ONE);
            red.verdict()
        };
        let near = |verdict: Verdict, p: f64| match verdict {
            Verdict::Perhaps(found) => found.raw().abs_diff(Probability::new(p).raw()) < 4,
            _ => false,
        };
        assert_eq!(at(9, false), Verdict::Accept);
        assert!(near(at(10, false), 0.0));
        assert!(near(at(20, false), 0.05));
        assert_eq!(at(30, false), Verdict::Drop);
        assert!(near(at(30, true), 0.1));
        assert!(near(at(45, true), 0.55));
        assert_eq!(at(60, true), Verdict::Drop);
    }

    #[test]
    fn the_distance_between_drops_is_uniform_on_one_to_one_over_p() {
        // At 20 packets, halfway between 10 and 30, p is 1/50.
        let distances = distances(&mut red(with_max_p(0.04)), 20, 10_000);
        let n = distances.len() as f64;
        assert!(distances.iter().all(|distance| (1..=50).contains(distance)));
        let mean = distances.iter().map(|&distance| f64::from(distance)).sum::<f64>() / n;
        let deviation = ((50.0 * 50.0 - 1.0) / 12.0_f64).sqrt();
        assert!((mean - 25.5).abs() < 4.0 * deviation / n.sqrt(), "{mean}: four standard errors");
        for tenth in 0..10 {
            let hits = distances.iter().filter(|&&distance| (distance - 1) / 5 == tenth).count() as f64;
            assert!((hits - n / 10.0).abs() < 4.0 * (n * 0.09).sqrt(), "{hits} in the tenth number {tenth}");
        }
    }

    #[test]
    fn what_can_be_is_marked_until_everything_is_dropped() {
        let mut red = red(RedConfig { ecn: true, ..CONFIG });
        fill(&mut red, 29);
        let capable = Tagged { ecn_capable: true, ..packet(0, 7, 1000) };
        let mut dropped = 0;
        for _ in 0..200 {
            dropped += enqueue(&mut red, 0, capable).len();
            red.fifo.packets.pop_back();
        }
        assert_eq!(dropped, 0);
        assert!(red.marked > 100, "{} of 200 at p = 0.95", red.marked);
        fill(&mut red, 1);
        assert_eq!(enqueue(&mut red, 0, capable), [capable], "from max on");
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average_is() {
        let mut red: Red<Tagged> = Red::new(
            RedConfig { weight: 1, ..CONFIG },
            Limit::Packets(2),
            4_000_000,
            Streams::new(1).stream("r"),
        );
        let dropped: usize = (0..5).map(|n| enqueue(&mut red, 0, packet(0, n, 1000)).len()).sum();
        assert_eq!((dropped, red.waiting().packets), (3, 2));
    }
}
