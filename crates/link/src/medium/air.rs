//! How long frames are in the air.

use crate::{ByteTime, Nanos};

/// SERVICE field and tail of an OFDM frame, in bits (IEEE 802.11-2020 section 17.3.5).
const OFDM_EXTRA_BITS: u64 = 16 + 6;

/// What surrounds a frame's bits on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Preamble and PHY header before a data frame.
    pub preamble: Nanos,
    /// The same before RTS, CTS and acknowledgements.
    pub control_preamble: Nanos,
    /// Length of an OFDM symbol: frames take whole symbols, with a service field and a tail. `None`: bits follow
    /// one another at the rate, as with DSSS.
    pub symbol: Option<Nanos>,
    /// Silence that belongs to every frame: the signal extension of OFDM at 2.4 GHz.
    pub extension: Nanos,
}

/// A rate, prepared for [`Framing::data`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    bps: u64,
    byte_time: ByteTime,
}

impl Rate {
    pub(super) fn new(bps: u64) -> Self {
        Self { bps, byte_time: ByteTime::new(bps) }
    }
}

impl Framing {
    /// Time of a data frame of so many bytes, MAC header and checksum included.
    pub(super) fn data(&self, rate: Rate, bytes: u32) -> Nanos {
        self.preamble + self.bits(rate, bytes) + self.extension
    }

    /// Time of a control frame.
    pub(super) fn control(&self, rate: Rate, bytes: u32) -> Nanos {
        self.control_preamble + self.bits(rate, bytes) + self.extension
    }

    /// TXTIME of the bits behind the preamble (IEEE 802.11-2020 section 17.4.3).
    fn bits(&self, rate: Rate, bytes: u32) -> Nanos {
        let Some(symbol) = self.symbol else { return rate.byte_time.of(bytes) };
        let bits = OFDM_EXTRA_BITS + 8 * u64::from(bytes);
        // Both sides are bits times nanoseconds per second; at 1 Tbit/s and 65 kB they stay below 2^53.
        (bits * 1_000_000_000).div_ceil(rate.bps * symbol) * symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Nanos = 1_000;
    const OFDM: Framing =
        Framing { preamble: 20 * US, control_preamble: 20 * US, symbol: Some(4 * US), extension: 0 };

    fn mbps(rate: u64) -> Rate {
        Rate::new(rate * 1_000_000)
    }

    /// IEEE 802.11-2020 section 17.4.3: 20 us + 4 us * ceil((22 + 8 * bytes) / N_DBPS), with 24 to 216 bits per
    /// symbol at 6 to 54 Mbit/s.
    #[test]
    fn ofdm_frames_take_whole_symbols() {
        for (rate, bits_per_symbol) in [(6, 24), (9, 36), (12, 48), (18, 72), (24, 96), (36, 144), (54, 216)]
        {
            for bytes in [14, 100, 1534] {
                let symbols = (22 + 8 * u64::from(bytes)).div_ceil(bits_per_symbol);
                assert_eq!(OFDM.data(mbps(rate), bytes), (20 + 4 * symbols) * US, "{rate} Mbit/s, {bytes} B");
            }
        }
        assert_eq!(OFDM.data(mbps(54), 1534), 248 * US);
        assert_eq!(OFDM.control(mbps(6), 14), 44 * US, "an acknowledgement at the lowest rate");
    }

    #[test]
    fn dsss_frames_end_with_their_last_bit() {
        let dsss = Framing { preamble: 192 * US, control_preamble: 192 * US, symbol: None, extension: 0 };
        assert_eq!(dsss.data(mbps(1), 1000), 8192 * US);
        assert_eq!(dsss.control(mbps(1), 14), 304 * US);
    }

    #[test]
    fn the_signal_extension_is_part_of_every_frame() {
        let erp = Framing { extension: 6 * US, ..OFDM };
        assert_eq!(erp.data(mbps(54), 1534), 254 * US);
        assert_eq!(erp.control(mbps(24), 14), 34 * US);
    }
}
