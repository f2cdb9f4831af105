//! Rates of a station, and the automatic rate fallback (ARF) that chooses among them: A. Kamerman and L. Monteban,
//! "WaveLAN-II: A high-performance wireless LAN for the unlicensed band", Bell Labs Technical Journal 2(3), 1997.
//!
//! After [`Fallback::down`] transmissions in a row without acknowledgement the next lower rate is taken, after
//! [`Fallback::up`] acknowledged ones in a row the next higher; if the first transmission at the higher rate
//! fails, the station steps back at once.
//!
//! Left out, and who could notice: the timer after which the paper tries a higher rate even without a row of
//! successes. A station that hardly ever sends stays at a low rate longer. ARF takes collisions for a bad
//! channel, here as in the paper.

use super::{Fallback, air::Rate};
use crate::Probability;

/// A rate at which a station may send, and how often noise damages a frame sent so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// Bits per second of a frame's body.
    pub rate_bps: u64,
    /// Independent loss of each transmission.
    pub loss: Probability,
}

/// The transmitter of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitter {
    /// Rates in ascending order, at least one.
    pub rates: Vec<RateStep>,
    /// Index of the rate to begin with; the only one used without [`Fallback`].
    pub start: usize,
}

impl Transmitter {
    /// A transmitter that knows one rate.
    pub fn fixed(rate_bps: u64, loss: Probability) -> Self {
        Self { rates: vec![RateStep { rate_bps, loss }], start: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    rate: Rate,
    loss: Probability,
}

/// A station's rates and its place among them.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    steps: Vec<Step>,
    at: usize,
    rule: Option<Fallback>,
    /// In a row.
    successes: u32,
    /// In a row.
    failures: u32,
    /// The next transmission is the first one at a higher rate.
    is_probing: bool,
}

impl Ladder {
    pub(super) fn new(transmitter: &Transmitter, rule: Option<Fallback>) -> Self {
        assert!(transmitter.start < transmitter.rates.len(), "a station begins with a rate it has");
        let step = |step: &RateStep| Step { rate: Rate::new(step.rate_bps), loss: step.loss };
        Self {
            steps: transmitter.rates.iter().map(step).collect(),
            at: transmitter.start,
            rule,
            successes: 0,
            failures: 0,
            is_probing: false,
        }
    }

    /// Rate of the next transmission.
    pub(super) fn rate(&self) -> Rate {
        self.steps[self.at].rate
    }

    /// Probability that noise damages the next transmission.
    pub(super) fn loss(&self) -> Probability {
        self.steps[self.at].loss
    }

    /// Another rate in place of all.
    pub(super) fn set_rate(&mut self, rate_bps: u64) {
        let loss = self.loss();
        self.steps = vec![Step { rate: Rate::new(rate_bps), loss }];
        self.at = 0;
    }

    /// Another loss at every rate.
    pub(super) fn set_loss(&mut self, loss: Probability) {
        self.steps.iter_mut().for_each(|step| step.loss = loss);
    }

    /// A transmission was acknowledged.
    pub(super) fn succeeded(&mut self) {
        let Some(rule) = self.rule else { return };
        self.is_probing = false;
        self.failures = 0;
        self.successes = self.successes.saturating_add(1);
        if self.successes >= rule.up && self.at + 1 < self.steps.len() {
            self.at += 1;
            self.successes = 0;
            self.is_probing = true;
        }
    }

    /// A transmission was not acknowledged.
    pub(super) fn failed(&mut self) {
        let Some(rule) = self.rule else { return };
        self.successes = 0;
        self.failures += 1;
        if self.is_probing || self.failures >= rule.down {
            self.at = self.at.saturating_sub(1);
            self.failures = 0;
        }
        self.is_probing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(down: u32, up: u32, start: usize) -> Ladder {
        let step = |rate_bps| RateStep { rate_bps, loss: Probability::ZERO };
        let transmitter = Transmitter { rates: [1, 2, 11].map(step).to_vec(), start };
        Ladder::new(&transmitter, Some(Fallback { down, up }))
    }

    #[test]
    fn the_second_failure_in_a_row_leads_one_step_down() {
        let mut ladder = ladder(2, 10, 2);
        ladder.failed();
        ladder.succeeded();
        ladder.failed();
        assert_eq!(ladder.at, 2, "a success between the failures");
        ladder.failed();
        assert_eq!(ladder.at, 1);
        (0..10).for_each(|_| ladder.failed());
        assert_eq!(ladder.at, 0, "there is no lower one");
    }

    #[test]
    fn ten_successes_in_a_row_lead_one_step_up() {
        let mut ladder = ladder(2, 10, 0);
        (0..9).for_each(|_| ladder.succeeded());
        ladder.failed();
        (0..9).for_each(|_| ladder.succeeded());
        assert_eq!(ladder.at, 0, "nine, twice");
        ladder.succeeded();
        assert_eq!(ladder.at, 1);
        (0..10).for_each(|_| ladder.succeeded());
        assert_eq!(ladder.at, 2);
        (0..100).for_each(|_| ladder.succeeded());
        assert_eq!(ladder.at, 2, "there is no higher one");
    }

    #[test]
    fn a_failed_probe_steps_back_at_once() {
        let mut ladder = ladder(2, 3, 1);
        (0..3).for_each(|_| ladder.succeeded());
        assert_eq!(ladder.at, 2);
        ladder.failed();
        assert_eq!(ladder.at, 1);
        (0..3).for_each(|_| ladder.succeeded());
        ladder.succeeded();
        ladder.failed();
        assert_eq!(ladder.at, 2, "the probe was acknowledged: two failures are needed again");
    }

    #[test]
    fn without_a_rule_the_rate_stays() {
        let mut ladder = Ladder { rule: None, ..ladder(1, 1, 1) };
        ladder.failed();
        (0..100).for_each(|_| ladder.succeeded());
        assert_eq!(ladder.at, 1);
    }
}
