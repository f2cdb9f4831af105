//! What the agent says: a line for every decision, with its reason and numbers.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use serde_json::{Map, Value};

/// One line, as text or as a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    fields: Map<String, Value>,
    text: String,
}

impl Line {
    /// `event` is a word, `of` what it is about: a token, a name.
    pub(super) fn new(event: &str, of: impl ToString) -> Self {
        let of = of.to_string();
        let text = if of.is_empty() { event.to_owned() } else { format!("{of} {event}") };
        let mut fields = Map::new();
        fields.insert("event".to_owned(), event.into());
        if !of.is_empty() {
            fields.insert("of".to_owned(), of.into());
        }
        Self { fields, text }
    }

    /// Adds a field; in text `name=value`.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let shown = match &value {
            Value::String(text) if text.contains(' ') => format!("{text:?}"),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        write!(self.text, " {name}={shown}").expect("a string takes text");
        self.fields.insert(name.to_owned(), value);
        self
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Where lines go: standard output. Who reads none any more does not stop the agent.
pub(super) struct Log {
    pub(super) as_json: bool,
}

impl Log {
    /// `at_ms`: milliseconds since 1970, which JSON lines have and text lines leave to the journal.
    pub(super) fn say(&self, at_ms: u64, line: &Line) {
        let mut out = io::stdout().lock();
        let _ = match self.as_json {
            true => {
                let mut object = line.fields.clone();
                object.insert("at_ms".to_owned(), at_ms.into());
                writeln!(out, "{}", Value::Object(object))
            }
            false => writeln!(out, "{}", line.text()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_it_is_about_then_what_happened_then_the_numbers() {
        let line = Line::new("open", "0000beef")
            .with("dev", "wwan0")
            .with("try", 2)
            .with("error", "No route to host");
        assert_eq!(line.text(), "0000beef open dev=wwan0 try=2 error=\"No route to host\"");
        assert_eq!(Line::new("started", "").text(), "started");
    }
}
