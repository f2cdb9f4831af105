"""What the plots of the papers have in common: figures with panels, sweeps with intervals, traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from anabranch.papers.model import Cell, Measured


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
        axes.errorbar([at for at, _ in points], means, errors, label=label, marker="o", ms=3, capsize=2)


def bars(
    axes: Axes, measured: Measured, cells: Mapping[str, Cell], metric: str, *, factor: float = 1.0
) -> None:
    """Draw one bar with its 95 % interval for each label; parameters as of :func:`sweep`."""
    for number, (label, cell) in enumerate(cells.items()):
        found = measured.mean(cell, metric)
        error = (found.half_width or 0.0) * factor
        axes.bar(number, found.mean * factor, yerr=error, capsize=3, width=0.7, color=f"C{number % 10}")
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
        axes.plot(trace.times_s, trace.values * factor, label=label)
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
        figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=5)
    return figure
