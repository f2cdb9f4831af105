"""The figures of a report as files for papers: network, summary and every quantity over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from anabranch.compare import Row, Variant, compare
from anabranch.plots import STYLE, Plot, draw, save
from anabranch.report.charts import MAX_VARIANTS, quantities
from anabranch.report.drawing import COLOURS, draw_topology
from anabranch.report.page import MAX_TOPOLOGIES, networks
from anabranch.units import scale_of, title_of
from anabranch.wording import usual

#: One for each variant.
_MARKERS = ("o", "s", "D", "^", "X", "P", "v", "*")


def draw_figures(variants: Sequence[Variant], folder: Path, suffix: str) -> list[Path]:
    """Draw what a report shows, equal to the byte for equal runs.

    Parameters
    ----------
    variants
        What is reported.
    folder
        Where the files go; made if it is not there.
    suffix
        ``svg``, ``pdf`` or ``png``.

    Returns
    -------
    list of Path
        The files: ``network.*`` (with several: ``network-1.*`` and so on), ``summary.*``, and for each
        quantity one named like it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shown = variants[:MAX_VARIANTS]
    found = networks(variants)[:MAX_TOPOLOGIES]
    paths = []
    with matplotlib.rc_context(STYLE):
        for number, network in enumerate(found, start=1):
            name = f"network-{number}" if len(found) > 1 else "network"
            paths += save(draw_topology(network.topology), folder / name, (suffix,))
        if rows := usual(compare(shown)):
            paths += save(_summary(shown, rows), folder / "summary", (suffix,))
    plots = [
        Plot(re.sub(r"[^a-z0-9]+", "-", quantity.title), quantity.metrics, quantity.axis)
        for quantity in quantities(shown)
    ]
    return [*paths, *draw(shown, folder, plots, (suffix,))]


def _summary(variants: Sequence[Variant], rows: Sequence[Row]) -> Figure:
    """Return a panel for each metric: a point for each subject and variant, with its interval."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    counts = [sum(row.metric == metric for row in rows) for metric in metrics]
    heights = [0.35 + count * (0.14 + 0.12 * len(variants)) for count in counts]
    figure = Figure(figsize=(7, 0.6 + sum(heights) + 0.55 * len(metrics)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(metrics), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, metric in zip(panels, metrics, strict=True):
        scale = scale_of(metric)
        found = [row for row in rows if row.metric == metric]
        for at, variant in enumerate(variants):
            shift = 0.5 * (at - (len(variants) - 1) / 2) / len(variants)
            points = [
                (place + shift, estimate.mean * scale.factor, (estimate.half_width or 0.0) * scale.factor)
                for place, row in enumerate(found)
                if (estimate := row.estimates[at]) is not None
            ]
            if points:
                places, means, half_widths = zip(*points, strict=True)
                axes.errorbar(
                    means,
                    places,
                    xerr=half_widths,
                    fmt=_MARKERS[at % len(_MARKERS)],
                    color=COLOURS[at % len(COLOURS)],
                    capsize=2,
                    markersize=5,
                    label=variant.label,
                )
        axes.set_yticks(range(len(found)), [str(row.subject) for row in found])
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.set_xlabel(f"{title_of(metric)} ({scale.unit})" if scale.unit else title_of(metric))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
