//! `scheduler = "blest"` or `{ name = "blest", lambda = 1.2 }`, checked against the registry of `crates/policy`.

use anabranch_cc::{Param, Unit};
use anabranch_policy::{
    paths,
    scheduler::{self, SCHEDULERS, SchedulerInfo, SchedulerParam, SchedulerUnit},
};

use crate::Error;
use crate::congestion::read_param;
use crate::model::{Protocol, Scenario, Scheduler};
use crate::names::did_you_mean;
use crate::quantity::shown;
use crate::reader::Table;
use crate::tree::{Item, Source, Value};

/// The scheduler of a connection that names none.
const DEFAULT: &str = "minrtt";

/// The scheduler at a key of the table; the default if there is none.
pub(crate) fn read(table: &Table<'_>, key: &str) -> Result<Scheduler, Error> {
    let Some(item) = table.item(key) else {
        return Ok(with_defaults(info(DEFAULT)));
    };
    let (source, path) = (table.source(), table.path_of(key));
    match &item.value {
        Value::Text(name) => Ok(with_defaults(find(source, item, &path, name)?)),
        Value::Table(entries) => {
            let at = format!("{path}.name");
            let Some(name_item) = item.entry("name") else {
                return Err(source.error(item.place, &at, "missing; expected a scheduler"));
            };
            let Value::Text(name) = &name_item.value else {
                let what = format!("{}; expected the name of a scheduler in quotes", name_item.describe());
                return Err(source.error(name_item.place, &at, &what));
            };
            let info = find(source, name_item, &at, name)?;
            let (known, mut read) = (params(info), with_defaults(info));
            for entry in entries.iter().filter(|entry| entry.key != "name") {
                read_param(source, &path, info.name, &known, entry, &mut read.params)?;
            }
            Ok(read)
        }
        _ => Err(table.unexpected(key)),
    }
}

/// The weight of a subflow, which is for schedulers that weigh.
pub(crate) fn weight(subflow: &Table<'_>, scheduler: &Scheduler) -> Result<u32, Error> {
    let weight = subflow.integer("weight")?;
    if weight.is_some() && !info(&scheduler.name).weighs {
        let what = format!("{} looks at no weights; expected scheduler = \"wrr\"", scheduler.name);
        return Err(subflow.error_at("weight", &what));
    }
    Ok(weight.map_or(1, |weight| u32::try_from(weight).expect("the key table bounds it")))
}

/// Refuses schedulers and path managers that reckon with the energy of a subflow that goes by no radio.
pub(crate) fn check_radios(top: &Table<'_>, scenario: &Scenario) -> Result<(), Error> {
    for connection in scenario.connections.iter().filter(|flow| flow.protocol == Protocol::Mptcp) {
        let scheduler = &connection.scheduler.name;
        // An agent reckons with the radios of its own configuration.
        let manager = connection.path_manager.as_ref().filter(|_| connection.agent.is_none());
        let manager = manager.map(|manager| &manager.name);
        let manager_reckons = |name: &&String| paths::find(name).is_some_and(|info| info.reckons_energy);
        let reckons = info(scheduler).reckons_energy.then_some(scheduler);
        let mut subflows = connection.subflows.iter();
        if let Some(name) = reckons.or(manager.filter(manager_reckons))
            && let Some(subflow) = subflows.find(|subflow| scenario.radio_of(connection, subflow).is_none())
        {
            let what = format!(
                "{name} reckons with the energy of radios, and subflow {} of {} goes by none; expected an [[interface]] \
                 on its path",
                subflow.name, connection.name
            );
            return Err(top.error_at("connection", &what));
        }
    }
    Ok(())
}

/// The parameters of a scheduler, as those of congestion controls are read.
pub(crate) fn params(info: &SchedulerInfo) -> Vec<Param> {
    let param = |param: &SchedulerParam| Param {
        name: param.name,
        unit: match param.unit {
            SchedulerUnit::Count => Unit::Count,
            SchedulerUnit::Packets => Unit::Packets,
            SchedulerUnit::Permille => Unit::Permille,
            SchedulerUnit::Bool => Unit::Bool,
            SchedulerUnit::Choice => Unit::Choice,
        },
        default: param.default,
        min: param.min,
        max: param.max,
        doc: param.doc,
        choices: param.choices.to_vec(),
    };
    info.params.iter().map(param).collect()
}

fn with_defaults(info: &SchedulerInfo) -> Scheduler {
    Scheduler { name: info.name.to_owned(), params: info.defaults() }
}

fn info(name: &str) -> &'static SchedulerInfo {
    scheduler::find(name).expect("the name has been checked")
}

fn find(source: Source<'_>, item: &Item, path: &str, name: &str) -> Result<&'static SchedulerInfo, Error> {
    scheduler::find(name).ok_or_else(|| {
        let help = did_you_mean(name, SCHEDULERS.iter().map(|info| info.name));
        source.error(item.place, path, &format!("no scheduler is called {}{help}", shown(name)))
    })
}
