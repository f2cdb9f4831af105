//! Rate traces: files beside the scenario, in the format of mahimahi.
//!
//! A scenario names a trace by its path from the scenario file's folder. What identifies a run is the content: in the
//! canonical form the path gives way to the content's hash.

use std::path::Path;

use crate::model::Trace;
use crate::quantity::shown;
use crate::reader::Table;
use crate::tree::{Item, Value};
use crate::{Error, files};

/// The traces of a scenario, each once.
#[derive(Default)]
pub(crate) struct Traces {
    read: Vec<Recording>,
}

/// One file.
struct Recording {
    path: String,
    hash: String,
    trace: Trace,
}

impl Traces {
    /// The index of the trace that the table names, if it does.
    pub(crate) fn index(&mut self, table: &Table<'_>) -> Result<Option<usize>, Error> {
        let Some(path) = table.text("trace")? else { return Ok(None) };
        if let Some(at) = self.read.iter().position(|read| read.path == path) {
            return Ok(Some(at));
        }
        let Some(folder) = table.source().folder else {
            let what = "there is no folder to find it in; expected a scenario that is read from a file";
            return Err(table.error_at("trace", what));
        };
        let read = read_file(folder, &path).map_err(|what| table.error_at("trace", &what))?;
        self.read.push(read);
        Ok(Some(self.read.len() - 1))
    }

    /// Mean rate of a trace.
    pub(crate) fn mean_bps(&self, index: usize) -> u64 {
        self.read[index].trace.mean_bps()
    }

    /// Puts in the tree the hashes of traces in the place of their paths.
    pub(crate) fn identify(&self, root: &mut Item) {
        let Some(Value::Array(links)) = root.entry_mut("link").map(|item| &mut item.value) else { return };
        for link in links {
            self.identify_at(link);
            if let Some(reverse) = link.entry_mut("reverse") {
                self.identify_at(reverse);
            }
        }
    }

    fn identify_at(&self, item: &mut Item) {
        let Some(Value::Text(path)) = item.entry_mut("trace").map(|item| &mut item.value) else { return };
        if let Some(read) = self.read.iter().find(|read| read.path == *path) {
            *path = format!("blake3:{}", read.hash);
        }
    }

    /// The traces, by index.
    pub(crate) fn into_model(self) -> Vec<Trace> {
        self.read.into_iter().map(|read| read.trace).collect()
    }
}

/// Reads a trace; an error says what is wrong with the file and what was expected.
fn read_file(folder: &Path, path: &str) -> Result<Recording, String> {
    let (text, hash) = files::read(folder, path, ("a rate trace", "one time per line"))?;
    let trace = parse(&text).map_err(|(line, what)| format!("{}: line {line}: {what}", shown(path)))?;
    Ok(Recording { path: path.to_owned(), hash, trace })
}

/// The times of a trace, or the line that is wrong and how.
fn parse(text: &str) -> Result<Trace, (usize, String)> {
    let mut times: Vec<u32> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: String| (at + 1, what);
        let digits = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        let time = line.parse().ok().filter(|_| digits);
        let time =
            time.ok_or_else(|| wrong(format!("{} is no time; expected whole milliseconds", shown(line))))?;
        if let Some(&before) = times.last().filter(|&&before| time < before) {
            return Err(wrong(format!("{time} comes after {before}; expected times that do not decrease")));
        }
        times.push(time);
    }
    match times.last() {
        None => Err((1, "the trace is empty; expected one time per line".to_owned())),
        Some(0) => Err((times.len(), "the trace has no length; expected a last time above 0".to_owned())),
        Some(_) => Ok(Trace { opportunities_ms: times.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_one_time_per_line_and_a_mean() {
        let trace = parse("0\n2\n2\n5\n").expect("it is valid");
        assert_eq!(*trace.opportunities_ms, [0, 2, 2, 5]);
        assert_eq!((trace.period(), trace.mean_bps()), (5_000_000, 4 * 12_000 * 200));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text| parse(text).expect_err("it is wrong");
        let message = |line, text: &str| (line, text.to_owned());
        assert_eq!(wrong(""), message(1, "the trace is empty; expected one time per line"));
        assert_eq!(wrong("0\n0\n"), message(2, "the trace has no length; expected a last time above 0"));
        assert_eq!(wrong("3\n\n4\n"), message(2, "\"\" is no time; expected whole milliseconds"));
        assert_eq!(wrong("3\n2\n"), message(2, "2 comes after 3; expected times that do not decrease"));
        for text in ["x", "+3", "1.5", "-1", "99999999999"] {
            assert_eq!(wrong(text), message(1, &format!("{text:?} is no time; expected whole milliseconds")));
        }
    }
}
