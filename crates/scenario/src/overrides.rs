//! `--set key=value`: changes of the tree before it is read.

use crate::Error;
use crate::names::near_miss;
use crate::quantity::shown;
use crate::tree::{Entry, Item, Place, Source, Value};

/// Deeper than any key of a scenario.
const DEPTH_MAX: usize = 16;

/// Applies every override in order.
pub(crate) fn apply(root: &mut Item, source: Source<'_>) -> Result<(), Error> {
    for (index, (key, text)) in source.overrides.iter().enumerate() {
        let wrong = |what: String| source.error(Place::Override(index), key, &what);
        let segments = split(key).map_err(wrong)?;
        set(root, &segments, &Item::parse_override(text, index)).map_err(wrong)?;
    }
    Ok(())
}

/// Splits `link."a.b".rate` at the dots outside of quotes.
fn split(key: &str) -> Result<Vec<String>, String> {
    let mut segments = vec![String::new()];
    let mut quoted = false;
    for c in key.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => segments.push(String::new()),
            c => segments.last_mut().expect("starts with one").push(c),
        }
    }
    if segments.len() > DEPTH_MAX {
        return Err(format!("not a key of a scenario; expected at most {DEPTH_MAX} names with dots between"));
    }
    if quoted || segments.iter().any(String::is_empty) {
        return Err("not a key; expected names with dots between, such as link.r1-r2.rate".to_owned());
    }
    Ok(segments)
}

fn set(target: &mut Item, segments: &[String], new: &Item) -> Result<(), String> {
    let Some((segment, rest)) = segments.split_first() else {
        *target = new.clone();
        return Ok(());
    };
    match &mut target.value {
        Value::Table(entries) => {
            let at = entries.iter().position(|entry| entry.key == *segment).unwrap_or_else(|| {
                let item = Item { place: new.place, value: Value::Table(Vec::new()) };
                entries.push(Entry { key: segment.clone(), place: new.place, item });
                entries.len() - 1
            });
            let entry = &mut entries[at];
            if rest.is_empty() {
                entry.place = new.place;
            } else if let ("congestion" | "path_manager", Value::Text(name)) =
                (segment.as_str(), &entry.item.value)
            {
                entry.item.value = named_table(name, entry.item.place);
            }
            set(&mut entry.item, rest, new)
        }
        Value::Array(items) if segment == "*" => items.iter_mut().try_for_each(|item| set(item, rest, new)),
        Value::Array(items) => set(element(items, segment)?, rest, new),
        _ => Err(format!("{}, which has no key {}", target.describe(), shown(segment))),
    }
}

/// `congestion = "vegas"` written out, so that `congestion.alpha` can be set.
fn named_table(name: &str, place: Place) -> Value {
    let item = Item { place, value: Value::Text(name.to_owned()) };
    Value::Table(vec![Entry { key: "name".to_owned(), place, item }])
}

/// The element of that name or, if none has it, that index from 0.
fn element<'a>(items: &'a mut [Item], segment: &str) -> Result<&'a mut Item, String> {
    let count = items.len();
    let by_name = items.iter().position(|item| item.name() == Some(segment));
    let at = by_name.or_else(|| segment.parse::<usize>().ok().filter(|index| *index < count));
    match at {
        Some(at) => Ok(&mut items[at]),
        None => {
            let names = items.iter().filter_map(Item::name);
            let help = near_miss(segment, names);
            Err(format!(
                "no element is called {}; expected a name, an index below {count} or *{help}",
                shown(segment)
            ))
        }
    }
}
