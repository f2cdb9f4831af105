//! Runs of a scenario on the kernel, from plan to run folder.

mod agents;
mod anabranchd;
mod attempt;
mod carriers;
mod director;
mod hold;
mod joins;
mod latencies;
mod observe;
mod relays;
mod senders;
mod timeline;
mod transfers;
pub mod validity;

pub use hold::hold;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anabranch_record::{Begin, Identity, RunFolder, Staging, begin_with};
use anabranch_scenario::{
    Loaded,
    model::{Connection, Direction, Scenario, Traffic},
    workload,
};

use crate::{
    BedError, Nanos,
    host::{Interrupt, Leftover, Session},
    plan::{CongestionSource, plan, plan_for_anabranchd},
};

/// A run whose figures do not count is made this often at most.
const ATTEMPTS: u32 = 3;

/// What sends and receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Application {
    /// [`crate::traffic::Applications`].
    #[default]
    Own,
    /// [`crate::traffic::iperf3`], for connections; UDP flows stay our own.
    Iperf3,
    /// [`crate::traffic::anabranchd`], for a transfer; UDP flows stay our own.
    Anabranchd {
        /// Encrypted, with a token.
        tls: bool,
    },
}

impl Application {
    /// How the command calls it, if it is not our own.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Own => None,
            Self::Iperf3 => Some("iperf3"),
            Self::Anabranchd { tls: false } => Some("anabranchd"),
            Self::Anabranchd { tls: true } => Some("anabranchd-tls"),
        }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whose congestion control.
    pub source: CongestionSource,
    /// Whose sender and receiver.
    pub application: Application,
    /// Write `packets.pcapng`.
    pub capture: bool,
    /// Make complete runs again.
    pub force: bool,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Of the run.
    pub seed: u64,
    /// Counted from 1.
    pub attempt: u32,
    /// Scenario time reached.
    pub reached: Nanos,
    /// Scenario time at the end.
    pub duration: Nanos,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of the run.
    pub seed: u64,
    /// Its folder.
    pub path: PathBuf,
    /// It was there before.
    pub reused: bool,
    /// Why a folder that was there could not be used.
    pub damaged: Option<String>,
    /// Why its figures do not count; empty: they do.
    pub invalid: Vec<String>,
}

/// One scenario, to be run with one or many seeds.
#[derive(Debug)]
pub struct Batch<'a> {
    loaded: &'a Loaded,
    options: Options,
    identity: Identity,
}

impl<'a> Batch<'a> {
    /// Prepares runs of a scenario with these overrides.
    ///
    /// # Errors
    /// [`BedError::Input`] if a kernel cannot do what the scenario says.
    pub fn new(
        loaded: &'a Loaded,
        mut overrides: BTreeMap<String, String>,
        options: Options,
    ) -> Result<Self, BedError> {
        let expanded = workload::expand(&loaded.scenario, 1);
        match options.application {
            Application::Anabranchd { .. } => drop(plan_for_anabranchd(&expanded, 1, options.source)?),
            Application::Own | Application::Iperf3 => drop(plan(&expanded, 1, options.source)?),
        }
        if options.application == Application::Iperf3 {
            check_iperf3(&loaded.scenario)?;
        }
        // These change results without being in the scenario, so they belong to what a run is.
        let native = (options.source == CongestionSource::Native).then_some("native");
        for (key, value) in
            [("kernel.congestion", native), ("kernel.application", options.application.name())]
        {
            overrides.extend(value.map(|value| (key.to_owned(), value.to_owned())));
        }
        let identity = Identity {
            scenario: loaded.scenario.name.clone(),
            title: loaded.scenario.title.clone(),
            canonical: loaded.canonical.clone(),
            overrides,
            engine: "kernel".to_owned(),
            version: version(),
        };
        Ok(Self { loaded, options, identity })
    }

    /// Runs with a seed, or finds the run under `root`. A run whose figures do not count is repeated; the last
    /// attempt is kept even so, and marked.
    ///
    /// # Errors
    /// Any [`BedError`]; nothing is left then.
    pub fn run(
        &self,
        seed: u64,
        root: &Path,
        session: &Session,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, BedError> {
        let wanted: &[&str] = if self.options.capture { &[attempt::CAPTURE] } else { &[] };
        let staging = match begin_with(root, &self.identity, seed, self.options.force, wanted)? {
            Begin::Complete(RunFolder { path, .. }) => {
                return Ok(Outcome { seed, path, reused: true, damaged: None, invalid: Vec::new() });
            }
            Begin::Staged(staging) => staging,
        };
        let leftover = Leftover::Folder(absolute(staging.aside())?);
        session.note(leftover.clone())?;
        let outcome = self.run_staged(seed, staging, session, interrupt, tell);
        session.forget(&leftover)?;
        outcome
    }

    fn run_staged(
        &self,
        seed: u64,
        staging: Staging,
        session: &Session,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, BedError> {
        let scenario = &self.loaded.scenario;
        let damaged = staging.damaged.clone();
        for number in 1.. {
            let mut tell = |reached| {
                tell(Progress { seed, attempt: number, reached, duration: scenario.duration });
            };
            let place = attempt::Place { session, interrupt, scratch: staging.aside() };
            let mut measured = attempt::run(scenario, seed, self.options, &place, &mut tell)?;
            let environment = measured.environment.as_mut().expect("an attempt knows its machine");
            environment.attempts = number;
            let invalid = environment.invalid.clone();
            if invalid.is_empty() || number == ATTEMPTS {
                let RunFolder { path, .. } = staging.commit(&measured)?;
                return Ok(Outcome { seed, path, reused: false, damaged, invalid });
            }
        }
        unreachable!("the last attempt returns")
    }
}

/// Refuses traffic that iperf3 does not know.
fn check_iperf3(scenario: &Scenario) -> Result<(), BedError> {
    let knows = |of: &Connection| {
        matches!(of.traffic, Traffic::Ftp { .. } | Traffic::File { .. })
            && of.traffic.direction() == Direction::Upload
    };
    match scenario.connections.iter().find(|connection| !knows(connection)) {
        None => Ok(()),
        Some(connection) => Err(BedError::Input(format!(
            "--application iperf3: connection {}: iperf3 is used for ftp and file upwards; expected --application own",
            connection.name
        ))),
    }
}

/// Version of the engine: of this program, its sources, and the kernel, on which results depend.
pub fn version() -> String {
    concat!(env!("CARGO_PKG_VERSION"), "+src.", env!("ANABRANCH_SOURCES"), "@").to_owned() + &kernel_release()
}

/// Release of the running kernel.
pub fn kernel_release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

fn absolute(path: &Path) -> Result<PathBuf, BedError> {
    std::path::absolute(path).map_err(BedError::system("finding the current folder"))
}
