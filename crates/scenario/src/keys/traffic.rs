//! Keys of applications: what they send, and the distributions of sizes and times.

use super::Dimension::{Bytes, Time};
use super::Need::{Default, Optional, Required};
use super::{BYTES_MAX, COUNT, Key, Kind, RATE, Section, TIME_MAX, key, quantity, time};

/// The largest message of an application, and the largest write.
const MESSAGE_MAX: u64 = 1 << 30;
/// Bursts and pauses on average: a microsecond, far below the time of a packet, bounds the work for one.
const BURST_MIN: u64 = 1_000;

pub(super) const MEAN_ON: Key =
    key("mean_on", time(BURST_MIN), Optional("required for bursts"), "Mean length of a burst.");

pub(super) const MEAN_OFF: Key = key(
    "mean_off",
    time(BURST_MIN),
    Optional("required for bursts"),
    "Mean length of a pause; an interval begins with one.",
);

pub(super) const SHAPE: Key = key(
    "shape",
    Kind::Thousandths { min: 1_001, max: 100_000 },
    Default("1.5"),
    "Shape of the Pareto distribution of bursts and pauses.",
);

pub(super) static TRAFFIC: Section = Section {
    name: "traffic",
    doc: "What an application sends; `docs/traffic.md` describes each kind.",
    keys: &[
        key(
            "kind",
            Kind::OneOf(&["ftp", "file", "cbr", "onoff", "telemetry", "request", "flows"]),
            Default("ftp"),
            "`ftp`: as much as the transport takes; `file`: so many bytes; `cbr`: writes at a constant rate; `onoff`: \
             the same in bursts; `telemetry`: messages that are acknowledged by the other application; `request`: \
             requests and answers; `flows`: many connections, each with a file.",
        ),
        key(
            "start",
            Kind::When,
            Default("0 s"),
            "When the connection is opened: a time, or \"uniform(0 s, 1 s)\".",
        ),
        key(
            "stop",
            time(1),
            Optional("never"),
            "When the application stops writing, or no further connection is opened; not for `file`.",
        ),
        key(
            "direction",
            Kind::OneOf(&["upload", "download", "both"]),
            Default("upload"),
            "`upload`: `from` sends; `download`: `to` does; `both`: each sends its own. `from` opens the connection in \
             any case. `both` is for `ftp` and `file`.",
        ),
        key(
            "size",
            Kind::Draw { dimension: Bytes, min: 1, max: BYTES_MAX, section: &SIZES },
            Optional("required, but not for `ftp` and `request`"),
            "Of the file, of a write (`cbr`, `onoff`), of a message (`telemetry`) or of each flow; a distribution for \
             `flows` only.",
        ),
        key("rate", RATE, Optional("required for `cbr` and `onoff`"), "Bits of payload per second while on."),
        key(
            "pattern",
            Kind::OneOf(&["exponential", "pareto"]),
            Default("exponential"),
            "Distribution of bursts and pauses of `onoff`.",
        ),
        MEAN_ON,
        MEAN_OFF,
        SHAPE,
        key(
            "period",
            time(1_000),
            Optional("required for `telemetry`"),
            "From one message to the next; the first one leaves when the connection is open.",
        ),
        key(
            "jitter",
            time(0),
            Default("0 s"),
            "Each message of `telemetry` is written up to this much later; at most the period.",
        ),
        key(
            "ack",
            quantity(Bytes, 1, MESSAGE_MAX),
            Default("4 B"),
            "Answer of the application to a message of `telemetry`; 4 B are a PUBACK of MQTT.",
        ),
        key(
            "request",
            Kind::Draw { dimension: Bytes, min: 1, max: MESSAGE_MAX, section: &SIZES },
            Default("200 B"),
            "Size of a `request`.",
        ),
        key(
            "response",
            Kind::Draw { dimension: Bytes, min: 1, max: MESSAGE_MAX, section: &SIZES },
            Optional("required for `request`"),
            "Size of an answer.",
        ),
        key(
            "think",
            Kind::Draw { dimension: Time, min: 0, max: TIME_MAX, section: &TIMES },
            Default("0 s"),
            "From an answer to the next `request`.",
        ),
        key(
            "arrivals",
            Kind::OneOf(&["poisson", "uniform", "synchronised"]),
            Default("poisson"),
            "When `flows` are opened: a Poisson process, each at a random time, or all at the start.",
        ),
        key(
            "interval",
            time(1),
            Optional("required for Poisson arrivals"),
            "Mean time from one of the `flows` to the next.",
        ),
        key(
            "count",
            COUNT,
            Optional("no bound; required for `flows` that do not arrive as a Poisson process"),
            "Messages, requests or flows at most.",
        ),
    ],
};

const DISTRIBUTIONS: Kind = Kind::OneOf(&["exponential", "pareto"]);
const DISTRIBUTION_DOC: &str =
    "`exponential` with its `mean`, or `pareto` with its `shape` and `mean` or `min`.";
const MEAN_DOC: &str = "Mean of what is drawn; a `max` is allowed for.";
const MIN_DOC: &str = "Smallest value of a Pareto distribution, in place of the mean.";
const MAX_DOC: &str = "Where a Pareto distribution is cut off.";
const SHAPES: Key = key(
    "shape",
    Kind::Thousandths { min: 100, max: 100_000 },
    Optional("required for `pareto`"),
    "Shape of a Pareto distribution; above 1 if there is a mean and no `max`.",
);

pub(super) static SIZES: Section = Section {
    name: "size distribution",
    doc: "A size that is drawn anew each time. The same keys hold for `request` and `response`.",
    keys: &[
        key("distribution", DISTRIBUTIONS, Required, DISTRIBUTION_DOC),
        key("mean", quantity(Bytes, 1, BYTES_MAX), Optional("given by `min`"), MEAN_DOC),
        SHAPES,
        key("min", quantity(Bytes, 1, BYTES_MAX), Optional("given by `mean`"), MIN_DOC),
        key("max", quantity(Bytes, 1, BYTES_MAX), Optional("none"), MAX_DOC),
    ],
};

pub(super) static TIMES: Section = Section {
    name: "time distribution",
    doc: "A time that is drawn anew each time.",
    keys: &[
        key("distribution", DISTRIBUTIONS, Required, DISTRIBUTION_DOC),
        key("mean", time(1), Optional("given by `min`"), MEAN_DOC),
        SHAPES,
        key("min", time(1), Optional("given by `mean`"), MIN_DOC),
        key("max", time(1), Optional("none"), MAX_DOC),
    ],
};
