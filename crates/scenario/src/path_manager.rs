//! `path_manager = "failover"` or `{ name = "failover", hold = "2 s" }`, checked against the registry.

use anabranch_policy::paths::{PATH_MANAGERS, PathManagerInfo, PathManagerParam, PathManagerUnit, find};

use crate::Error;
use crate::model::{PathManager, Protocol};
use crate::names::did_you_mean;
use crate::quantity::{self, Dimension, shown};
use crate::reader::Table;
use crate::tree::{Entry, Item, Source, Value, clipped};

/// The name that stands for none: the subflows of the file, opened as `transport.join` says.
pub const STATIC: &str = "static";

/// Every name that a scenario may give.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    std::iter::once(STATIC).chain(PATH_MANAGERS.iter().map(|info| info.name))
}

/// The path manager of a connection, if it has one.
pub(crate) fn read(table: &Table<'_>, protocol: Protocol) -> Result<Option<PathManager>, Error> {
    const KEY: &str = "path_manager";
    let Some(item) = table.item(KEY) else { return Ok(None) };
    let (source, path) = (table.source(), table.path_of(KEY));
    if protocol == Protocol::Tcp {
        let what = "tcp has one subflow and none to manage; expected protocol = \"mptcp\"";
        return Err(table.error_at(KEY, what));
    }
    match &item.value {
        Value::Text(name) => {
            let info = known(source, item, &path, name)?;
            Ok(info.map(|info| PathManager { name: info.name.to_owned(), params: info.defaults() }))
        }
        Value::Table(entries) => {
            let name_path = format!("{path}.name");
            let Some(name_item) = item.entry("name") else {
                return Err(source.error(item.place, &name_path, "missing; expected a path manager"));
            };
            let Value::Text(name) = &name_item.value else {
                let what = format!("{}; expected the name of a path manager in quotes", name_item.describe());
                return Err(source.error(name_item.place, &name_path, &what));
            };
            let info = known(source, name_item, &name_path, name)?;
            let mut params = info.map_or_else(Vec::new, PathManagerInfo::defaults);
            for entry in entries.iter().filter(|entry| entry.key != "name") {
                read_param(source, &path, (name, info.map_or(&[], |info| info.params)), entry, &mut params)?;
            }
            Ok(info.map(|info| PathManager { name: info.name.to_owned(), params }))
        }
        _ => Err(table.unexpected(KEY)),
    }
}

/// The entry of the registry; none of [`STATIC`].
fn known(
    source: Source<'_>,
    item: &Item,
    path: &str,
    name: &str,
) -> Result<Option<&'static PathManagerInfo>, Error> {
    if name == STATIC {
        return Ok(None);
    }
    find(name).map(Some).ok_or_else(|| {
        let help = did_you_mean(name, names());
        source.error(item.place, path, &format!("no path manager is called {}{help}", shown(name)))
    })
}

fn read_param(
    source: Source<'_>,
    path: &str,
    (name, known): (&str, &[PathManagerParam]),
    entry: &Entry,
    params: &mut [u64],
) -> Result<(), Error> {
    let path = format!("{path}.{}", clipped(&entry.key));
    let Some(at) = known.iter().position(|param| param.name == entry.key) else {
        let what = if known.is_empty() {
            format!("{name} has no parameters")
        } else {
            let help = did_you_mean(&entry.key, known.iter().map(|param| param.name));
            format!("{name} has no such parameter{help}")
        };
        return Err(source.error(entry.place, &path, &what));
    };
    params[at] = stored(&known[at], &entry.item).map_err(|what| {
        let what = format!("{what}; expected {}", expected(&known[at]));
        source.error(entry.item.place, &path, &what)
    })?;
    Ok(())
}

/// The parameter's integer, or what is wrong.
fn stored(param: &PathManagerParam, item: &Item) -> Result<u64, String> {
    let value = match (param.unit, &item.value) {
        (PathManagerUnit::Time, Value::Text(text)) => {
            quantity::parse(text, &[Dimension::Time]).map_err(|wrong| wrong.what)?.0
        }
        (PathManagerUnit::Bytes, Value::Text(text)) => {
            quantity::parse(text, &[Dimension::Bytes]).map_err(|wrong| wrong.what)?.0
        }
        (
            PathManagerUnit::Count | PathManagerUnit::Permille,
            Value::Integer(number) | Value::Float(number),
        ) => {
            let decimal = number.decimal.map_err(|fault| quantity::fault_text(&number.text, fault))?;
            let scale = if param.unit == PathManagerUnit::Permille { 1000 } else { 1 };
            decimal.times(scale).map_err(|_| format!("{} does not fit", number.text))?
        }
        (PathManagerUnit::Bool, Value::Bool(value)) => u64::from(*value),
        _ => return Err(item.describe()),
    };
    if (param.min..=param.max).contains(&value) {
        return Ok(value);
    }
    Err(match &item.value {
        Value::Text(text) => format!("{} is out of range", shown(text)),
        Value::Integer(number) | Value::Float(number) => format!("{} is out of range", number.text),
        _ => item.describe(),
    })
}

/// What a parameter accepts, for messages and the reference.
pub(crate) fn expected(param: &PathManagerParam) -> String {
    let PathManagerParam { min, max, .. } = *param;
    match param.unit {
        PathManagerUnit::Time => {
            format!("a time from {:?} to {:?}", Dimension::Time.show(min), Dimension::Time.show(max))
        }
        PathManagerUnit::Bytes => {
            format!("a size from {:?} to {:?}", Dimension::Bytes.show(min), Dimension::Bytes.show(max))
        }
        PathManagerUnit::Count => format!("an integer from {min} to {max}"),
        PathManagerUnit::Permille => {
            format!("a number from {} to {} with at most three decimals", min as f64 / 1e3, max as f64 / 1e3)
        }
        PathManagerUnit::Bool => "true or false".to_owned(),
    }
}
