//! `run.json`: what the run was, and what its other files must look like.

use std::{collections::BTreeMap, fs::File, io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{Identity, model::Environment};

/// Version of the run folder's layout.
pub const FORMAT: u32 = 1;

/// The manifest of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout, [`FORMAT`].
    pub format: u32,
    /// Version of the engine.
    pub version: String,
    /// `sim` or `kernel`.
    pub engine: String,
    /// Scenario name.
    pub scenario: String,
    /// One line for tables and plots.
    pub title: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// The overrides, by key.
    pub overrides: BTreeMap<String, String>,
    /// The run key, see [`Identity::key`].
    pub key: String,
    /// The canonical scenario, after overrides.
    pub canonical: serde_json::Value,
    /// The other files, by name.
    pub files: BTreeMap<String, FileEntry>,
    /// On what and how well it was measured, if that could change the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

/// What a file of the folder must look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 of the content, 64 hexadecimal digits.
    pub blake3: String,
}

impl FileEntry {
    pub(crate) fn of(content: &[u8]) -> Self {
        Self { bytes: content.len() as u64, blake3: blake3::hash(content).to_hex().to_string() }
    }

    /// Of a file, which may be larger than memory.
    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(Self { bytes: hasher.count(), blake3: hasher.finalize().to_hex().to_string() })
    }
}

impl Manifest {
    /// Whether the figures count.
    pub fn is_valid(&self) -> bool {
        self.environment.as_ref().is_none_or(|environment| environment.invalid.is_empty())
    }

    pub(crate) fn new(
        identity: &Identity,
        seed: u64,
        files: BTreeMap<String, FileEntry>,
        environment: Option<Environment>,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            format: FORMAT,
            version: identity.version.clone(),
            engine: identity.engine.clone(),
            scenario: identity.scenario.clone(),
            title: identity.title.clone(),
            seed,
            overrides: identity.overrides.clone(),
            key: identity.key(),
            canonical: serde_json::from_str(&identity.canonical)?,
            files,
            environment,
        })
    }
}
