//! The keys of a scenario file. Reading, error messages, JSON Schema and reference all follow from these tables.

mod energy;
mod events;
mod flows;
mod medium;
mod relay;
mod shaping;
mod topology;
mod traffic;
mod transfer;
mod transport;

use crate::quantity::Dimension;
use Dimension::{Rate, Time};
use Need::{Default, Optional, Required};
use energy::{ENERGY_BIN, INTERFACE};
use events::EVENT;
use flows::{CONNECTION, DATAGRAM};
use relay::RELAY;
use topology::{CHANGE, LINK, MEDIUM, NODE};
use transfer::TRANSFER;
use transport::TRANSPORT;

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
    /// A plain number, in thousandths.
    Thousandths { min: u32, max: u32 },
    /// A quantity, or a table with the distribution that it is drawn from.
    Draw { dimension: Dimension, min: u64, max: u64, section: &'static Section },
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
    /// A packet scheduler, or a table of its name and parameters.
    Scheduler,
    /// A path manager, or a table of its name and parameters.
    PathManager,
    /// A value of the other kind, or a table.
    OrTable(&'static Kind, &'static Section),
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
        key("interface", Kind::Tables(&INTERFACE), Optional("none"), "Radios, whose energy is reckoned."),
        key("relay", Kind::Tables(&RELAY), Optional("none"), "Gateways that join two connections."),
        key(
            "transfer",
            Kind::Tables(&TRANSFER),
            Optional("none"),
            "Files that several connections carry together.",
        ),
        key("event", Kind::Tables(&EVENT), Optional("none"), "Events of subflows while the scenario runs."),
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
        ENERGY_BIN,
        key(
            "memory",
            Kind::Bool,
            Default("false"),
            "Whether what buffers hold is measured: figures and series of connections, subflows and hosts.",
        ),
        key(
            "head_of_line",
            Kind::Bool,
            Default("false"),
            "Whether MPTCP connections report how long data waited at the receiver for earlier data.",
        ),
        key(
            "scheduling",
            Kind::Bool,
            Default("false"),
            "Whether subflows of MPTCP report their share of the data and whether the scheduler's subset has them (simulator).",
        ),
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
                if let Kind::Table(inner)
                | Kind::Tables(inner)
                | Kind::TableOrOff(inner)
                | Kind::OrTable(_, inner)
                | Kind::Draw { section: inner, .. } = &key.kind
                {
                    walk(inner);
                }
            }
        }
        walk(&SCENARIO);
    }
}
