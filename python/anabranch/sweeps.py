"""Sweeps: a scenario over a grid of values, with several seeds each, as one table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anabranch._engine import ScenarioError
from anabranch.campaign import Task, run_tasks
from anabranch.experiment import Experiment, value_text
from anabranch.grid import Axis, GridError, grid
from anabranch.results import Figure, Run, Subject, read_figures
from anabranch.stats import Estimate, estimate
from anabranch.table import COLUMNS, write_table
from anabranch.workers import Progress

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

#: The table, in the folder of the scenario.
TABLE = "sweep.parquet"

#: The most runs of a sweep.
RUNS_MAX = 1_000_000


@dataclass(frozen=True)
class Plan:
    """A sweep whose every point has been checked and of which nothing has been run."""

    experiment: Experiment
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    points: tuple[Experiment, ...]

    @property
    def tasks(self) -> list[Task]:
        """The runs: point by point, each with all seeds."""
        return [Task(point, seed) for point in self.points for seed in self.seeds]

    @property
    def simulated_s(self) -> float:
        """Simulated time of all runs, in seconds."""
        return len(self.seeds) * math.fsum(point.scenario.duration_s for point in self.points)

    @property
    def in_python(self) -> list[str]:
        """The congestion controls written in Python that some point names."""
        return sorted({name for point in self.points for name in point.scenario.in_python})

    def values(self, point: Experiment) -> dict[str, str]:
        """Return what a point has for each varied key."""
        return {axis.key: point.overrides[axis.key] for axis in self.axes}

    def run(
        self,
        out: str | PathLike[str] = "runs",
        *,
        jobs: int | None = None,
        cluster: str | None = None,
        progress: Progress | None = None,
    ) -> Sweep:
        """Make the runs that are not there yet, and write the table.

        Parameters
        ----------
        out
            Where runs are kept. The table is ``<out>/<scenario>/sweep.parquet``; that of an earlier sweep of
            the scenario is replaced, its runs stay.
        jobs
            Runs at a time on this machine; all cores unless given.
        cluster
            The scheduler of a Dask cluster whose workers make the runs.
        progress
            Called from this thread with the simulated time that all runs together have reached, in seconds.

        Returns
        -------
        Sweep
            The runs and the table.

        Raises
        ------
        OutputError
            If ``out`` cannot be written to.
        RunError
            If a run fails; finished runs are kept.
        ClusterError
            If the cluster cannot be reached, or has another version of this package.
        """
        runs = run_tasks(self.tasks, Path(out), jobs=jobs, cluster=cluster, progress=progress)
        path = Path(out) / self.experiment.scenario.name / TABLE
        write_table(path, self.axes, self._rows(runs))
        return Sweep(self, tuple(runs), path)

    def _rows(self, runs: Sequence[Run]) -> Iterator[tuple[dict[str, str], int, tuple[Figure, ...]]]:
        for task, run in zip(self.tasks, runs, strict=True):
            yield self.values(task.experiment), task.seed, read_figures(run.path)


class Cell(NamedTuple):
    """What one point gives for one subject: an estimate for each metric, None where it has none."""

    values: dict[str, str]
    subject: Subject
    estimates: tuple[Estimate | None, ...]


class Sweep:
    """A finished sweep.

    Parameters
    ----------
    plan
        What was to be run.
    runs
        Its runs, in the order of the plan's tasks.
    path
        The table.
    """

    def __init__(self, plan: Plan, runs: tuple[Run, ...], path: Path) -> None:
        self.plan = plan
        self.runs = runs
        self.path = path

    def __repr__(self) -> str:
        """Show the table and how many points and runs there are."""
        return f"<sweep of {len(self.plan.points)} points, {len(self.runs)} runs: {self.path}>"

    def to_arrow(self) -> pa.Table:
        """Return the table as an Arrow table.

        It is in long form: a column for each varied key, then ``seed``, ``connection``, ``subflow``,
        ``link``, ``node``, ``metric``, ``value``. A varied key whose values are plain numbers is a column
        of numbers; any other one is a dictionary in the order of the grid.
        """
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.path)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame, see :meth:`to_arrow`."""
        import pandas

        return pandas.read_parquet(self.path)

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars frame, see :meth:`to_arrow`; needs polars."""
        import polars

        return polars.read_parquet(self.path)

    def point_runs(self) -> Iterator[tuple[dict[str, str], tuple[Run, ...]]]:
        """Yield the values of each point and its runs, in the order of the seeds."""
        size = len(self.plan.seeds)
        for number, point in enumerate(self.plan.points):
            yield self.plan.values(point), self.runs[number * size : (number + 1) * size]

    def estimates(self, metrics: Sequence[str]) -> list[Cell]:
        """Return means over the seeds with their 95 % intervals, point by point.

        Parameters
        ----------
        metrics
            Names of metrics.

        Returns
        -------
        list of Cell
            For each point, every subject that has one of the metrics, in the order of the engine.
        """
        cells = []
        for values, runs in self.point_runs():
            samples: dict[Subject, dict[str, list[float]]] = {}
            for run in runs:
                for subject, metric, value in read_figures(run.path):
                    if metric in metrics:
                        samples.setdefault(subject, {}).setdefault(metric, []).append(value)
            for subject, by_metric in samples.items():
                found = tuple(estimate(by_metric[name]) if name in by_metric else None for name in metrics)
                cells.append(Cell(values, subject, found))
        return cells


def plan_sweep(experiment: Experiment, axes: Sequence[Axis], seeds: Iterable[int]) -> Plan:
    """Check every point of a sweep.

    Parameters
    ----------
    experiment
        The scenario, with what is the same at all points as overrides.
    axes
        The keys that are varied; their grid is swept in full, the last key varying fastest.
    seeds
        The seeds of each point.

    Returns
    -------
    Plan
        The sweep, ready to run.

    Raises
    ------
    GridError
        If there are no points or no seeds, too many, the same key or seed twice, or two points that are the
        same scenario.
    ScenarioError
        If a point is refused.
    """
    numbers = tuple(seeds)
    if not numbers:
        raise GridError("no seeds; expected at least one")
    if len(set(numbers)) < len(numbers):
        raise GridError("a seed is given twice; expected each once")
    for axis in axes:
        if axis.key in COLUMNS:
            raise GridError(f"{axis.key}: is a column of the table already; expected a key within it")
        if axis.key == "name":
            raise GridError(
                "name: says where runs and table are kept; expected a key that changes what is run"
            )
    combinations = grid(axes, experiment.overrides)
    if len(combinations) * len(numbers) > RUNS_MAX:
        count = len(combinations) * len(numbers)
        raise GridError(f"{count:,} runs, {len(numbers):,} for each point; expected at most {RUNS_MAX:,}")
    points: list[Experiment] = []
    seen: dict[str, dict[str, str]] = {}
    for values in combinations:
        try:
            point = experiment.with_(**values)
        except ScenarioError as error:
            raise ScenarioError(_as_varied(str(error), values)) from None
        twin = seen.setdefault(point.scenario.canonical, values)
        if twin is not values:
            raise GridError(f"{_text(twin)} and {_text(values)} are the same scenario")
        points.append(point)
    return Plan(experiment, tuple(axes), numbers, tuple(points))


def sweep(
    scenario: str | PathLike[str] | Experiment,
    vary: Mapping[str, Iterable[object]],
    *,
    seeds: int | Iterable[int] = 1,
    out: str | PathLike[str] = "runs",
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a scenario at every point of a grid, on all cores or on a cluster.

    Parameters
    ----------
    scenario
        A scenario file, or an experiment.
    vary
        The values of each key: ``{"link.path1.rate": ["1 Mbit/s", "2 Mbit/s"]}``. All combinations are run.
    seeds
        How many seeds, from 1 on, or which ones.
    out
        Where runs are kept; complete ones are reused.
    jobs
        Runs at a time on this machine; all cores unless given.
    cluster
        The scheduler of a Dask cluster whose workers make the runs, such as ``tcp://192.0.2.1:8786``.
    progress
        Called from this thread with the simulated time that all runs together have reached, in seconds.

    Returns
    -------
    Sweep
        The runs, and all their figures as one table.

    Raises
    ------
    GridError
        If the grid is empty, too large or says the same thing twice.
    ScenarioError
        If a point is refused; nothing has been run then.
    OutputError
        If ``out`` cannot be written to.
    RunError
        If a run fails; finished runs are kept.
    ClusterError
        If the cluster cannot be reached, or has another version of this package.
    """
    experiment = scenario if isinstance(scenario, Experiment) else Experiment(scenario)
    axes = [Axis(key, tuple(value_text(value) for value in values)) for key, values in vary.items()]
    numbers = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    return plan_sweep(experiment, axes, numbers).run(out, jobs=jobs, cluster=cluster, progress=progress)


def _as_varied(message: str, values: Mapping[str, str]) -> str:
    """Say ``--vary`` where a message blames ``--set`` for a varied key."""
    for key in values:
        message = message.replace(f"--set {key}:", f"--vary {key}:", 1)
    return message


def _text(values: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())
