//! Loading and running scenarios.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anabranch_record::{Begin, Identity, RunFolder, begin_with};
use anabranch_scenario::{Loaded, load_path};
use anabranch_sim as sim;
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{VERSION, control::Control, error::Failure};

/// A scenario that has passed every check.
#[pyclass(frozen, module = "anabranch._engine")]
pub(crate) struct Scenario {
    loaded: Loaded,
    identity: Identity,
}

/// How a run ended.
#[derive(IntoPyObject)]
pub(crate) struct Outcome {
    path: PathBuf,
    reused: bool,
    damaged: Option<String>,
}

#[pymethods]
impl Scenario {
    /// Loads a scenario file and checks it. A later override of the same key replaces an earlier one.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let overrides: BTreeMap<String, String> = overrides.into_iter().collect();
        let pairs: Vec<(String, String)> = overrides.clone().into_iter().collect();
        let loaded = py.detach(|| load_path(Path::new(&path), &pairs)).map_err(Failure::from)?;
        let identity = Identity {
            scenario: loaded.scenario.name.clone(),
            title: loaded.scenario.title.clone(),
            canonical: loaded.canonical.clone(),
            overrides,
            engine: "sim".to_owned(),
            version: VERSION.to_owned(),
        };
        Ok(Self { loaded, identity })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.loaded.scenario.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.loaded.scenario.title
    }

    #[getter]
    fn description(&self) -> &str {
        &self.loaded.scenario.description
    }

    #[getter]
    fn source(&self) -> &str {
        &self.loaded.scenario.source
    }

    #[getter]
    fn canonical(&self) -> &str {
        &self.loaded.canonical
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.loaded.scenario.duration as f64 / 1e9
    }

    /// How many of each kind of thing there are.
    #[getter]
    fn counts(&self) -> Vec<(&'static str, usize)> {
        let scenario = &self.loaded.scenario;
        vec![
            ("nodes", scenario.nodes.len()),
            ("links", scenario.links.len()),
            ("media", scenario.media.len()),
            ("connections", scenario.connections.len()),
            ("subflows", scenario.connections.iter().map(|connection| connection.subflows.len()).sum()),
            ("datagrams", scenario.datagrams.len()),
            ("changes", scenario.changes.len()),
        ]
    }

    /// The run key, without which two runs are not the same run.
    #[getter]
    fn key(&self) -> String {
        self.identity.key()
    }

    /// Runs the scenario with a seed in the simulator, or finds the run under `root`; `files` names those that it is to
    /// have beside its figures.
    fn run(
        &self,
        py: Python<'_>,
        seed: u64,
        root: PathBuf,
        force: bool,
        files: Vec<String>,
        control: &Control,
    ) -> PyResult<Outcome> {
        let records = sim::Records::of_files(&files).map_err(PyValueError::new_err)?;
        let control = Arc::clone(&control.0);
        Ok(py.detach(|| self.run_detached(seed, &root, force, records, &control))?)
    }
}

impl Scenario {
    fn run_detached(
        &self,
        seed: u64,
        root: &Path,
        force: bool,
        records: sim::Records,
        control: &sim::Control,
    ) -> Result<Outcome, Failure> {
        let staging = match begin_with(root, &self.identity, seed, force, &records.files())? {
            Begin::Complete(RunFolder { path, .. }) => {
                return Ok(Outcome { path, reused: true, damaged: None });
            }
            Begin::Staged(staging) => staging,
        };
        let measurements = sim::record(&self.loaded.scenario, seed, control, staging.aside(), records)?;
        let damaged = staging.damaged.clone();
        let RunFolder { path, .. } = staging.commit(&measurements)?;
        Ok(Outcome { path, reused: false, damaged })
    }
}
