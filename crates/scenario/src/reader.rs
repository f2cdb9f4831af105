//! Reads the values of one table by key, with a precise error for everything that is not as the key table says.

use crate::Error;
use crate::keys::{Key, Kind, Need, Section, TIME_MAX};
use crate::model::{Nanos, QueueLimit, When};
use crate::names::{Names, Pattern, did_you_mean, near_miss};
use crate::quantity::{self, Dimension, Wrong, fault_text, shown};
use crate::tree::{Entry, Item, Number, Place, Source, Value, clipped};

/// A table of the file whose keys are all known.
pub(crate) struct Table<'a> {
    source: Source<'a>,
    section: &'static Section,
    path: String,
    place: Place,
    entries: &'a [Entry],
}

/// A value that may be drawn.
pub(crate) enum Draw<'a> {
    /// Always the same.
    Fixed(u64),
    /// From the distribution in this table.
    Table(Table<'a>),
}

/// The value of a key that is required or has a default.
pub(crate) fn given<T>(value: Option<T>) -> T {
    value.expect("the key is required or has a default")
}

/// A name that refers to something, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) pattern: Pattern,
    pub(crate) place: Place,
    pub(crate) path: String,
}

impl Reference {
    /// The index of what member `index` of the family refers to.
    pub(crate) fn resolve(
        &self,
        source: Source<'_>,
        names: &Names,
        noun: &str,
        index: u64,
    ) -> Result<usize, Error> {
        let name = self.pattern.name(index);
        names.find(&name).ok_or_else(|| {
            let help = did_you_mean(&name, names.all());
            source.error(self.place, &self.path, &format!("no {noun} is called {}{help}", shown(&name)))
        })
    }
}

impl<'a> Table<'a> {
    /// The table at `item`; refuses keys that the section does not have.
    pub(crate) fn new(
        source: Source<'a>,
        section: &'static Section,
        path: &str,
        item: &'a Item,
    ) -> Result<Self, Error> {
        let Value::Table(entries) = &item.value else {
            let expected = Kind::Table(section).expected();
            return Err(source.error(item.place, path, &format!("{}; expected {expected}", item.describe())));
        };
        let table = Self { source, section, path: path.to_owned(), place: item.place, entries };
        for entry in entries {
            if section.keys.iter().all(|key| key.name != entry.key) {
                let help = did_you_mean(&entry.key, section.keys.iter().map(|key| key.name));
                let path = table.path_of(&entry.key);
                return Err(source.error(entry.place, &path, &format!("unknown key{help}")));
            }
        }
        Ok(table)
    }

    pub(crate) fn source(&self) -> Source<'a> {
        self.source
    }

    /// Dotted path of the table, or of one of its keys.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { clipped(key) } else { format!("{}.{}", self.path, clipped(key)) }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.item(key).is_some()
    }

    pub(crate) fn item(&self, key: &str) -> Option<&'a Item> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    /// An error about the whole table.
    pub(crate) fn error(&self, what: &str) -> Error {
        self.source.error(self.place, &self.path, what)
    }

    /// An error about one key, at its value if it is there.
    pub(crate) fn error_at(&self, key: &str, what: &str) -> Error {
        let place = self.item(key).map_or(self.place, |item| item.place);
        self.source.error(place, &self.path_of(key), what)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        self.value(name, |key, item| self.string(key, name, item).map(str::to_owned))
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, Error> {
        self.value(name, |key, item| match item.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.wrong(key, name, item, item.describe())),
        })
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<u64>, Error> {
        self.value(name, |key, item| {
            let Kind::Integer { min, max } = key.kind else { unreachable!("{name} is an integer") };
            let value = match &item.value {
                Value::Integer(Number { decimal: Ok(decimal), .. }) => decimal.times(1).ok(),
                _ => None,
            };
            value
                .filter(|value| (min..=max).contains(value))
                .ok_or_else(|| self.wrong(key, name, item, item.describe()))
        })
    }

    /// A quantity in base units.
    pub(crate) fn quantity(&self, name: &str) -> Result<Option<u64>, Error> {
        self.value(name, |key, item| {
            let (Kind::Quantity { dimension, min, max }
            | Kind::OrTable(&Kind::Quantity { dimension, min, max }, _)) = key.kind
            else {
                unreachable!("{name} is a quantity")
            };
            self.bounded(key, name, item, dimension, min, max)
        })
    }

    /// A quantity in base units that fits 32 bits.
    pub(crate) fn small(&self, name: &str) -> Result<Option<u32>, Error> {
        Ok(self.quantity(name)?.map(|value| u32::try_from(value).expect("the key table bounds it")))
    }

    /// A plain number, in thousandths.
    pub(crate) fn thousandths(&self, name: &str) -> Result<Option<u32>, Error> {
        self.value(name, |key, item| {
            let Kind::Thousandths { min, max } = key.kind else { unreachable!("{name} is a plain number") };
            let value = match &item.value {
                Value::Integer(Number { decimal: Ok(decimal), .. })
                | Value::Float(Number { decimal: Ok(decimal), .. }) => decimal.times(1000).ok(),
                _ => None,
            };
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| (min..=max).contains(value))
                .ok_or_else(|| self.wrong(key, name, item, item.describe()))
        })
    }

    /// A quantity, or the table of a distribution.
    pub(crate) fn draw(&self, name: &str) -> Result<Option<Draw<'a>>, Error> {
        let Kind::Draw { dimension, min, max, section } = self.section.key(name).kind else {
            unreachable!("{name} is a quantity or a distribution")
        };
        if let Some(item) = self.item(name)
            && let Value::Table(_) = item.value
        {
            return Table::new(self.source, section, &self.path_of(name), item)
                .map(|table| Some(Draw::Table(table)));
        }
        self.value(name, |key, item| self.bounded(key, name, item, dimension, min, max).map(Draw::Fixed))
    }

    /// A limit; the inner `None` is "unlimited".
    pub(crate) fn limit(&self, name: &str) -> Result<Option<Option<u64>>, Error> {
        self.value(name, |key, item| {
            let Kind::Limit { dimension, min, max } = key.kind else { unreachable!("{name} is a limit") };
            if is_word(item, "unlimited") {
                return Ok(None);
            }
            self.bounded(key, name, item, dimension, min, max).map(Some)
        })
    }

    pub(crate) fn queue(&self, name: &str) -> Result<Option<QueueLimit>, Error> {
        self.value(name, |key, item| {
            if is_word(item, "unlimited") {
                return Ok(QueueLimit::Unlimited);
            }
            let text = self.string(key, name, item)?;
            let (value, dimension) = quantity::parse(text, &[Dimension::Packets, Dimension::Bytes])
                .map_err(|wrong| self.wrong(key, name, item, wrong))?;
            match (dimension, u32::try_from(value)) {
                (_, Ok(0)) => Err(self.wrong(key, name, item, "the least is 1".to_owned())),
                (Dimension::Packets, Ok(packets)) => Ok(QueueLimit::Packets(packets)),
                (Dimension::Packets, Err(_)) => {
                    Err(self.wrong(key, name, item, format!("{} is too large", shown(text))))
                }
                _ => Ok(QueueLimit::Bytes(value)),
            }
        })
    }

    /// A number from 0 to 1.
    pub(crate) fn probability(&self, name: &str) -> Result<Option<f64>, Error> {
        self.value(name, |key, item| {
            let decimal = match &item.value {
                Value::Integer(number) | Value::Float(number) => {
                    number.decimal.map_err(|fault| Wrong::from(fault_text(&number.text, fault)))
                }
                Value::Text(text) => quantity::parse_percent(text),
                _ => Err(Wrong::from(item.describe())),
            };
            let probability = decimal.map_err(|wrong| self.wrong(key, name, item, wrong))?;
            let value = probability.to_f64();
            let fault = match value {
                _ if value < 0.0 => "a probability is not negative",
                _ if value > 1.0 => "a probability is not above 1",
                _ => return Ok(value),
            };
            Err(self.wrong(key, name, item, fault.to_owned()))
        })
    }

    pub(crate) fn one_of(&self, name: &str) -> Result<Option<&'static str>, Error> {
        self.value(name, |key, item| {
            let Kind::OneOf(words) = key.kind else { unreachable!("{name} is a word") };
            let text = self.string(key, name, item)?;
            words.iter().find(|word| **word == text).copied().ok_or_else(|| {
                let what = format!("{} is not known; expected {}", shown(text), key.kind.expected());
                let near = near_miss(text, words.iter().copied());
                self.error_at(name, &format!("{what}{near}"))
            })
        })
    }

    pub(crate) fn when(&self, name: &str) -> Result<Option<When>, Error> {
        self.value(name, |key, item| {
            let text = self.string(key, name, item)?;
            let Some(inner) = text.trim().strip_prefix("uniform(").and_then(|rest| rest.strip_suffix(')'))
            else {
                return self.time(key, name, item, text).map(When::At);
            };
            let Some((from, to)) = inner.split_once(',') else {
                return Err(self.wrong(key, name, item, format!("{} has no comma", shown(text))));
            };
            let (from, to) = (self.time(key, name, item, from)?, self.time(key, name, item, to)?);
            if from >= to {
                return Err(self.wrong(key, name, item, format!("{} is empty", shown(text))));
            }
            Ok(When::Uniform { from, to })
        })
    }

    /// Ascending disjoint intervals, none of them empty.
    pub(crate) fn intervals(&self, name: &str) -> Result<Option<Vec<(Nanos, Nanos)>>, Error> {
        self.value(name, |key, item| {
            let Value::Array(pairs) = &item.value else {
                return Err(self.wrong(key, name, item, item.describe()));
            };
            let mut intervals: Vec<(Nanos, Nanos)> = Vec::with_capacity(pairs.len());
            for pair in pairs {
                let ends = match &pair.value {
                    Value::Array(ends) if ends.len() == 2 => ends,
                    Value::Array(ends) => {
                        return Err(self.wrong(
                            key,
                            name,
                            pair,
                            format!("this pair has {} elements", ends.len()),
                        ));
                    }
                    _ => return Err(self.wrong(key, name, pair, pair.describe())),
                };
                let start = self.time(key, name, &ends[0], self.string(key, name, &ends[0])?)?;
                let end = self.time(key, name, &ends[1], self.string(key, name, &ends[1])?)?;
                let show = |time| Dimension::Time.show(time);
                if start >= end {
                    let what = format!("the interval from {} ends at {}", show(start), show(end));
                    return Err(self.wrong(key, name, pair, what));
                }
                if let Some((_, before)) = intervals.last().filter(|(_, before)| *before > start) {
                    let what = format!(
                        "the interval from {} begins before the one until {} ends",
                        show(start),
                        show(*before)
                    );
                    return Err(self.wrong(key, name, pair, what));
                }
                intervals.push((start, end));
            }
            if intervals.is_empty() {
                return Err(self.wrong(key, name, item, "the array is empty".to_owned()));
            }
            Ok(intervals)
        })
    }

    pub(crate) fn reference(&self, name: &str) -> Result<Option<Reference>, Error> {
        self.value(name, |_, item| self.reference_at(self.path_of(name), item))
    }

    pub(crate) fn references(&self, name: &str) -> Result<Option<Vec<Reference>>, Error> {
        self.value(name, |key, item| {
            let Kind::Names(least) = key.kind else { unreachable!("{name} is an array of names") };
            let Value::Array(items) = &item.value else {
                return Err(self.wrong(key, name, item, item.describe()));
            };
            if items.len() < least {
                return Err(self.wrong(key, name, item, format!("the array has {} elements", items.len())));
            }
            let path = self.path_of(name);
            let one = |(at, item): (usize, &Item)| self.reference_at(format!("{path}.{at}"), item);
            items.iter().enumerate().map(one).collect()
        })
    }

    /// The inner table, if it is there.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Table<'a>>, Error> {
        let (Kind::Table(section) | Kind::TableOrOff(section)) = self.section.key(name).kind else {
            unreachable!("{name} is a table")
        };
        self.item(name).map(|item| Table::new(self.source, section, &self.path_of(name), item)).transpose()
    }

    /// The inner table, if the key holds one and not a value of the other kind.
    pub(crate) fn table_instead(&self, name: &str) -> Result<Option<Table<'a>>, Error> {
        let Kind::OrTable(_, section) = self.section.key(name).kind else {
            unreachable!("{name} may be a table")
        };
        let table = self.item(name).filter(|item| matches!(item.value, Value::Table(_)));
        table.map(|item| Table::new(self.source, section, &self.path_of(name), item)).transpose()
    }

    /// The inner tables of `[[name]]`; their paths go by name, or by index if they have none.
    pub(crate) fn tables(&self, name: &str) -> Result<Vec<Table<'a>>, Error> {
        let key = self.section.key(name);
        let Kind::Tables(section) = key.kind else { unreachable!("{name} is an array of tables") };
        let Some(item) = self.item(name) else { return Ok(Vec::new()) };
        let Value::Array(items) = &item.value else {
            return Err(self.wrong(key, name, item, item.describe()));
        };
        let path = self.path_of(name);
        let one = |(at, item): (usize, &'a Item)| {
            let segment = item.name().map_or_else(|| at.to_string(), clipped);
            Table::new(self.source, section, &format!("{path}.{segment}"), item)
        };
        items.iter().enumerate().map(one).collect()
    }

    /// What `read` makes of the key's value or default; `None` only if the key is optional.
    fn value<T>(
        &self,
        name: &str,
        read: impl Fn(&'static Key, &Item) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let key = self.section.key(name);
        match (self.item(name), &key.need) {
            (Some(item), _) => read(key, item).map(Some),
            (None, Need::Optional(_)) => Ok(None),
            (None, Need::Default(text)) => read(key, &Item::parse_default(text)).map(Some),
            (None, Need::Required) => Err(self.missing(name)),
        }
    }

    /// Whether the key holds just this word.
    pub(crate) fn is_word(&self, name: &str, word: &str) -> bool {
        self.item(name).is_some_and(|item| is_word(item, word))
    }

    /// The error for a value of the wrong type.
    pub(crate) fn unexpected(&self, name: &str) -> Error {
        let item = self.item(name).expect("only asked about a value that is there");
        self.wrong(self.section.key(name), name, item, item.describe())
    }

    /// The error for a key that is not there.
    pub(crate) fn missing(&self, name: &str) -> Error {
        self.error_at(name, &format!("missing; expected {}", self.section.key(name).kind.expected()))
    }

    fn reference_at(&self, path: String, item: &Item) -> Result<Reference, Error> {
        let Value::Text(text) = &item.value else {
            return Err(self.source.error(
                item.place,
                &path,
                &format!("{}; expected a name in quotes", item.describe()),
            ));
        };
        let pattern = Pattern::parse(text).map_err(|what| self.source.error(item.place, &path, &what))?;
        Ok(Reference { pattern, place: item.place, path })
    }

    fn string<'i>(&self, key: &Key, name: &str, item: &'i Item) -> Result<&'i str, Error> {
        let has_unit = !matches!(key.kind, Kind::Text | Kind::Name | Kind::Names(_) | Kind::OneOf(_));
        match &item.value {
            Value::Text(text) => Ok(text),
            Value::Integer(number) | Value::Float(number) if has_unit => {
                let what = match number.decimal {
                    Ok(decimal) if decimal.is_negative() => format!("{} is negative", number.text),
                    Ok(_) => format!("{} has no unit", number.text),
                    Err(fault) => fault_text(&number.text, fault),
                };
                Err(self.wrong(key, name, item, what))
            }
            _ => Err(self.wrong(key, name, item, item.describe())),
        }
    }

    fn time(&self, key: &Key, name: &str, item: &Item, text: &str) -> Result<Nanos, Error> {
        let (value, _) =
            quantity::parse(text, &[Dimension::Time]).map_err(|wrong| self.wrong(key, name, item, wrong))?;
        self.in_range(key, name, item, Dimension::Time, (0, TIME_MAX), value)
    }

    fn bounded(
        &self,
        key: &Key,
        name: &str,
        item: &Item,
        dimension: Dimension,
        min: u64,
        max: u64,
    ) -> Result<u64, Error> {
        let text = self.string(key, name, item)?;
        let (value, _) =
            quantity::parse(text, &[dimension]).map_err(|wrong| self.wrong(key, name, item, wrong))?;
        self.in_range(key, name, item, dimension, (min, max), value)
    }

    fn in_range(
        &self,
        key: &Key,
        name: &str,
        item: &Item,
        dimension: Dimension,
        (min, max): (u64, u64),
        value: u64,
    ) -> Result<u64, Error> {
        let bound = |word: &str, bound: u64| {
            format!("{} is too {word} {}", dimension.show(value), dimension.show(bound))
        };
        if value < min {
            return Err(self.wrong(key, name, item, bound("small; the least is", min)));
        }
        if value > max {
            return Err(self.wrong(key, name, item, bound("large; the most is", max)));
        }
        Ok(value)
    }

    fn wrong(&self, key: &Key, name: &str, item: &Item, wrong: impl Into<Wrong>) -> Error {
        let Wrong { what, suggestion } = wrong.into();
        let help = suggestion.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
        let what = format!("{what}; expected {}{help}", key.kind.expected());
        self.source.error(item.place, &self.path_of(name), &what)
    }
}

fn is_word(item: &Item, word: &str) -> bool {
    matches!(&item.value, Value::Text(text) if text == word)
}
