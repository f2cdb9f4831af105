//! `series.parquet`: the time series of a run in long form.
//!
//! Columns: `time_s`, `connection`, `subflow`, `link`, `node` (null where they do not apply), `metric`, `value`; the
//! column `node` is there if a series is of a node.
//! Rows are ordered by series, then by time. The file's metadata has unit and meaning of each metric. It holds nothing
//! that depends on the machine or the build.

use std::{collections::BTreeMap, fs::File, path::Path, sync::Arc};

use parquet::{
    basic::Compression,
    column::reader::ColumnReader,
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        reader::{FileReader, RowGroupReader, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::Type},
};

use crate::{
    Error,
    metrics::{self, Of},
    model::{Scope, Series},
    summary::columns,
};

fn schema(has_nodes: bool) -> Result<Type, ParquetError> {
    let node = if has_nodes { "optional binary node (STRING);" } else { "" };
    parse_message_type(&format!(
        "message series {{
            required double time_s;
            optional binary connection (STRING);
            optional binary subflow (STRING);
            optional binary link (STRING);
            {node}
            required binary metric (STRING);
            required double value;
        }}"
    ))
}

/// Rows of a row group, at most; a reader needs to hold one at a time.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// A time series as read back from a run folder.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSeries {
    /// What it is about.
    pub scope: Scope,
    /// Name with its unit at the end.
    pub metric: String,
    /// Times in seconds, ascending.
    pub times_s: Vec<f64>,
    /// Values, as many as times.
    pub values: Vec<f64>,
}

/// The content of `series.parquet`.
pub(crate) fn to_parquet(series: &[Series]) -> Result<Vec<u8>, Error> {
    for Series { scope, metric, points } in series {
        if let Some((time, value)) = points.iter().find(|(_, value)| !value.is_finite()) {
            return Err(Error::Measurements(format!("{metric} of {scope:?} is {value} at {time} ns")));
        }
        if !points.is_sorted_by_key(|(time, _)| *time) {
            return Err(Error::Measurements(format!("{metric} of {scope:?} is not ascending in time")));
        }
    }
    encode(series).map_err(|error| Error::Measurements(format!("as Parquet: {error}")))
}

fn encode(series: &[Series]) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by("anabranch".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(dictionary(series))
        .build();
    let has_nodes = series.iter().any(|one| columns(&one.scope).node.is_some());
    let schema = Arc::new(schema(has_nodes)?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    for group in row_groups(series) {
        let mut rows = writer.next_row_group()?;
        write_doubles(&mut rows, &group, |(time_ns, _)| *time_ns as f64 / 1e9)?;
        write_texts(&mut rows, &group, |series| columns(&series.scope).connection)?;
        write_texts(&mut rows, &group, |series| columns(&series.scope).subflow)?;
        write_texts(&mut rows, &group, |series| columns(&series.scope).link)?;
        if has_nodes {
            write_texts(&mut rows, &group, |series| columns(&series.scope).node)?;
        }
        let mut metrics = rows.next_column()?.expect("the schema has no fewer columns");
        for part in &group {
            let metric = vec![ByteArray::from(part.series.metric); part.points.len()];
            metrics.typed::<ByteArrayType>().write_batch(&metric, None, None)?;
        }
        metrics.close()?;
        write_doubles(&mut rows, &group, |(_, value)| *value)?;
        rows.close()?;
    }
    writer.into_inner()
}

/// Unit and meaning of every metric that a file has: `subflow.srtt_s.unit` and `subflow.srtt_s.meaning`.
fn dictionary(series: &[Series]) -> Option<Vec<KeyValue>> {
    let mut names: Vec<(Of, &str)> = series.iter().map(|one| (Of::scope(&one.scope), one.metric)).collect();
    names.sort_unstable();
    names.dedup();
    let known = names.into_iter().filter_map(|(of, name)| metrics::find(metrics::SERIES, of, name));
    let entries: Vec<KeyValue> = known
        .flat_map(|metric| {
            let entry = |what: &str, text: &str| {
                KeyValue::new(format!("{}.{}.{what}", metric.of.name(), metric.name), text.to_owned())
            };
            [entry("unit", metric.unit), entry("meaning", metric.meaning)]
        })
        .collect();
    (!entries.is_empty()).then_some(entries)
}

/// A stretch of one series.
struct Part<'a> {
    series: &'a Series,
    points: &'a [(u64, f64)],
}

/// Cuts the series into groups of at most [`ROW_GROUP_ROWS`] rows.
fn row_groups(series: &[Series]) -> Vec<Vec<Part<'_>>> {
    let mut groups = Vec::new();
    let mut group = Vec::new();
    let mut room = ROW_GROUP_ROWS;
    for one in series {
        let mut points = one.points.as_slice();
        while !points.is_empty() {
            let (head, tail) = points.split_at(points.len().min(room));
            group.push(Part { series: one, points: head });
            room -= head.len();
            points = tail;
            if room == 0 {
                groups.push(std::mem::take(&mut group));
                room = ROW_GROUP_ROWS;
            }
        }
    }
    if !group.is_empty() {
        groups.push(group);
    }
    groups
}

type RowGroup<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn write_doubles(
    rows: &mut RowGroup<'_>,
    group: &[Part<'_>],
    pick: impl Fn(&(u64, f64)) -> f64,
) -> Result<(), ParquetError> {
    let mut column = rows.next_column()?.expect("the schema has no fewer columns");
    for part in group {
        let values: Vec<f64> = part.points.iter().map(&pick).collect();
        column.typed::<DoubleType>().write_batch(&values, None, None)?;
    }
    column.close()
}

fn write_texts(
    rows: &mut RowGroup<'_>,
    group: &[Part<'_>],
    pick: impl Fn(&Series) -> Option<&str>,
) -> Result<(), ParquetError> {
    let mut column = rows.next_column()?.expect("the schema has no fewer columns");
    for part in group {
        let (values, level) = match pick(part.series) {
            Some(text) => (vec![ByteArray::from(text); part.points.len()], 1),
            None => (Vec::new(), 0),
        };
        let levels = vec![level; part.points.len()];
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
    }
    column.close()
}

/// Reads the time series of a run folder, in the order in which they were written.
///
/// # Errors
/// [`Error::Damaged`] if the file is missing or is not what this crate writes.
pub fn read_series(folder: &Path) -> Result<Vec<RecordedSeries>, Error> {
    let damaged = |why: String| Error::damaged(folder, format!("series.parquet: {why}"));
    let file = File::open(folder.join("series.parquet")).map_err(|error| damaged(error.to_string()))?;
    decode(file).map_err(|error| damaged(error.to_string()))
}

fn decode(file: File) -> Result<Vec<RecordedSeries>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let found = reader.metadata().file_metadata().schema();
    let has_nodes = found == &schema(true)?;
    if !has_nodes && found != &schema(false)? {
        return Err(ParquetError::General("unknown columns".to_owned()));
    }
    let metric_column = if has_nodes { 5 } else { 4 };
    let mut all: Vec<RecordedSeries> = Vec::new();
    let mut index: BTreeMap<(Scope, String), usize> = BTreeMap::new();
    for group in 0..reader.num_row_groups() {
        let rows = reader.get_row_group(group)?;
        let times_s = read_doubles(&*rows, 0)?;
        let connections = read_texts(&*rows, 1)?;
        let subflows = read_texts(&*rows, 2)?;
        let links = read_texts(&*rows, 3)?;
        let nodes = has_nodes.then(|| read_texts(&*rows, 4)).transpose()?;
        let metrics = read_texts(&*rows, metric_column)?;
        let values = read_doubles(&*rows, metric_column + 1)?;
        for row in 0..times_s.len() {
            let node = nodes.as_ref().and_then(|nodes| nodes[row].as_ref());
            let flow = (connections[row].as_ref(), subflows[row].as_ref());
            let scope = scope_of(flow, links[row].as_ref(), node)?;
            let metric = text_of(metrics[row].as_ref().expect("the column is required"))?;
            let position = match all.last() {
                Some(last) if last.scope == scope && last.metric == metric => all.len() - 1,
                _ => *index.entry((scope.clone(), metric.clone())).or_insert_with(|| {
                    all.push(RecordedSeries { scope, metric, times_s: Vec::new(), values: Vec::new() });
                    all.len() - 1
                }),
            };
            all[position].times_s.push(times_s[row]);
            all[position].values.push(values[row]);
        }
    }
    Ok(all)
}

fn scope_of(
    (connection, subflow): (Option<&ByteArray>, Option<&ByteArray>),
    link: Option<&ByteArray>,
    node: Option<&ByteArray>,
) -> Result<Scope, ParquetError> {
    Ok(match (connection, subflow, link, node) {
        (None, None, None, None) => Scope::Run,
        (Some(name), None, None, None) => Scope::Connection(text_of(name)?),
        (Some(connection), Some(name), None, None) => Scope::Subflow(text_of(connection)?, text_of(name)?),
        (None, None, Some(name), None) => Scope::Link(text_of(name)?),
        (None, None, Some(link), Some(node)) => Scope::Interface(text_of(node)?, text_of(link)?),
        (None, None, None, Some(name)) => Scope::Node(text_of(name)?),
        _ => return Err(ParquetError::General("a row with a flow and a link or node".to_owned())),
    })
}

fn text_of(bytes: &ByteArray) -> Result<String, ParquetError> {
    Ok(bytes.as_utf8()?.to_owned())
}

fn read_doubles(rows: &dyn RowGroupReader, column: usize) -> Result<Vec<f64>, ParquetError> {
    match rows.get_column_reader(column)? {
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(row_count(rows)?, None, None, &mut values)?;
            complete::<DoubleType>(rows, values)
        }
        _ => Err(ParquetError::General(format!("column {column} is not of type double"))),
    }
}

fn read_texts(rows: &dyn RowGroupReader, column: usize) -> Result<Vec<Option<ByteArray>>, ParquetError> {
    let ColumnReader::ByteArrayColumnReader(mut reader) = rows.get_column_reader(column)? else {
        return Err(ParquetError::General(format!("column {column} is not text")));
    };
    let optional = rows.metadata().column(column).column_descr().max_def_level() > 0;
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    reader.read_records(row_count(rows)?, optional.then_some(&mut levels), None, &mut values)?;
    if !optional {
        return Ok(complete::<ByteArrayType>(rows, values)?.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    let texts = levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect();
    Ok(texts)
}

fn row_count(rows: &dyn RowGroupReader) -> Result<usize, ParquetError> {
    usize::try_from(rows.metadata().num_rows()).map_err(|_| ParquetError::General("row count".to_owned()))
}

fn complete<T: DataType>(rows: &dyn RowGroupReader, values: Vec<T::T>) -> Result<Vec<T::T>, ParquetError> {
    if values.len() == row_count(rows)? {
        Ok(values)
    } else {
        Err(ParquetError::General("columns of different length".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written_and_read(series: &[Series]) -> Vec<RecordedSeries> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("series.parquet"), to_parquet(series).unwrap()).unwrap();
        read_series(folder.path()).unwrap()
    }

    fn as_recorded(series: &[Series]) -> Vec<RecordedSeries> {
        let recorded = |one: &Series| RecordedSeries {
            scope: one.scope.clone(),
            metric: one.metric.to_owned(),
            times_s: one.points.iter().map(|(time, _)| *time as f64 / 1e9).collect(),
            values: one.points.iter().map(|(_, value)| *value).collect(),
        };
        series.iter().filter(|one| !one.points.is_empty()).map(recorded).collect()
    }

    fn scopes() -> impl Strategy<Value = Scope> {
        let name = "[a-z/, \"é]{1,6}";
        prop_oneof![
            Just(Scope::Run),
            name.prop_map(Scope::Connection),
            (name, name).prop_map(|(connection, subflow)| Scope::Subflow(connection, subflow)),
            name.prop_map(Scope::Link),
            (name, name).prop_map(|(node, link)| Scope::Interface(node, link)),
            name.prop_map(Scope::Node),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            scopes in proptest::collection::btree_set(scopes(), 0..6),
            lengths in proptest::collection::vec(0usize..40, 6),
            values in proptest::collection::vec(-1e300f64..1e300, 40),
        ) {
            let metrics = ["cwnd_packets", "srtt_s"];
            let series: Vec<Series> = scopes
                .into_iter()
                .zip(lengths)
                .flat_map(|(scope, length)| {
                    let points: Vec<_> = (0..length).map(|i| (i as u64 * 100_000_000, values[i])).collect();
                    metrics.map(|metric| Series { scope: scope.clone(), metric, points: points.clone() })
                })
                .collect();
            prop_assert_eq!(written_and_read(&series), as_recorded(&series));
        }
    }

    #[test]
    fn long_series_span_row_groups() {
        let points = (0..ROW_GROUP_ROWS as u64 + 5).map(|i| (i, i as f64)).collect();
        let long = Series { scope: Scope::Link("l".into()), metric: "queue_packets", points };
        let short = Series { scope: Scope::Run, metric: "goodput_bps", points: vec![(0, 1.0)] };
        let series = [short, long];
        assert_eq!(row_groups(&series).len(), 2);
        assert_eq!(written_and_read(&series), as_recorded(&series));
    }

    #[test]
    fn values_that_are_no_numbers_and_times_that_go_back_are_refused() {
        let series = |points| [Series { scope: Scope::Run, metric: "srtt_s", points }];
        let error = to_parquet(&series(vec![(5, f64::INFINITY)])).unwrap_err();
        assert!(error.to_string().contains("srtt_s of Run is inf at 5 ns"), "{error}");
        let error = to_parquet(&series(vec![(5, 1.0), (4, 1.0)])).unwrap_err();
        assert!(error.to_string().contains("not ascending"), "{error}");
    }

    #[test]
    fn the_file_names_no_build() {
        let bytes = to_parquet(&[]).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.created_by(), Some("anabranch"));
        assert_eq!(metadata.key_value_metadata(), None);
    }

    #[test]
    fn the_file_explains_its_metrics() {
        let one = |scope, metric| Series { scope, metric, points: vec![(0, 1.0)] };
        let subflow = || Scope::Subflow("c".into(), "s".into());
        let series =
            [one(subflow(), "srtt_s"), one(Scope::Link("l".into()), "queue_packets"), one(subflow(), "new")];
        let bytes = to_parquet(&series).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let found: Vec<_> = entries.iter().map(|one| (one.key.as_str(), one.value.as_deref())).collect();
        let meaning = |of, name| metrics::find(metrics::SERIES, of, name).map(|metric| metric.meaning);
        assert_eq!(
            found,
            [
                ("subflow.srtt_s.unit", Some("s")),
                ("subflow.srtt_s.meaning", meaning(Of::Subflow, "srtt_s")),
                ("link.queue_packets.unit", Some("packets")),
                ("link.queue_packets.meaning", meaning(Of::Link, "queue_packets")),
            ]
        );
    }

    #[test]
    fn a_file_with_other_columns_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("series.parquet"), b"PAR1 not really PAR1").unwrap();
        assert!(matches!(read_series(folder.path()), Err(Error::Damaged { .. })));
    }
}
