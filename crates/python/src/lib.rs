//! The extension module `anabranch._engine`: it converts, and nothing else.
//!
//! Its Python side is described in `python/anabranch/_engine.pyi`; a test compares the two.

mod catalogue;
mod control;
mod custom;
mod error;
mod policies;
mod runs;
mod scenario;

use pyo3::prelude::*;

/// Version of the engine: the package's, and a hash of the sources that decide results.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+src.", env!("ANABRANCH_SOURCES"));

#[pymodule]
mod _engine {
    #[pymodule_export]
    use crate::catalogue::{list_algorithms, list_links, list_radios};
    #[pymodule_export]
    use crate::control::Control;
    #[pymodule_export]
    use crate::custom::{Call, Subflow, register_algorithm};
    #[pymodule_export]
    use crate::error::{AnabranchError, Cancelled, OutputError, RunError, RunFolderError, ScenarioError};
    #[pymodule_export]
    use crate::policies::{list_path_managers, list_schedulers};
    #[pymodule_export]
    use crate::runs::{export_packets, open_run, read_series};
    #[pymodule_export]
    use crate::scenario::Scenario;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", crate::VERSION)
    }
}
