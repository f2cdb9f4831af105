//! The validated scenario: what both engines run.
//!
//! Every reference is an index, every quantity has its base unit, every default has been filled in and
//! every path has been resolved to hops. Nothing in here can be inconsistent; the parser sees to that.

mod energy;
mod events;
mod flows;
mod medium;
mod relay;
mod topology;
mod traffic;
mod transfer;
mod transport;

pub use anabranch_draw::{Distribution, Pattern};
pub use energy::{Attachment, Interface};
pub use events::{Action, Event};
pub use flows::{
    AgentPath, Congestion, Connection, Datagram, IpVersion, PathManager, Protocol, Scheduler, Subflow, When,
};
pub use medium::{AfterFailure, Fallback, Framing, Medium, RateStep, Transmitter};
pub use relay::Relay;
pub use topology::{Change, ChangeTarget, Hop, Link, Loss, Node, QueueLimit, Strips, Wire};
pub use topology::{CoDel, Discipline, Jitter, JitterDistribution, Red, Trace};
pub use traffic::{Arrivals, Direction, Flows, Request, Source, Telemetry, Traffic};
pub use transfer::Transfer;
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
    /// Recorded rates that links follow.
    pub traces: Vec<Trace>,
    /// Link changes, sorted by time, then by their order in the file.
    pub changes: Vec<Change>,
    /// Radios in the order of the file.
    pub interfaces: Vec<Interface>,
    /// Relays in the order of the file.
    pub relays: Vec<Relay>,
    /// Files that several connections carry, in the order of the file.
    pub transfers: Vec<Transfer>,
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
    /// Length of the bins in which the traffic of interfaces is looked at.
    pub energy_bin: Nanos,
    /// Whether what buffers hold is measured.
    pub memory: bool,
    /// Whether MPTCP connections report how long data waited for earlier data.
    pub head_of_line: bool,
    /// Whether subflows of MPTCP report what their scheduler gives them.
    pub scheduling: bool,
}
