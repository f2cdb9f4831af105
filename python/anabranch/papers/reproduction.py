"""A paper's plan run, its figures read, its claims judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from anabranch._engine import ScenarioError
from anabranch.campaign import Task, run_tasks
from anabranch.experiment import Progress
from anabranch.papers.claims import Claim, claims
from anabranch.papers.model import Cell, Measured, Outcome, Paper, Planned, Plot, Rule
from anabranch.plots import STYLE
from anabranch.results import Run


@dataclass(frozen=True)
class Judged:
    """A claim, the rule for it, and what came of it."""

    claim: Claim
    rule: Rule
    outcome: Outcome


@dataclass(frozen=True)
class Reproduction:
    """A paper with its figures and its judged claims, which are in the order of the paper's file."""

    paper: Paper
    plan: tuple[Planned, ...]
    measured: Measured
    claims: tuple[Judged, ...]

    @property
    def runs(self) -> int:
        """Number of runs; one that several cells share counts once."""
        return len(_tasks(self.plan))

    @property
    def simulated_s(self) -> float:
        """Simulated time of all runs, in seconds."""
        return simulated_s(self.plan)

    def as_json(self) -> dict[str, Any]:
        """Return the claims as ``anabranch reproduce --json`` prints them."""
        return {
            "paper": self.paper.name,
            "claims": [
                {
                    "id": one.claim.id,
                    "claim": one.claim.claim,
                    "paper": one.claim.paper,
                    "ours": one.outcome.ours,
                    "low": one.outcome.low,
                    "high": one.outcome.high,
                    "verdict": one.outcome.verdict,
                    "why": one.outcome.why,
                }
                for one in self.claims
            ],
        }


def scenario_file(name: str) -> Path:
    """Find a scenario of a paper.

    Parameters
    ----------
    name
        Its path below ``scenarios/papers``, such as ``mfvl/setup3.toml``.

    Returns
    -------
    Path
        The file, in the working directory or in the repository that this package lies in.

    Raises
    ------
    ScenarioError
        If it is in neither.
    """
    folder = Path("scenarios/papers")
    for root in (Path(), Path(__file__).parents[3]):
        if (root / folder / name).is_file():
            return root / folder / name
    raise ScenarioError(f"{folder / name}: not here; expected to be run in the folder of the project")


def simulated_s(plan: Iterable[Planned]) -> float:
    """Return the simulated time of the runs of a plan, in seconds."""
    return sum(task.duration_s for task in _tasks(plan).values())


#: A run: the key of its scenario, and its seed.
_RunName = tuple[str, int]


def _tasks(plan: Iterable[Planned]) -> dict[_RunName, Task]:
    """Return the runs of a plan, without those that several cells share."""
    tasks: dict[_RunName, Task] = {}
    for planned in plan:
        key = planned.experiment.scenario.key
        for seed in range(1, planned.seeds + 1):
            tasks.setdefault((key, seed), Task(planned.experiment, seed))
    return tasks


def reproduce(
    paper: Paper,
    out: Path,
    *,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Run the plan of a paper and judge its claims. Complete runs are reused.

    Parameters
    ----------
    paper
        The paper.
    out
        Where runs are kept.
    quick
        Whether to run the shorter plan.
    jobs
        Runs at a time; all cores unless given.
    progress
        Called with the simulated time that all runs together have reached, in seconds.

    Returns
    -------
    Reproduction
        The figures and the judged claims.

    Raises
    ------
    OutputError
        If ``out`` cannot be written to.
    RunError
        If a run fails.
    ScenarioError
        If a scenario of the paper is not there.
    """
    plan = tuple(paper.plan(quick))
    measured = measure(paper, plan, out, jobs=jobs, progress=progress)
    return Reproduction(paper, plan, measured, judge(paper, measured))


def measure(
    paper: Paper,
    plan: Sequence[Planned],
    out: Path,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Run a plan and read the figures of every run. Cells with the same scenario share their runs."""
    tasks = _tasks(plan)
    readers: dict[_RunName, list[Cell]] = {run: [] for run in tasks}
    for planned in plan:
        for seed in range(1, planned.seeds + 1):
            readers[planned.experiment.scenario.key, seed].append(planned.cell)
    found: dict[Cell, list[dict[str, float]]] = {planned.cell: [] for planned in plan}
    runs = run_tasks(list(tasks.values()), out, jobs=jobs, progress=progress)
    # A run keeps the series that have been read from it, so each is let go when its figures are.
    runs.reverse()
    for cells in readers.values():
        run_of_cells: Run = runs.pop()
        for cell in cells:
            found[cell].append(paper.extract(cell, run_of_cells))
    return Measured(
        {
            cell: {name: tuple(run[name] for run in by_seed) for name in by_seed[0]}
            for cell, by_seed in found.items()
        }
    )


def judge(paper: Paper, measured: Measured) -> tuple[Judged, ...]:
    """Judge every claim of a paper by its rule."""
    rules = {rule.claim: rule for rule in paper.rules}
    return tuple(
        Judged(claim, rules[claim.id], rules[claim.id].judge(measured)) for claim in claims(paper.name)
    )


def draw(paper: Paper, measured: Measured, folder: Path) -> list[Path]:
    """Draw every plot of a paper as ``<folder>/<paper>-<plot>.svg``, equal to the byte for equal figures."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_draw(plot, measured, folder / f"{paper.name}-{plot.name}.svg") for plot in paper.plots]


def _draw(plot: Plot, measured: Measured, path: Path) -> Path:
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "none"}):
        plot.draw(measured).savefig(path, metadata={"Date": None})
    return path
