"""Plots of runs over time, equal to the byte for equal runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from anabranch.compare import Variant
from anabranch.results import Doubles, OneSeries, Run, Subject
from anabranch.stats import CONFIDENCE, ROUNDING, t_quantile
from anabranch.units import scale_of

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType


class Plot(NamedTuple):
    """A file: its name, the series in it, and the label of its axes."""

    name: str
    metrics: tuple[str, ...]
    label: str


#: The plots. What a connection delivers is its goodput, what a subflow delivers its throughput; drops are
#: counted from the start. Power is that of the model with tails.
PLOTS = (
    Plot("goodput", ("goodput_bps", "throughput_bps"), "goodput (Mbit/s)"),
    Plot("drops", ("drops",), "packets dropped so far"),
    Plot("cwnd", ("cwnd_packets",), "window (packets)"),
    Plot("power", ("power_huang_w",), "power (W)"),
    Plot("send-memory", ("send_memory_bytes",), "held for sending (bytes)"),
    Plot("receive-memory", ("receive_memory_bytes",), "received, not read (bytes)"),
)

#: Connections, subflows, interfaces and hosts that are drawn at most; more would not be readable.
MAX_PANELS = 8

#: Rates are averaged over this part of the run: shorter ones show little but how delivery bunches behind
#: gaps in the data.
RATE_BINS = 50

STYLE: dict[RcKeyType, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "path.simplify": False,
    "svg.hashsalt": "anabranch",
}


#: What keeps the time of drawing and the version of the program out of a file.
METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}

#: Strokes of the variants, so that they differ in more than colour.
STROKES = ("solid", "dashed", "dotted", "dashdot")


class Band(NamedTuple):
    """A mean over seeds at each time, with half of the width of its interval (zero for one seed)."""

    times_s: Doubles
    mean: Doubles
    half_width: Doubles


def draw(
    variants: Sequence[Variant],
    folder: Path,
    plots: Sequence[Plot] = PLOTS,
    formats: Sequence[str] = ("svg", "png"),
) -> list[Path]:
    """Draw goodput, drops, windows, power and memory over time, or other series.

    A line is the mean over the seeds, its band the 95 % confidence interval of the mean. A window has a
    thin line too, that of the lowest seed, because the mean hides its shape.

    Parameters
    ----------
    variants
        What is compared.
    folder
        Where the files go; made if it is not there.
    plots
        What to draw.
    formats
        Of ``svg``, ``png`` and ``pdf``.

    Returns
    -------
    list of Path
        The files. A plot of which no run has recorded a series is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for plot in plots:
        panels = _panels(variants, plot)
        if not panels:
            continue
        with matplotlib.rc_context(STYLE):
            figure = _figure(variants, plot, panels[:MAX_PANELS])
            paths += save(figure, folder / plot.name, formats)
    return paths


def save(figure: Figure, path: Path, formats: Sequence[str]) -> list[Path]:
    """Write a figure in some formats, equal to the byte for equal figures; return the files."""
    files = []
    for suffix in formats:
        file = path.with_name(f"{path.name}.{suffix}")
        figure.savefig(file, dpi=150, metadata=METADATA[suffix])
        files.append(file)
    return files


Panel = tuple[Subject, str]


def _panels(variants: Sequence[Variant], plot: Plot) -> list[Panel]:
    panels: dict[Panel, None] = {}
    for variant in variants:
        for one in variant.runs[0].series.all:
            if one.metric in plot.metrics and len(one.times_s):
                panels[one.subject, one.metric] = None
    return list(panels)


def _figure(variants: Sequence[Variant], plot: Plot, panels: Sequence[Panel]) -> Figure:
    figure = Figure(figsize=(8, 1 + 2.1 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (subject, metric) in zip(rows, panels, strict=True):
        for number, variant in enumerate(variants):
            _line(axes, number, variant, metric, subject)
        axes.set_title(str(subject), loc="left")
        axes.set_ylabel(plot.label)
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
    rates = "; rates are means over a fiftieth of the run" if "goodput_bps" in plot.metrics else ""
    rows[-1].set_xlabel(f"time (s){rates}")
    seeds = max(len(variant.runs) for variant in variants)
    if seeds > 1:
        thin = f"; thin: seed {variants[0].runs[0].seed}" if "cwnd_packets" in plot.metrics else ""
        note = f"mean and {CONFIDENCE:.0%} interval over {seeds} seeds{thin}"
        rows[0].set_title(note, loc="right", fontsize=8)
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _line(axes: Axes, number: int, variant: Variant, metric: str, subject: Subject) -> None:
    colour, stroke = f"C{number % 10}", STROKES[number % len(STROKES)]
    band = mean_over_seeds(variant.runs, metric, subject)
    if band is None:
        return
    factor = scale_of(metric).factor
    mean, half_width = band.mean * factor, band.half_width * factor
    axes.plot(band.times_s, mean, color=colour, ls=stroke, label=variant.label)
    axes.fill_between(band.times_s, mean - half_width, mean + half_width, color=colour, alpha=0.2, lw=0)
    if metric == "cwnd_packets" and len(variant.runs) > 1:
        one = variant.runs[0].series.of(metric).get(subject)
        if one is not None:
            axes.plot(one.times_s, one.values * factor, color=colour, alpha=0.45, lw=0.6)


def mean_over_seeds(runs: Sequence[Run], metric: str, subject: Subject) -> Band | None:
    """Average one series over runs, at the times that all of them have; rates over bins of time first.

    Readings on a kernel come when they come: there the times are those of the first run, as far as all runs
    last, and of the others the nearest readings count.

    Parameters
    ----------
    runs
        Runs of one variant.
    metric
        Name of the series.
    subject
        What it is about.

    Returns
    -------
    Band or None
        The mean; None if no run has the series.
    """
    found = [run.series.of(metric).get(subject) for run in runs]
    recorded = [one for one in found if one is not None and len(one.times_s)]
    if not recorded:
        return None
    if metric.endswith("_bps"):
        recorded = [_binned(one) for one in recorded]
    if runs[0].engine == "kernel":
        begin_s = max(one.times_s[0] for one in recorded)
        end_s = min(one.times_s[-1] for one in recorded)
        first_s = recorded[0].times_s
        times_s = first_s[(begin_s <= first_s) & (first_s <= end_s)]
    else:
        times_s = reduce(np.intersect1d, [one.times_s for one in recorded])
    values = np.stack([_at(one, times_s) for one in recorded])
    count = len(recorded)
    if count == 1:
        return Band(times_s, values[0], np.zeros_like(times_s))
    deviation = values.std(axis=0, ddof=1)
    mean = values.mean(axis=0)
    half_width = t_quantile(0.5 + CONFIDENCE / 2, count - 1) * deviation / math.sqrt(count)
    return Band(times_s, mean, np.where(half_width > ROUNDING * np.abs(mean), half_width, 0.0))


def _at(one: OneSeries, times_s: Doubles) -> Doubles:
    """Return the values nearest to some times."""
    after = np.searchsorted(one.times_s, times_s).clip(max=len(one.times_s) - 1)
    before = (after - 1).clip(min=0)
    is_before = times_s - one.times_s[before] < one.times_s[after] - times_s
    return one.values[np.where(is_before, before, after)]


def _binned(one: OneSeries) -> OneSeries:
    """Average a series of rates over bins; a point is at the end of its bin."""
    points = max(1, len(one.values) // RATE_BINS)
    bins = len(one.values) // points
    values = one.values[: bins * points].reshape(bins, points).mean(axis=1)
    return one._replace(times_s=one.times_s[points - 1 : bins * points : points], values=values)
