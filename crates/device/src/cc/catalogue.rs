//! What there is to load.

use anabranch_cc::{Algorithm, Coupling, Hosts, Kind, Param, Unit};
use anabranch_kernel::kernel_name;
use serde::Serialize;

use super::{is_registered, params};

/// An algorithm of the registry.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Name in scenarios and for this command.
    pub name: &'static str,
    /// Name in the kernel, for `TCP_CONGESTION`.
    pub kernel_name: String,
    /// One line about it.
    pub title: &'static str,
    /// `window` or `rate`: what it controls.
    pub kind: &'static str,
    /// `single`, or `coupled` if it looks at the other subflows of its connection.
    pub coupling: &'static str,
    /// Confidence: A checked against a standard, the kernel or ns-2; B reconstructed from a paper; C house definition.
    pub tag: &'static str,
    /// `sim`, or `both` if it runs in the kernel, too.
    pub hosts: &'static str,
    /// Whether the kernel has it now.
    pub loaded: bool,
    /// What can be set before it is loaded.
    pub params: Vec<Parameter>,
}

/// A parameter of an algorithm; values as `--param` takes them.
#[derive(Clone, Debug, Serialize)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// `number`, `packets`, `time`, `real`, `bool` or `choice`.
    pub unit: &'static str,
    /// Value if it is not set.
    pub default: String,
    /// Smallest and largest value of numbers and times.
    pub range: Option<[String; 2]>,
    /// The values of a `choice` or `bool`.
    pub choices: Vec<&'static str>,
    /// What it is.
    pub doc: &'static str,
}

/// All algorithms, in the order of the registry.
pub fn catalogue() -> Vec<Entry> {
    anabranch_cc::algorithms().iter().map(entry).collect()
}

fn entry(algorithm: &Algorithm) -> Entry {
    Entry {
        name: algorithm.name(),
        kernel_name: kernel_name(algorithm),
        title: algorithm.title(),
        kind: match algorithm.kind() {
            Kind::Window => "window",
            Kind::Rate => "rate",
        },
        coupling: match algorithm.coupling() {
            Coupling::Single => "single",
            Coupling::Coupled => "coupled",
        },
        tag: algorithm.tag(),
        hosts: match algorithm.hosts() {
            Hosts::Sim => "sim",
            Hosts::Both => "both",
        },
        loaded: is_registered(algorithm),
        params: algorithm.params().iter().map(parameter).collect(),
    }
}

fn parameter(param: &Param) -> Parameter {
    Parameter {
        name: param.name,
        unit: params::unit(param),
        default: param.shown(param.default),
        range: match param.unit {
            Unit::Bool | Unit::Choice => None,
            _ => Some([param.min, param.max].map(|value| param.shown(value))),
        },
        choices: match param.unit {
            Unit::Bool => vec!["false", "true"],
            _ => param.choices.clone(),
        },
        doc: param.doc,
    }
}
