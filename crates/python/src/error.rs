//! The one map from what can go wrong in Rust to Python exceptions.

use anabranch_record as record;
use pyo3::{PyErr, create_exception, exceptions::PyException};

create_exception!(anabranch, AnabranchError, PyException, "Something that a user of anabranch can meet.");
create_exception!(anabranch, ScenarioError, AnabranchError, "A scenario was refused.");
create_exception!(anabranch, OutputError, AnabranchError, "Runs cannot be written to the place given.");
create_exception!(anabranch, RunFolderError, AnabranchError, "A folder holds no run, or a damaged one.");
create_exception!(anabranch, RunError, AnabranchError, "A run failed; nothing of it is left.");
create_exception!(anabranch, Cancelled, AnabranchError, "The run was cancelled; nothing of it is left.");

/// What can go wrong.
pub(crate) enum Failure {
    Scenario(anabranch_scenario::Error),
    Record(record::Error),
    Interrupted,
}

impl From<anabranch_scenario::Error> for Failure {
    fn from(error: anabranch_scenario::Error) -> Self {
        Failure::Scenario(error)
    }
}

impl From<record::Error> for Failure {
    fn from(error: record::Error) -> Self {
        Failure::Record(error)
    }
}

impl From<anabranch_sim::RecordError> for Failure {
    fn from(error: anabranch_sim::RecordError) -> Self {
        match error {
            anabranch_sim::RecordError::Interrupted => Failure::Interrupted,
            anabranch_sim::RecordError::Write { path, source } => {
                Failure::Record(record::Error::Write { path, source })
            }
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Scenario(error) => ScenarioError::new_err(error.message),
            Failure::Record(error) => {
                let message = error.to_string();
                match error {
                    record::Error::Unwritable { .. } | record::Error::Name(_) => {
                        OutputError::new_err(message)
                    }
                    record::Error::NotARun(_)
                    | record::Error::Damaged { .. }
                    | record::Error::Export { .. } => RunFolderError::new_err(message),
                    record::Error::Write { .. } | record::Error::Measurements(_) => {
                        RunError::new_err(message)
                    }
                }
            }
            Failure::Interrupted => Cancelled::new_err("the run was cancelled"),
        }
    }
}
