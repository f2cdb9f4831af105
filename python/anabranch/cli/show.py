"""Tables and progress on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from anabranch import experiment
from anabranch.compare import Row, Variant
from anabranch.units import estimate_text, scale_of, title_of
from anabranch.verdict import Judged
from anabranch.wording import cell_text, difference_text, percent

#: Width of tables where there is no terminal to fit into.
PIPE_COLUMNS = 160


def console() -> Console:
    """Return a console on the standard output; wide where that is no terminal."""
    return Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, highlight=False)


def plain_table(*columns: str) -> Table:
    """Return a table with a line under its header and nothing else."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def figures_table(variants: Sequence[Variant], rows: Sequence[Row]) -> Table:
    """Return figures as a table: a column for each variant, and one for its difference to the first."""
    table = plain_table("", "figure")
    for variant in variants:
        table.add_column(variant.label, justify="right", overflow="fold")
    for variant in variants[1:]:
        title = "difference" if len(variants) == 2 else f"{variant.label}: difference"
        table.add_column(title, justify="right", overflow="fold")
    previous = None
    for row in rows:
        unit = scale_of(row.metric).unit
        cells = ["" if row.subject == previous else str(row.subject)]
        cells.append(f"{title_of(row.metric)} {unit}".rstrip())
        for variant, estimate in zip(variants, row.estimates, strict=True):
            cells.append(cell_text(row.metric, estimate, len(variant.runs)))
        for difference in row.differences:
            cells.append(difference_text(row.metric, difference, row.estimates[0]))
        if previous is not None and row.subject != previous:
            table.add_section()
        table.add_row(*cells)
        previous = row.subject
    return table


def verdicts_table(judged: Sequence[Judged]) -> Table:
    """Return what both engines give, how far they are apart, and the verdicts."""
    table = plain_table("", "figure")
    for column in ("sim", "kernel", "difference", "tolerance", "verdict"):
        table.add_column(column, justify="right")
    for one in judged:
        figures = (
            "-" if value is None else estimate_text(one.metric, value) for value in (one.sim, one.kernel)
        )
        table.add_row(
            str(one.subject),
            f"{title_of(one.metric)} {scale_of(one.metric).unit}".rstrip(),
            *figures,
            percent(one.difference),
            f"{100 * one.tolerance.share:g} %",
            one.verdict,
        )
    return table


@contextmanager
def progress_bar(title: str, seeds: int, duration_s: float) -> Iterator[experiment.Progress | None]:
    """Show simulated time as a bar on a terminal; do nothing in a pipe."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("s"))
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task(title, total=round(seeds * duration_s))
        yield lambda reached_s: bar.update(task, completed=round(reached_s))
