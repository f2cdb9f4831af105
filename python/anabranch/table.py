"""The figures of many runs as one Parquet file in long form."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch._engine import OutputError
from anabranch.grid import Axis
from anabranch.results import Figure

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)

#: Columns beside those of the varied keys.
COLUMNS = ("seed", "connection", "subflow", "link", "node", "metric", "value")

#: Rows that are held in memory before they are written, at least.
GROUP_ROWS = 1 << 17


def write_table(
    path: Path, axes: Sequence[Axis], rows: Iterable[tuple[dict[str, str], int, tuple[Figure, ...]]]
) -> None:
    """Write the figures of runs, aside first, so that a table is complete or not there.

    Parameters
    ----------
    path
        The file; its folder exists.
    axes
        The varied keys, each a column: of numbers if all its values are plain numbers, else a dictionary
        whose order is that of the values.
    rows
        Of each run the value of every key, the seed and the figures.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [_AxisColumn(axis) for axis in axes]
    names = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [
            *(pa.field(column.axis.key, column.type, nullable=False) for column in columns),
            pa.field("seed", pa.uint64(), nullable=False),
            *(pa.field(name, names) for name in ("connection", "subflow", "link", "node")),
            pa.field("metric", names, nullable=False),
            pa.field("value", pa.float64(), nullable=False),
        ]
    )
    aside = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    try:
        with pq.ParquetWriter(aside, schema) as writer:
            for group in _groups(rows):
                writer.write_table(_group_table(schema, columns, group))
        aside.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        aside.unlink(missing_ok=True)


class _AxisColumn:
    """How the values of one key become a column."""

    def __init__(self, axis: Axis) -> None:
        import pyarrow as pa

        self.axis = axis
        self.values: dict[str, Any] = {value: _number(value) for value in axis.values}
        if None in self.values.values():
            self.type = pa.dictionary(pa.int32(), pa.string(), ordered=True)
            self.values = {value: index for index, value in enumerate(axis.values)}
        else:
            whole = all(isinstance(value, int) for value in self.values.values())
            self.type = pa.int64() if whole else pa.float64()

    def array(self, values: list[Any]) -> pa.Array:
        """Return the column of values that are those of :attr:`values`."""
        import pyarrow as pa

        if not pa.types.is_dictionary(self.type):
            return pa.array(values, self.type)
        indices = pa.array(values, pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array(self.axis.values), ordered=True)


def _number(text: str) -> int | float | None:
    """Return the number that a value is, if it is one; a whole one only as far as a column holds it."""
    if not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdecimal():
        return int(text) if abs(int(text)) < 1 << 63 else None
    return float(text)


Row = tuple[dict[str, str], int, Figure]


def _groups(rows: Iterable[tuple[dict[str, str], int, tuple[Figure, ...]]]) -> Iterable[list[Row]]:
    """Cut the runs into groups of rows, a row for each figure."""
    group: list[Row] = []
    for values, seed, figures in rows:
        group += ((values, seed, figure) for figure in figures)
        if len(group) >= GROUP_ROWS:
            yield group
            group = []
    yield group


def _group_table(schema: pa.Schema, columns: Sequence[_AxisColumn], group: Sequence[Row]) -> pa.Table:
    import pyarrow as pa

    names = schema.field("metric").type
    subjects = [figure.subject for _, _, figure in group]
    arrays = [
        *(
            column.array([column.values[values[column.axis.key]] for values, _, _ in group])
            for column in columns
        ),
        pa.array([seed for _, seed, _ in group], pa.uint64()),
        *(
            pa.array([getattr(subject, name) for subject in subjects], names)
            for name in ("connection", "subflow", "link", "node")
        ),
        pa.array([figure.metric for _, _, figure in group], names),
        pa.array([figure.value for _, _, figure in group], pa.float64()),
    ]
    return pa.table(arrays, schema=schema)
