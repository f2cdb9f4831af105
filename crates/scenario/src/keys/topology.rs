//! Keys of nodes, links, media and their changes.

use super::Dimension::Bytes;
use super::Need::{Default, Optional, Required};
use super::{FAMILY, Kind, RATE, Section, key, quantity, time};

pub(super) static NODE: Section = Section {
    name: "node",
    doc: "Hosts and routers; a node forwards what is not for it. Give `name` or `names`.",
    keys: &[
        key("name", Kind::Name, Optional("names"), "Unique name."),
        key("names", Kind::Names(1), Optional("name"), "Several nodes at once."),
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
        key("rate", RATE, Required, "Bit rate."),
        key("delay", time(0), Required, "Propagation delay."),
        key("queue", Kind::Queue, Required, "Drop-tail limit, the packet in transmission included."),
        key(
            "loss",
            Kind::Probability,
            Default("0 %"),
            "Each packet is lost independently, after it has used the link.",
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
        key("delay", time(0), Optional("as forward"), "Propagation delay."),
        key("queue", Kind::Queue, Optional("as forward"), "Drop-tail limit."),
        key("loss", Kind::Probability, Optional("as forward"), "Random loss."),
    ],
};

pub(super) static MEDIUM: Section = Section {
    name: "medium",
    doc: "An 802.11-like shared half-duplex medium: one frame at a time, contention by backoff. The defaults are those \
          of IEEE 802.11b, DSSS with the long preamble.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among links and media."),
        key(
            "stations",
            Kind::Names(2),
            Required,
            "The nodes that share it; each reaches each other directly.",
        ),
        key("rate", RATE, Required, "Rate of a frame's body."),
        key(
            "basic_rate",
            RATE,
            Default("2 Mbit/s"),
            "Rate of acknowledgements: the highest of the DSSS basic rates.",
        ),
        key("delay", time(0), Default("1 us"), "Propagation delay (aAirPropagationTime)."),
        key("queue", Kind::Queue, Required, "Limit of each station's queue."),
        key("loss", Kind::Probability, Default("0 %"), "Loss of a frame by noise; the frame is retried."),
        key("slot", time(1), Default("20 us"), "aSlotTime."),
        key("sifs", time(1), Default("10 us"), "aSIFSTime."),
        key(
            "preamble",
            time(0),
            Default("192 us"),
            "Preamble (144 us) and PLCP header (48 us) before every frame.",
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
            Default("31"),
            "aCWmin: backoff is drawn from 0 to this.",
        ),
        key("cw_max", Kind::Integer { min: 1, max: 65_535 }, Default("1023"), "aCWmax."),
        key(
            "retry",
            Kind::Integer { min: 1, max: 255 },
            Default("7"),
            "Transmissions of one frame before it is given up (dot11ShortRetryLimit).",
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
        key("loss", Kind::Probability, Optional("unchanged"), "New loss."),
        key("up", Kind::Bool, Optional("unchanged"), "`false`: all packets are dropped until `true`."),
    ],
};
