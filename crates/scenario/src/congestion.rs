//! `congestion = "vegas"` or `{ name = "vegas", alpha = "1 packets" }`, checked against the registry.

use anabranch_cc::{Algorithm, Param, Unit, algorithms, registered};

use crate::Error;
use crate::decimal::{Decimal, Misfit};
use crate::model::{Congestion, Recovery};
use crate::names::did_you_mean;
use crate::quantity::{self, Dimension, shown};
use crate::reader::Table;
use crate::tree::{Entry, Item, Number, Source, Value, clipped};

/// A name that stands for Reno's windows and a recovery: those TCPs differ in nothing else.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The name, which is also that of the recovery.
    pub name: &'static str,
    /// What it stands for.
    pub title: &'static str,
    /// What `transport.recovery` becomes.
    pub recovery: Recovery,
}

/// The algorithm behind every such name.
pub(crate) const NAMED_WINDOWS: &str = "reno";

/// All such names.
pub const NAMED: [Named; 2] = [
    Named {
        name: "tahoe",
        title: "Tahoe (Jacobson 1988): reno with transport.recovery = \"tahoe\"",
        recovery: Recovery::Tahoe,
    },
    Named {
        name: "newreno",
        title: "NewReno (RFC 6582): reno with transport.recovery = \"newreno\"",
        recovery: Recovery::NewReno,
    },
];

impl Named {
    /// What is wrong with a recovery that the scenario asks for by its key.
    pub(crate) fn check(&self, asked: Option<Recovery>) -> Result<(), String> {
        if asked.is_none_or(|recovery| recovery == self.recovery) {
            return Ok(());
        }
        let name = self.name;
        Err(format!(
            "{name} is {NAMED_WINDOWS} with transport.recovery = \"{name}\", which is set to another; expected {NAMED_WINDOWS}"
        ))
    }
}

/// A congestion control as a scenario names it.
#[derive(Clone)]
pub(crate) struct Choice {
    pub(crate) congestion: Congestion,
    /// The name says which recovery, too.
    pub(crate) named: Option<&'static Named>,
}

/// The recovery that the names of a connection's subflows say; `table` is the connection.
pub(crate) fn named_recovery<'a>(
    table: &Table<'_>,
    choices: impl IntoIterator<Item = &'a Choice>,
) -> Result<Option<&'static Named>, Error> {
    let mut choices = choices.into_iter().map(|choice| choice.named);
    let first = choices.next().flatten();
    if choices.all(|named| named == first) {
        return Ok(first);
    }
    let names = NAMED.map(|named| named.name).join(" and ");
    let what = format!(
        "{names} say how the connection recovers, so all its subflows must; expected the same for each of them, or \
         {NAMED_WINDOWS}"
    );
    Err(table.error_at("subflow", &what))
}

/// The congestion control at a key of the table, if there is one.
pub(crate) fn read(table: &Table<'_>, key: &str) -> Result<Option<Choice>, Error> {
    let Some(item) = table.item(key) else { return Ok(None) };
    let (source, path) = (table.source(), table.path_of(key));
    match &item.value {
        Value::Text(name) => {
            let (algorithm, named) = find(source, item, &path, name)?;
            Ok(Some(choice(algorithm, named, default_params(algorithm))))
        }
        Value::Table(entries) => {
            let Some(name_item) = item.entry("name") else {
                return Err(source.error(
                    item.place,
                    &format!("{path}.name"),
                    "missing; expected a congestion control",
                ));
            };
            let Value::Text(name) = &name_item.value else {
                let what =
                    format!("{}; expected the name of a congestion control in quotes", name_item.describe());
                return Err(source.error(name_item.place, &format!("{path}.name"), &what));
            };
            let (algorithm, named) = find(source, name_item, &format!("{path}.name"), name)?;
            let mut params = default_params(algorithm);
            for entry in entries.iter().filter(|entry| entry.key != "name") {
                read_param(source, &path, algorithm.name(), algorithm.params(), entry, &mut params)?;
            }
            Ok(Some(choice(algorithm, named, params)))
        }
        _ => Err(table.unexpected(key)),
    }
}

fn default_params(algorithm: &Algorithm) -> Vec<u32> {
    algorithm.params().iter().map(|param| param.default).collect()
}

fn choice(algorithm: &Algorithm, named: Option<&'static Named>, params: Vec<u32>) -> Choice {
    Choice { congestion: Congestion { name: algorithm.name().to_owned(), params }, named }
}

/// Every name that a scenario may give.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    algorithms().iter().map(Algorithm::name).chain(NAMED.iter().map(|named| named.name))
}

/// The algorithm of a name, and what the name says of recovery.
fn find(
    source: Source<'_>,
    item: &Item,
    path: &str,
    name: &str,
) -> Result<(&'static Algorithm, Option<&'static Named>), Error> {
    let named = NAMED.iter().find(|named| named.name == name);
    let algorithm = anabranch_cc::find(named.map_or(name, |_| NAMED_WINDOWS)).ok_or_else(|| {
        let added = registered();
        let help = did_you_mean(name, names().chain(added.iter().map(|algorithm| algorithm.name())));
        source.error(item.place, path, &format!("no congestion control is called {}{help}", shown(name)))
    })?;
    Ok((algorithm, named))
}

/// Reads one of the `known` parameters of a congestion control or scheduler, the `owner`, into its place.
pub(crate) fn read_param(
    source: Source<'_>,
    path: &str,
    owner: &str,
    known: &[Param],
    entry: &Entry,
    params: &mut [u32],
) -> Result<(), Error> {
    let Some(at) = known.iter().position(|param| param.name == entry.key) else {
        let what = if known.is_empty() {
            format!("{owner} has no parameters")
        } else {
            let help = did_you_mean(&entry.key, known.iter().map(|param| param.name));
            format!("{owner} has no such parameter{help}")
        };
        return Err(source.error(entry.place, &format!("{path}.{}", clipped(&entry.key)), &what));
    };
    let param = &known[at];
    params[at] = stored(param, &entry.item).map_err(|what| {
        let what = format!("{what}; expected {}", expected(param));
        source.error(entry.item.place, &format!("{path}.{}", entry.key), &what)
    })?;
    Ok(())
}

/// The parameter's integer, or what is wrong.
fn stored(param: &Param, item: &Item) -> Result<u32, String> {
    let value = match (param.unit, &item.value) {
        (Unit::Count, Value::Integer(number) | Value::Float(number)) => {
            decimal(number)?.times(1).map_err(|misfit| misfit_text(number, misfit))?
        }
        (Unit::Q10 | Unit::Q16 | Unit::Permille, Value::Integer(number) | Value::Float(number)) => {
            decimal(number)?
                .times_rounded(u64::from(param.unit.scale()))
                .map_err(|misfit| misfit_text(number, misfit))?
        }
        (Unit::Packets, Value::Text(text)) => quantity(text, Dimension::Packets)?,
        (Unit::Micros, Value::Text(text)) => match quantity(text, Dimension::Time)? {
            nanos if nanos % 1_000 == 0 => nanos / 1_000,
            _ => return Err(format!("{} is not a whole number of microseconds", shown(text))),
        },
        (Unit::Bool, Value::Bool(value)) => u64::from(*value),
        (Unit::Choice, Value::Text(text)) => {
            let at = param.choices.iter().position(|choice| choice == text);
            at.ok_or_else(|| format!("{} is not known", shown(text)))? as u64
        }
        _ => return Err(item.describe()),
    };
    match u32::try_from(value) {
        Ok(value) if (param.min..=param.max).contains(&value) => Ok(value),
        _ => Err(match &item.value {
            Value::Integer(number) | Value::Float(number) => format!("{} is out of range", number.text),
            Value::Text(text) => format!("{} is out of range", shown(text)),
            _ => item.describe(),
        }),
    }
}

fn quantity(text: &str, dimension: Dimension) -> Result<u64, String> {
    quantity::parse(text, &[dimension]).map(|(value, _)| value).map_err(|wrong| wrong.what)
}

fn decimal(number: &Number) -> Result<Decimal, String> {
    number.decimal.map_err(|fault| quantity::fault_text(&number.text, fault))
}

fn misfit_text(number: &Number, misfit: Misfit) -> String {
    let fault = match misfit {
        Misfit::Negative => "negative",
        Misfit::NotWhole => "not whole",
        Misfit::TooLarge => "too large",
    };
    format!("{} is {fault}", number.text)
}

/// What a parameter accepts, for messages and the reference.
pub(crate) fn expected(param: &Param) -> String {
    let real = |stored: u32| f64::from(stored) / f64::from(param.unit.scale());
    let (min, max) = (u64::from(param.min), u64::from(param.max));
    let between = |dimension: Dimension, factor: u64| {
        format!(
            "{} from {:?} to {:?}",
            dimension.noun(),
            dimension.show(min * factor),
            dimension.show(max * factor)
        )
    };
    match param.unit {
        Unit::Count => format!("an integer from {min} to {max}"),
        Unit::Q10 | Unit::Q16 | Unit::Permille => {
            format!("a number from {} to {}", real(param.min), real(param.max))
        }
        Unit::Packets => between(Dimension::Packets, 1),
        Unit::Micros => between(Dimension::Time, 1_000),
        Unit::Bool => "true or false".to_owned(),
        Unit::Choice => format!("one of {}", param.choices.join(", ")),
    }
}
