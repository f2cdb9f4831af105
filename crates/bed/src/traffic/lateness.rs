//! How late a sender was, packet by packet.

use crate::Nanos;

/// Each power of two is split into this many buckets, so that a quantile is at most 1/16 too high.
const PER_OCTAVE: u64 = 16;
const BUCKETS: usize = (64 - 3) * PER_OCTAVE as usize;

/// Distribution of the time between when a packet was due and when it was given to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    buckets: Vec<u64>,
    packets: u64,
    max: Nanos,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], packets: 0, max: 0 }
    }
}

impl Lateness {
    pub(super) fn add(&mut self, late: Nanos) {
        self.buckets[bucket(late)] += 1;
        self.packets += 1;
        self.max = self.max.max(late);
    }

    /// The largest; 0 if nothing was sent.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The smallest time that at least this part of the packets did not exceed, rounded up by at most a
    /// sixteenth; 0 if nothing was sent.
    ///
    /// # Panics
    /// If `part` is not within 0 and 1.
    pub fn quantile(&self, part: f64) -> Nanos {
        assert!((0.0..=1.0).contains(&part), "a quantile is a part of the whole, not {part}");
        let wanted = (self.packets as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (index, &packets) in self.buckets.iter().enumerate() {
            seen += packets;
            if seen >= wanted && seen > 0 {
                return last_of(index).min(self.max);
            }
        }
        0
    }
}

fn bucket(value: Nanos) -> usize {
    let octave = value.max(PER_OCTAVE).ilog2() - PER_OCTAVE.ilog2();
    (u64::from(octave) * PER_OCTAVE + (value >> octave)) as usize
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> Nanos {
    let bucket = bucket as u64;
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let step = bucket - octave * PER_OCTAVE;
    (step << octave) + ((1 << octave) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..70).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX, 999, 123_456_789]) {
            let index = bucket(value);
            assert!(value <= last_of(index), "{value} is above bucket {index}");
            assert!(index == 0 || value > last_of(index - 1), "{value} is below bucket {index}");
        }
    }

    #[test]
    fn a_quantile_is_at_most_a_sixteenth_too_high() {
        let mut lateness = Lateness::default();
        for late in 1..=1000 {
            lateness.add(late * 1000);
        }
        assert_eq!(lateness.max(), 1_000_000);
        let p99 = lateness.quantile(0.99);
        assert!((990_000..=990_000 * 17 / 16).contains(&p99), "{p99}");
        assert_eq!(lateness.quantile(1.0), 1_000_000);
    }

    #[test]
    fn nothing_sent_is_never_late() {
        assert_eq!(Lateness::default().quantile(0.99), 0);
    }
}
