//! A medium as a scenario describes it; losses in bursts are set apart.

use anabranch_scenario::model;

use super::{Framing, MediumConfig, RateStep, Transmitter};
use crate::from_scenario::{independent, limit};

impl From<&model::Medium> for MediumConfig {
    fn from(medium: &model::Medium) -> Self {
        let model::Framing { preamble, control_preamble, symbol, extension } = medium.framing;
        Self {
            transmitters: medium.transmitters.iter().map(Transmitter::from).collect(),
            fallback: medium.fallback,
            basic_rate_bps: medium.basic_rate_bps,
            lowest_rate_bps: medium.lowest_rate_bps,
            delay: medium.delay,
            limit: limit(medium.queue),
            ack_loss: independent(medium.ack_loss),
            slot: medium.slot,
            sifs: medium.sifs,
            framing: Framing { preamble, control_preamble, symbol, extension },
            mac_header_bytes: medium.mac_header_bytes,
            cw_min: medium.cw_min,
            cw_max: medium.cw_max,
            retry_limit: medium.retry_limit,
            long_retry_limit: medium.long_retry_limit,
            rts_threshold_bytes: medium.rts_threshold_bytes,
            after_failure: medium.after_failure,
            backoff_when_busy: medium.backoff_when_busy,
        }
    }
}

impl From<&model::Transmitter> for Transmitter {
    fn from(of: &model::Transmitter) -> Self {
        let step =
            |step: &model::RateStep| RateStep { rate_bps: step.rate_bps, loss: independent(step.loss) };
        Self { rates: of.rates.iter().map(step).collect(), start: of.start }
    }
}
