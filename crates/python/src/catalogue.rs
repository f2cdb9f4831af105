//! What a scenario can name.

use anabranch_cc::{self as cc, Coupling, Hosts, Kind, Param};
use anabranch_policy::energy::RADIOS;
use anabranch_scenario::{NAMED, Named as NamedCongestion, model::Recovery};
use pyo3::prelude::*;

/// A congestion control of the registry.
#[derive(IntoPyObject)]
pub(crate) struct Algorithm {
    name: &'static str,
    title: &'static str,
    kind: &'static str,
    coupled: bool,
    hosts: Vec<&'static str>,
    tag: &'static str,
    /// The recovery that the name stands for, beside Reno's windows.
    recovery: Option<&'static str>,
    params: Vec<Parameter>,
}

/// A parameter of a congestion control, a scheduler or a path manager.
#[derive(IntoPyObject)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) default: String,
    pub(crate) min: String,
    pub(crate) max: String,
    pub(crate) doc: &'static str,
}

/// Something else that a scenario can name.
#[derive(IntoPyObject)]
pub(crate) struct Named {
    name: &'static str,
    title: &'static str,
}

/// The congestion controls in the order of the registry, the names that stand for one of them and a recovery, then
/// those written in Python.
#[pyfunction]
pub(crate) fn list_algorithms() -> Vec<Algorithm> {
    let in_python = cc::registered();
    let of_registry = cc::algorithms().iter().map(algorithm);
    of_registry
        .chain(NAMED.iter().map(named_congestion))
        .chain(in_python.into_iter().map(algorithm))
        .collect()
}

fn named_congestion(named: &NamedCongestion) -> Algorithm {
    Algorithm {
        name: named.name,
        title: named.title,
        kind: "window",
        coupled: false,
        hosts: if named.recovery == Recovery::Tahoe { vec!["sim"] } else { vec!["sim", "kernel"] },
        tag: "A",
        recovery: Some(named.name),
        params: Vec::new(),
    }
}

fn algorithm(algorithm: &cc::Algorithm) -> Algorithm {
    Algorithm {
        name: algorithm.name(),
        title: algorithm.title(),
        kind: match algorithm.kind() {
            Kind::Window => "window",
            Kind::Rate => "rate",
        },
        coupled: match algorithm.coupling() {
            Coupling::Single => false,
            Coupling::Coupled => true,
        },
        hosts: match algorithm.hosts() {
            Hosts::Sim => vec!["sim"],
            Hosts::Both => vec!["sim", "kernel"],
        },
        tag: algorithm.tag(),
        recovery: None,
        params: algorithm.params().iter().map(parameter).collect(),
    }
}

fn parameter(param: &Param) -> Parameter {
    Parameter {
        name: param.name,
        default: param.shown(param.default),
        min: param.shown(param.min),
        max: param.shown(param.max),
        doc: param.doc,
    }
}

/// The kinds of links.
#[pyfunction]
pub(crate) fn list_links() -> Vec<Named> {
    vec![
        Named {
            name: "link",
            title: "duplex wire: rate or trace, delay, jitter, loss; drop-tail, RED, CoDel or FQ-CoDel",
        },
        Named { name: "medium", title: "802.11-like shared half-duplex medium: backoff, retries, airtime" },
    ]
}

/// The radios of interfaces.
#[pyfunction]
pub(crate) fn list_radios() -> Vec<Named> {
    RADIOS.iter().map(|info| Named { name: info.name, title: info.title }).collect()
}
