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
from anabranch.results import Subject
from anabranch.stats import Estimate
from anabranch.units import estimate_text, number, scale_of, title_of
from anabranch.verdict import Judged

#: Width of tables where there is no terminal to fit into.
PIPE_COLUMNS = 160

#: Figures that are shown unless others are asked for.
USUAL_METRICS = frozenset(
    {
        "goodput_bps",
        "throughput_bps",
        "completion_s",
        "drops",
        "loss_rate",
        "retransmits",
        "timeouts",
        "mean_srtt_s",
        "energy_linear_j",
        "energy_huang_j",
        "send_memory_peak_bytes",
        "receive_memory_peak_bytes",
    }
)

#: Connections, subflows, interfaces and hosts of which figures are shown unless they are asked for; with
#: more, those of the whole run are.
MAX_SUBJECTS = 24


def console() -> Console:
    """Return a console on the standard output; wide where that is no terminal."""
    return Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, highlight=False)


def plain_table(*columns: str) -> Table:
    """Return a table with a line under its header and nothing else."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def usual(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are shown unless others are asked for."""
    flows = [row for row in rows if row.subject.is_at_a_node and row.metric in USUAL_METRICS]
    if len({row.subject for row in flows}) > MAX_SUBJECTS:
        return [row for row in rows if row.subject == Subject()]
    return flows


def figures_table(variants: Sequence[Variant], rows: Sequence[Row]) -> Table:
    """Return figures as a table: a column for each variant, and one for its difference to the first."""
    table = plain_table("", "figure")
    for variant in variants:
        table.add_column(variant.label, justify="right")
    for variant in variants[1:]:
        title = "difference" if len(variants) == 2 else f"{variant.label}: difference"
        table.add_column(title, justify="right")
    previous = None
    for row in rows:
        unit = scale_of(row.metric).unit
        cells = ["" if row.subject == previous else str(row.subject)]
        cells.append(f"{title_of(row.metric)} {unit}".rstrip())
        for variant, estimate in zip(variants, row.estimates, strict=True):
            cells.append(_cell(row.metric, estimate, len(variant.runs)))
        for difference in row.differences:
            cells.append(_difference(row.metric, difference, row.estimates[0]))
        if previous is not None and row.subject != previous:
            table.add_section()
        table.add_row(*cells)
        previous = row.subject
    return table


def _cell(metric: str, estimate: Estimate | None, seeds: int) -> str:
    if estimate is None:
        return "-"
    missing = f" ({estimate.size} of {seeds} seeds)" if estimate.size < seeds else ""
    return estimate_text(metric, estimate) + missing


def _difference(metric: str, difference: Estimate | None, base: Estimate | None) -> str:
    if difference is None or base is None:
        return "-"
    relative = f" ({100 * difference.mean / base.mean:+.1f} %)" if base.mean and difference.mean else ""
    return estimate_text(metric, difference, signed=True) + relative


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


def percent(difference: Estimate | None) -> str:
    """Return a relative difference as text; a dash where there is none."""
    if difference is None:
        return "-"
    half_width = None if difference.half_width is None else 100 * difference.half_width
    mean = 100 * difference.mean
    return (f"{mean:+.1f}" if half_width is None else number(mean, half_width, signed=True)) + " %"


def seeds_text(variants: Sequence[Variant]) -> str:
    """Say over how many seeds the figures are, and what the intervals are."""
    counts = sorted({len(variant.runs) for variant in variants})
    if counts == [1]:
        return "one seed each: no intervals"
    text = f"mean over {' or '.join(map(str, counts))} seeds ± half of the 95 % confidence interval"
    if len(variants) == 1:
        return text
    return f"{text}; differences are to {variants[0].label}, paired by seed"


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
