//! Scenario files: TOML to a validated [`model::Scenario`], with precise errors.

pub mod model;

use model::Scenario;

/// A scenario and the text that identifies it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The validated scenario.
    pub scenario: Scenario,
    /// Canonical JSON of the file after overrides: sorted keys, no white space. Two files that differ only
    /// in layout, comments or order of keys have the same.
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
