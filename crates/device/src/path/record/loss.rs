//! Losses at random, told from the drops of a full queue by the round-trip time. Pure.
//!
//! A queue that drops what it has no room for is full then, and the round trip about the longest that there is. Noise does not look at
//! queues. So the losses at random are counted while the queue is not full, and divided by what was sent in that time: leaving the rest out
//! of both changes the size of the sample alone. When it is full is told as the scheme "Spike" does (Cen, Cosman and Voelker, IEEE/ACM
//! Transactions on Networking 11(5), 2003), with a state that begins above one round-trip time and ends below another. Where they lie is our
//! choice: at three quarters of the way from the least to the longest one, so that much time is left to count in, and at a third.
//! Where nothing was lost for two readings it ends too, since a window that shrinks by little does not empty a deep queue.
//!
//! Left out, and who could notice: drops of an active queue management, of a queue of a few packets, or of a queue that others fill
//! while this flow's round trip is read between its peaks are counted as losses at random. Losses at random of a full queue are not counted,
//! so noise that is worse while a link is busy seems less. What was sent again without need counts as lost. Losses are one share
//! for the whole record: pieces of it are told by their rates, which losses themselves change.

use std::ops::Range;

/// Readings in a row without losses after which the drops of a full queue are over.
const QUIET_READINGS: u32 = 2;
/// Fewer full segments say nothing of losses of a hundredth.
const SEGMENTS_MIN: u64 = 100;

/// What one subflow has sent from one reading to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// The second that it belongs to.
    pub(super) window: usize,
    /// The longer one of the smoothed round-trip times at both ends.
    pub(super) rtt_us: u32,
    /// Bytes, repetitions included.
    pub(super) sent_bytes: u64,
    /// Bytes sent again.
    pub(super) again_bytes: u64,
}

/// All readings of a subflow.
#[derive(Debug, Default)]
pub(super) struct Flow {
    least_rtt_us: Option<u32>,
    readings: Vec<Reading>,
}

/// Bytes sent, and of them those sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    bytes: u64,
    again_bytes: u64,
}

impl Sent {
    fn and(self, bytes: u64, again_bytes: u64) -> Self {
        Self { bytes: self.bytes + bytes, again_bytes: self.again_bytes + again_bytes }
    }
}

impl Flow {
    /// Takes a reading, and the least round-trip time so far. One without a round-trip time tells nothing.
    pub(super) fn take(&mut self, reading: Reading, least_rtt_us: Option<u32>) {
        if reading.rtt_us > 0 {
            self.least_rtt_us =
                [self.least_rtt_us, least_rtt_us, Some(reading.rtt_us)].into_iter().flatten().min();
            self.readings.push(reading);
        }
    }

    /// What was sent in those seconds while the queue was not full, and while it was.
    fn by_queue(&self, windows: &Range<usize>) -> [Sent; 2] {
        let readings = || self.readings.iter().filter(|reading| windows.contains(&reading.window));
        let least = u64::from(self.least_rtt_us.unwrap_or(0));
        let longest = readings().map(|reading| u64::from(reading.rtt_us)).max().unwrap_or(least);
        let full_from = least + (longest - least) * 3 / 4;
        let short_below = least + (longest - least) / 3;
        let mut sent = [Sent::default(); 2];
        let (mut is_full, mut quiet) = (false, 0);
        for reading in readings() {
            let rtt = u64::from(reading.rtt_us);
            if longest > least && rtt >= full_from {
                (is_full, quiet) = (true, 0);
            } else {
                // Not by what is lost in this reading: then those without losses would be counted more often than those with them.
                is_full &= rtt >= short_below && quiet < QUIET_READINGS;
                quiet = if reading.again_bytes == 0 { quiet + 1 } else { 0 };
            }
            let of = &mut sent[usize::from(is_full)];
            *of = of.and(reading.sent_bytes, reading.again_bytes);
        }
        sent
    }
}

/// Losses at random, in millionths of what these flows have sent; none if they were lost while queues were full nearly all the time, so
/// that nothing is known. The longest round trip is that of each piece of the record, since the same queue takes longer at a lower rate.
pub(super) fn random_ppm<'f>(
    flows: impl Iterator<Item = &'f Flow>,
    pieces: &[Range<usize>],
    mss_bytes: u32,
) -> Option<u64> {
    let (mut short, mut full) = (Sent::default(), Sent::default());
    for flow in flows {
        for piece in pieces {
            let [of_short, of_full] = flow.by_queue(piece);
            short = short.and(of_short.bytes, of_short.again_bytes);
            full = full.and(of_full.bytes, of_full.again_bytes);
        }
    }
    if full.again_bytes > 0 && short.bytes < SEGMENTS_MIN * u64::from(mss_bytes) {
        return None;
    }
    // An hour at 1 Tbit/s is less than 2^49 bytes; times a million that is too much for 64 bits, so in 128.
    let ppm = u128::from(short.again_bytes) * 1_000_000 / u128::from(short.bytes.max(1));
    Some(u64::try_from(ppm).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::slice;

    use rand_xoshiro::{
        SplitMix64,
        rand_core::{Rng as _, SeedableRng as _},
    };

    use super::*;

    const MSS: u32 = 1448;
    /// 8 Mbit/s in full packets, and 44 ms of them.
    const PACKETS_PER_S: f64 = 667.0;
    const LEAST_RTT_S: f64 = 0.044;
    const SECONDS: usize = 60;

    /// A window that grows by a packet per round trip and shrinks by three tenths for a round trip with losses, read ten times a
    /// second. What is lost is sent again a round trip later.
    fn sender(queue_packets: f64, loss: f64) -> Flow {
        let mut random = SplitMix64::seed_from_u64(1);
        let mut noise = |packets: u64| {
            (0..packets).filter(|_| ((random.next_u64() >> 11) as f64) < loss * (1_u64 << 53) as f64).count()
        };
        let mut flow = Flow::default();
        let (mut window, mut now_s, mut lost, mut rtt_us_before) = (10.0_f64, 0.0, 0, 44_000);
        let (mut sent, mut again) = (0, 0);
        for reading in 1..=10 * SECONDS {
            let mut rtt_s = LEAST_RTT_S;
            while now_s < reading as f64 / 10.0 {
                rtt_s = (window / PACKETS_PER_S).max(LEAST_RTT_S);
                now_s += rtt_s;
                (sent, again) = (sent + window as u64, again + lost as u64);
                let dropped = (window - PACKETS_PER_S * LEAST_RTT_S - queue_packets).max(0.0).ceil();
                lost = noise(window as u64) + dropped as usize;
                window = if lost > 0 { (window * 0.7).max(2.0) } else { window + 1.0 };
            }
            let rtt_us = (rtt_s * 1e6) as u32;
            let taken = Reading {
                window: (reading - 1) / 10,
                rtt_us: rtt_us.max(rtt_us_before),
                sent_bytes: sent * u64::from(MSS),
                again_bytes: again * u64::from(MSS),
            };
            flow.take(taken, Some(44_000));
            (sent, again, rtt_us_before) = (0, 0, rtt_us);
        }
        flow
    }

    fn ppm(flow: &Flow) -> Option<u64> {
        random_ppm([flow].into_iter(), slice::from_ref(&(0..SECONDS)), MSS)
    }

    fn all(flow: &Flow) -> Sent {
        flow.readings
            .iter()
            .fold(Sent::default(), |sum, reading| sum.and(reading.sent_bytes, reading.again_bytes))
    }

    #[test]
    fn drops_of_a_full_queue_are_no_losses_at_random() {
        let flow = sender(100.0, 0.0);
        assert!(all(&flow).again_bytes > 0, "the queue was full");
        assert_eq!(ppm(&flow), Some(0));
    }

    #[test]
    fn losses_at_random_are_found_within_three_standard_errors_of_their_number() {
        // Windows never fill the queue; they fill it now and then.
        for (queue_packets, loss) in [(1000.0, 0.01), (20.0, 0.001), (100.0, 0.000_5)] {
            let flow = sender(queue_packets, loss);
            let [short, _] = flow.by_queue(&(0..SECONDS));
            let packets = (short.bytes / u64::from(MSS)) as f64;
            assert!(2 * short.bytes > all(&flow).bytes, "most of the time counts");
            let found = ppm(&flow).expect("there is enough of it") as f64 / 1e6;
            let error = (loss * (1.0 - loss) / packets).sqrt();
            assert!((found - loss).abs() < 3.0 * error, "{loss} in {packets} packets: {found}");
        }
    }

    #[test]
    fn a_queue_that_is_always_full_leaves_losses_at_random_unknown() {
        let reading = |rtt_us, again_bytes| Reading { window: 0, rtt_us, sent_bytes: 100_000, again_bytes };
        let mut flow = Flow::default();
        for again_bytes in [0, 1448, 0, 2896] {
            flow.take(reading(100_000, again_bytes), Some(40_000));
        }
        assert_eq!(ppm(&flow), None);
        let mut without_losses = Flow::default();
        without_losses.take(reading(100_000, 0), Some(40_000));
        assert_eq!(ppm(&without_losses), Some(0));
    }

    #[test]
    fn repetitions_that_go_on_while_the_queue_drains_are_of_the_full_one() {
        let mut flow = Flow::default();
        let readings = [(100, 0), (100, 5), (80, 5), (75, 5), (75, 0), (75, 0), (75, 3), (50, 2)];
        for (rtt_ms, again_bytes) in readings {
            let rtt_us = rtt_ms * 1000;
            flow.take(Reading { window: 0, rtt_us, sent_bytes: 100, again_bytes }, Some(40_000));
        }
        let [short, full] = flow.by_queue(&(0..1));
        assert_eq!((full.again_bytes, short.again_bytes), (15, 5), "quiet for two readings, and then again");
    }
}
