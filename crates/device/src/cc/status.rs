//! What is loaded, who uses it, and what it has counted.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anabranch_cc::Param;
use anabranch_kernel::{Counters, EVENTS, Pinned, Pins, kernel_name};
use serde::Serialize;

use super::{
    SocketInUse,
    namespaces::{Survey, survey},
    selection::{self, Selection},
};
use crate::DeviceError;

/// The state of a folder of registrations.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The folder.
    pub folder: PathBuf,
    /// What is loaded, in the order of the registry.
    pub loaded: Vec<Loaded>,
    /// Congestion controls named `ab_…` that were registered by other means, or are not known to this build.
    pub foreign: Vec<String>,
    /// What a killed loader left; the next `load` or `unload` removes it.
    pub leftovers: Vec<PathBuf>,
    /// Namespaces and control groups that `use` has set.
    pub selections: Vec<Selection>,
    /// Namespaces that could not be looked into.
    pub unseen_namespaces: Vec<String>,
}

/// An algorithm that is loaded.
#[derive(Clone, Debug, Serialize)]
pub struct Loaded {
    /// Name in scenarios and for this command.
    pub name: &'static str,
    /// Name in the kernel.
    pub kernel_name: String,
    /// One line about it.
    pub title: &'static str,
    /// When it was loaded, in seconds since 1970.
    pub since_unix_s: u64,
    /// How long ago that is.
    pub age_s: u64,
    /// User number of whoever loaded it.
    pub uid: u32,
    /// Whether it is the BPF object of this build. If not, it works, and what is in its maps is not shown.
    pub is_this_build: bool,
    /// Parameters by name, as `--param` takes them.
    pub params: BTreeMap<&'static str, String>,
    /// What it has counted since it was loaded.
    pub counters: Option<Counted>,
    /// The connections that a coupled algorithm knows.
    pub connections: Vec<Connection>,
    /// Namespaces that have it as default.
    pub default_of: Vec<String>,
    /// Sockets that use it.
    pub sockets: Vec<Socket>,
}

/// Counters of an algorithm, in the words of `docs/kernel.md`.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// Calls of all events.
    pub calls: u64,
    /// Calls by event; those that never happened are left out.
    pub events: BTreeMap<&'static str, u64>,
    /// Calls of a coupled algorithm with two or more usable subflows.
    pub coupled: u64,
    /// Calls of a coupled algorithm with one.
    pub uncoupled: u64,
    /// Subflows that got a slot.
    pub joined: u64,
    /// Sockets without MPTCP that a coupled algorithm serves.
    pub plain_tcp: u64,
    /// Subflows that run uncoupled: beyond the eighth.
    pub no_slot: u64,
    /// Subflows that run uncoupled: no entry for their connection.
    pub map_full: u64,
    /// Sockets without storage.
    pub no_memory: u64,
    /// Calls repeated because a peer had changed the connection's words.
    pub conflicts: u64,
    /// Changes given up after repeated conflicts.
    pub dropped_writes: u64,
}

/// A connection that a coupled algorithm knows.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// As `ss -M` shows it, hexadecimal.
    pub token: String,
    /// Subflows in a slot.
    pub subflows: u32,
    /// The algorithm's word `mode`; MFVL: 1 if its verdict is that subflows share a bottleneck.
    pub mode: u32,
    /// Of an algorithm that decides whether to couple: how often it has.
    pub verdicts: u32,
    /// How often the answer was yes.
    pub coupled_verdicts: u32,
}

/// A socket with the namespace it is in.
#[derive(Clone, Debug, Serialize)]
pub struct Socket {
    /// The namespace's name.
    pub namespace: String,
    /// The socket.
    #[serde(flatten)]
    pub socket: SocketInUse,
}

/// Looks at what is loaded from `folder`.
///
/// # Errors
/// [`DeviceError::Pins`] or [`DeviceError::System`].
pub fn status(folder: &Path) -> Result<Status, DeviceError> {
    let pins = Pins::open(folder)?;
    let pinned = pins.loaded();
    let survey = survey(|name| name.starts_with("ab_"))?;
    let mut foreign = super::registered();
    foreign.retain(|name| {
        name.starts_with("ab_") && pinned.iter().all(|pinned| kernel_name(pinned.algorithm()) != *name)
    });
    Ok(Status {
        folder: folder.to_owned(),
        foreign,
        leftovers: pins.leftovers()?,
        selections: selection::list(folder)?,
        unseen_namespaces: survey.unseen.iter().map(|namespace| namespace.name.clone()).collect(),
        loaded: pinned.iter().map(|pinned| loaded(pinned, &survey)).collect::<Result<_, _>>()?,
    })
}

fn loaded(pinned: &Pinned, survey: &Survey) -> Result<Loaded, DeviceError> {
    let algorithm = pinned.algorithm();
    let kernel_name = kernel_name(algorithm);
    let since = pinned.since()?;
    let sockets = survey.sockets.iter().filter(|(_, socket)| socket.congestion == kernel_name);
    let defaults = survey.defaults.iter().filter(|(_, default)| *default == kernel_name);
    let mut loaded = Loaded {
        name: algorithm.name(),
        title: algorithm.title(),
        since_unix_s: since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs(),
        age_s: since.elapsed().unwrap_or_default().as_secs(),
        uid: pinned.owner()?,
        is_this_build: pinned.is_this_build()?,
        params: BTreeMap::new(),
        counters: None,
        connections: Vec::new(),
        default_of: defaults.map(|(namespace, _)| namespace.name.clone()).collect(),
        sockets: sockets
            .map(|(namespace, socket)| Socket { namespace: namespace.name.clone(), socket: socket.clone() })
            .collect(),
        kernel_name,
    };
    if loaded.is_this_build {
        let text = |(param, &value): (&Param, &u32)| (param.name, param.shown(value));
        loaded.params = algorithm.params().iter().zip(&pinned.params()?).map(text).collect();
        loaded.counters = Some(counted(&pinned.counters()?));
        loaded.connections = pinned.connections()?.iter().map(connection).collect();
    }
    Ok(loaded)
}

fn counted(seen: &Counters) -> Counted {
    let events = EVENTS.into_iter().zip(seen.events).filter(|(_, calls)| *calls > 0);
    Counted {
        calls: seen.events.iter().sum(),
        events: events.collect(),
        coupled: seen.coupled(),
        uncoupled: seen.uncoupled(),
        joined: seen.joined,
        plain_tcp: seen.plain_tcp,
        no_slot: seen.no_slot,
        map_full: seen.map_full,
        no_memory: seen.no_memory,
        conflicts: seen.conflicts,
        dropped_writes: seen.dropped_writes,
    }
}

fn connection(known: &anabranch_kernel::Connection) -> Connection {
    let anabranch_kernel::Connection { token, subflows, mode, verdicts, coupled_verdicts } = *known;
    Connection { token: format!("{token:08x}"), subflows, mode, verdicts, coupled_verdicts }
}
