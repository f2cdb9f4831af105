//! Applications that do more than hand one file to the transport: they write into a connection and read from it.
//!
//! Each is one state machine for both ends. It hears when an end may write, when as many bytes have been delivered as
//! it waits for, and when a time has come; in [`Io`] it says what is written and what it waits for next. A new kind is
//! one file here and one line in [`make`]. `ftp` and `file` need none: their data lie ready from the start.
//!
//! Left out: the time that an application takes to read and to think of an answer (but see `think`), and closing:
//! connections stay open. A study of servers under load could notice the first, one of short connections on lossy
//! paths the second.

mod request;
mod source;
mod telemetry;

use anabranch_link::{Nanos, Streams};
use anabranch_scenario::model::{Connection, Measure, Scenario, Traffic};

/// An amount or a time that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// What an application is told and what it wants. Side 0 opened the connection, side 1 accepted it.
pub(crate) struct Io {
    pub(crate) now: Nanos,
    /// Bytes that each side writes now.
    pub(crate) write: [u64; 2],
    /// Bytes in all that each side waits for; [`NEVER`]: for none.
    pub(crate) wants: [u64; 2],
    /// When to be woken. At most one such time is under way.
    pub(crate) wake_at: Option<Nanos>,
}

/// An application at work.
pub(crate) trait Application: Send {
    /// A side may write from now on.
    fn opened(&mut self, side: usize, io: &mut Io);

    /// `bytes` in all have been delivered to a side, at least as many as it waited for; it waits no longer.
    fn delivered(&mut self, side: usize, bytes: u64, io: &mut Io);

    /// The time has come at which it wanted to be woken.
    fn woken(&mut self, io: &mut Io);

    /// How long answers took, for those that wait for any.
    fn latencies(&self) -> Option<&Latencies> {
        None
    }
}

/// The application of a connection; `None` for those that need none.
pub(crate) fn make(
    scenario: &Scenario,
    model: &Connection,
    streams: Streams,
) -> Option<Box<dyn Application>> {
    let rng = || model.application_draws(streams);
    let end = model.traffic.stop().unwrap_or(scenario.duration).min(scenario.duration);
    let latencies = || Latencies::new(scenario.measure);
    match &model.traffic {
        Traffic::Ftp { .. } | Traffic::File { .. } | Traffic::Relayed | Traffic::Transfer { .. } => None,
        Traffic::Source(source) => Some(Box::new(source::Writer::new(*source, end, rng()))),
        Traffic::Telemetry(telemetry) => {
            Some(Box::new(telemetry::Publisher::new(*telemetry, end, rng(), latencies())))
        }
        Traffic::Request(request) => Some(Box::new(request::Client::new(*request, end, rng(), latencies()))),
        Traffic::Flows(_) => unreachable!("workloads are connections before a world is built"),
    }
}

/// Times from messages to their answers, of answers that came within the measurement window.
pub(crate) struct Latencies {
    window: (Nanos, Nanos),
    pub(crate) values: Vec<Nanos>,
}

impl Latencies {
    fn new(measure: Measure) -> Self {
        Self { window: (measure.from, measure.to), values: Vec::new() }
    }

    fn record(&mut self, now: Nanos, latency: Nanos) {
        if (self.window.0..=self.window.1).contains(&now) {
            self.values.push(latency);
        }
    }
}
