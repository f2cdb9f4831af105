//! Transmission times without division on the way of every packet.

use crate::Nanos;

/// Nanoseconds per byte of a given rate, as a binary fraction.
///
/// The fraction has as many bits as keep `bytes << shift` in 64 bits for packets up to 256 KiB, so the
/// relative error is below 2^-30 for rates from 1 kbit/s to 1 Tbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteTime {
    /// Nanoseconds per byte, times 2^`shift`.
    pub per_byte: u64,
    /// Bits of the fraction.
    pub shift: u8,
}

const LARGEST_PACKET_BITS: u32 = 18;

impl ByteTime {
    /// The byte time of a rate in bits per second.
    ///
    /// # Panics
    /// If the rate is 0.
    pub fn new(rate_bps: u64) -> Self {
        assert!(rate_bps > 0, "a link's rate is above 0");
        let mut shift = 44_u8;
        loop {
            let per_byte = (8_000_000_000_u128 << shift) / u128::from(rate_bps);
            if shift == 0 || per_byte >> (64 - LARGEST_PACKET_BITS) == 0 {
                return Self { per_byte: per_byte as u64, shift };
            }
            shift -= 1;
        }
    }

    /// How long `bytes` take.
    #[inline]
    pub fn of(self, bytes: u32) -> Nanos {
        u64::from(bytes).wrapping_mul(self.per_byte) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_thousand_bytes_at_one_megabit_take_eight_milliseconds() {
        assert_eq!(ByteTime::new(1_000_000).of(1000), 8_000_000);
    }

    proptest! {
        #[test]
        fn the_time_is_exact_to_a_nanosecond(rate in 1_000_u64..1_000_000_000_000, bytes in 1_u32..262_144) {
            let exact = u128::from(bytes) * 8_000_000_000 / u128::from(rate);
            let time = u128::from(ByteTime::new(rate).of(bytes));
            prop_assert!(time <= exact && exact - time <= 1 + exact / (1 << 30), "{time} for {exact}");
        }
    }
}
