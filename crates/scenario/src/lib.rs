//! Scenario files: TOML to a validated [`model::Scenario`], with precise errors.
//!
//! The text becomes a tree of values that know their place, overrides change the tree, and a reader per
//! section turns it into the model. What the keys are is said once, in `keys/`: reading, messages,
//! [`schema()`] and [`reference()`] follow from it. Numbers are exact decimals all the way.

mod agents;
mod congestion;
mod decimal;
mod document;
mod events;
mod expectations;
mod files;
mod flows;
mod interfaces;
mod keys;
mod medium;
mod mesh;
pub mod model;
mod names;
mod overrides;
mod path_manager;
mod quantity;
mod reader;
mod reference;
mod relays;
mod routes;
mod scheduler;
mod schema;
mod shaping;
mod topology;
mod traces;
mod traffic;
mod transfers;
mod transport;
mod tree;
pub mod workload;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use model::Scenario;

pub use congestion::{NAMED, Named};
pub use path_manager::STATIC as STATIC_PATH_MANAGER;
pub use reference::reference;
pub use schema::schema;

/// A scenario and the text that identifies it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The validated scenario.
    pub scenario: Scenario,
    /// Canonical JSON of the file after overrides: sorted keys, no white space. Two files that differ only
    /// in layout, comments or order of keys have the same. Rate traces and configurations of agents are in it by the hash of their
    /// content.
    pub canonical: String,
}

/// Why a scenario was refused: one clear message, ready to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Everything the user needs: file, line, key, what was expected, the nearest valid name.
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The largest scenario file, in bytes.
pub const FILE_BYTES_MAX: usize = 16_000_000;

/// Reads a scenario from the text of a file.
///
/// `file` is the name that messages show. `overrides` are pairs of a dotted key (`link.r1-r2.rate`; elements
/// of arrays by name, by index from 0, or `*` for all) and a value, which is TOML or else plain text. A text has no
/// folder, so it cannot name rate traces.
///
/// # Errors
/// The first thing that is wrong, as `file:line:column: key: what is wrong; what was expected`, or
/// `--set key: …` if an override is to blame.
pub fn load(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Loaded, Error> {
    load_limited(text, file, overrides, keys::FAMILY_MAX)
}

/// [`load`] for files of strangers: no family (`count`) may have more members than `family_limit`.
///
/// # Errors
/// As [`load`].
pub fn load_limited(
    text: &str,
    file: &str,
    overrides: &[(String, String)],
    family_limit: u64,
) -> Result<Loaded, Error> {
    load_in(None, text, file, overrides, family_limit)
}

fn load_in(
    folder: Option<&Path>,
    text: &str,
    file: &str,
    overrides: &[(String, String)],
    family_limit: u64,
) -> Result<Loaded, Error> {
    let refuse = |what: &str| Err(Error { message: format!("{file}: {what}") });
    if text.len() > FILE_BYTES_MAX {
        return refuse(&format!("larger than {} MB, the most for a scenario", FILE_BYTES_MAX / 1_000_000));
    }
    if text.trim().is_empty() {
        return refuse("empty; expected a scenario with at least name, duration, [[node]] and a flow");
    }
    document::load(tree::Source { file, text, overrides, folder }, family_limit)
}

/// Reads a scenario file, and the rate traces that it names by their paths from its folder.
///
/// # Errors
/// As [`load`], or what is wrong with the file itself: missing, unreadable, a directory, too large, not UTF-8.
pub fn load_path(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Loaded, Error> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let refuse = |what: &str| Error { message: format!("{file}: {what}") };
    if path.is_dir() {
        return Err(refuse("a directory; expected a scenario file"));
    }
    let cannot_read = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => refuse("no such file"),
        std::io::ErrorKind::PermissionDenied => refuse("no permission to read"),
        _ => refuse(&format!("cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let one_too_many = FILE_BYTES_MAX as u64 + 1;
    File::open(path).and_then(|file| file.take(one_too_many).read_to_end(&mut bytes)).map_err(cannot_read)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(refuse(&format!(
            "larger than {} MB, the most for a scenario",
            FILE_BYTES_MAX / 1_000_000
        )));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => {
            let folder = path.parent().unwrap_or(Path::new(""));
            load_in(Some(folder), text, &file, overrides, keys::FAMILY_MAX)
        }
        Err(error) => {
            Err(refuse(&format!("not UTF-8 at byte {}; expected a text file", error.valid_up_to())))
        }
    }
}
