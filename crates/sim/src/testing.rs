//! Settings that the unit tests share.

use anabranch_scenario::model::{Join, Recovery, RtoRule, Transport};

/// A transport with the values of the `ns2` profile.
pub(crate) fn transport() -> Transport {
    Transport {
        segment_bytes: 1000,
        header_bytes: 40,
        ack_bytes: 40,
        initial_window: 2,
        initial_ssthresh: None,
        window_cap: None,
        initial_rto: 3_000_000_000,
        min_rto: 200_000_000,
        max_rto: 60_000_000_000,
        rto_rule: RtoRule::Rfc6298,
        delayed_ack: None,
        limited_transmit: true,
        recovery: Recovery::NewReno,
        receive_buffer: None,
        send_buffer: None,
        join: Join::Immediately,
        send_jitter: 0,
    }
}
