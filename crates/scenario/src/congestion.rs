//! `congestion = "vegas"` or `{ name = "vegas", alpha = "1 packets" }`, checked against the registry.

use anabranch_cc::{Algorithm, Param, Unit, algorithms, registered};

use crate::Error;
use crate::decimal::{Decimal, Misfit};
use crate::model::Congestion;
use crate::names::did_you_mean;
use crate::quantity::{self, Dimension, shown};
use crate::reader::Table;
use crate::tree::{Entry, Item, Number, Source, Value, clipped};

/// The congestion control at a key of the table, if there is one.
pub(crate) fn read(table: &Table<'_>, key: &str) -> Result<Option<Congestion>, Error> {
    let Some(item) = table.item(key) else { return Ok(None) };
    let (source, path) = (table.source(), table.path_of(key));
    match &item.value {
        Value::Text(name) => {
            let algorithm = find(source, item, &path, name)?;
            Ok(Some(with_params(algorithm, default_params(algorithm))))
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
            let algorithm = find(source, name_item, &format!("{path}.name"), name)?;
            let mut params = default_params(algorithm);
            for entry in entries.iter().filter(|entry| entry.key != "name") {
                read_param(source, &path, algorithm, entry, &mut params)?;
            }
            Ok(Some(with_params(algorithm, params)))
        }
        _ => Err(table.unexpected(key)),
    }
}

fn default_params(algorithm: &Algorithm) -> Vec<u32> {
    algorithm.params().iter().map(|param| param.default).collect()
}

fn with_params(algorithm: &Algorithm, params: Vec<u32>) -> Congestion {
    Congestion { name: algorithm.name().to_owned(), params }
}

fn find(source: Source<'_>, item: &Item, path: &str, name: &str) -> Result<&'static Algorithm, Error> {
    anabranch_cc::find(name).ok_or_else(|| {
        let known = algorithms().iter().chain(registered()).map(Algorithm::name);
        let help = did_you_mean(name, known);
        source.error(item.place, path, &format!("no congestion control is called {}{help}", shown(name)))
    })
}

fn read_param(
    source: Source<'_>,
    path: &str,
    algorithm: &Algorithm,
    entry: &Entry,
    params: &mut [u32],
) -> Result<(), Error> {
    let Some(at) = algorithm.params().iter().position(|param| param.name == entry.key) else {
        let what = if algorithm.params().is_empty() {
            format!("{} has no parameters", algorithm.name())
        } else {
            let help = did_you_mean(&entry.key, algorithm.params().iter().map(|param| param.name));
            format!("{} has no such parameter{help}", algorithm.name())
        };
        return Err(source.error(entry.place, &format!("{path}.{}", clipped(&entry.key)), &what));
    };
    let param = &algorithm.params()[at];
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
            decimal(number)?.times_rounded(scale(param.unit)).map_err(|misfit| misfit_text(number, misfit))?
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

fn scale(unit: Unit) -> u64 {
    match unit {
        Unit::Q10 => 1 << 10,
        Unit::Q16 => 1 << 16,
        Unit::Permille => 1000,
        Unit::Count | Unit::Packets | Unit::Micros | Unit::Bool | Unit::Choice => 1,
    }
}

/// What a parameter accepts, for messages and the reference.
pub(crate) fn expected(param: &Param) -> String {
    let real = |stored: u32| f64::from(stored) / scale(param.unit) as f64;
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
