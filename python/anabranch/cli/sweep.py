"""``anabranch sweep``."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from anabranch.cli.outcome import BadUsage, ended_by_sigterm, reported
from anabranch.cli.scenario import (
    MAX_SEEDS,
    Algorithms,
    AsJson,
    ClusterAddress,
    File,
    Jobs,
    Overrides,
    check_jobs,
    load_algorithm_files,
    pairs,
)
from anabranch.cli.show import console, plain_table, progress_bar
from anabranch.experiment import Experiment
from anabranch.grid import GridError, read_axis
from anabranch.results import Subject
from anabranch.sweeps import Cell, Plan, Sweep, plan_sweep
from anabranch.units import estimate_text, scale_of, title_of
from anabranch.wording import MAX_SUBJECTS

#: Figures of connections that are shown unless others are asked for.
USUAL_METRICS = ("goodput_bps", "completion_s")


def sweep(
    file: File,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B,...",
            help="Values of a key, or KEY=FROM:TO:STEP; may be repeated for the full grid.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SEEDS, metavar="N", help="Run each point with the seeds 1 to N.")
    ] = 1,
    overrides: Overrides = None,
    algorithms: Algorithms = None,
    out: Annotated[Path, typer.Option(help="Where runs and the table are kept.")] = Path("runs"),
    jobs: Jobs = None,
    scheduler: ClusterAddress = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Show this figure; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario at every point of a grid; all figures go into one table, sweep.parquet.

    Runs that are complete already are reused, so that a sweep that was interrupted continues.
    """
    with reported():
        check_jobs(jobs, scheduler)
        load_algorithm_files(algorithms)
        plan = _plan(Experiment(file, pairs(overrides)), vary or [], seeds)
        if scheduler is not None and (in_python := plan.in_python):
            raise BadUsage(f"{' and '.join(in_python)}: written in Python, for runs on this machine")
        bar = progress_bar(plan.experiment.scenario.name, 1, plan.simulated_s)
        with ended_by_sigterm(), bar as progress:
            done = plan.run(out, jobs=jobs, cluster=scheduler, progress=progress)
        names = tuple(dict.fromkeys(metrics)) if metrics else USUAL_METRICS
        cells = _chosen(done, names, is_asked_for=bool(metrics))
        if as_json:
            typer.echo(json.dumps(_as_json(done, names, cells), indent=2))
        else:
            _print(done, names, cells)


def _plan(experiment: Experiment, vary: Sequence[str], seeds: int) -> Plan:
    try:
        return plan_sweep(experiment, [read_axis(text) for text in vary], range(1, seeds + 1))
    except GridError as error:
        raise BadUsage(f"--vary: {error}") from None


def _chosen(done: Sweep, metrics: Sequence[str], *, is_asked_for: bool) -> list[Cell]:
    """Return what is shown: each metric of flows, interfaces and hosts, else of the run, else of links.

    Unless metrics are asked for, of connections alone, or of the run if there are many.
    """
    cells = done.estimates(metrics)
    if is_asked_for:
        ranks = _closest(done, metrics, cells)
        return [cell for cell in cells if _has_any(cell, ranks)]
    flows = [cell for cell in cells if cell.subject.connection is not None and cell.subject.subflow is None]
    if not flows or len({cell.subject for cell in flows}) > MAX_SUBJECTS:
        return [cell for cell in cells if cell.subject == Subject()]
    return flows


def _closest(done: Sweep, metrics: Sequence[str], cells: Sequence[Cell]) -> list[int]:
    """Return for each metric how far from flows the subjects are that have it; refuse what none has."""
    ranks = []
    for position, metric in enumerate(metrics):
        found = [_rank(cell.subject) for cell in cells if cell.estimates[position] is not None]
        if not found:
            known = dict.fromkeys(figure.metric for figure in done.runs[0].figures)
            nearest = difflib.get_close_matches(metric, known, n=1)
            hint = f"did you mean {nearest[0]}? " if nearest else ""
            raise BadUsage(f"--metric {metric}: no run has it; {hint}there are {', '.join(known)}")
        ranks.append(min(found))
    return ranks


def _has_any(cell: Cell, ranks: Sequence[int]) -> bool:
    rank = _rank(cell.subject)
    return any(
        one is not None and rank == closest for one, closest in zip(cell.estimates, ranks, strict=True)
    )


def _rank(subject: Subject) -> int:
    if subject.is_at_a_node:
        return 0
    return 1 if subject == Subject() else 2


def _as_json(done: Sweep, metrics: Sequence[str], cells: Sequence[Cell]) -> dict[str, Any]:
    plan = done.plan
    return {
        "scenario": plan.experiment.scenario.name,
        "title": plan.experiment.scenario.title,
        "overrides": plan.experiment.overrides,
        "vary": {axis.key: axis.values for axis in plan.axes},
        "seeds": plan.seeds,
        "table": str(done.path),
        "points": [
            {
                "values": values,
                "key": point.scenario.key,
                "runs": [
                    {"seed": seed, "path": str(run.path), "reused": run.reused, "damaged": run.damaged}
                    for seed, run in zip(plan.seeds, runs, strict=True)
                ],
            }
            for point, (values, runs) in zip(plan.points, done.point_runs(), strict=True)
        ],
        "figures": [
            {
                "values": cell.values,
                **cell.subject._asdict(),
                "metric": metric,
                "estimate": estimate._asdict(),
            }
            for cell in cells
            for metric, estimate in zip(metrics, cell.estimates, strict=True)
            if estimate is not None
        ],
    }


def _print(done: Sweep, metrics: Sequence[str], cells: Sequence[Cell]) -> None:
    plan = done.plan
    out = console()
    out.print(plan.experiment.scenario.title, markup=False)
    for key, value in plan.experiment.overrides.items():
        out.print(f"with {key} = {value}", markup=False)
    out.print(_table(done, metrics, cells))
    count = len(plan.seeds)
    out.print(
        "one seed each: no intervals"
        if count == 1
        else f"mean over {count} seeds ± half of the 95 % confidence interval"
    )
    for run in done.runs:
        if run.damaged is not None:
            out.print(f"made again: {run.damaged}", markup=False, soft_wrap=True)
    reused = sum(run.reused for run in done.runs)
    out.print(
        f"{len(plan.points)} points, {len(done.runs)} runs, {reused} of them reused; figures in {done.path}",
        markup=False,
        soft_wrap=True,
    )


def _table(done: Sweep, metrics: Sequence[str], cells: Sequence[Cell]) -> Table:
    """Return a row for each point and subject, a column for each varied key and metric."""
    shown = [
        position
        for position in range(len(metrics))
        if any(cell.estimates[position] is not None for cell in cells)
    ]
    subjects = {cell.subject for cell in cells}
    table = plain_table(*(axis.key for axis in done.plan.axes))
    if len(subjects) > 1:
        table.add_column("", overflow="fold")
    for position in shown:
        metric = metrics[position]
        table.add_column(f"{title_of(metric)} {scale_of(metric).unit}".rstrip(), justify="right")
    seeds = len(done.plan.seeds)
    previous = None
    for cell in cells:
        is_next = cell.values != previous
        row = [value if is_next else "" for value in cell.values.values()]
        if len(subjects) > 1:
            row.append(str(cell.subject))
        for position in shown:
            estimate = cell.estimates[position]
            if estimate is None:
                row.append("-")
            else:
                missing = f" ({estimate.size} of {seeds} seeds)" if estimate.size < seeds else ""
                row.append(estimate_text(metrics[position], estimate) + missing)
        if is_next and previous is not None and len(subjects) > 1:
            table.add_section()
        table.add_row(*row)
        previous = cell.values
    return table
