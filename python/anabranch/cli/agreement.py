"""``anabranch agreement``, which ``make agreement`` calls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from anabranch.agreement import MIN_RUNS, QUICK_SEEDS, Case, Measured, cases, goal_missed, measure
from anabranch.agreement_report import MARKER, document, report
from anabranch.bed import Unavailable, find
from anabranch.cli.document import read_marked
from anabranch.cli.outcome import FAILED, ended_by_sigterm, reported
from anabranch.cli.scenario import MAX_SEEDS
from anabranch.cli.show import progress_bar


def agreement(
    folder: Annotated[Path, typer.Option("--scenarios", help="Where the scenarios lie.")] = Path(
        "scenarios/agreement"
    ),
    seeds: Annotated[
        int, typer.Option(min=MIN_RUNS, max=MAX_SEEDS, metavar="N", help="Repetitions of each.")
    ] = 5,
    extra: Annotated[bool, typer.Option(help="Whether to run the six further scenarios, too.")] = True,
    files: Annotated[bool, typer.Option(help="Whether to send files, too.")] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run two scenarios alone, shorter; fail if a goal is missed.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("runs/agreement"),
    write: Annotated[
        Path | None, typer.Option(help="Write the tables into this document; printed unless given.")
    ] = None,
) -> None:
    """Run the scenarios of the agreement on both engines and compare them. Complete runs are reused."""
    with reported():
        find()
        planned = cases(folder, extra=extra, quick=quick, files=files)
        text = read_marked(write, MARKER) if write is not None else ""
        begun_s = time.monotonic()
        with ended_by_sigterm():
            measured = [_measure(case, QUICK_SEEDS if quick else seeds, out) for case in planned]
        reused = any(run.reused for one in measured for run in one.kernel)
        duration_s = None if reused else time.monotonic() - begun_s
        unfit = [one for one in measured if not one.counts]
        if unfit and quick:
            reasons = dict.fromkeys(reason for run in unfit[0].kernel for reason in run.invalid)
            raise Unavailable(f"too few runs on the kernel count on this machine now: {'; '.join(reasons)}")
        if write is None or unfit:
            typer.echo(report(measured, duration_s), nl=False)
        else:
            write.write_text(document(text, measured, duration_s), encoding="utf-8")
            typer.echo(f"tables in {write}")
        missed = goal_missed(measured) if quick else []
        for line in [*missed, *(f"{one.case.name} ({one.case.kind}): too few runs count" for one in unfit)]:
            typer.echo(f"error: {line}", err=True)
        if missed or unfit:
            raise typer.Exit(FAILED)


def _measure(case: Case, seeds: int, out: Path) -> Measured:
    duration_s = case.experiment.scenario.duration_s
    with progress_bar(f"{case.name} ({case.kind})", seeds, duration_s) as progress:
        measured = measure(case, seeds, out, progress)
    for one in measured.judged():
        if one.tolerance.is_goal and one.difference is not None:
            what = f"{case.name} ({case.kind}): {one.subject} {one.metric}"
            typer.echo(f"{what}: {100 * one.difference.mean:+.1f} %, {one.verdict}")
    return measured
