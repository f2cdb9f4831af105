"""The scenarios of ``scenarios/agreement/`` on both engines, and what came of it.

Runs that are complete are reused: after an interruption, or a change of the simulator, the same command makes
only what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from anabranch._engine import ScenarioError
from anabranch.as_linux import as_linux
from anabranch.compare import Variant
from anabranch.experiment import Experiment
from anabranch.results import Run, Runs
from anabranch.verdict import Judged, Verdict, judge

#: Length of the transfer whose completion time is compared.
FILE_SIZE = "2 MB"

#: Of the quick check: its scenarios and its repetitions.
QUICK_SCENARIOS = ("reno-20mbit-10ms", "lia-equal-paths")
QUICK_SEEDS = 3

#: Fewer repetitions that count give no interval.
MIN_RUNS = 2


class Group(StrEnum):
    """Which scenarios."""

    TWELVE = "the twelve"
    EXTRA = "the six more"
    MPTCP = "Multipath TCP, buffers and telemetry"


#: The folder with the scenarios of that group alone.
MPTCP_FOLDER = "mptcp"


class Kind(StrEnum):
    """What is sent."""

    BULK = "bulk"
    FILE = "file"


@dataclass(frozen=True)
class Case:
    """One scenario with one kind of traffic."""

    group: Group
    kind: Kind
    experiment: Experiment

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.experiment.scenario.name


@dataclass(frozen=True)
class Measured:
    """A case with its runs on both engines and the verdicts on those that count."""

    case: Case
    sim: Runs
    kernel: Runs
    as_linux: Runs | None = None

    @property
    def valid(self) -> tuple[Run, ...]:
        """Runs on the kernel that count."""
        return tuple(run for run in self.kernel if not run.invalid)

    @property
    def counts(self) -> bool:
        """Whether enough runs count for a verdict."""
        return len(self.valid) >= MIN_RUNS

    def judged(self) -> list[Judged]:
        """Return the verdicts; none if too few runs count."""
        return self._judged(self.sim)

    def judged_as_linux(self) -> list[Judged]:
        """Return the verdicts on the simulator with Linux's scheduler; none where it was not run."""
        return self._judged(self.as_linux) if self.as_linux is not None else []

    def _judged(self, sim: Runs) -> list[Judged]:
        if not self.counts:
            return []
        judged = judge(Variant("sim", tuple(sim)), Variant("kernel", self.valid))
        wanted = "completion_s" if self.case.kind is Kind.FILE else None
        return [one for one in judged if wanted in (None, one.metric)]


def cases(folder: Path, *, extra: bool, quick: bool, files: bool = True) -> list[Case]:
    """Return what is to be measured.

    Parameters
    ----------
    folder
        The folder with the twelve scenarios; six others are in its ``extra/``. Or the folder ``mptcp``.
    extra
        Whether the others are measured, too.
    quick
        Whether to measure two scenarios alone, for a shorter time.
    files
        Whether to send files, too.

    Returns
    -------
    list of Case
        Every scenario as it is; those with one bulk transfer, and no change of a link or a subflow, once more
        with a file.

    Raises
    ------
    ScenarioError
        If the folder has no scenarios, or one that is refused.
    """
    main = Group.MPTCP if folder.name == MPTCP_FOLDER else Group.TWELVE
    paths = [(main, path) for path in sorted(folder.glob("*.toml"))]
    if extra and not quick:
        paths += [(Group.EXTRA, path) for path in sorted((folder / "extra").glob("*.toml"))]
    if quick:
        paths = [(group, path) for group, path in paths if path.stem in QUICK_SCENARIOS]
    if not paths:
        raise ScenarioError(f"{folder}: no scenarios of the agreement here")
    planned = [case for group, path in paths for case in _of_file(group, path, quick=quick)]
    return [case for case in planned if files or case.kind is Kind.BULK]


def _of_file(group: Group, path: Path, *, quick: bool) -> Iterator[Case]:
    experiment = Experiment(path)
    yield Case(group, Kind.BULK, experiment.with_(duration="8 s") if quick else experiment)
    scenario = experiment.scenario
    counts = dict(scenario.counts)
    canonical: dict[str, Any] = json.loads(scenario.canonical)
    first = canonical["connection"][0]
    is_bulk = first.get("traffic", {"kind": "ftp"})["kind"] == "ftp"
    if counts["connections"] == 1 and is_bulk and not counts["changes"] and not canonical.get("event"):
        name = first["name"]
        overrides = {
            f"connection.{name}.traffic": f'{{ kind = "file", size = "{FILE_SIZE}" }}',
            "measure.from": "0 s",
            "duration": "5 s" if quick else "15 s",
        }
        yield Case(group, Kind.FILE, experiment.with_(**overrides))


def measure(case: Case, seeds: int, out: Path, progress: Callable[[float], None] | None = None) -> Measured:
    """Run a case on both engines.

    Parameters
    ----------
    case
        What is run.
    seeds
        Repetitions, with the seeds from 1.
    out
        Where runs are kept.
    progress
        Called with the time that the runs on the kernel have reached, in seconds.

    Returns
    -------
    Measured
        The runs; of the group about Multipath TCP also those of the simulator with Linux's scheduler.
    """
    numbers = range(1, seeds + 1)
    sim = case.experiment.run(seeds=numbers, out=out)
    alike = as_linux(case.experiment) if case.group is Group.MPTCP else case.experiment
    of_alike = alike.run(seeds=numbers, out=out) if alike is not case.experiment else None
    kernel = case.experiment.run(engine="kernel", seeds=numbers, out=out, progress=progress)
    return Measured(case, sim, kernel, of_alike)


def goal_missed(measured: list[Measured]) -> list[str]:
    """Return the cases in which a figure that is a goal differs, one line each."""
    return [
        f"{one.case.name} ({one.case.kind}): {judged.subject} {judged.metric} differs"
        for one in measured
        for judged in one.judged()
        if judged.tolerance.is_goal and judged.verdict is Verdict.DIFFERS
    ]
