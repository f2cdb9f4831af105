"""Run folders as Python objects."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from anabranch import _engine

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Doubles = npt.NDArray[np.float64]

#: The packets of a run, in its folder.
PACKETS = "packets.pcapng"

#: What its subflows did, in its folder.
EVENTS = "events.qlog"


class Subject(NamedTuple):
    """What a figure or a series is about; all None: the whole run."""

    connection: str | None = None
    subflow: str | None = None
    link: str | None = None
    node: str | None = None

    def __str__(self) -> str:
        """Name as in tables and legends."""
        if self.node is not None:
            return f"node {self.node}" if self.link is None else f"interface {self.node}/{self.link}"
        if self.link is not None:
            return f"link {self.link}"
        return "/".join(name for name in (self.connection, self.subflow) if name is not None) or "run"

    @property
    def is_at_a_node(self) -> bool:
        """Whether it is about a flow, an interface or a host: neither the whole run nor a link."""
        return self.connection is not None or self.node is not None


class Figure(NamedTuple):
    """One figure of a summary."""

    subject: Subject
    metric: str
    value: float


class Exported(NamedTuple):
    """What has been exported: the host whose view it is, and how many packets."""

    host: str
    packets: int


class OneSeries(NamedTuple):
    """One metric of one subject over time."""

    subject: Subject
    metric: str
    times_s: Doubles
    values: Doubles


class Series:
    """The time series of a run, in long form: time_s, connection, subflow, link, metric, value.

    Where a series is of a node or of its interface there is a column node before metric.

    Parameters
    ----------
    folder
        A run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def all(self) -> tuple[OneSeries, ...]:
        """Every series as arrays, in the order of the file; needs no further package."""
        return tuple(
            OneSeries(
                Subject(one["connection"], one["subflow"], one["link"], one["node"]),
                one["metric"],
                np.frombuffer(one["times_s"], dtype="<f8"),
                np.frombuffer(one["values"], dtype="<f8"),
            )
            for one in _engine.read_series(self._folder)
        )

    def of(self, metric: str) -> dict[Subject, OneSeries]:
        """Every subject that has ``metric``."""
        return {one.subject: one for one in self.all if one.metric == metric}

    def to_arrow(self) -> pa.Table:
        """Return the long table as an Arrow table; needs pyarrow."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self._folder / "series.parquet")

    def to_pandas(self) -> pd.DataFrame:
        """Return the long table as a pandas frame; needs pandas and pyarrow."""
        import pandas

        return pandas.read_parquet(self._folder / "series.parquet")

    def to_polars(self) -> pl.DataFrame:
        """Return the long table as a polars frame; needs polars."""
        import polars

        return polars.read_parquet(self._folder / "series.parquet")


class Run:
    """One complete run folder.

    Parameters
    ----------
    path
        The folder; its files are verified against its manifest.
    reused
        Whether it had been there before it was asked for.
    damaged
        Why a folder that was there before had to be replaced, if so.
    is_verified
        Whether the engine has just written the folder or verified it; else it is verified now.

    Raises
    ------
    RunFolderError
        If the folder holds no run, or a damaged one.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        reused: bool = True,
        damaged: str | None = None,
        is_verified: bool = False,
    ) -> None:
        self.path = Path(path)
        self.reused = reused
        self.damaged = damaged
        self.series = Series(self.path)
        if not is_verified:
            self.manifest = json.loads(_engine.open_run(self.path))

    def __repr__(self) -> str:
        """Show the path."""
        return f"Run({str(self.path)!r})"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """``run.json``: what the run was; read when it is first asked for."""
        manifest: dict[str, Any] = json.loads((self.path / "run.json").read_bytes())
        return manifest

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.manifest["seed"])

    @property
    def key(self) -> str:
        """Hash of all that the result depends on but the seed."""
        return str(self.manifest["key"])

    @property
    def engine(self) -> str:
        """What carried the packets, ``sim`` or ``kernel``."""
        return str(self.manifest["engine"])

    @property
    def environment(self) -> dict[str, Any]:
        """On what and how well it was measured; empty for the simulator."""
        return dict(self.manifest.get("environment") or {})

    @property
    def invalid(self) -> tuple[str, ...]:
        """Why its figures do not count; empty if they do."""
        return tuple(self.environment.get("invalid", ()))

    @property
    def packets(self) -> Path | None:
        """The packets of every path as a pcapng file, if they were asked for (``capture=True``)."""
        return self._file(PACKETS)

    @property
    def qlog(self) -> Path | None:
        """What every subflow did, event by event, as a qlog file, if it was asked for (``qlog=True``)."""
        return self._file(EVENTS)

    def export_packets(self, path: str | PathLike[str], host: str | None = None) -> Exported:
        """Write what one host sees of the packets as a classic pcap file.

        A capture shows each packet where it enters the network and where it leaves it; programs that follow
        TCP want the view of one host.

        Parameters
        ----------
        path
            The file to write.
        host
            A node at which a flow begins or ends; the opener of the first connection unless given.

        Returns
        -------
        Exported
            The host, and the number of packets.

        Raises
        ------
        RunFolderError
            If the run has no packets, or none of that host.
        """
        return Exported(*_engine.export_packets(self.path, host, path))

    def _file(self, name: str) -> Path | None:
        return self.path / name if name in self.manifest["files"] else None

    @cached_property
    def summary(self) -> dict[str, Any]:
        """``summary.json``: figures nested by what they are about."""
        summary: dict[str, Any] = json.loads((self.path / "summary.json").read_text(encoding="utf-8"))
        return summary

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """``summary.csv``: the same figures in the order of the engine."""
        return read_figures(self.path)


def read_figures(folder: Path) -> tuple[Figure, ...]:
    """Return the figures of a run folder, in the order of the engine.

    Parameters
    ----------
    folder
        The folder; it is not verified.

    Returns
    -------
    tuple of Figure
        The figures.
    """
    with (folder / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        heads = next(rows)
        at = [heads.index(name) for name in ("connection", "subflow", "link", "metric", "value")]
        node = heads.index("node") if "node" in heads else None
        subjects: dict[tuple[str, ...], Subject] = {}
        figures = []
        for row in rows:
            names = (row[at[0]], row[at[1]], row[at[2]], "" if node is None else row[node])
            subject = subjects.get(names)
            if subject is None:
                subject = subjects[names] = Subject(*(name or None for name in names))
            figures.append(Figure(subject, row[at[3]], float(row[at[4]])))
    return tuple(figures)


class Runs(Sequence[Run]):
    """Runs of one scenario with several seeds, in the order in which the seeds were given."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = tuple(runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        """Return a run, or several."""
        return self._runs[index] if isinstance(index, int) else Runs(self._runs[index])

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        """Iterate over the runs."""
        return iter(self._runs)

    def __repr__(self) -> str:
        """Show the number of runs."""
        return f"<{len(self)} runs>"


def open_run(path: str | PathLike[str]) -> Run:
    """Open a run folder and verify it.

    Parameters
    ----------
    path
        The folder.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    RunFolderError
        If the folder holds no run, or a damaged one.
    """
    return Run(path)
