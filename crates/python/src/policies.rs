//! The packet schedulers and path managers that a scenario can name.

use anabranch_policy::{
    paths::{self, PATH_MANAGERS, PathManagerUnit},
    scheduler::{self, SCHEDULERS, SchedulerParam, SchedulerUnit},
};
use anabranch_scenario::STATIC_PATH_MANAGER;
use pyo3::prelude::*;

use crate::catalogue::Parameter;

/// A scheduler or a path manager.
#[derive(IntoPyObject)]
pub(crate) struct Policy {
    name: &'static str,
    title: &'static str,
    tag: &'static str,
    params: Vec<Parameter>,
}

/// The packet schedulers in the order of the registry.
#[pyfunction]
pub(crate) fn list_schedulers() -> Vec<Policy> {
    let policy = |info: &scheduler::SchedulerInfo| {
        let params = info.params.iter().map(|param| {
            let show = |stored| of_scheduler(param, stored);
            let doc = param.doc;
            Parameter {
                name: param.name,
                default: show(param.default),
                min: show(param.min),
                max: show(param.max),
                doc,
            }
        });
        Policy { name: info.name, title: info.title, tag: info.tag, params: params.collect() }
    };
    SCHEDULERS.iter().map(policy).collect()
}

/// The path managers: none, then those in the order of the registry.
#[pyfunction]
pub(crate) fn list_path_managers() -> Vec<Policy> {
    let policy = |info: &paths::PathManagerInfo| {
        let params = info.params.iter().map(|param| {
            let show = |stored| of_path_manager(param.unit, stored);
            let doc = param.doc;
            Parameter {
                name: param.name,
                default: show(param.default),
                min: show(param.min),
                max: show(param.max),
                doc,
            }
        });
        Policy { name: info.name, title: info.title, tag: info.tag, params: params.collect() }
    };
    let title = "the subflows of the scenario file, opened as transport.join says";
    let fixed = Policy { name: STATIC_PATH_MANAGER, title, tag: "-", params: Vec::new() };
    std::iter::once(fixed).chain(PATH_MANAGERS.iter().map(policy)).collect()
}

/// A stored value as a scenario would write it.
fn of_scheduler(param: &SchedulerParam, stored: u32) -> String {
    match param.unit {
        SchedulerUnit::Count => stored.to_string(),
        SchedulerUnit::Packets => format!("{stored} packets"),
        SchedulerUnit::Permille => (f64::from(stored) / 1000.0).to_string(),
        SchedulerUnit::Bool => (stored != 0).to_string(),
        SchedulerUnit::Choice => {
            param.choices.get(stored as usize).map_or_else(|| stored.to_string(), |name| (*name).to_owned())
        }
    }
}

/// The same; times are stored in nanoseconds, sizes in bytes.
fn of_path_manager(unit: PathManagerUnit, stored: u64) -> String {
    match unit {
        PathManagerUnit::Time if stored.is_multiple_of(1_000_000_000) => {
            format!("{} s", stored / 1_000_000_000)
        }
        PathManagerUnit::Time if stored.is_multiple_of(1_000_000) => format!("{} ms", stored / 1_000_000),
        PathManagerUnit::Time => format!("{stored} ns"),
        PathManagerUnit::Bytes if stored > 0 && stored.is_multiple_of(1_000_000) => {
            format!("{} MB", stored / 1_000_000)
        }
        PathManagerUnit::Bytes if stored > 0 && stored.is_multiple_of(1_000) => {
            format!("{} kB", stored / 1_000)
        }
        PathManagerUnit::Bytes => format!("{stored} B"),
        PathManagerUnit::Count => stored.to_string(),
        PathManagerUnit::Permille => (stored as f64 / 1000.0).to_string(),
        PathManagerUnit::Bool => (stored != 0).to_string(),
    }
}
