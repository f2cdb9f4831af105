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

use crate::{VERSION, control::Control, custom, error::Failure};

/// A scenario that has passed every check.
#[pyclass(frozen, module = "anabranch._engine")]
pub(crate) struct Scenario {
    loaded: Loaded,
    identity: Identity,
    /// Congestion controls in Python that it names, with a hash of the text of each.
    in_python: Vec<(String, String)>,
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
        let in_python = custom::texts_named_in(&loaded.canonical);
        let texts: String = in_python.iter().map(|(name, text)| format!("+{name}.{text}")).collect();
        let identity = Identity {
            scenario: loaded.scenario.name.clone(),
            title: loaded.scenario.title.clone(),
            canonical: loaded.canonical.clone(),
            overrides,
            engine: "sim".to_owned(),
            version: format!("{VERSION}{texts}"),
        };
        Ok(Self { loaded, identity, in_python })
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

    /// The congestion controls written in Python that it names.
    #[getter]
    fn in_python(&self) -> Vec<&str> {
        self.in_python.iter().map(|(name, _)| name.as_str()).collect()
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
        if custom::texts_named_in(&self.loaded.canonical) != self.in_python {
            return Err(PyValueError::new_err(
                "a congestion control in Python was defined again after the scenario was loaded; load it again",
            ));
        }
        let control = Arc::clone(&control.0);
        let (outcome, error) = py.detach(|| {
            custom::watched(&control, || self.run_detached(seed, &root, force, records, &control))
        });
        match error {
            Some(error) => Err(error),
            None => Ok(outcome?),
        }
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
        if custom::has_failed() {
            return Err(Failure::Interrupted);
        }
        let damaged = staging.damaged.clone();
        let RunFolder { path, .. } = staging.commit(&measurements)?;
        Ok(Outcome { path, reused: false, damaged })
    }
}
