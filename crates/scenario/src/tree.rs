//! The file as a tree of values that know where they stand, before anything is checked.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::Error;
use crate::decimal::{Decimal, Fault};
use crate::quantity::shown;

/// Where a value stands: a byte of the file, or an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    File(usize),
    Override(usize),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value of the file.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(Number),
    Float(Number),
    Bool(bool),
    Date,
    Array(Vec<Item>),
    Table(Vec<Entry>),
}

/// A number and how it was written.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) text: String,
    pub(crate) decimal: Result<Decimal, Fault>,
}

/// A key of a table, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) item: Item,
}

/// What the messages refer to.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    pub(crate) overrides: &'a [(String, String)],
    /// Where files that the scenario names are looked for; `None` for a text that is no file.
    pub(crate) folder: Option<&'a Path>,
}

impl Source<'_> {
    /// An error at a place about the value with that dotted path (empty: the file).
    pub(crate) fn error(&self, place: Place, path: &str, what: &str) -> Error {
        let (at, key) = match place {
            Place::File(offset) => {
                let (line, column) = self.line_and_column(offset);
                (format!("{}:{line}:{column}", self.file), None)
            }
            Place::Override(index) => ("--set".to_owned(), Some(self.overrides[index].0.as_str())),
        };
        let message = match (key, path) {
            (None | Some(""), "") => format!("{at}: {what}"),
            (None, path) => format!("{at}: {path}: {what}"),
            (Some(key), path) if key == path => format!("{at} {}: {what}", clipped(key)),
            (Some(key), path) => format!("{at} {}: {path}: {what}", clipped(key)),
        };
        Error { message }
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        (line, String::from_utf8_lossy(&before[line_start..]).chars().count() + 1)
    }
}

impl Item {
    /// Parses a whole file; the root is a [`Value::Table`].
    pub(crate) fn parse_file(source: Source<'_>) -> Result<Item, Error> {
        let table = DeTable::parse(source.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            source.error(Place::File(offset), "", &format!("not TOML: {message}"))
        })?;
        Ok(Item { place: Place::File(0), value: table_value(table.into_inner(), &|at| Place::File(at)) })
    }

    /// Parses the value of an override: TOML if it is that, otherwise text.
    pub(crate) fn parse_override(text: &str, index: usize) -> Item {
        Self::parse_value(text, Place::Override(index))
    }

    /// Parses the default of a key; no message ever names its place.
    pub(crate) fn parse_default(text: &str) -> Item {
        Self::parse_value(text, Place::File(0))
    }

    fn parse_value(text: &str, place: Place) -> Item {
        let value = match DeValue::parse(text) {
            Ok(value) => convert(value.into_inner(), &|_| place),
            Err(_) => Value::Text(text.to_owned()),
        };
        Item { place, value }
    }

    /// What the value is, for messages.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("{} is text", shown(text)),
            Value::Integer(number) | Value::Float(number) => format!("{} is a number", number.text),
            Value::Bool(value) => format!("{value} is a boolean"),
            Value::Date => "this is a date".to_owned(),
            Value::Array(_) => "this is an array".to_owned(),
            Value::Table(_) => "this is a table".to_owned(),
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Item> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item),
            _ => None,
        }
    }

    pub(crate) fn entry_mut(&mut self, key: &str) -> Option<&mut Item> {
        match &mut self.value {
            Value::Table(entries) => {
                entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.item)
            }
            _ => None,
        }
    }

    /// The text of the key `name`, if this is a table with one.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.entry("name")?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// JSON with sorted keys and no white space; numbers in one form.
    pub(crate) fn canonical(&self, out: &mut String) {
        match &self.value {
            Value::Text(text) => out.push_str(&quoted(text)),
            Value::Integer(number) | Value::Float(number) => match number.decimal {
                Ok(decimal) => out.push_str(&decimal.to_string()),
                Err(_) => out.push_str(&quoted(&number.text)),
            },
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Date => out.push_str("null"),
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    item.canonical(out);
                }
                out.push(']');
            }
            Value::Table(entries) => {
                let mut sorted: Vec<&Entry> = entries.iter().collect();
                sorted.sort_by(|a, b| a.key.cmp(&b.key));
                out.push('{');
                for (index, entry) in sorted.into_iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    out.push_str(&quoted(&entry.key));
                    out.push(':');
                    entry.item.canonical(out);
                }
                out.push('}');
            }
        }
    }
}

/// A key for a message: in one line and not too long.
pub(crate) fn clipped(key: &str) -> String {
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    key.chars().take(64).map(printable).collect()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn table_value(table: DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Value {
    let mut spanned: Vec<_> = table.into_iter().collect();
    spanned.sort_by_key(|(key, _)| key.span().start);
    let entries = spanned.into_iter().map(|(key, item)| {
        let key_place = place(key.span().start);
        let item_place = place(item.span().start);
        let value = convert(item.into_inner(), place);
        Entry {
            key: key.into_inner().into_owned(),
            place: key_place,
            item: Item { place: item_place, value },
        }
    });
    Value::Table(entries.collect())
}

fn convert(value: DeValue<'_>, place: &dyn Fn(usize) -> Place) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => {
            let text = integer.to_string();
            let decimal = match (integer.radix(), i128::from_str_radix(integer.as_str(), integer.radix())) {
                (10, _) => Decimal::parse(integer.as_str()),
                (_, Ok(value)) => Decimal::parse(&value.to_string()),
                (_, Err(_)) => Err(Fault::TooManyDigits),
            };
            Value::Integer(Number { text, decimal })
        }
        DeValue::Float(float) => {
            let decimal = Decimal::parse(float.as_str());
            Value::Float(Number { text: float.to_string(), decimal })
        }
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => {
            let items = array.into_iter().map(|item| {
                let place_of_item = place(item.span().start);
                Item { place: place_of_item, value: convert(item.into_inner(), place) }
            });
            Value::Array(items.collect())
        }
        DeValue::Table(table) => table_value(table, place),
    }
}
