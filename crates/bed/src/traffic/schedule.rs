//! When the packets of a UDP flow leave.

use anabranch_link::ByteTime;

use crate::Nanos;

/// The departures of a UDP flow: in each interval one at its start, then one after each spacing, until it ends.
/// The simulator has the same rule; here every departure follows from its number, so that nothing drifts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    on: Vec<(Nanos, Nanos)>,
    spacing: Nanos,
}

impl Schedule {
    /// Packets of `packet_bytes` on the wire, at `rate_bps`, during the intervals `[start, end)`, which are
    /// disjoint and ascend.
    ///
    /// # Panics
    /// If the rate is 0.
    pub fn new(on: &[(Nanos, Nanos)], rate_bps: u64, packet_bytes: u32) -> Self {
        Self {
            on: on.iter().copied().filter(|(start, end)| start < end).collect(),
            spacing: ByteTime::new(rate_bps).of(packet_bytes).max(1),
        }
    }

    /// From one packet to the next.
    pub fn spacing(&self) -> Nanos {
        self.spacing
    }

    /// How many packets there are.
    pub fn packets(&self) -> u64 {
        self.on.iter().map(|(start, end)| (end - start).div_ceil(self.spacing)).sum()
    }

    /// When each leaves.
    pub fn departures(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.on.iter().flat_map(move |&(start, end)| {
            (0..(end - start).div_ceil(self.spacing)).map(move |number| start + number * self.spacing)
        })
    }
}
