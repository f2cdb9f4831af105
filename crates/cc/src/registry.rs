//! The algorithms of `registry.def`, and those that a program has added.

use std::{ffi::CStr, ffi::c_char, sync::OnceLock};

use crate::{
    abi::{self, RawAlgorithm, RawOps},
    custom::{self, Make},
};

/// What an algorithm controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The window; the host runs recovery.
    Window,
    /// Window and pacing rate, on every ACK.
    Rate,
}

/// Whether an algorithm looks at the other subflows of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// It does not.
    Single,
    /// It does.
    Coupled,
}

/// Where an algorithm runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// In the simulator only.
    Sim,
    /// In the simulator and, as BPF, in the kernel.
    Both,
}

/// How a parameter's integer is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Count,
    /// Packets.
    Packets,
    /// A time, stored in microseconds.
    Micros,
    /// A real number, stored times 1024.
    Q10,
    /// 0 or 1.
    Bool,
    /// An index into [`Param::choices`].
    Choice,
    /// A real number, stored times 65536.
    Q16,
    /// A real number, stored times 1000.
    Permille,
}

impl Unit {
    fn from_raw(raw: u32) -> Self {
        match raw {
            0 => Unit::Count,
            1 => Unit::Packets,
            2 => Unit::Micros,
            3 => Unit::Q10,
            4 => Unit::Bool,
            5 => Unit::Choice,
            6 => Unit::Q16,
            7 => Unit::Permille,
            other => unreachable!("cc.h has no unit {other}"),
        }
    }

    /// What the stored integer is divided by for the number that it stands for.
    pub fn scale(self) -> u32 {
        match self {
            Unit::Q10 => 1 << 10,
            Unit::Q16 => 1 << 16,
            Unit::Permille => 1000,
            Unit::Count | Unit::Packets | Unit::Micros | Unit::Bool | Unit::Choice => 1,
        }
    }

    /// What a C field of this unit has at the end of its name, which the parameter's name leaves out.
    fn suffix(self) -> &'static str {
        match self {
            Unit::Micros => "_us",
            Unit::Q10 => "_q10",
            Unit::Q16 => "_q16",
            Unit::Permille => "_permille",
            Unit::Count | Unit::Packets | Unit::Bool | Unit::Choice => "",
        }
    }
}

/// One parameter of an algorithm.
#[derive(Clone, Debug)]
pub struct Param {
    /// Name as in `algorithms/`, without a scale suffix (`_q10`, `_us`, …).
    pub name: &'static str,
    /// How the integer is to be read.
    pub unit: Unit,
    /// Default, as stored.
    pub default: u32,
    /// Smallest value, as stored.
    pub min: u32,
    /// Largest value, as stored.
    pub max: u32,
    /// What it is.
    pub doc: &'static str,
    /// Names of the values, for [`Unit::Choice`].
    pub choices: Vec<&'static str>,
}

impl Param {
    /// A stored value as a scenario or a user would write it.
    pub fn shown(&self, stored: u32) -> String {
        match self.unit {
            Unit::Count => stored.to_string(),
            Unit::Packets => format!("{stored} packets"),
            Unit::Micros if stored.is_multiple_of(1_000_000) => format!("{} s", stored / 1_000_000),
            Unit::Micros if stored.is_multiple_of(1_000) => format!("{} ms", stored / 1_000),
            Unit::Micros => format!("{stored} us"),
            Unit::Q10 | Unit::Q16 | Unit::Permille => {
                (f64::from(stored) / f64::from(self.unit.scale())).to_string()
            }
            Unit::Bool => (stored != 0).to_string(),
            Unit::Choice => self
                .choices
                .get(stored as usize)
                .map_or_else(|| stored.to_string(), |name| (*name).to_owned()),
        }
    }
}

/// One congestion control.
pub struct Algorithm {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) kind: Kind,
    pub(crate) coupling: Coupling,
    pub(crate) hosts: Hosts,
    pub(crate) handles_rtt_sample: bool,
    pub(crate) state_bytes: usize,
    pub(crate) cold_bytes: usize,
    pub(crate) params: Vec<Param>,
    pub(crate) ops: RawOps,
    pub(crate) make: Option<Make>,
}

#[allow(unsafe_code)]
// SAFETY: the table and all it points to are constants without interior mutability.
unsafe impl Sync for RawAlgorithm {}

impl Algorithm {
    fn of_table(raw: &'static RawAlgorithm) -> Self {
        #[allow(unsafe_code)]
        // SAFETY: ab_ignored is a constant that host/registry.c defines.
        let ignored = unsafe { abi::ab_ignored };
        Self {
            name: text(raw.name),
            title: text(raw.title),
            tag: text(raw.tag),
            kind: if raw.kind == 0 { Kind::Window } else { Kind::Rate },
            coupling: if raw.coupling == 0 { Coupling::Single } else { Coupling::Coupled },
            hosts: if raw.hosts == 0 { Hosts::Sim } else { Hosts::Both },
            handles_rtt_sample: !std::ptr::fn_addr_eq(raw.ops.rtt_sample, ignored),
            state_bytes: raw.state_bytes as usize,
            cold_bytes: raw.cold_bytes as usize,
            params: params_of(raw),
            ops: raw.ops,
            make: None,
        }
    }

    /// Name in scenarios; the kernel's is `ab_` and this.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line about it.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Confidence: `A`, `B` or `C` as in `registry.def`; `-` for one that a program has added.
    pub fn tag(&self) -> &'static str {
        self.tag
    }

    /// What it controls.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it couples subflows.
    pub fn coupling(&self) -> Coupling {
        self.coupling
    }

    /// Where it runs.
    pub fn hosts(&self) -> Hosts {
        self.hosts
    }

    /// Whether it does anything at `rtt_sample`.
    pub fn handles_rtt_sample(&self) -> bool {
        self.handles_rtt_sample
    }

    /// Parameters in declaration order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Size of the hot state.
    pub fn state_bytes(&self) -> usize {
        self.state_bytes
    }

    /// Size of the cold state, 0 if there is none.
    pub fn cold_bytes(&self) -> usize {
        self.cold_bytes
    }
}

impl std::fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// All algorithms of `algorithms/` in the order of the registry.
pub fn algorithms() -> &'static [Algorithm] {
    static TABLE: OnceLock<Vec<Algorithm>> = OnceLock::new();
    TABLE.get_or_init(|| raw_table().iter().map(Algorithm::of_table).collect())
}

/// The algorithm of that name, in the registry or added by [`crate::register`].
pub fn find(name: &str) -> Option<&'static Algorithm> {
    algorithms().iter().find(|algorithm| algorithm.name() == name).or_else(|| custom::find(name))
}

fn raw_table() -> &'static [RawAlgorithm] {
    #[allow(unsafe_code)]
    // SAFETY: ab_registry has ab_registry_len constant elements.
    unsafe {
        std::slice::from_raw_parts((&raw const abi::ab_registry).cast(), abi::ab_registry_len as usize)
    }
}

fn params_of(raw: &'static RawAlgorithm) -> Vec<Param> {
    #[allow(unsafe_code)]
    // SAFETY: params points to n_params constant elements.
    let rows = unsafe { std::slice::from_raw_parts(raw.params, raw.n_params as usize) };
    rows.iter()
        .map(|row| {
            let unit = Unit::from_raw(row.unit);
            let field = text(row.name);
            let name = field.strip_suffix(unit.suffix()).expect("a field is named for its unit");
            let doc = text(row.doc);
            let choices = match unit {
                Unit::Choice => doc.split(':').next().unwrap_or_default().split('|').collect(),
                _ => Vec::new(),
            };
            Param { name, unit, default: row.default, min: row.min, max: row.max, doc, choices }
        })
        .collect()
}

fn text(pointer: *const c_char) -> &'static str {
    #[allow(unsafe_code)]
    // SAFETY: every string of the table is a C literal.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().expect("the registry is ASCII")
}
