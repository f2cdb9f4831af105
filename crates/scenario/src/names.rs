//! Names, families of names (`meter{i}`) and the nearest valid name.

use std::collections::HashMap;

use crate::quantity::shown;

/// What a name may consist of.
pub(crate) const NAME_RULE: &str = "letters, digits, \"-\", \"_\" and \".\"";

/// A name with places for the index of a family: `{i}`, `{i/K}` and `{i%K}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Index { divisor: u64, modulus: u64 },
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').map(|at| open + at);
            let piece = close.and_then(|close| index_piece(&rest[open + 1..close]));
            let (Some(close), Some(piece)) = (close, piece) else {
                return Err(format!("{} has braces that are not {{i}}, {{i/K}} or {{i%K}}", shown(text)));
            };
            pieces.push(Piece::Text(rest[..open].to_owned()));
            pieces.push(piece);
            rest = &rest[close + 1..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        if pieces.is_empty() {
            return Err(format!("\"\" is not a name; expected {NAME_RULE}"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if !text.chars().all(plain))) {
            return Err(format!("{} is not a name; expected {NAME_RULE}", shown(text)));
        }
        Ok(Self { pieces })
    }

    /// Whether the name depends on the index.
    pub(crate) fn varies(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Index { .. }))
    }

    /// The name of member `index`.
    pub(crate) fn name(&self, index: u64) -> String {
        let mut name = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Index { divisor, modulus } => name.push_str(&(index / divisor % modulus).to_string()),
            }
        }
        name
    }
}

fn index_piece(inner: &str) -> Option<Piece> {
    let rest = inner.strip_prefix('i')?;
    let number = || rest[1..].parse::<u64>().ok().filter(|n| *n > 0 && !rest[1..].starts_with('+'));
    match rest.chars().next() {
        None => Some(Piece::Index { divisor: 1, modulus: u64::MAX }),
        Some('/') => Some(Piece::Index { divisor: number()?, modulus: u64::MAX }),
        Some('%') => Some(Piece::Index { divisor: 1, modulus: number()? }),
        Some(_) => None,
    }
}

/// Unique names and their indices. The map is only ever asked, never iterated.
pub(crate) struct Names {
    index: HashMap<String, usize>,
    order: Vec<String>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { index: HashMap::new(), order: Vec::new() }
    }

    /// Whether the name was new; it now has the next index.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        if self.index.contains_key(name) {
            return false;
        }
        self.index.insert(name.to_owned(), self.order.len());
        self.order.push(name.to_owned());
        true
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// All names, by index.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> + Clone {
        self.order.iter().map(String::as_str)
    }
}

/// `; did you mean "x"?` if a valid name is near, otherwise nothing.
pub(crate) fn near_miss<'a>(wrong: &str, valid: impl Iterator<Item = &'a str>) -> String {
    nearest(wrong, valid).map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}

/// The same, but if none is near and they are few, the valid names.
pub(crate) fn did_you_mean<'a>(wrong: &str, valid: impl Iterator<Item = &'a str> + Clone) -> String {
    const FEW: usize = 24;
    let near = near_miss(wrong, valid.clone());
    if !near.is_empty() {
        return near;
    }
    let listed: Vec<&str> = valid.take(FEW + 1).collect();
    match listed.len() {
        1..=FEW => format!("; expected one of {}", listed.join(", ")),
        _ => String::new(),
    }
}

/// The first of the names that need the fewest changes, if two letters in five or less.
fn nearest<'a>(wrong: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if wrong.len() > LONGEST {
        return None;
    }
    let lower = wrong.to_lowercase();
    let distance = |name: &str| strsim::osa_distance(&lower, &name.to_lowercase());
    let (changes, name) = valid
        .filter(|name| name.len() <= LONGEST)
        .map(|name| (distance(name), name))
        .min_by_key(|(changes, _)| *changes)?;
    (changes <= (wrong.chars().count().max(name.len()) * 2 / 5).max(1)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_the_members_of_a_family() {
        let name = |text: &str, index| Pattern::parse(text).unwrap().name(index);
        assert_eq!(name("meter{i}", 7), "meter7");
        assert_eq!(name("gw{i/100}-{i%3}", 250), "gw2-1");
        assert_eq!(name("plain", 3), "plain");
        assert!(Pattern::parse("a{i}").unwrap().varies());
        assert!(!Pattern::parse("a").unwrap().varies());
    }

    #[test]
    fn other_braces_and_letters_are_refused() {
        for text in ["", "a b", "a{j}", "a{i", "a}", "{i/0}", "{i%+3}", "{i*2}", "ä", "a/b", "{{i}}"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_nearest_name_is_found_or_the_few_are_listed() {
        let valid = ["window_cap", "initial_window", "segment"];
        let help = |wrong| did_you_mean(wrong, valid.into_iter());
        assert_eq!(help("windowcap"), r#"; did you mean "window_cap"?"#);
        assert_eq!(help("Segmnet"), r#"; did you mean "segment"?"#);
        assert_eq!(help("zzz"), "; expected one of window_cap, initial_window, segment");
        assert_eq!(did_you_mean("x", std::iter::empty()), "");
        let many: Vec<String> = (0..100).map(|i| format!("station-{i}")).collect();
        assert_eq!(did_you_mean("q", many.iter().map(String::as_str)), "");
    }
}
