//! When the packets of a UDP flow leave.

use anabranch_draw::{ByteTime, Departures, Pattern, Rng};

use crate::Nanos;

/// The departures of a UDP flow: in each interval one at its start, then one after each spacing, until it ends; or as
/// its pattern has drawn them. The simulator has the same departures.
#[derive(Clone, Debug)]
pub struct Schedule {
    on: Vec<(Nanos, Nanos)>,
    spacing: Nanos,
    /// In place of the intervals.
    drawn: Option<Departures>,
    packets: u64,
}

impl Schedule {
    /// Packets of `packet_bytes` on the wire, at `rate_bps`, during the intervals `[start, end)`, which are
    /// disjoint and ascend.
    ///
    /// # Panics
    /// If the rate is 0.
    pub fn new(on: &[(Nanos, Nanos)], rate_bps: u64, packet_bytes: u32) -> Self {
        let on: Vec<(Nanos, Nanos)> = on.iter().copied().filter(|(start, end)| start < end).collect();
        let spacing = ByteTime::new(rate_bps).of(packet_bytes).max(1);
        let packets = on.iter().map(|(start, end)| (end - start).div_ceil(spacing)).sum();
        Self { on, spacing, drawn: None, packets }
    }

    /// As [`Self::new`], with a pattern within the intervals, drawn from `rng`.
    ///
    /// # Panics
    /// If the rate is 0.
    pub fn with_pattern(
        on: &[(Nanos, Nanos)],
        rate_bps: u64,
        packet_bytes: u32,
        pattern: Pattern,
        rng: impl FnOnce() -> Rng,
    ) -> Self {
        let constant = Self::new(on, rate_bps, packet_bytes);
        if pattern == Pattern::Cbr {
            return constant;
        }
        let drawn = Departures::new(constant.on, constant.spacing, pattern, rng);
        let packets = drawn.clone().count() as u64;
        Self { on: Vec::new(), spacing: constant.spacing, drawn: Some(drawn), packets }
    }

    /// From one packet to the next, of a Poisson flow on average.
    pub fn spacing(&self) -> Nanos {
        self.spacing
    }

    /// How many packets there are.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// When each leaves.
    pub fn departures(&self) -> impl Iterator<Item = Nanos> + '_ {
        let constant = self.on.iter().flat_map(move |&(start, end)| {
            (0..(end - start).div_ceil(self.spacing)).map(move |number| start + number * self.spacing)
        });
        constant.chain(self.drawn.iter().cloned().flatten())
    }
}
