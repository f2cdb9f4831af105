//! The run folder: what a run leaves on disk, and how it is found again.
//!
//! A run folder holds
//!
//! | file             | content                                                                |
//! |------------------|------------------------------------------------------------------------|
//! | `run.json`       | the manifest: identity of the run, size and hash of the other files    |
//! | `summary.json`   | the figures, nested by what they are about                             |
//! | `summary.csv`    | the same figures in long form                                          |
//! | `series.parquet` | the time series in long form                                           |
//! | further files    | those that the engine was asked for: `packets.pcapng` and others       |
//!
//! and lies at `<root>/<scenario>/<key>/seed-<n>`. Equal identity, seed and measurements give equal bytes on
//! every machine: no file holds a time of day, a host name or a path. A folder is written aside, its manifest
//! last, and renamed at the end, so that a half-written one is never taken for a complete one.

mod error;
mod folder;
mod identity;
mod manifest;
pub mod memory;
pub mod metrics;
pub mod model;
mod pcap;
pub mod pcapng;
pub mod quantile;
mod series;
mod summary;
pub mod times;

pub use error::Error;
pub use folder::{Begin, RunFolder, Staging, begin, begin_with, open};
pub use identity::Identity;
pub use manifest::{FORMAT, FileEntry, Manifest};
pub use pcap::{Exported, export_packets};
pub use series::{RecordedSeries, read_series};
