"""The generated parts of docs/schedulers/ and docs/path-managers/: every policy over two unequal paths.

What a person writes on a page stays; between the two lines of :mod:`anabranch.algorithm_pages` is what
``make pages`` measures with the scenarios of ``scenarios/comparison/``: bulk data with small and large
receive buffers, files, telemetry, and a path that goes silent. What a policy is best and worst at is
the figure that differs most from the same figure of minRTT with the subflows of the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from anabranch import _engine
from anabranch.campaign import Task, run_tasks
from anabranch.experiment import Experiment
from anabranch.results import Run, Subject

#: What the generated part stands under.
HEADING = "Standard comparison"

#: Seeds of the measurements in which something is drawn; the tables show means.
SEEDS = range(1, 4)

_FLOW = Subject("flow")
_RUN = Subject()


class Column(NamedTuple):
    """A figure of a run: title with the unit, factor, decimals, and whether more is better."""

    title: str
    subject: Subject
    metric: str
    scale: float
    decimals: int
    more_is_better: bool


GOODPUT = Column("goodput, Mbit/s", _FLOW, "goodput_bps", 1e-6, 2, True)
OUT_OF_ORDER = Column("out-of-order delay, ms", _FLOW, "hol_delay_mean_s", 1e3, 0, False)
HEAD_OF_LINE = Column("head of line blocked, s of 60", _FLOW, "hol_blocked_s", 1.0, 1, False)
ENERGY = Column("energy, nJ/bit", _RUN, "energy_linear_per_bit_j", 1e9, 0, False)
FILE_P50 = Column("completion p50, s", _FLOW, "completion_p50_s", 1.0, 3, False)
FILE_P95 = Column("completion p95, s", _FLOW, "completion_p95_s", 1.0, 3, False)
ANSWER_P50 = Column("answer p50, ms", _FLOW, "latency_p50_s", 1e3, 1, False)
ANSWER_P95 = Column("answer p95, ms", _FLOW, "latency_p95_s", 1e3, 1, False)

_BULK = (GOODPUT, OUT_OF_ORDER, HEAD_OF_LINE, ENERGY)
_FILES = (FILE_P50, FILE_P95, ENERGY)
_MESSAGES = (ANSWER_P50, ANSWER_P95, ENERGY)
#: Figures that are nothing where nothing comes out of order: they are shown, and not compared.
_NOT_COMPARED = (OUT_OF_ORDER, HEAD_OF_LINE)


class Case(NamedTuple):
    """A line of a table: what it is called, the scenario, its overrides and its figures."""

    title: str
    file: str
    overrides: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    seeds: Sequence[int] = SEEDS


def _buffer(size: str) -> tuple[str, str]:
    return ("transport.receive_buffer", f'"{size}"')


CASES = (
    *(
        Case(f"bulk, {size}", "bulk.toml", (_buffer(size),), _BULK, SEEDS[:1])
        for size in ("100 kB", "200 kB", "400 kB", "1 MB", "4 MB")
    ),
    Case("bulk, 400 kB, Wi-Fi silent for 20 s", "failure.toml", (), _BULK),
    Case("files of 57 kB", "flows.toml", (("connection.flow.traffic.size", '"57 kB"'),), _FILES),
    Case("files of 1 MB", "flows.toml", (("connection.flow.traffic.size", '"1 MB"'),), _FILES),
    Case("messages of 1 kB", "telemetry.toml", (), _MESSAGES),
)


@dataclass(frozen=True)
class Kind:
    """Schedulers or path managers: their folder of pages, the key that names one, and further overrides."""

    folder: str
    key: str
    baseline: str
    #: What some policies need to differ from others: more overrides, and how a page says so.
    more: Mapping[str, tuple[tuple[tuple[str, str], ...], str]]

    def names(self) -> list[str]:
        """Return the policies that have a page, in the order of the registry."""
        if self.folder == "schedulers":
            return [one["name"] for one in _engine.list_schedulers()]
        return [one["name"] for one in _engine.list_path_managers() if one["name"] != self.baseline]


SCHEDULERS = Kind(
    "schedulers",
    "connection.flow.scheduler",
    "minrtt",
    {"wrr": ((("connection.flow.subflow.wifi.weight", "4"),), "Wi-Fi has the weight 4.")},
)
PATH_MANAGERS = Kind(
    "path-managers",
    "connection.flow.path_manager",
    "static",
    {
        "cost": ((("connection.flow.subflow.3g.cap", '"10 MB"'),), "3G has a cap of 10 MB."),
        "ndiffports": ((), "No two paths here have the same addresses, so it keeps to the first."),
        "pcdc": (
            (("connection.flow.path_manager.phase", '"2 s"'),),
            "Its phases take 2 s, so that it has chosen after 15 s.",
        ),
    },
)
KINDS = (SCHEDULERS, PATH_MANAGERS)

#: The figures of a policy by case and column; absent where a run does not tell one.
Figures = dict[tuple[Case, Column], float]


def measure(kind: Kind, names: Sequence[str], scenarios: Path, out: Path) -> dict[str, Figures]:
    """Run every case with each of these policies.

    Parameters
    ----------
    kind
        What they are.
    names
        The policies.
    scenarios
        The folder of scenario files.
    out
        Where runs are kept.

    Returns
    -------
    dict
        The means over the seeds, by policy.
    """
    experiments = {
        (name, case): Experiment(
            scenarios / "comparison" / case.file,
            (*case.overrides, (kind.key, f'"{name}"'), *kind.more.get(name, ((), ""))[0]),
        )
        for name in names
        for case in CASES
    }
    tasks = [Task(experiment, seed) for (_, case), experiment in experiments.items() for seed in case.seeds]
    runs = iter(run_tasks(tasks, out))
    measured: dict[str, Figures] = {name: {} for name in names}
    for name, case in experiments:
        of_case = [next(runs) for _ in case.seeds]
        for column in case.columns:
            if (value := _mean(of_case, column)) is not None:
                measured[name][case, column] = value
    return measured


def part(kind: Kind, name: str, measured: Mapping[str, Figures]) -> str:
    """Return the generated part of a policy's page, without the lines that enclose it."""
    figures = measured[name]
    _, remark = kind.more.get(name, ((), ""))
    intro = (
        "Wi-Fi at 20 Mbit/s and 5 ms, 3G at 5 Mbit/s and 60 ms, queues of 100 packets, LIA, profile `rfc`,\n"
        f"60 s, in the simulator (`scenarios/comparison/`); means of seeds {SEEDS[0]} to {SEEDS[-1]} but for "
        "bulk, where\nnothing is drawn. A dash: nothing came out of order."
    )
    tables = [
        _table(figures, [case for case in CASES if case.columns == columns])
        for columns in (_BULK, _FILES, _MESSAGES)
    ]
    lines = [f"{intro} {remark}".rstrip(), *tables]
    if name == kind.baseline:
        lines.append("The others are compared with this one.")
    else:
        best, worst = extremes(figures, measured[kind.baseline])
        lines += [f"**Best**: {best}.", f"**Worst**: {worst}."]
    return "\n\n".join(lines)


def summary(kind: Kind, measured: Mapping[str, Figures]) -> str:
    """Return the generated part of the overview: the best and the worst case of every policy."""
    lines = [["name", "best", "worst"], ["---"] * 3]
    for name in kind.names():
        if name != kind.baseline:
            best, worst = extremes(measured[name], measured[kind.baseline])
            lines.append([f"[`{name}`]({name}.md)", best, worst])
    against = "minRTT" if kind is SCHEDULERS else "minRTT over the subflows of the file (`static`)"
    words = (
        "Of goodput, times and energy in the cases of the pages, the figure that differs most from that of\n"
        f"{against}, for the better and for the worse. Delays out of\n"
        "order are not compared: they are nothing where one path suffices."
    )
    return f"{words}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def extremes(figures: Figures, baseline: Figures) -> tuple[str, str]:
    """Return what is best and what is worst, in words; "nothing" if no figure differs by a hundredth."""
    compared = [
        (_advantage(column, figures[case, column], baseline[case, column]), case, column)
        for case, column in figures
        if column not in _NOT_COMPARED and (case, column) in baseline
    ]
    best = max(compared, key=lambda one: one[0])
    worst = min(compared, key=lambda one: one[0])

    def words(advantage: float, case: Case, column: Column) -> str:
        ours, theirs = figures[case, column], baseline[case, column]
        title, _, unit = column.title.partition(", ")
        ratio = _figure(ours / theirs)
        return (
            f"{title} of {case.title}: {ours:.{column.decimals}f} against "
            f"{theirs:.{column.decimals}f} {unit} ({ratio} times)"
        )

    return (
        words(*best) if best[0] > 1.01 else "nothing by more than 1 %",
        words(*worst) if worst[0] < 1 / 1.01 else "nothing by more than 1 %",
    )


def _mean(runs: Sequence[Run], column: Column) -> float | None:
    values = [
        figure.value * column.scale
        for run in runs
        for figure in run.figures
        if figure.subject == column.subject and figure.metric == column.metric
    ]
    return math.fsum(values) / len(values) if len(values) == len(runs) else None


def _advantage(column: Column, ours: float, theirs: float) -> float:
    return ours / theirs if column.more_is_better else theirs / ours


def _figure(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _table(figures: Figures, cases: Sequence[Case]) -> str:
    columns = cases[0].columns
    lines = [["case", *(column.title for column in columns)], ["---"] * (len(columns) + 1)]
    for case in cases:
        cells = [figures.get((case, column)) for column in columns]
        shown = [
            "-" if value is None else f"{value:.{column.decimals}f}"
            for value, column in zip(cells, columns, strict=True)
        ]
        lines.append([case.title, *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
