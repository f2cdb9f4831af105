//! What makes two runs the same run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{Error, folder::is_file_name};

/// Number of hexadecimal digits of the key that name the folder.
const FOLDER_DIGITS: usize = 12;

/// Everything a run's result depends on, except the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Scenario name: letters, digits, `-`, `_`, `.`.
    pub scenario: String,
    /// One line for tables and plots.
    pub title: String,
    /// Canonical JSON of the scenario after overrides.
    pub canonical: String,
    /// The overrides, by key.
    pub overrides: BTreeMap<String, String>,
    /// `sim` or `kernel`.
    pub engine: String,
    /// Version of the engine; two that differ may give different results.
    pub version: String,
}

impl Identity {
    /// The run key: BLAKE3 of all that the result depends on, as 64 hexadecimal digits.
    pub fn key(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        part(&self.engine);
        part(&self.version);
        part(&self.canonical);
        for (key, value) in &self.overrides {
            part(key);
            part(value);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Where the run with `seed` lies under `root`.
    ///
    /// # Errors
    /// [`Error::Name`] if the scenario's name cannot be the name of a folder.
    pub fn folder(&self, root: &Path, seed: u64) -> Result<PathBuf, Error> {
        if !is_file_name(&self.scenario) {
            return Err(Error::Name(self.scenario.clone()));
        }
        Ok(root.join(&self.scenario).join(&self.key()[..FOLDER_DIGITS]).join(format!("seed-{seed}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            scenario: "s".into(),
            title: "t".into(),
            canonical: "{}".into(),
            overrides: BTreeMap::new(),
            engine: "sim".into(),
            version: "1".into(),
        }
    }

    #[test]
    fn key_depends_on_everything_that_matters_and_on_the_boundaries() {
        let base = identity();
        let mut others = vec![
            Identity { canonical: "{ }".into(), ..base.clone() },
            Identity { engine: "kernel".into(), ..base.clone() },
            Identity { version: "2".into(), ..base.clone() },
            Identity { engine: "sim1".into(), version: "".into(), ..base.clone() },
            Identity { overrides: BTreeMap::from([("a".into(), "b".into())]), ..base.clone() },
            Identity { overrides: BTreeMap::from([("ab".into(), "".into())]), ..base.clone() },
        ];
        others.push(base.clone());
        let mut keys: Vec<String> = others.iter().map(Identity::key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), others.len());
        assert_eq!(Identity { title: "u".into(), ..base.clone() }.key(), base.key());
    }

    #[test]
    fn folder_names_cannot_leave_the_root() {
        for bad in ["", ".", "..", "a/b", "ü", "a b", ".hidden"] {
            let bad = Identity { scenario: bad.into(), ..identity() };
            assert!(matches!(bad.folder(Path::new("runs"), 1), Err(Error::Name(_))), "{bad:?}");
        }
        let folder = identity().folder(Path::new("runs"), 7).unwrap();
        assert_eq!(folder.file_name().unwrap(), "seed-7");
        assert!(folder.starts_with("runs/s"));
    }
}
