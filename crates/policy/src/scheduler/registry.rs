//! The registry of schedulers: names, parameters and what each asks of its host.

use super::{
    Scheduler, blest, daps, dedicated, dmptcp, ecf, ee, emptcp, emtcp, es, linux, minrtt, otias, redundant,
    roundrobin, weighted,
};
use crate::energy::Linear;

/// How the integer of a parameter is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerUnit {
    /// A plain count.
    Count,
    /// Packets.
    Packets,
    /// A fraction, in thousandths.
    Permille,
    /// 0 or 1.
    Bool,
    /// An index into the parameter's choices.
    Choice,
}

/// A parameter of a scheduler: 32 bits and units as those of congestion controls have, whose reader reads it. Path managers count in
/// times and sizes, which take 64: [`PathManagerParam`](crate::paths::PathManagerParam).
#[derive(Clone, Copy, Debug)]
pub struct SchedulerParam {
    /// Name in scenario files.
    pub name: &'static str,
    /// How the integer is to be read.
    pub unit: SchedulerUnit,
    /// Default, as stored.
    pub default: u32,
    /// Smallest value, as stored.
    pub min: u32,
    /// Largest value, as stored.
    pub max: u32,
    /// What it is.
    pub doc: &'static str,
    /// Names of the values, for [`SchedulerUnit::Choice`].
    pub choices: &'static [&'static str],
}

impl SchedulerParam {
    /// A parameter without choices.
    pub(super) const fn new(
        name: &'static str,
        unit: SchedulerUnit,
        default: u32,
        (min, max): (u32, u32),
        doc: &'static str,
    ) -> Self {
        Self { name, unit, default, min, max, doc, choices: &[] }
    }

    /// A parameter that is one of these words, the first unless the scenario says another.
    pub(super) const fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            unit: SchedulerUnit::Choice,
            default: 0,
            min: 0,
            max: choices.len() as u32 - 1,
            doc,
            choices,
        }
    }
}

/// How what a scheduler gives out leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// At once, on a subflow that has room.
    OneByOne,
    /// From queues of the subflows: [`Pick::Queue`](super::Pick::Queue) may be an answer.
    Queued,
    /// Every segment once on every subflow, each at its own pace. Only reinjections are asked for.
    Copies,
}

/// What a scenario says of a subflow for schedulers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Segments in a turn of weighted round-robin.
    pub weight: u32,
    /// Energy of the radio that it goes by; only schedulers that reckon with energy look at it.
    pub radio: Linear,
}

/// What a scheduler is made from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Its parameters as stored, all of them, in the order of the registry.
    pub params: &'a [u32],
    /// Facts of the subflows, in the order of the scenario.
    pub subflows: &'a [Facts],
}

/// A scheduler of the registry.
#[derive(Debug)]
pub struct SchedulerInfo {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub title: &'static str,
    /// What stands behind the definition: A a standard, a paper that was checked or the kernel; B reconstructed from a
    /// paper; C of this project.
    pub tag: &'static str,
    /// Its parameters.
    pub params: &'static [SchedulerParam],
    /// How what it gives out leaves.
    pub sends: Sends,
    /// Whether every subflow has to go by a radio.
    pub reckons_energy: bool,
    /// Whether it looks at the weights of subflows.
    pub weighs: bool,
    /// Makes one for one direction of a connection.
    pub make: fn(&Setup<'_>) -> Box<dyn Scheduler + Send>,
}

/// The schedulers that a scenario can name.
pub static SCHEDULERS: &[SchedulerInfo] = &[
    minrtt::INFO,
    roundrobin::INFO,
    weighted::INFO,
    linux::INFO,
    redundant::INFO,
    blest::INFO,
    ecf::INFO,
    dedicated::INFO,
    emtcp::INFO,
    emptcp::INFO,
    dmptcp::INFO,
    es::INFO,
    ee::INFO,
    otias::INFO,
    daps::INFO,
];

/// The scheduler of that name.
pub fn find(name: &str) -> Option<&'static SchedulerInfo> {
    SCHEDULERS.iter().find(|info| info.name == name)
}

impl SchedulerInfo {
    /// Its parameters where the scenario gives none.
    pub fn defaults(&self) -> Vec<u32> {
        self.params.iter().map(|param| param.default).collect()
    }
}
