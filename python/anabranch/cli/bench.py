"""``anabranch bench``, which ``make bench`` calls."""

from __future__ import annotations

import typer

from anabranch.cli.outcome import ended_by_sigterm, reported
from anabranch.cli.scenario import Jobs
from anabranch.experiment import available_cores


def bench(jobs: Jobs = None) -> None:
    """Time a twentieth of MPCOA's campaign."""
    from anabranch.papers.mpcoa_sample import measure

    with reported(), ended_by_sigterm():
        typer.echo(measure(available_cores() if jobs is None else jobs))
