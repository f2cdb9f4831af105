"""``anabranch coupling``, which ``make coupling`` calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch._engine import ScenarioError
from anabranch.bed import find
from anabranch.cli.document import read_marked
from anabranch.cli.outcome import ended_by_sigterm, reported
from anabranch.cli.scenario import MAX_SEEDS, Engine
from anabranch.cli.show import progress_bar
from anabranch.coupling import HOSTS, MARKER, MIN_RUNS, Case, Host, Measured, cases, measure, report


def coupling(
    folder: Annotated[Path, typer.Option("--scenarios", help="Where the scenarios lie.")] = Path(
        "scenarios/coupling"
    ),
    engine: Annotated[Engine | None, typer.Option(help="One engine alone; both unless given.")] = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=MIN_RUNS, max=MAX_SEEDS, metavar="N", help="Repetitions of each, of OLIA three times as many."
        ),
    ] = 5,
    out: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("runs/coupling"),
    write: Annotated[
        Path | None, typer.Option(help="Write the tables into this document; printed unless given.")
    ] = None,
) -> None:
    """Measure what coupled congestion controls take from a TCP, and what they reach alone."""
    with reported():
        hosts = [host for host in HOSTS if engine is None or host.engine == engine.value]
        if any(host.engine == Engine.KERNEL.value for host in hosts):
            find()
        planned = cases(folder)
        if not planned:
            raise ScenarioError(f"{folder}: no scenarios here")
        text = read_marked(write, MARKER) if write is not None else ""
        with ended_by_sigterm():
            measured = [_measure(case, hosts, seeds, out) for case in planned]
        tables = report(measured, hosts)
        if write is None:
            typer.echo(tables, nl=False)
        else:
            write.write_text(f"{text.partition(MARKER)[0]}{MARKER}\n\n{tables}", encoding="utf-8")
            typer.echo(f"tables in {write}")


def _measure(case: Case, hosts: list[Host], seeds: int, out: Path) -> Measured:
    duration_s = case.experiment().scenario.duration_s
    with progress_bar(f"{case.name} ({case.congestion})", seeds * case.repeats, duration_s) as progress:
        return measure(case, hosts, seeds, out, progress)
