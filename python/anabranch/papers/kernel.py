"""Papers measured on the kernel, with the simulator's figures of the same cells beside.

The rules are the paper's own. A claim is judged if its rule can do with what is run on the kernel; for every
other there is a reason. Runs that do not count are repeated, then named, and in no figure: if a cell has too
few, all cells of its level are left out, so that no comparison has one side only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.bed import KernelOptions
from anabranch.experiment import Experiment, Progress
from anabranch.kernel_runs import after, run_until_they_count
from anabranch.papers.claims import Claim, claims
from anabranch.papers.judging import not_testable
from anabranch.papers.model import Cell, Measured, Outcome, Paper, Planned, Rule, Table, without_traces
from anabranch.papers.reproduction import measure
from anabranch.results import Run

#: Fewer repetitions give no interval.
MIN_RUNS = 2


@dataclass(frozen=True)
class Impossible:
    """Something of a paper that a stock kernel cannot do, or does in another way, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class OnKernel:
    """What of a paper is measured on the kernel.

    Parameters
    ----------
    paper
        The paper, whose rules and figures are used.
    plan
        What is run, less of it if its argument, ``quick``, is true. Cells have the words of the paper's plan.
    needs
        By claim, the beginnings of the cells that its rule reads.
    untested
        By claim, why it is not judged; every claim is here or in ``needs``.
    shown
        Figures of every cell that are shown for both engines.
    impossible
        What a stock kernel cannot do.
    own_kinds
        First words of cells that the paper's plan does not have: what is shown beside its claims.
    tables
        Tables of the paper that are made of either engine's figures.
    """

    paper: Paper
    plan: Callable[[bool], list[Planned]]
    needs: Mapping[str, tuple[Cell, ...]]
    untested: Mapping[str, str]
    shown: tuple[str, ...]
    impossible: tuple[Impossible, ...] = ()
    own_kinds: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Lost:
    """A run that does not count, after all repetitions."""

    cell: Cell
    seed: int
    why: tuple[str, ...]


@dataclass(frozen=True)
class OnBoth:
    """A claim with what came of it on either engine."""

    claim: Claim
    rule: Rule
    sim: Outcome
    kernel: Outcome


@dataclass(frozen=True)
class Result:
    """A paper on both engines.

    ``seeds`` are those whose runs count in every cell that is judged, ``lost`` the runs that do not count,
    ``left_out`` the cells without enough of them. ``runs`` are those on the kernel, each once.
    """

    on_kernel: OnKernel
    plan: tuple[Planned, ...]
    sim: Measured
    kernel: Measured
    seeds: tuple[int, ...]
    lost: tuple[Lost, ...]
    left_out: tuple[Cell, ...]
    runs: tuple[Run, ...]
    claims: tuple[OnBoth, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what ``anabranch reproduce --engine kernel --json`` prints."""
        return {
            "paper": self.on_kernel.paper.name,
            "seeds": list(self.seeds),
            "cells": [
                {"cell": list(cell), "metric": metric, **self._means(cell, metric)}
                for cell in self.kernel.cells()
                for metric in self.on_kernel.shown
            ],
            "lost": [{"cell": list(one.cell), "seed": one.seed, "why": list(one.why)} for one in self.lost],
            "claims": [
                {
                    "id": one.claim.id,
                    "claim": one.claim.claim,
                    "paper": one.claim.paper,
                    "sim": _outcome_json(one.sim),
                    "kernel": _outcome_json(one.kernel),
                }
                for one in self.claims
            ],
        }

    def _means(self, cell: Cell, metric: str) -> dict[str, float]:
        measured = {"sim": self.sim, "kernel": self.kernel}
        return {engine: figures.mean(cell, metric).mean for engine, figures in measured.items()}


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "ours": outcome.ours,
        "low": outcome.low,
        "high": outcome.high,
        "verdict": outcome.verdict,
        "why": outcome.why,
    }


def experiments(plan: Sequence[Planned]) -> dict[str, tuple[Experiment, int]]:
    """Return what is run, by key: experiments that several cells share once, with their repetitions."""
    found: dict[str, tuple[Experiment, int]] = {}
    for planned in plan:
        key = planned.experiment.scenario.key
        _, seeds = found.get(key, (planned.experiment, 0))
        found[key] = planned.experiment, max(seeds, planned.seeds)
    return found


def real_time_s(plan: Sequence[Planned]) -> float:
    """Return how long the runs of a plan take on the kernel, in seconds; repetitions come on top."""
    return sum(one.scenario.duration_s * seeds for one, seeds in experiments(plan).values())


def reproduce_on_kernel(
    on_kernel: OnKernel,
    out: Path,
    *,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run the plan on both engines and judge every claim on each. Complete runs are reused.

    Parameters
    ----------
    on_kernel
        What of which paper.
    out
        Where runs are kept.
    quick
        Whether to run the shorter plan.
    jobs
        Runs at a time in the simulator; on the kernel they are made one after the other.
    progress
        Called with the time that all runs on the kernel have reached, in seconds.

    Returns
    -------
    Result
        Figures and verdicts of both.

    Raises
    ------
    OutputError
        If ``out`` cannot be written to.
    RunError
        If a run fails.
    ScenarioError
        If a scenario of the paper is not there.
    Unavailable
        If this machine lacks what the kernel engine needs.
    """
    paper, plan = on_kernel.paper, tuple(on_kernel.plan(quick))
    sim = measure(paper, plan, out, jobs=jobs)
    runs = run_all(plan, out, progress)
    kernel, seeds, lost, left_out = figures(paper, plan, runs)
    rules = {rule.claim: rule for rule in paper.rules}
    judged = []
    for claim in claims(paper.name):
        rule = rules[claim.id]
        outcomes = [_judge(on_kernel, rule, measured, left_out) for measured in (sim, kernel)]
        judged.append(OnBoth(claim, rule, *outcomes))
    made = tuple(run for of_one in runs.values() for run in of_one)
    return Result(on_kernel, plan, sim, kernel, seeds, lost, left_out, made, tuple(judged))


def run_all(
    plan: Sequence[Planned],
    out: Path,
    progress: Progress | None = None,
    options: Mapping[str, KernelOptions] | None = None,
) -> dict[str, list[Run]]:
    """Run a plan on the kernel, and what does not count again; ``options``, where not as usual, are by key.

    Returns
    -------
    dict
        By key of the scenario, its runs in the order of the seeds.
    """
    runs: dict[str, list[Run]] = {}
    before_s = 0.0
    for key, (experiment, seeds) in experiments(plan).items():
        reached, own = after(before_s, progress), (options or {}).get(key)
        runs[key] = run_until_they_count(experiment, range(1, seeds + 1), out, reached, own)
        before_s += experiment.scenario.duration_s * seeds
    return runs


def figures(
    paper: Paper, plan: Sequence[Planned], runs: Mapping[str, Sequence[Run]]
) -> tuple[Measured, tuple[int, ...], tuple[Lost, ...], tuple[Cell, ...]]:
    """Read the figures of the runs that count.

    Parameters
    ----------
    paper
        The paper, which says what is read.
    plan
        What has been run.
    runs
        By key of the scenario, its runs.

    Returns
    -------
    tuple
        The figures without traces, of the seeds that count in every cell that is left; these seeds; the runs
        that do not count; and the cells that are left out, with all of their level.
    """
    of_cell = {planned.cell: runs[planned.experiment.scenario.key][: planned.seeds] for planned in plan}
    lost = tuple(
        Lost(cell, run.seed, run.invalid) for cell, of_one in of_cell.items() for run in of_one if run.invalid
    )
    counted = {cell: {run.seed: run for run in of_one if not run.invalid} for cell, of_one in of_cell.items()}
    poor = {_level(cell) for cell, of_one in counted.items() if len(of_one) < MIN_RUNS}
    left_out = tuple(cell for cell in counted if _level(cell) in poor)
    rest = {cell: of_one for cell, of_one in counted.items() if cell not in left_out}
    common = set.intersection(*(set(of_one) for of_one in rest.values())) if rest else set()
    if len(common) < MIN_RUNS:
        return Measured({}), (), lost, tuple(counted)
    seeds = tuple(sorted(common))
    found = {}
    for cell, of_one in rest.items():
        by_seed = [without_traces(paper.extract(cell, of_one[seed])) for seed in seeds]
        found[cell] = {name: tuple(run[name] for run in by_seed) for name in by_seed[0]}
    return Measured(found), seeds, lost, left_out


def _level(cell: Cell) -> Cell:
    """Return the words of a cell without the second, which is an algorithm: cells that are compared."""
    return cell[:1] + cell[2:]


def _judge(on_kernel: OnKernel, rule: Rule, measured: Measured, left_out: Sequence[Cell]) -> Outcome:
    """Judge a claim if its rule has what it reads, on either engine alike."""
    if rule.claim in on_kernel.untested:
        return not_testable(on_kernel.untested[rule.claim])
    needed = on_kernel.needs[rule.claim]
    missing = [cell for cell in left_out if any(cell[: len(words)] == words for words in needed)]
    if missing:
        return not_testable(f"too few runs on the kernel count: {', '.join(missing[0])}")
    absent = [words for words in needed if not measured.cells(*words)]
    if absent:
        return not_testable(f"not in the shorter plan: {', '.join(absent[0])}")
    return rule.judge(measured)
