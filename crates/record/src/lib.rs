//! The run folder.
pub mod model;
