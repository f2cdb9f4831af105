//! Watching and stopping a run from another thread.

use std::sync::{Arc, atomic::Ordering};

use pyo3::prelude::*;

/// Watches and stops a run.
#[pyclass(frozen, module = "anabranch._engine")]
pub(crate) struct Control(pub(crate) Arc<anabranch_sim::Control>);

#[pymethods]
impl Control {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Makes the run raise Cancelled soon.
    fn cancel(&self) {
        self.0.cancel.store(true, Ordering::Relaxed);
    }

    /// Simulated time reached, in seconds.
    #[getter]
    fn reached_s(&self) -> f64 {
        self.0.reached.load(Ordering::Relaxed) as f64 / 1e9
    }
}
