"""The plot of a tuning: throughput by buffer, and what giving up throughput saves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from anabranch.plots import STYLE
from anabranch.tuning.grid import Samples
from anabranch.tuning.regression import Fit, Model
from anabranch.tuning.report import Answer

#: Line styles of the models beside the measured points.
_LINES = {Model.PARABOLA: ":", Model.SATURATING: "-"}


def figure(samples: Samples, answer: Answer) -> Figure:
    """Return a panel of throughput by buffer for each path manager, and one of the trade-off.

    Points are means over the seeds with 10 % and 90 % quantiles as bars, lines the models.

    Parameters
    ----------
    samples
        What was measured.
    answer
        What came of it.

    Returns
    -------
    Figure
        The figure.
    """
    managers = samples.grid.path_managers
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(4.2 * (len(managers) + 1), 3.8), layout="constrained")
        FigureCanvasAgg(made)
        panels = made.subplots(1, len(managers) + 1, squeeze=False)[0]
        for axes, manager in zip(panels, managers, strict=False):
            axes.sharey(panels[0])
            throughputs(axes, samples, answer.tuning.fits[manager], manager)
            if manager == answer.choice.path_manager:
                axes.plot(answer.choice.buffer_mib, answer.choice.mbit_per_s, "k*", markersize=11)
        _trade_off(panels[-1], answer)
        made.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
    return made


def throughputs(axes: Axes, samples: Samples, fits: Mapping[Model, Fit], manager: str) -> None:
    """Draw what one path manager reached: points, quantiles as bars, models as lines."""
    at = samples.grid.path_managers.index(manager)
    buffers = samples.buffers_mib
    fine = np.linspace(buffers[0], buffers[-1], 200)
    for number, congestion in enumerate(samples.grid.congestions):
        of_cell = samples.mbit_per_s[at, number]
        mean = of_cell.mean(axis=1)
        low, high = np.quantile(of_cell, [0.1, 0.9], axis=1)
        # The mean of few values may lie outside of their quantiles; a bar has no negative length.
        bars = np.maximum([mean - low, high - mean], 0.0)
        colour = f"C{number % 10}"
        axes.errorbar(
            buffers, mean, yerr=bars, fmt=".", markersize=4, elinewidth=0.7, color=colour, label=congestion
        )
        for model, fit in fits.items():
            axes.plot(fine, fit.curves[congestion].at(fine), _LINES[model], color=colour, lw=0.9)
    axes.set_title(f"{manager}; dotted: parabola, line: saturating", loc="left")
    axes.set_xlabel("send and receive buffer (MiB)")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_ylim(bottom=0)


def _trade_off(axes: Axes, answer: Answer) -> None:
    given_up = [100 * point.delta for point in answer.trade_off]
    axes.plot(given_up, [point.buffer_mib for point in answer.trade_off], ".-", color="0.3")
    axes.plot(100 * answer.delta, answer.choice.buffer_mib, "k*", markersize=11)
    axes.set_title(f"{answer.choice.path_manager} with {answer.choice.congestion}", loc="left")
    axes.set_xlabel("throughput given up (%)")
    axes.set_ylabel("smallest buffer (MiB)")
    axes.set_ylim(bottom=0)


def draw(samples: Samples, answer: Answer, path: Path) -> None:
    """Write the plot as SVG, PDF or PNG, by the suffix of the file; equal data give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}
    with matplotlib.rc_context(STYLE):
        figure(samples, answer).savefig(path, dpi=150, metadata=metadata[path.suffix])
