//! What a run has measured, independent of the engine that measured it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a figure is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The whole run.
    Run,
    /// A connection or datagram flow, by name.
    Connection(String),
    /// A subflow of a connection, by names.
    Subflow(String, String),
    /// One direction of a link, or a medium, by name (`r1-r2`, `r1-r2/reverse`).
    Link(String),
    /// An interface, by the names of its node and of its link or medium.
    Interface(String, String),
    /// A host, by the name of its node.
    Node(String),
}

/// One figure of the summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is about.
    pub scope: Scope,
    /// Name with its unit at the end: `goodput_bps`, `retransmits`, `completion_s`.
    pub metric: &'static str,
    /// Value; finite.
    pub value: f64,
}

/// The summary: figures in a fixed order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// All figures.
    pub figures: Vec<Figure>,
}

/// One column set of the time series: a scope with a metric, and its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is about.
    pub scope: Scope,
    /// Name with its unit at the end.
    pub metric: &'static str,
    /// Points as (time in nanoseconds, value), ascending in time.
    pub points: Vec<(u64, f64)>,
}

/// Everything an engine hands over to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// The summary.
    pub summary: Summary,
    /// The series, in a fixed order.
    pub series: Vec<Series>,
    /// On what and how well it was measured; the simulator leaves it out, for its runs depend on nothing else.
    pub environment: Option<Environment>,
    /// Further files of the folder: names (letters, digits, `-`, `_`, `.`) and contents.
    pub attachments: Vec<(String, Vec<u8>)>,
    /// Names of further files that the engine has written itself, into [`crate::Staging::aside`].
    pub written: Vec<String>,
}

/// The machine a run was measured on, and whether its figures count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Release of the kernel (`uname -r`).
    pub kernel: String,
    /// Why the run does not count; empty: it does.
    pub invalid: Vec<String>,
    /// Attempts until this one, itself included, at least 1.
    pub attempts: u32,
    /// Where the scenario could not be followed to the letter.
    pub notes: Vec<String>,
    /// What was set in the network namespaces, by node and name.
    pub sysctls: BTreeMap<String, BTreeMap<String, String>>,
    /// Other facts as numbers, with their units in the names: lateness of the emulator, its CPU time per packet.
    pub facts: BTreeMap<String, f64>,
}
