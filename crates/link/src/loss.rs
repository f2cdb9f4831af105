//! Random loss: independent, or in bursts by the model of Gilbert (1960) and Elliott (1963).
//!
//! Gilbert and Elliott's channel is in a good or a bad state. Before each packet it changes from good to bad with
//! probability p and from bad to good with probability r; then the packet is lost with the probability of the state.
//! The share of time in the bad state is `p / (p + r)`, its mean length `1 / r` packets.
//!
//! Left out: states that change with time instead of packets. Whoever sends rarely over such a channel would notice:
//! here a burst waits for the packets that it hits.

use crate::{Probability, Rng};

/// A loss process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each packet is lost independently with this probability.
    Bernoulli(Probability),
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
}

impl Loss {
    /// Nothing is lost.
    pub const NONE: Self = Self::Bernoulli(Probability::ZERO);

    /// Whether the next packet is lost.
    #[inline]
    pub fn loses(&mut self, rng: &mut Rng) -> bool {
        match self {
            Self::Bernoulli(probability) => rng.chance(*probability),
            Self::GilbertElliott(channel) => channel.loses(rng),
        }
    }
}

/// A channel of two states; it begins in the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// From good to bad, before each packet.
    pub p: Probability,
    /// From bad to good, before each packet.
    pub r: Probability,
    /// Loss in the good state.
    pub loss_good: Probability,
    /// Loss in the bad state.
    pub loss_bad: Probability,
    /// Whether the state is the bad one.
    pub is_bad: bool,
}

impl GilbertElliott {
    /// Whether the next packet is lost. Takes two draws.
    pub fn loses(&mut self, rng: &mut Rng) -> bool {
        let leaves = if self.is_bad { self.r } else { self.p };
        self.is_bad ^= rng.chance(leaves);
        rng.chance(if self.is_bad { self.loss_bad } else { self.loss_good })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    const PACKETS: u32 = 1_000_000;

    fn channel(p: f64, r: f64, loss_good: f64, loss_bad: f64) -> GilbertElliott {
        let [p, r, loss_good, loss_bad] = [p, r, loss_good, loss_bad].map(Probability::new);
        GilbertElliott { p, r, loss_good, loss_bad, is_bad: false }
    }

    /// Three standard errors of a share whose successive samples have the correlation `1 - p - r`: that of
    /// independent samples times the root of `(1 + c) / (1 - c)`.
    fn three_standard_errors(share: f64, correlation: f64) -> f64 {
        let independent = (share * (1.0 - share) / f64::from(PACKETS)).sqrt();
        3.0 * independent * ((1.0 + correlation) / (1.0 - correlation)).sqrt()
    }

    #[test]
    fn the_long_run_loss_is_that_of_the_states_weighted_by_their_shares() {
        for (p, r, good, bad) in [(0.01, 0.2, 0.0, 1.0), (0.05, 0.3, 0.01, 0.6), (0.5, 0.5, 0.0, 1.0)] {
            let mut channel = channel(p, r, good, bad);
            let mut rng = Streams::new(11).stream("loss");
            let lost = (0..PACKETS).filter(|_| channel.loses(&mut rng)).count() as f64 / f64::from(PACKETS);
            let share_bad = p / (p + r);
            let expected = share_bad * bad + (1.0 - share_bad) * good;
            let allowed = three_standard_errors(expected, 1.0 - p - r);
            assert!((lost - expected).abs() < allowed, "{lost} for {expected}, {allowed} allowed");
        }
    }

    #[test]
    fn a_burst_has_on_average_one_over_r_packets_within_three_standard_errors() {
        let (p, r) = (0.02, 0.2);
        let mut channel = channel(p, r, 0.0, 1.0);
        let mut rng = Streams::new(12).stream("loss");
        let (mut bursts, mut lost, mut before) = (0.0_f64, 0.0, false);
        for _ in 0..PACKETS {
            let now = channel.loses(&mut rng);
            bursts += f64::from(u8::from(now && !before));
            lost += f64::from(u8::from(now));
            before = now;
        }
        // The length of a burst is geometric: its standard deviation is sqrt(1 - r) / r.
        let allowed = 3.0 * (1.0 - r).sqrt() / r / bursts.sqrt();
        let mean = lost / bursts;
        assert!((mean - 1.0 / r).abs() < allowed, "{mean} for {}, {allowed} allowed", 1.0 / r);
    }

    #[test]
    fn a_channel_without_bad_times_loses_what_independent_loss_would() {
        let mut channel = channel(0.0, 1.0, 0.25, 1.0);
        let mut rng = Streams::new(13).stream("loss");
        let lost = (0..PACKETS).filter(|_| channel.loses(&mut rng)).count() as f64 / f64::from(PACKETS);
        assert!((lost - 0.25).abs() < three_standard_errors(0.25, 0.0), "{lost}");
    }
}
