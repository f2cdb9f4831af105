//! The keys of a scenario file. Reading, error messages, JSON Schema and reference all follow from these tables.

use crate::quantity::Dimension;
use Dimension::{Bytes, Packets, Rate, Time};
use Need::{Default, Optional, Required};

/// A table of the file.
pub(crate) struct Section {
    /// Key of the table, and its name in the schema.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) doc: &'static str,
}

/// What holds without the key.
pub(crate) enum Need {
    /// It must be there.
    Required,
    /// This is read instead.
    Default(&'static str),
    /// What is taken is said in words.
    Optional(&'static str),
}

/// What a key holds.
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A name, perhaps of a family.
    Name,
    /// Names, so many at least.
    Names(usize),
    /// `true` or `false`.
    Bool,
    /// A plain integer.
    Integer { min: u64, max: u64 },
    /// A number with a unit, in base units.
    Quantity { dimension: Dimension, min: u64, max: u64 },
    /// The same, or "unlimited".
    Limit { dimension: Dimension, min: u64, max: u64 },
    /// Packets, bytes or "unlimited".
    Queue,
    /// A number from 0 to 1 or a percentage.
    Probability,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A time or "uniform(from, to)".
    When,
    /// Pairs of times.
    Intervals,
    /// An algorithm, or a table of its name and parameters.
    Congestion,
    /// A table, or "off".
    TableOrOff(&'static Section),
    /// A table.
    Table(&'static Section),
    /// An array of tables.
    Tables(&'static Section),
}

/// The longest time, 10^18 ns or about 31 years: sums of a few of them stay far from overflow.
pub(crate) const TIME_MAX: u64 = 1_000_000_000_000_000_000;
/// 1 Tbit/s.
const RATE_MAX: u64 = 1_000_000_000_000;
/// Sequence numbers of the transport and all queues stay below it: 2^50 bytes.
const BYTES_MAX: u64 = 1 << 50;
/// Windows stay below `AB_SSTHRESH_INFINITE`.
const PACKETS_MAX: u64 = 1_000_000_000;
/// IPv4's total length.
pub(crate) const DATAGRAM_MAX: u64 = 65_535;
/// Members of one family; catches slips of the keyboard.
pub(crate) const FAMILY_MAX: u64 = 1_000_000;

const fn quantity(dimension: Dimension, min: u64, max: u64) -> Kind {
    Kind::Quantity { dimension, min, max }
}

const fn time(min: u64) -> Kind {
    quantity(Time, min, TIME_MAX)
}

const fn limit(dimension: Dimension, max: u64) -> Kind {
    Kind::Limit { dimension, min: 1, max }
}

const RATE: Kind = quantity(Rate, 1, RATE_MAX);
const COUNT: Kind = Kind::Integer { min: 1, max: FAMILY_MAX };
const IP: Kind = Kind::OneOf(&["v4", "v6"]);

const fn key(name: &'static str, kind: Kind, need: Need, doc: &'static str) -> Key {
    Key { name, kind, need, doc }
}

const FAMILY: Key = key(
    "count",
    COUNT,
    Optional("one"),
    "Makes a family: the entry is repeated for i = 0, 1, … and `{i}`, `{i/K}` (whole part) and `{i%K}` \
     (remainder) in its names are replaced.",
);

pub(crate) static SCENARIO: Section = Section {
    name: "scenario",
    doc: "The top of the file.",
    keys: &[
        key("name", Kind::Name, Required, "Identifier; names the run folder."),
        key("title", Kind::Text, Optional("the name"), "One line for tables and plots."),
        key("description", Kind::Text, Default(""), "Free text."),
        key("source", Kind::Text, Default(""), "Where the set-up comes from: paper, RFC."),
        key("duration", time(1), Required, "Simulated time."),
        key("measure", Kind::Table(&MEASURE), Optional("the whole run"), "What is measured and when."),
        key(
            "transport",
            Kind::Table(&TRANSPORT),
            Optional("the profile rfc"),
            "Transport settings of all connections.",
        ),
        key("node", Kind::Tables(&NODE), Required, "Hosts and routers."),
        key("link", Kind::Tables(&LINK), Optional("none"), "Duplex wires."),
        key("medium", Kind::Tables(&MEDIUM), Optional("none"), "Shared half-duplex radio channels."),
        key("connection", Kind::Tables(&CONNECTION), Optional("none"), "TCP and Multipath TCP connections."),
        key("datagram", Kind::Tables(&DATAGRAM), Optional("none"), "UDP flows."),
        key("change", Kind::Tables(&CHANGE), Optional("none"), "Changes of links while the scenario runs."),
    ],
};

static MEASURE: Section = Section {
    name: "measure",
    doc: "What is measured and when.",
    keys: &[
        key("from", time(0), Default("0 s"), "Start of the window over which the summary counts."),
        key("to", time(1), Optional("the duration"), "End of that window."),
        key(
            "interval",
            time(0),
            Default("100 ms"),
            "Distance between two points of the series; \"0 s\" writes no series.",
        ),
    ],
};

static TRANSPORT: Section = Section {
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
            Kind::OneOf(&["newreno", "sack"]),
            Optional("profile"),
            "`newreno`: RFC 6582; `sack`: RFC 6675.",
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

static NODE: Section = Section {
    name: "node",
    doc: "Hosts and routers; a node forwards what is not for it. Give `name` or `names`.",
    keys: &[
        key("name", Kind::Name, Optional("names"), "Unique name."),
        key("names", Kind::Names(1), Optional("name"), "Several nodes at once."),
        FAMILY,
    ],
};

static LINK: Section = Section {
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

static MEDIUM: Section = Section {
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

static CONNECTION: Section = Section {
    name: "connection",
    doc: "A connection; data flows from `from` to `to`.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among connections and datagram flows."),
        FAMILY,
        key("from", Kind::Name, Required, "The node that opens the connection and sends."),
        key("to", Kind::Name, Required, "The node that receives."),
        key("protocol", Kind::OneOf(&["tcp", "mptcp"]), Default("tcp"), "RFC 9293 or RFC 8684."),
        key(
            "ip",
            IP,
            Default("v4"),
            "IP version; the sizes of the profiles `rfc` and `linux` follow from it.",
        ),
        key(
            "congestion",
            Kind::Congestion,
            Optional("that of every subflow"),
            "Congestion control: a name, or a table with `name` and parameters. Coupled algorithms couple the \
             subflows that have the same name.",
        ),
        key(
            "scheduler",
            Kind::OneOf(&["minrtt", "roundrobin"]),
            Default("minrtt"),
            "Which subflow sends next.",
        ),
        key("traffic", Kind::Table(&TRAFFIC), Optional("ftp from 0 s on"), "What the application sends."),
        key(
            "transport",
            Kind::Table(&TRANSPORT),
            Optional("[transport]"),
            "Settings of this connection alone.",
        ),
        key(
            "subflow",
            Kind::Tables(&SUBFLOW),
            Optional("one, on the shortest path"),
            "Subflows; the first opens the connection. TCP has exactly one.",
        ),
    ],
};

static TRAFFIC: Section = Section {
    name: "traffic",
    doc: "What an application sends.",
    keys: &[
        key(
            "kind",
            Kind::OneOf(&["ftp", "file"]),
            Default("ftp"),
            "`ftp`: as much as the transport takes; `file`: so many bytes.",
        ),
        key(
            "start",
            Kind::When,
            Default("0 s"),
            "When the connection is opened: a time, or \"uniform(0 s, 1 s)\".",
        ),
        key("stop", time(1), Optional("never"), "When the application stops writing; `ftp` only."),
        key(
            "size",
            quantity(Bytes, 1, BYTES_MAX),
            Optional("required for `file`"),
            "Length of the file; `file` only.",
        ),
    ],
};

static SUBFLOW: Section = Section {
    name: "subflow",
    doc: "One subflow. Its path is the one with the fewest hops through the way-points; of several such, the one whose \
          first different hop stands first in the file, links before media.",
    keys: &[
        key("name", Kind::Name, Optional("0, 1, …"), "Unique in the connection."),
        key("via", Kind::Names(1), Optional("no way-points"), "Nodes to pass, in order."),
        key(
            "congestion",
            Kind::Congestion,
            Optional("that of the connection"),
            "Congestion control of this subflow.",
        ),
        key(
            "backup",
            Kind::Bool,
            Default("false"),
            "Only used when no regular subflow is usable (RFC 8684 section 3.3.8).",
        ),
    ],
};

static DATAGRAM: Section = Section {
    name: "datagram",
    doc: "A UDP flow: fixed-size packets at a constant rate.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among connections and datagram flows."),
        FAMILY,
        key("from", Kind::Name, Required, "The node that sends."),
        key("to", Kind::Name, Required, "The node that receives."),
        key("via", Kind::Names(1), Optional("no way-points"), "Nodes to pass, in order."),
        key("rate", RATE, Required, "Bit rate on the wire."),
        key("packet", quantity(Bytes, 1, DATAGRAM_MAX), Required, "Size of a packet on the wire."),
        key("ip", IP, Default("v4"), "IP version; the size on the wire is `packet` with either."),
        key("on", Kind::Intervals, Optional("the whole run"), "Intervals [start, end) in ascending order."),
        key(
            "phase_jitter",
            time(0),
            Default("0 s"),
            "Every interval begins up to this much earlier (not before 0 s) or later.",
        ),
    ],
};

static CHANGE: Section = Section {
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

impl Section {
    /// The key of that name.
    ///
    /// # Panics
    /// If there is none: the readers ask only for keys of the tables above.
    pub(crate) fn key(&self, name: &str) -> &'static Key {
        self.keys.iter().find(|key| key.name == name).expect("the section has the key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_documented() {
        fn walk(section: &Section) {
            for (at, key) in section.keys.iter().enumerate() {
                assert!(key.doc.ends_with('.'), "{}.{}", section.name, key.name);
                assert!(
                    section.keys[..at].iter().all(|other| other.name != key.name),
                    "{}.{}",
                    section.name,
                    key.name
                );
                if let Kind::Table(inner) | Kind::Tables(inner) | Kind::TableOrOff(inner) = &key.kind {
                    walk(inner);
                }
            }
        }
        walk(&SCENARIO);
    }
}
