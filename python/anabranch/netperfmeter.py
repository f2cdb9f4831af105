"""Result files of NetPerfMeter, the measuring program of the MPCOA paper, as tables.

It writes *scalars* (``.sca``), totals of each flow and the load of the processors, and *vectors* (``.vec``):
an overview with a row for each flow, direction and interval, and a file for each flow with a row for each
message that was received. All may be compressed (``.bz2``). Read are files of version 1.9.4, whose columns
docs/netperfmeter.md names, and vectors of other versions that have no others.

Left out: its configuration files (``.config``), and the capture files that its scripts may add. Times are the
clock of the host that wrote the file; nobody can tell from them how far two hosts were apart.
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class NetPerfMeterError(ValueError):
    """A file is not one of NetPerfMeter's; the message names file and line."""


class Kind(StrEnum):
    """What a file holds."""

    SCALARS = "scalars"
    OVERVIEW = "overview"
    FLOW = "flow"


@dataclass(frozen=True)
class Table:
    """One or more files of a kind as columns of equal length.

    ``columns`` has the values by name, with units in the names; ``file`` is the name of the file that a row
    is from.
    """

    kind: Kind
    columns: Mapping[str, Sequence[Any]]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns["file"])

    def to_arrow(self) -> pa.Table:
        """Return the table for Arrow; needs pyarrow."""
        import pyarrow as pa

        return pa.table({name: list(values) for name, values in self.columns.items()})

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame; needs pandas."""
        import pandas as pd

        frame = pd.DataFrame({name: list(values) for name, values in self.columns.items()})
        return frame.astype({"flow": "Int64"}) if "flow" in frame else frame

    def write(self, path: Path) -> None:
        """Write Parquet, or CSV if the name ends so; needs pyarrow.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        import pyarrow.csv
        import pyarrow.parquet

        if path.suffix == ".csv":
            pyarrow.csv.write_csv(self.to_arrow(), path)
        else:
            pyarrow.parquet.write_table(self.to_arrow(), path)


_SCALAR = re.compile(r'scalar\s+"netPerfMeter\.(active|passive)\.([^"]+)"\s+"([^"]+)"\s+(\S+)')
_FLOW = re.compile(r"flow\[(\d+)\]")
_WORD = re.compile(r'"([^"]*)"|(\S+)')

#: Of the columns of vectors: our name, and what makes a value of the text.
_Column = tuple[str, Callable[[str], Any]]

_ABSOLUTE: dict[str, _Column] = {"AbsTime": ("epoch_us", int), "RelTime": ("time_s", float)}
_COUNTS: dict[str, _Column] = {
    "AbsBytes": ("bytes", int),
    "AbsPackets": ("packets", int),
    "AbsFrames": ("frames", int),
    "RelBytes": ("bytes_since", int),
    "RelPackets": ("packets_since", int),
    "RelFrames": ("frames_since", int),
}

#: The file counts flows from 0 and has -1 for their sum.
_OVERVIEW: dict[str, _Column] = {
    **_ABSOLUTE,
    "Interval": ("interval_s", float),
    "FlowID": ("flow", lambda text: None if int(text) < 0 else int(text)),
    "Description": ("description", str),
    "Jitter": ("jitter_ms", float),
    "Action": ("action", str.lower),
    **_COUNTS,
}
_OF_FLOW: dict[str, _Column] = {
    **_ABSOLUTE,
    "SeqNumber": ("sequence", int),
    **_COUNTS,
    "Delay": ("delay_ms", float),
    "PrevPacketDelayDiff": ("delay_change_ms", float),
    "Jitter": ("jitter_ms", float),
}

#: Columns without which a file is of another kind, or of a version that is not known.
_KEYS = {Kind.OVERVIEW: ("RelTime", "FlowID", "Action"), Kind.FLOW: ("RelTime", "SeqNumber", "Delay")}


def read(*paths: Path) -> Table:
    """Read files of one kind.

    Parameters
    ----------
    *paths
        At least one file, as NetPerfMeter has named it or not; ``.bz2`` is unpacked.

    Returns
    -------
    Table
        The rows of all files, in their order.

    Raises
    ------
    NetPerfMeterError
        If a file is not one of NetPerfMeter's, cannot be read, or is of another kind than the first.
    """
    tables = [_read(path) for path in paths]
    kind, columns = tables[0]
    for path, (other, found) in zip(paths, tables, strict=True):
        if other is not kind:
            raise NetPerfMeterError(
                f"{path}: holds {other}, {paths[0]} holds {kind}; expected files of one kind"
            )
        if found.keys() != columns.keys():
            raise NetPerfMeterError(
                f"{path}: has other columns than {paths[0]}; expected files of one version"
            )
    joined = {name: [value for _, found in tables for value in found[name]] for name in columns}
    return Table(kind, joined)


def _read(path: Path) -> tuple[Kind, dict[str, list[Any]]]:
    lines = _lines(path)
    if lines and lines[0].lstrip().startswith("scalar"):
        return Kind.SCALARS, _scalars(path, lines)
    words = _words(lines[0]) if lines else []
    for kind, known in ((Kind.OVERVIEW, _OVERVIEW), (Kind.FLOW, _OF_FLOW)):
        if all(key in words for key in _KEYS[kind]) and all(word in known for word in words):
            return kind, _vector(path, lines, [known[word] for word in words])
    raise NetPerfMeterError(
        f"{path}:1: not of NetPerfMeter; expected a line that begins with scalar, or the heads of a vector"
    )


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
        if path.suffix == ".bz2":
            data = bz2.decompress(data)
        return data.decode("utf-8").splitlines()
    except OSError as error:
        # The decompressor raises it too, without a number and with a text of its own.
        raise NetPerfMeterError(f"{path}: {error.strerror or error}") from None
    except (EOFError, ValueError) as error:
        raise NetPerfMeterError(f"{path}: {error}") from None


def _words(line: str) -> list[str]:
    return [quoted or plain for quoted, plain in _WORD.findall(line)]


def _scalars(path: Path, lines: Sequence[str]) -> dict[str, list[Any]]:
    """Read scalars: whose they are, which flow or what else they are of, their names, and their values."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("file", "node", "subject", "flow", "name", "value")
    }
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = _SCALAR.fullmatch(line.strip())
        if found is None:
            raise NetPerfMeterError(
                f'{path}:{number}: expected scalar "netPerfMeter.<node>.<of what>" "<name>" <value>'
            )
        node, subject, name, value = found.groups()
        of_flow = _FLOW.match(subject)
        flow = int(of_flow[1]) if of_flow else None
        row = (path.name, node, subject, flow, name, _value(path, number, float, value))
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
    return columns


def _vector(path: Path, lines: Sequence[str], heads: Sequence[_Column]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"file": [], **{name: [] for name, _ in heads}}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        # The first word is the number of the row; the heads do not name it.
        words = _words(line)[1:]
        if len(words) != len(heads):
            raise NetPerfMeterError(
                f"{path}:{number}: {len(words)} values behind the row's number, expected {len(heads)}"
            )
        columns["file"].append(path.name)
        for (name, make), word in zip(heads, words, strict=True):
            columns[name].append(_value(path, number, make, word))
    return columns


def _value(path: Path, number: int, make: Callable[[str], Any], text: str) -> Any:
    try:
        return make(text)
    except ValueError:
        raise NetPerfMeterError(f"{path}:{number}: {text}: expected a number") from None
