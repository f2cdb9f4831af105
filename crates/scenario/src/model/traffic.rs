//! What applications send over connections.

use anabranch_draw::{Distribution, Pattern};

use super::{Nanos, When};

/// Which way an application's data flow. The node `from` opens the connection in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the node that opens the connection.
    Upload,
    /// To it.
    Download,
    /// Each end sends its own.
    Both,
}

/// What an application sends over a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// As much as the transport takes, from `start` until `stop`.
    Ftp {
        /// When the connection is opened.
        start: When,
        /// When the application stops writing; `None`: never.
        stop: Option<Nanos>,
        /// Which way.
        direction: Direction,
    },
    /// A file of `bytes`, with [`Direction::Both`] one each way.
    File {
        /// When the connection is opened.
        start: When,
        /// At least 1.
        bytes: u64,
        /// Which way.
        direction: Direction,
    },
    /// Writes of a fixed size at a rate, constant, in bursts or at random.
    Source(Source),
    /// Publishing that is acknowledged by the other application.
    Telemetry(Telemetry),
    /// Requests that are answered.
    Request(Request),
    /// Many connections, each with a file; [`crate::workload::expand`] makes them.
    Flows(Flows),
    /// What a relay has read from another connection ([`super::Relay`]).
    Relayed,
    /// Chunks of a file that other connections carry too ([`super::Transfer`]).
    Transfer {
        /// When the connection is opened.
        start: Nanos,
        /// Up or down.
        direction: Direction,
    },
}

/// An application that writes `write_bytes` at once, at `rate_bps` while it is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// When the connection is opened.
    pub start: When,
    /// When the application stops writing; `None`: never.
    pub stop: Option<Nanos>,
    /// Up or down.
    pub direction: Direction,
    /// Bits of payload per second while it is on.
    pub rate_bps: u64,
    /// Size of a write.
    pub write_bytes: u32,
    /// When it is on.
    pub pattern: Pattern,
}

impl Source {
    /// From one write to the next while it is on.
    pub fn gap(&self) -> Nanos {
        let gap = u128::from(self.write_bytes) * 8_000_000_000 / u128::from(self.rate_bps);
        u64::try_from(gap).unwrap_or(Nanos::MAX).max(1)
    }
}

/// A publisher: one message per period, each answered by the other end's application (MQTT with QoS 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Telemetry {
    /// When the connection is opened.
    pub start: When,
    /// When the application stops publishing; `None`: never.
    pub stop: Option<Nanos>,
    /// From one message to the next; the first is written when the connection is open.
    pub period: Nanos,
    /// Each message is written up to this much later, at most a period, one draw per message.
    pub jitter: Nanos,
    /// Size of a message.
    pub message_bytes: u32,
    /// Size of its answer.
    pub answer_bytes: u32,
    /// Messages; `None`: no end.
    pub count: Option<u64>,
}

/// A client that asks, waits for all of the answer, thinks, and asks again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When the connection is opened.
    pub start: When,
    /// After this no request is made; `None`: no end.
    pub stop: Option<Nanos>,
    /// Bytes of a request.
    pub request: Distribution,
    /// Bytes of an answer.
    pub response: Distribution,
    /// From an answer to the next request.
    pub think: Distribution,
    /// Requests; `None`: no end.
    pub count: Option<u64>,
}

/// When the members of a workload are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// A Poisson process.
    Poisson {
        /// Mean time from one to the next.
        interval: Nanos,
        /// At most so many; `None`: no bound.
        count: Option<u64>,
    },
    /// So many, each at a time drawn uniformly.
    Uniform {
        /// How many.
        count: u64,
    },
    /// So many, all at the start.
    Synchronised {
        /// How many.
        count: u64,
    },
}

/// A workload: connections that are opened one after the other, each for a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flows {
    /// From when on.
    pub start: When,
    /// Until when flows are opened; `None`: the end of the run.
    pub stop: Option<Nanos>,
    /// Up or down.
    pub direction: Direction,
    /// When.
    pub arrivals: Arrivals,
    /// Bytes of each.
    pub size: Distribution,
}

impl Traffic {
    /// When the connection is opened, or the first of many; one that a relay writes to is opened by it.
    pub fn start(&self) -> When {
        match self {
            Traffic::Ftp { start, .. } | Traffic::File { start, .. } => *start,
            Traffic::Source(source) => source.start,
            Traffic::Telemetry(telemetry) => telemetry.start,
            Traffic::Request(request) => request.start,
            Traffic::Flows(flows) => flows.start,
            Traffic::Relayed => When::At(0),
            Traffic::Transfer { start, .. } => When::At(*start),
        }
    }

    /// When the application stops; `None`: never, or by itself.
    pub fn stop(&self) -> Option<Nanos> {
        match self {
            Traffic::File { .. } | Traffic::Relayed | Traffic::Transfer { .. } => None,
            Traffic::Ftp { stop, .. } => *stop,
            Traffic::Source(source) => source.stop,
            Traffic::Telemetry(telemetry) => telemetry.stop,
            Traffic::Request(request) => request.stop,
            Traffic::Flows(flows) => flows.stop,
        }
    }

    /// Which way data flow; messages with answers go both ways.
    pub fn direction(&self) -> Direction {
        match self {
            Traffic::Ftp { direction, .. }
            | Traffic::File { direction, .. }
            | Traffic::Transfer { direction, .. } => *direction,
            Traffic::Source(source) => source.direction,
            Traffic::Flows(flows) => flows.direction,
            Traffic::Telemetry(_) | Traffic::Request(_) => Direction::Both,
            Traffic::Relayed => Direction::Upload,
        }
    }

    /// The side whose sending is looked at more closely: 0 opened the connection, 1 accepted it. Of two that send it
    /// is the one that sends more: the publisher, whoever answers requests, and of equals the opener.
    pub fn data_side(&self) -> usize {
        match (self, self.direction()) {
            (Traffic::Request(_), _) | (_, Direction::Download) => 1,
            (_, Direction::Upload | Direction::Both) => 0,
        }
    }

    /// Whether the accepting side may send before it has received anything.
    pub fn acceptor_speaks_first(&self) -> bool {
        match self {
            Traffic::Telemetry(_) | Traffic::Request(_) => false,
            _ => self.direction() != Direction::Upload,
        }
    }
}
