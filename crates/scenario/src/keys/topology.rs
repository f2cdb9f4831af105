//! Keys of nodes, links, media and their changes.

use super::Dimension::Bytes;
use super::Need::{Default, Optional, Required};
use super::medium::{FALLBACK, RATES, TRANSMITTER};
use super::shaping::{JITTER, LOSS, QUEUE};
use super::{DATAGRAM_MAX, FAMILY, Kind, RATE, Section, key, limit, quantity, time};

pub(super) static NODE: Section = Section {
    name: "node",
    doc: "Hosts and routers; a node forwards what is not for it. Give `name` or `names`.",
    keys: &[
        key("name", Kind::Name, Optional("names"), "Unique name."),
        key("names", Kind::Names(1), Optional("name"), "Several nodes at once."),
        key(
            "agent",
            Kind::Text,
            Optional("none"),
            "Path of a configuration of the device agent (docs/agent.md), from the scenario file's folder. It decides about the \
             subflows of the MPTCP connections that the node opens; its interfaces are named as the links and media are.",
        ),
        FAMILY,
    ],
};

pub(super) static LINK: Section = Section {
    name: "link",
    doc: "A wire between two nodes; the two directions are independent.",
    keys: &[
        key("name", Kind::Name, Optional("A-B"), "Unique among links and media."),
        key("between", Kind::Names(2), Required, "The two nodes; `forward` is from the first to the second."),
        FAMILY,
        key("rate", RATE, Optional("that of `trace`; one of the two is **required**"), "Bit rate."),
        key(
            "trace",
            Kind::Text,
            Optional("a constant rate"),
            "Path of a rate trace in the format of mahimahi, from the scenario file's folder.",
        ),
        key("delay", time(0), Required, "Propagation delay."),
        key("jitter", JITTER, Optional("a constant delay"), "Further delay, different for each packet."),
        key(
            "queue",
            QUEUE,
            Required,
            "Drop-tail limit, the packet in transmission included; or a discipline.",
        ),
        key(
            "loss",
            LOSS,
            Default("0 %"),
            "Each packet is lost independently, after it has used the link; or in bursts.",
        ),
        key("reverse", Kind::Table(&REVERSE), Optional("as forward"), "What differs on the way back."),
        key(
            "strips",
            Kind::OneOf(&["nothing", "joins", "mptcp"]),
            Default("nothing"),
            "What a middlebox on the link removes from packets of both directions: nothing, the option MP_JOIN, or all \
             options of MPTCP.",
        ),
    ],
};

static REVERSE: Section = Section {
    name: "reverse",
    doc: "The way back of a link: what is not given is as on the way forth.",
    keys: &[
        key("rate", RATE, Optional("as forward"), "Bit rate."),
        key("trace", Kind::Text, Optional("as forward"), "Rate trace."),
        key("delay", time(0), Optional("as forward"), "Propagation delay."),
        key("jitter", JITTER, Optional("as forward"), "Further delay."),
        key("queue", QUEUE, Optional("as forward"), "Queue."),
        key("loss", LOSS, Optional("as forward"), "Random loss."),
    ],
};

pub(super) static MEDIUM: Section = Section {
    name: "medium",
    doc: "An 802.11-like shared half-duplex medium: one frame at a time, contention by backoff. What `phy`, \
          `after_failure` and the rates mean is in docs/medium.md.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among links and media."),
        key(
            "stations",
            Kind::Names(2),
            Required,
            "The nodes that share it; each reaches each other directly.",
        ),
        key(
            "phy",
            Kind::OneOf(&["802.11b", "802.11a", "802.11g", "802.11n"]),
            Default("802.11b"),
            "Physical layer: how long frames are, and what keys are without which this is said. `802.11b` has the \
             long preamble, `802.11g` short slots and OFDM alone, `802.11n` is without aggregation.",
        ),
        key(
            "rate",
            RATE,
            Required,
            "Rate of a frame's body; with `rates` the one to begin with. `utilization` is its share.",
        ),
        key("rates", Kind::Tables(&RATES), Optional("`rate` alone"), "Rates to fall back among."),
        key("fallback", Kind::Table(&FALLBACK), Optional("none"), "When a station changes its rate."),
        key("transmitter", Kind::Tables(&TRANSMITTER), Optional("all alike"), "Stations that differ."),
        key(
            "basic_rate",
            RATE,
            Optional("of `phy`: 2 Mbit/s, or 24 Mbit/s"),
            "Rate of acknowledgements, RTS and CTS: the highest mandatory one.",
        ),
        key("delay", time(0), Default("1 us"), "Propagation delay (aAirPropagationTime)."),
        key("queue", Kind::Queue, Required, "Limit of each station's queue."),
        key("loss", LOSS, Default("0 %"), "Loss of a frame by noise; the frame is retried."),
        key(
            "ack_loss",
            Kind::Probability,
            Default("0 %"),
            "Loss of an acknowledgement; the frame is sent again and its repetition dropped by the receiver.",
        ),
        key("slot", time(1), Optional("of `phy`: 20 us, or 9 us"), "aSlotTime."),
        key("sifs", time(1), Optional("of `phy`: 10 us, or 16 us (`a`, `n`)"), "aSIFSTime."),
        key(
            "preamble",
            time(0),
            Optional("of `phy`: 192 us, 20 us (`a`, `g`) or 36 us (`n`)"),
            "Preamble and PHY header before every frame.",
        ),
        key(
            "mac_header",
            quantity(Bytes, 0, 4_096),
            Default("34 B"),
            "MAC header with four addresses (30 B) and frame check sequence (4 B); LLC/SNAP would add 8 B.",
        ),
        key(
            "cw_min",
            Kind::Integer { min: 1, max: 65_535 },
            Optional("of `phy`: 31, or 15"),
            "aCWmin: backoff is drawn from 0 to this.",
        ),
        key("cw_max", Kind::Integer { min: 1, max: 65_535 }, Default("1023"), "aCWmax."),
        key(
            "retry",
            Kind::Integer { min: 1, max: 255 },
            Default("7"),
            "Failed transmissions of a frame, or of its RTS, before it is given up (dot11ShortRetryLimit).",
        ),
        key(
            "long_retry",
            Kind::Integer { min: 1, max: 255 },
            Default("4"),
            "Failed transmissions of a frame after RTS and CTS before it is given up (dot11LongRetryLimit).",
        ),
        key(
            "rts_threshold",
            limit(Bytes, DATAGRAM_MAX),
            Default("unlimited"),
            "Frames that are longer, MAC header included, are announced by RTS and CTS (dot11RTSThreshold).",
        ),
        key(
            "after_failure",
            Kind::OneOf(&["ack", "difs", "eifs"]),
            Default("ack"),
            "What follows a collision or a damaged frame: `ack`: the time of an acknowledgement, then DIFS; `difs`: DIFS \
             at once, as in Bianchi's model; `eifs`: the standard's acknowledgement timeout and EIFS.",
        ),
        key(
            "backoff_when_busy",
            Kind::Bool,
            Default("false"),
            "`true`: a frame that comes to an idle station while the medium is busy waits for a backoff, as the \
             standard has it, and not only for DIFS.",
        ),
    ],
};

pub(super) static CHANGE: Section = Section {
    name: "change",
    doc: "A change of a link or medium while the scenario runs; at least one of `rate`, `delay`, `loss` and `up`.",
    keys: &[
        key("at", time(0), Required, "When."),
        key("link", Kind::Name, Required, "Link or medium."),
        key(
            "direction",
            Kind::OneOf(&["both", "forward", "reverse"]),
            Default("both"),
            "Of a link: forward is from the first node of `between` to the second.",
        ),
        key("rate", RATE, Optional("unchanged"), "New rate."),
        key("delay", time(0), Optional("unchanged"), "New delay."),
        key("loss", LOSS, Optional("unchanged"), "New loss."),
        key("up", Kind::Bool, Optional("unchanged"), "`false`: all packets are dropped until `true`."),
    ],
};
