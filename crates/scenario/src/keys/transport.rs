//! Keys of transport settings.

use super::Dimension::{Bytes, Packets};
use super::Need::{Default, Optional};
use super::{BYTES_MAX, DATAGRAM_MAX, Kind, PACKETS_MAX, Section, key, limit, quantity, time};

pub(super) static TRANSPORT: Section = Section {
    name: "transport",
    doc: "How the transport behaves. First the profile is taken, then the keys of `[transport]`, then those of the \
          connection's own `transport`.",
    keys: &[
        key(
            "profile",
            Kind::OneOf(&["ns2", "rfc", "linux"]),
            Default("rfc"),
            "Values that belong together; see the table of profiles.",
        ),
        key("segment", quantity(Bytes, 1, DATAGRAM_MAX), Optional("profile"), "Payload of a full segment."),
        key("header", quantity(Bytes, 0, DATAGRAM_MAX), Optional("profile"), "All headers of a data packet."),
        key(
            "ack",
            quantity(Bytes, 1, DATAGRAM_MAX),
            Optional("profile"),
            "Size of a packet without payload.",
        ),
        key(
            "initial_window",
            quantity(Packets, 1, PACKETS_MAX),
            Optional("profile"),
            "Initial congestion window.",
        ),
        key(
            "initial_ssthresh",
            limit(Packets, PACKETS_MAX),
            Optional("unlimited"),
            "Initial slow-start threshold.",
        ),
        key(
            "window_cap",
            limit(Packets, PACKETS_MAX),
            Optional("unlimited"),
            "Upper bound of the congestion window.",
        ),
        key("initial_rto", time(1), Optional("profile"), "Retransmission timeout before the first sample."),
        key("min_rto", time(1), Optional("profile"), "Lower bound of the retransmission timeout."),
        key(
            "rto_granularity",
            time(1),
            Optional("profile"),
            "Clock granularity G: least spread above the smoothed RTT (RFC 6298).",
        ),
        key("max_rto", time(1), Optional("profile"), "Upper bound of the retransmission timeout."),
        key(
            "rto_rule",
            Kind::OneOf(&["rfc6298", "linux"]),
            Optional("profile"),
            "`rfc6298`: max(min_rto, srtt + max(rto_granularity, 4 rttvar)); `linux`: srtt + max(min_rto, 4 rttvar).",
        ),
        key("delayed_ack", Kind::TableOrOff(&DELAYED_ACK), Optional("profile"), "Delayed acknowledgements."),
        key("limited_transmit", Kind::Bool, Optional("profile"), "RFC 3042."),
        key(
            "recovery",
            Kind::OneOf(&["tahoe", "newreno", "sack", "rack"]),
            Optional("profile"),
            "`tahoe`: a window of one packet and everything again at the third duplicate; `newreno`: RFC 6582; `sack`: RFC 6675; `rack`: RACK-TLP, RFC 8985.",
        ),
        key(
            "prr",
            Kind::Bool,
            Optional("profile"),
            "Proportional rate reduction in fast recovery, RFC 9937; `tahoe` and `newreno` go without.",
        ),
        key(
            "undo",
            Kind::Bool,
            Optional("profile"),
            "Duplicates are reported (RFC 2883) and spurious recoveries undone (RFC 3522, 4015); `tahoe` and `newreno` go \
             without.",
        ),
        key(
            "ecn",
            Kind::Bool,
            Optional("profile"),
            "Explicit congestion notification, RFC 3168: both ends ask for it, and queues may mark new data instead of \
             dropping it.",
        ),
        key(
            "opportunistic_retransmission",
            Kind::Bool,
            Optional("profile"),
            "MPTCP: when the receive window holds a subflow back, it sends the oldest unacknowledged data of another one \
             again (Raiciu et al., NSDI 2012).",
        ),
        key(
            "penalisation",
            Kind::Bool,
            Optional("profile"),
            "MPTCP: when the receive window holds a subflow back, a slower one that has not delivered the oldest data \
             halves its window, at most once per round trip (the same paper).",
        ),
        key(
            "receive_buffer",
            limit(Bytes, BYTES_MAX),
            Optional("profile"),
            "Of the connection, shared by its subflows.",
        ),
        key(
            "receive_buffer_tuning",
            Kind::Bool,
            Optional("profile"),
            "`true`: the window offered begins near 64 KiB and grows with what the application reads, up to \
             `receive_buffer`; `false`: all of it from the start.",
        ),
        key(
            "send_buffer",
            limit(Bytes, BYTES_MAX),
            Optional("profile"),
            "Of the connection, shared by its subflows.",
        ),
        key(
            "send_buffer_tuning",
            Kind::Bool,
            Default("false"),
            "MPTCP: `true`: the buffer grows with the congestion windows as Linux's does, and `send_buffer` bounds what one \
             subflow adds; `false`: all of it from the start.",
        ),
        key(
            "stale_after",
            Kind::Integer { min: 1, max: 1_000 },
            Optional("profile"),
            "MPTCP: periods without data acknowledgements that a subflow may be silent; with the next it is stale: it gets no \
             data until something is acknowledged on it, and all unacknowledged data is sent again on the others. \
             Profiles without it: from a timeout until its recovery is over, and what it has under way goes to the others.",
        ),
        key(
            "pacing",
            Kind::Bool,
            Optional("profile"),
            "Data leaves at 2 cwnd/srtt in slow start and at 1.2 cwnd/srtt after. A rate that the congestion control \
             sets counts with `false` too.",
        ),
        key(
            "join",
            Kind::OneOf(&["immediately", "established"]),
            Optional("profile"),
            "When further subflows are opened: with the first one, or at the first data acknowledgement (RFC 8684 section 3.1).",
        ),
        key(
            "send_jitter",
            time(0),
            Optional("0 s"),
            "Random processing time, uniform in [0, send_jitter), before each data packet; breaks phase effects.",
        ),
    ],
};

static DELAYED_ACK: Section = Section {
    name: "delayed_ack",
    doc: "Delayed acknowledgements (RFC 1122 section 4.2.3.2).",
    keys: &[
        key("timeout", time(1), Optional("profile, or 200 ms"), "At the latest after this long."),
        key(
            "every",
            quantity(Packets, 1, PACKETS_MAX),
            Optional("profile, or 2 packets"),
            "At the latest at this many full-sized segments.",
        ),
        key(
            "timeout_max",
            time(1),
            Optional("profile, or the timeout"),
            "The delay follows the gaps between arrivals, from `timeout` up to this.",
        ),
        key(
            "quick",
            quantity(Packets, 0, PACKETS_MAX),
            Optional("profile, or 0 packets"),
            "Segments that are acknowledged at once at the start, after a pause and after a duplicate; above 0, so is \
             every segment that lets the window grow or ends what the application has written.",
        ),
    ],
};
