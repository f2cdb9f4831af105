//! Keys of connections, their subflows, and datagram flows.

use super::Dimension::Bytes;
use super::Need::{Default, Optional, Required};
use super::traffic::{MEAN_OFF, MEAN_ON, SHAPE, TRAFFIC};
use super::transport::TRANSPORT;
use super::{BYTES_MAX, DATAGRAM_MAX, FAMILY, IP, Kind, RATE, Section, key, quantity, time};

pub(super) static CONNECTION: Section = Section {
    name: "connection",
    doc: "A connection; unless its `traffic` says otherwise, data flow from `from` to `to`.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among connections and datagram flows."),
        FAMILY,
        key("from", Kind::Name, Required, "The node that opens the connection."),
        key("to", Kind::Name, Required, "The node that accepts it."),
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
            Kind::Scheduler,
            Default("minrtt"),
            "Which subflow sends next: a name, or a table with `name` and parameters. Those that reckon with energy need an \
             [[interface]] on the path of every subflow.",
        ),
        key(
            "path_manager",
            Kind::PathManager,
            Optional("`static`: the subflows of the file, opened as `join` says"),
            "Which subflows there are: a name, or a table with `name` and parameters. It may use those of the file; if there \
             are none, one per pair of addresses (links of `from` and of `to`). The first one opens the connection.",
        ),
        key(
            "peer",
            Kind::Text,
            Optional("none"),
            "Address and port of `to` that entries of an `agent` match, as \"192.0.2.7:443\".",
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
        key(
            "weight",
            Kind::Integer { min: 1, max: 1000 },
            Optional("1"),
            "Segments in a turn of the scheduler `wrr`, and only with that.",
        ),
        key(
            "start",
            time(0),
            Optional("as `join` says"),
            "Opens the subflow then, not before; not of the first one.",
        ),
        key(
            "announced",
            Kind::Bool,
            Default("false"),
            "The subflow leads to a further address of `to`, and is opened when ADD_ADDR has announced that (RFC 8684 section \
             3.4.1); not of the first one.",
        ),
        key(
            "cap",
            quantity(Bytes, 1, BYTES_MAX),
            Optional("unlimited"),
            "What it may carry in one period of the path manager `cost`: both directions, with headers.",
        ),
    ],
};

pub(super) static DATAGRAM: Section = Section {
    name: "datagram",
    doc: "A UDP flow: fixed-size packets.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among connections and datagram flows."),
        FAMILY,
        key("from", Kind::Name, Required, "The node that sends."),
        key("to", Kind::Name, Required, "The node that receives."),
        key("via", Kind::Names(1), Optional("no way-points"), "Nodes to pass, in order."),
        key("rate", RATE, Required, "Bit rate on the wire while the flow is on; of `poisson` the mean."),
        key("packet", quantity(Bytes, 1, DATAGRAM_MAX), Required, "Size of a packet on the wire."),
        key("ip", IP, Default("v4"), "IP version; the size on the wire is `packet` with either."),
        key("on", Kind::Intervals, Optional("the whole run"), "Intervals [start, end) in ascending order."),
        key(
            "phase_jitter",
            time(0),
            Default("0 s"),
            "Every interval begins up to this much earlier (not before 0 s) or later.",
        ),
        key(
            "pattern",
            Kind::OneOf(&["cbr", "exponential", "pareto", "poisson"]),
            Default("cbr"),
            "Within an interval: one packet after the other at the rate; the same in bursts, whose lengths and pauses \
             are exponential or Pareto; or packets at exponential distances.",
        ),
        MEAN_ON,
        MEAN_OFF,
        SHAPE,
    ],
};
