//! The validated scenario: what both engines run.
//!
//! Every reference is an index, every quantity has its base unit, every default has been filled in and
//! every path has been resolved to hops. Nothing in here can be inconsistent; the parser sees to that.

mod events;
mod flows;
mod topology;
mod transport;

pub use events::{Action, Event};
pub use flows::{Congestion, Connection, Datagram, IpVersion, Protocol, Subflow, Traffic, When};
pub use topology::{Change, ChangeTarget, Hop, Link, Loss, Medium, Node, QueueLimit, Strips, Wire};
pub use transport::{DelayedAck, Join, Recovery, RtoRule, Transport};

/// A point or span of simulated time, in nanoseconds.
pub type Nanos = u64;

/// A scenario that has passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Identifier, used for the run folder: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// One line for tables and plots.
    pub title: String,
    /// Free text; may be empty.
    pub description: String,
    /// Where the set-up comes from (paper, RFC); may be empty.
    pub source: String,
    /// Simulated time.
    pub duration: Nanos,
    /// What is measured and when.
    pub measure: Measure,
    /// Nodes in the order of the file.
    pub nodes: Vec<Node>,
    /// Duplex wires in the order of the file.
    pub links: Vec<Link>,
    /// Shared half-duplex media in the order of the file.
    pub media: Vec<Medium>,
    /// TCP and MPTCP connections in the order of the file.
    pub connections: Vec<Connection>,
    /// UDP flows in the order of the file.
    pub datagrams: Vec<Datagram>,
    /// Link changes, sorted by time, then by their order in the file.
    pub changes: Vec<Change>,
    /// Events of subflows, sorted by time.
    pub events: Vec<Event>,
}

/// What is measured and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Start of the window over which the summary counts.
    pub from: Nanos,
    /// End of that window.
    pub to: Nanos,
    /// Distance between two points of the series; 0 writes no series.
    pub interval: Nanos,
    /// Whether MPTCP connections report how long data waited for earlier data.
    pub head_of_line: bool,
}
