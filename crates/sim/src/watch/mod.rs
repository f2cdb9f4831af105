//! What is written of a run beside its figures: packets as they lie on the wire, and traces for tests.
//!
//! A run that nobody watches pays nothing for this but the look at one empty option where packets are sent: the event
//! loop exists twice, and only one of them shows its events here.

mod bytes;
mod capture;
mod headers;
mod keys;
mod lives;
mod numbers;
mod options;
mod output;
mod paths;
mod picks;
mod qlog;
mod spool;

use std::{
    error, fmt, io,
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver},
};

use anabranch_link::Nanos;
use anabranch_policy::paths::Decision;
use anabranch_record::model::Measurements;
use anabranch_scenario::{model::Scenario, workload};

use self::{bytes::Bytes, capture::Capture, picks::Told, qlog::Qlog};
use crate::{
    Control, Interrupted,
    engine::heads::Key,
    net,
    packet::{Packet, SackPool, flags},
    trace::Trace,
    world::{Endpoint, World},
};

/// How much of a packet is kept in bytes, as in the test bed: the headers of IPv6 with the longest TCP header.
const SNAPLEN: u32 = 128;
/// Names in the run folder.
const PACKETS: &str = "packets.pcapng";
const EVENTS: &str = "events.qlog";

/// Which files a run writes beside its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Packets, into `packets.pcapng`.
    pub packets: bool,
    /// Keep packets whole there, not only their beginnings.
    pub whole_packets: bool,
    /// What subflows do, into `events.qlog`.
    pub events: bool,
}

impl Records {
    /// Names of the files.
    pub fn files(&self) -> Vec<&'static str> {
        let all = [(self.packets, PACKETS), (self.events, EVENTS)];
        all.into_iter().filter_map(|(is_wanted, name)| is_wanted.then_some(name)).collect()
    }

    /// Those that write these files.
    ///
    /// # Errors
    /// A sentence, if the simulator does not write one of them.
    pub fn of_files(names: &[String]) -> Result<Self, String> {
        let mut records = Self::default();
        for name in names {
            match name.as_str() {
                PACKETS => records.packets = true,
                EVENTS => records.events = true,
                _ => return Err(format!("the simulator writes no file {name:?}")),
            }
        }
        Ok(records)
    }
}

/// Why there is nothing of a run.
#[derive(Debug)]
pub enum RecordError {
    /// It was cancelled.
    Interrupted,
    /// A file could not be written.
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Interrupted => write!(f, "the run was cancelled"),
            RecordError::Write { path, source } => write!(f, "{}: cannot write: {source}", path.display()),
        }
    }
}

impl error::Error for RecordError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            RecordError::Interrupted => None,
            RecordError::Write { source, .. } => Some(source),
        }
    }
}

/// Runs a scenario with a seed, and writes `records` into `folder` meanwhile; the measurements name the files.
///
/// # Errors
/// [`RecordError::Interrupted`] if `control.cancel` was set before the end, [`RecordError::Write`] if a file cannot be
/// written; the run ends soon then.
pub fn record(
    scenario: &Scenario,
    seed: u64,
    control: &Control,
    folder: &Path,
    records: Records,
) -> Result<Measurements, RecordError> {
    let scenario = &*workload::expand(scenario, seed);
    if net::narrow_fits(scenario) {
        record_with::<u64>(scenario, seed, control, folder, records)
    } else {
        record_with::<u128>(scenario, seed, control, folder, records)
    }
}

fn record_with<K: Key>(
    scenario: &Scenario,
    seed: u64,
    control: &Control,
    folder: &Path,
    records: Records,
) -> Result<Measurements, RecordError> {
    let mut world = World::<K>::new(scenario, seed);
    if records != Records::default() {
        let (to, picks) = mpsc::channel();
        world.watch = Some(Box::new(Watch::new(scenario, seed, folder, records, picks)));
        if records.events {
            picks::ask_schedulers(&mut world, &to);
        }
    }
    let ended = world.run(control);
    let finished = world.watch.take().map_or(Ok(()), |watch| watch.finish(scenario.duration));
    finished.map_err(|(path, source)| RecordError::Write { path, source })?;
    ended.map_err(|Interrupted| RecordError::Interrupted)?;
    let written = records.files().into_iter().map(str::to_owned).collect();
    Ok(Measurements { written, ..world.measurements() })
}

/// A packet that `endpoint` has sent, and what its numbers stand for.
#[derive(Clone, Copy)]
struct Shown<'a> {
    now: Nanos,
    endpoint: usize,
    packet: &'a Packet,
    sacks: &'a SackPool,
    bytes: &'a Bytes,
}

/// Those who watch.
pub(crate) struct Watch {
    /// Packets as text, for tests.
    pub(crate) trace: Option<Trace>,
    files: Option<Files>,
}

/// What is written into the run folder.
struct Files {
    bytes: Bytes,
    capture: Option<Capture>,
    qlog: Option<Qlog>,
    /// What schedulers have to say.
    picks: Receiver<Told>,
}

impl Files {
    /// Writes why packets go where they go, before the packets.
    fn tell_picks(&mut self, now: Nanos) {
        if let Some(qlog) = &mut self.qlog {
            self.picks.try_iter().for_each(|told| qlog.picked(now, &told));
        }
    }
}

impl Watch {
    /// Keeps the first `limit` packets that endpoints send as text.
    pub(crate) fn tracing(limit: usize) -> Self {
        Self { trace: Some(Trace::new(limit)), files: None }
    }

    fn new(scenario: &Scenario, seed: u64, folder: &Path, records: Records, picks: Receiver<Told>) -> Self {
        let snaplen = (!records.whole_packets).then_some(SNAPLEN);
        let capture = || Capture::new(scenario, seed, folder.join(PACKETS), snaplen);
        let files = Files {
            bytes: Bytes::new(scenario),
            capture: records.packets.then(capture),
            qlog: records.events.then(|| Qlog::new(scenario, folder.join(EVENTS))),
            picks,
        };
        Self { trace: None, files: Some(files) }
    }

    /// An endpoint has made a packet, which enters the network at `at`; `sender` is the endpoint.
    #[cold]
    pub(crate) fn sent(
        &mut self,
        (now, at): (Nanos, Nanos),
        endpoint: usize,
        packet: &Packet,
        sacks: &SackPool,
        sender: &Endpoint,
    ) {
        if let Some(trace) = &mut self.trace {
            trace.sent(now, endpoint as u32, packet, sacks);
        }
        if let Some(files) = &mut self.files {
            files.tell_picks(now);
            let Files { bytes, capture, qlog, .. } = files;
            bytes.note(endpoint, packet);
            let shown = Shown { now, endpoint, packet, sacks, bytes };
            if let Some(capture) = capture {
                capture.sent(shown, at, sender.backup);
            }
            if let Some(qlog) = qlog {
                qlog.sent(shown, sender);
            }
        }
    }

    /// A datagram flow has sent a packet.
    #[cold]
    pub(crate) fn datagram_sent(&mut self, now: Nanos, flow: usize, packet: &Packet) {
        if let Some(Files { capture: Some(capture), .. }) = &mut self.files {
            capture.datagram(now, flow, packet, 0);
        }
    }

    /// A packet has left the network at its sink.
    pub(crate) fn arrived(&mut self, now: Nanos, sink: u32, packet: &Packet, sacks: &SackPool) {
        let Some(Files { bytes, capture, qlog, .. }) = &mut self.files else { return };
        if packet.has(flags::DATAGRAM) {
            if let Some(capture) = capture {
                capture.datagram(now, packet.ack as usize, packet, 1);
            }
            return;
        }
        let shown = Shown { now, endpoint: sink as usize ^ 1, packet, sacks, bytes };
        if let Some(capture) = capture {
            capture.arrived(shown);
        }
        if let Some(qlog) = qlog {
            qlog.arrived(shown);
        }
    }

    /// Something may have changed at an endpoint.
    pub(crate) fn look(&mut self, now: Nanos, index: usize, endpoint: &Endpoint, is_mptcp: bool) {
        let Some(files) = &mut self.files else { return };
        files.tell_picks(now);
        if let Files { bytes, qlog: Some(qlog), .. } = files {
            qlog.look(now, index, endpoint, is_mptcp, bytes);
        }
    }

    /// The path manager of an endpoint's connection has decided something about its subflow.
    #[cold]
    pub(crate) fn decided(&mut self, now: Nanos, endpoint: usize, decision: &Decision) {
        if let Some(Files { qlog: Some(qlog), .. }) = &mut self.files {
            qlog.decided(now, endpoint, decision);
        }
    }

    /// Whether a file cannot be written any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.files.as_ref().is_some_and(|files| {
            files.capture.as_ref().is_some_and(Capture::has_failed)
                || files.qlog.as_ref().is_some_and(Qlog::has_failed)
        })
    }

    /// Ends the files at the end of the run; says which could not be written, and why.
    fn finish(self, end: Nanos) -> Result<(), (PathBuf, io::Error)> {
        let Some(files) = self.files else { return Ok(()) };
        if let Some(capture) = files.capture {
            capture.finish(end).finish()?;
        }
        files.qlog.map_or(Ok(()), |qlog| qlog.finish()?.finish())
    }
}
