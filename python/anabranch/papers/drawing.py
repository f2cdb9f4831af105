"""What the plots of the papers have in common: figures with panels, sweeps with intervals, traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from anabranch.papers.model import Cell, Measured
from anabranch.report.drawing import COLOURS

_STROKES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "D", "^", "v", "X", "P", "*")

#: Widths of the first line of a panel and of its fifth and all after that, in points.
_WIDTHS = (2.6, 1.0)

#: What an entry of a legend takes beside its letters, and what a letter takes, in inches.
_ENTRY, _LETTER = 0.62, 0.085


def style(number: int) -> dict[str, Any]:
    """Return how a line is drawn: colour, stroke, and a width that tells lines which lie upon each other.

    Parameters
    ----------
    number
        Which line of a panel it is, from 0 on; later ones are drawn upon earlier ones, and are thinner.

    Returns
    -------
    dict
        Arguments of matplotlib's ``plot`` and ``errorbar``.
    """
    part = min(number, 4) / 4
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": _STROKES[number % len(_STROKES)],
        "linewidth": _WIDTHS[0] + part * (_WIDTHS[1] - _WIDTHS[0]),
    }


def intervals(
    axes: Axes,
    at: Sequence[float],
    means: Sequence[float],
    errors: Sequence[float],
    label: str,
    number: int | None = None,
) -> None:
    """Draw a line of means with their intervals.

    Parameters
    ----------
    axes
        Where.
    at, means, errors
        Abscissas, means and half widths.
    label
        What the legend calls it.
    number
        Which line it is, see :func:`style`; the next one of the panel unless given.
    """
    which = len(axes.containers) if number is None else number
    look = style(which)
    axes.errorbar(
        at,
        means,
        errors,
        label=label,
        marker=_MARKERS[which % len(_MARKERS)],
        ms=2.0 + 1.6 * look["linewidth"],
        elinewidth=1.0,
        capsize=2,
        **look,
    )


def panels(columns: int = 1, rows: int = 1, *, height: float = 2.8) -> tuple[Figure, list[Axes]]:
    """Make a figure with panels, row by row.

    Parameters
    ----------
    columns, rows
        How many panels.
    height
        Height of a row, in inches.

    Returns
    -------
    tuple of Figure and list of Axes
        The figure and its panels.
    """
    figure = Figure(figsize=(9 if columns > 1 else 6, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def sweep(
    axes: Axes,
    measured: Measured,
    lines: Mapping[str, Sequence[tuple[float, Cell]]],
    metric: str,
    *,
    factor: float = 1.0,
) -> None:
    """Draw means with 95 % intervals over what is swept.

    Parameters
    ----------
    axes
        Where.
    measured
        The numbers.
    lines
        For every label the points: what is swept, and the cell.
    metric
        The figure.
    factor
        What its value is multiplied with.
    """
    for label, points in lines.items():
        found = [measured.mean(cell, metric) for _, cell in points]
        means = [one.mean * factor for one in found]
        errors = [(one.half_width or 0.0) * factor for one in found]
        intervals(axes, [at for at, _ in points], means, errors, label)


def bars(
    axes: Axes, measured: Measured, cells: Mapping[str, Cell], metric: str, *, factor: float = 1.0
) -> None:
    """Draw one bar with its 95 % interval for each label; parameters as of :func:`sweep`."""
    for number, (label, cell) in enumerate(cells.items()):
        found = measured.mean(cell, metric)
        error = (found.half_width or 0.0) * factor
        axes.bar(
            number,
            found.mean * factor,
            yerr=error,
            capsize=3,
            width=0.7,
            color=COLOURS[number % len(COLOURS)],
        )
        axes.text(number, 0, f" {label}", rotation=90, ha="center", va="bottom", fontsize=8)
    axes.set_xticks([])


def traces(
    axes: Axes,
    measured: Measured,
    lines: Mapping[str, tuple[Cell, str]],
    *,
    factor: float = 1.0,
    first_seed: bool = False,
) -> None:
    """Draw traces, means over the seeds, over time.

    Parameters
    ----------
    axes
        Where.
    measured
        The numbers.
    lines
        For every label the cell and the name of its trace.
    factor
        What a value is multiplied with.
    first_seed
        Whether to draw the first seed alone: a mean hides the shape of windows.
    """
    for label, (cell, name) in lines.items():
        trace = measured.trace(cell, name, first_seed=first_seed)
        look = style(len(axes.lines))
        axes.plot(trace.times_s, trace.values * factor, label=label, **{**look, "linewidth": 1.5})
    axes.set_xlabel("time (s)")
    axes.margins(x=0)


def claimed(axes: Axes, value: float, text: str) -> None:
    """Draw the paper's figure as a dashed line."""
    axes.axhline(value, color="0.4", ls="--", lw=0.9)
    axes.annotate(text, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7)


def finish(figure: Figure, axes: Sequence[Axes], labels: Sequence[str], *, from_zero: bool = True) -> Figure:
    """Label the ordinates and put one legend above all panels.

    Parameters
    ----------
    figure
        The figure.
    axes
        Its panels.
    labels
        The label of each panel's ordinate.
    from_zero
        Whether ordinates begin at zero.

    Returns
    -------
    Figure
        The figure.
    """
    for one, label in zip(axes, labels, strict=True):
        one.set_ylabel(label)
        if from_zero:
            one.set_ylim(bottom=0)
    entries: dict[str, Artist] = {}
    for one in axes:
        handles, names = one.get_legend_handles_labels()
        for handle, name in zip(handles, names, strict=True):
            entries.setdefault(name, handle)
    if entries:
        names, columns = in_rows(list(entries), figure.get_figwidth())
        figure.legend([entries[name] for name in names], names, loc="outside upper center", ncols=columns)
    return figure


def in_rows(names: Sequence[str], width: float) -> tuple[list[str], int]:
    """Arrange the entries of a legend in rows that are read from left to right.

    Parameters
    ----------
    names
        The entries.
    width
        Width of the figure, in inches.

    Returns
    -------
    tuple of list and int
        The entries in the order in which matplotlib, which fills columns, is to have them, and the number of
        columns.
    """
    rows = math.ceil(sum(_ENTRY + _LETTER * len(name) for name in names) / width)
    columns = math.ceil(len(names) / rows)
    return [name for column in range(columns) for name in names[column::columns]], columns
