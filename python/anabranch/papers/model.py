"""What a reproduction of a paper is made of: a plan, numbers, rules, plots and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from anabranch import stats
from anabranch.experiment import Experiment
from anabranch.results import Doubles, Run
from anabranch.stats import Estimate

#: Names of levels, such as ("cbr", "mfvl", "1 Mbit/s"): the sub-experiment first; an algorithm is a word of
#: its own.
Cell = tuple[str, ...]

#: Between the name of a trace and the time in seconds, see :func:`trace_metrics`.
_AT = " at "


class Verdict(StrEnum):
    """What the numbers say about a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"


@dataclass(frozen=True)
class Planned:
    """One cell of the plan: an experiment that is run with the seeds from 1 to ``seeds``."""

    cell: Cell
    experiment: Experiment
    seeds: int


class Trace(NamedTuple):
    """One figure over time: the mean over the seeds."""

    times_s: Doubles
    values: Doubles


class Measured:
    """The figures of every cell by seed: numbers alone, so that rules need no run folders.

    Parameters
    ----------
    values
        For every cell the values of every metric, in the order of the seeds, which is the same in all cells.
    """

    def __init__(self, values: Mapping[Cell, Mapping[str, tuple[float, ...]]]) -> None:
        self._values = {cell: dict(metrics) for cell, metrics in values.items()}

    def cells(self, *prefix: str) -> list[Cell]:
        """Return the cells that begin with some words, in the order of the plan."""
        return [cell for cell in self._values if cell[: len(prefix)] == prefix]

    def metrics(self, cell: Cell) -> list[str]:
        """Return the names of the figures of a cell."""
        return list(self._values[cell])

    def of(self, cell: Cell, metric: str) -> tuple[float, ...]:
        """Return the values of a figure in the order of the seeds."""
        return self._values[cell][metric]

    def mean(self, cell: Cell, metric: str) -> Estimate:
        """Return the mean over the seeds with its 95 % interval."""
        return stats.estimate(self.of(cell, metric))

    def ratio(self, cell: Cell, base: Cell, metric: str) -> Estimate:
        """Return the mean in ``cell`` over that in ``base``, paired by seed, see :func:`stats.ratio`.

        Over a base of zero it is 1 if both are zero, else infinite, and has no interval.
        """
        pairs = list(zip(self.of(base, metric), self.of(cell, metric), strict=False))
        found = stats.ratio(pairs)
        if found is not None:
            return found
        return Estimate(math.inf if any(value for _, value in pairs) else 1.0, None, len(pairs))

    def difference(self, cell: Cell, base: Cell, metric: str) -> Estimate:
        """Return the mean of the values in ``cell`` less those in ``base``, paired by seed."""
        pairs = zip(self.of(cell, metric), self.of(base, metric), strict=False)
        return stats.estimate([value - of_base for value, of_base in pairs])

    def trace(self, cell: Cell, name: str, *, first_seed: bool = False) -> Trace:
        """Return the mean over the seeds of a trace, or that of the first; see :func:`trace_metrics`."""
        begin = name + _AT
        found = {
            float(metric.removeprefix(begin)): values[:1] if first_seed else values
            for metric, values in self._values[cell].items()
            if metric.startswith(begin)
        }
        times_s = np.array(sorted(found))
        return Trace(times_s, np.array([math.fsum(found[time]) / len(found[time]) for time in times_s]))

    def joined(self, other: Measured) -> Measured:
        """Return the cells of both; those of ``other`` come after these."""
        return Measured({**self._values, **other._values})

    def under(self, *prefix: str) -> Measured:
        """Return the cells that begin with some words, under the rest of their names: for rules of these."""
        return Measured({cell[len(prefix) :]: self._values[cell] for cell in self.cells(*prefix)})

    def swapped(self, one: str, other: str) -> Measured:
        """Return the same numbers with two words exchanged in every cell, to test that verdicts follow."""
        exchanged = {one: other, other: one}
        return Measured(
            {
                tuple(exchanged.get(word, word) for word in cell): values
                for cell, values in self._values.items()
            }
        )


def trace_metrics(name: str, times_s: Doubles, values: Doubles) -> dict[str, float]:
    """Return a trace as figures, one for each time; :meth:`Measured.trace` puts them together again."""
    return {f"{name}{_AT}{time:g}": float(value) for time, value in zip(times_s, values, strict=True)}


def without_traces(figures: Mapping[str, float]) -> dict[str, float]:
    """Return figures without those of traces, whose times differ from run to run on a kernel."""
    return {name: value for name, value in figures.items() if _AT not in name}


@dataclass(frozen=True)
class Outcome:
    """What came of a claim: our figure in words, its interval, the verdict, and one sentence why."""

    ours: str
    low: float | None
    high: float | None
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Rule:
    """How a claim is judged.

    ``metric`` says in words which figures count, with direction and tolerance, ``refuted_by`` what would
    refute the claim.
    """

    claim: str
    metric: str
    refuted_by: str
    judge: Callable[[Measured], Outcome]


@dataclass(frozen=True)
class Plot:
    """The counterpart of a figure of the paper (``paper``: which)."""

    name: str
    paper: str
    caption: str
    draw: Callable[[Measured], Figure]


@dataclass(frozen=True)
class Table:
    """Numbers beside the claims, such as a sensitivity. The first row has the heads."""

    title: str
    text: str
    rows: Callable[[Measured], list[list[str]]]


@dataclass(frozen=True)
class Paper:
    """A paper and its reproduction.

    ``plan`` gives what is run, less of it if its argument, ``quick``, is true; ``extract`` the figures of one
    run, which must be the same ones for every seed of a cell. ``then`` gives what is run after that, where it
    depends on what was measured.
    """

    id: str
    name: str
    title: str
    plan: Callable[[bool], list[Planned]]
    extract: Callable[[Cell, Run], dict[str, float]]
    rules: tuple[Rule, ...]
    plots: tuple[Plot, ...]
    tables: tuple[Table, ...]
    then: Callable[[bool, Measured], list[Planned]] | None = None
