//! Reading run folders.

use std::path::PathBuf;

use anabranch_record::{self as record, RecordedSeries, model::Scope};
use pyo3::{prelude::*, types::PyBytes};

use crate::error::Failure;

/// Verifies a run folder and returns its manifest as JSON text.
#[pyfunction]
pub(crate) fn open_run(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let folder = py.detach(|| record::open(&path)).map_err(Failure::from)?;
    Ok(serde_json::to_string(&folder.manifest).expect("a manifest is JSON"))
}

/// Writes what a host sees of the packets of a run as classic pcap; returns the host and the number of packets.
#[pyfunction]
pub(crate) fn export_packets(
    py: Python<'_>,
    run: PathBuf,
    host: Option<String>,
    to: PathBuf,
) -> PyResult<(String, u64)> {
    let export = || record::export_packets(&record::open(&run)?, host.as_deref(), &to);
    let exported = py.detach(export).map_err(Failure::from)?;
    Ok((exported.host, exported.packets))
}

/// One time series; times and values are little-endian doubles.
#[derive(IntoPyObject)]
pub(crate) struct SeriesColumns<'py> {
    connection: Option<String>,
    subflow: Option<String>,
    link: Option<String>,
    node: Option<String>,
    metric: String,
    times_s: Bound<'py, PyBytes>,
    values: Bound<'py, PyBytes>,
}

/// The time series of a run folder, in the order in which they were written.
#[pyfunction]
pub(crate) fn read_series(py: Python<'_>, path: PathBuf) -> PyResult<Vec<SeriesColumns<'_>>> {
    let series = py.detach(|| record::read_series(&path)).map_err(Failure::from)?;
    Ok(series.into_iter().map(|one| columns(py, one)).collect())
}

fn columns(py: Python<'_>, series: RecordedSeries) -> SeriesColumns<'_> {
    let (connection, subflow, link, node) = match series.scope {
        Scope::Run => (None, None, None, None),
        Scope::Connection(name) => (Some(name), None, None, None),
        Scope::Subflow(connection, name) => (Some(connection), Some(name), None, None),
        Scope::Link(name) => (None, None, Some(name), None),
        Scope::Interface(node, link) => (None, None, Some(link), Some(node)),
        Scope::Node(name) => (None, None, None, Some(name)),
    };
    SeriesColumns {
        connection,
        subflow,
        link,
        node,
        metric: series.metric,
        times_s: doubles(py, &series.times_s),
        values: doubles(py, &series.values),
    }
}

fn doubles<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    PyBytes::new(py, &bytes)
}
