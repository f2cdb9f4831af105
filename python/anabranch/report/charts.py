"""The figures that a reader can change: everything in them is drawn by plotly, in the browser."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from plotly import graph_objects as go

from anabranch.compare import Row, Variant
from anabranch.plots import mean_over_seeds
from anabranch.report.drawing import COLOURS
from anabranch.report.thinning import BUCKETS, thinned, thinned_band
from anabranch.results import Doubles, Subject
from anabranch.stats import Estimate
from anabranch.units import number, scale_of, title_of

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "star")

#: More of either would not be readable; what is left out is said.
MAX_VARIANTS = 8
MAX_SUBJECTS = 24

#: Lines that are shown before a reader chooses.
FIRST_LINES = 6

#: Markers on a line, which tell lines apart without their colours.
MARKERS_ON_A_LINE = 10

MEAN, POINTS, BOTH = "mean", "points", "both"


class Quantity(NamedTuple):
    """What the axis of values shows: its name, its unit, and the series that count as it."""

    title: str
    unit: str
    metrics: tuple[str, ...]

    @property
    def axis(self) -> str:
        """Title of the axis."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


#: What a connection delivers is its goodput, what a subflow or a datagram flow delivers its throughput.
DELIVERED = Quantity("goodput", "Mbit/s", ("goodput_bps", "throughput_bps"))


class Chart(NamedTuple):
    """A figure, what its traces are, and what to say about it.

    ``choices`` is for the page's script: which trace belongs to which choice.
    """

    figure: go.Figure
    choices: dict[str, Any]
    notes: tuple[str, ...]


def quantities(variants: Sequence[Variant]) -> list[Quantity]:
    """Return what the runs have recorded over time, in the order of the engine, what is delivered first."""
    metrics = dict.fromkeys(one.metric for variant in variants for one in variant.runs[0].series.all)
    found = [DELIVERED] if any(metric in metrics for metric in DELIVERED.metrics) else []
    for metric in metrics:
        if metric not in DELIVERED.metrics:
            found.append(Quantity(title_of(metric), scale_of(metric).unit, (metric,)))
    return found


def series_chart(variants: Sequence[Variant]) -> Chart | None:
    """Return every series over time as one figure with all its lines hidden; None if nothing is recorded.

    Parameters
    ----------
    variants
        What is compared.

    Returns
    -------
    Chart or None
        ``choices`` has the quantities with the numbers of their subjects, the names of subjects and variants,
        and for each trace ``[quantity, subject, variant, view]``.
    """
    shown = variants[:MAX_VARIANTS]
    subjects: dict[Subject, int] = {}
    entries, traces, index, left_out = [], [], [], 0
    lines = _Lines(shown)
    for kind, quantity in enumerate(quantities(shown)):
        panels = list(
            dict.fromkeys(
                (one.subject, one.metric)
                for variant in shown
                for one in variant.runs[0].series.all
                if one.metric in quantity.metrics and len(one.times_s)
            )
        )
        left_out += len(panels[MAX_SUBJECTS:])
        members = []
        for subject, metric in panels[:MAX_SUBJECTS]:
            place = subjects.setdefault(subject, len(subjects))
            members.append(place)
            for at, variant in enumerate(shown):
                for view, trace in lines.of(variant, at, subject, metric, place):
                    traces.append(trace)
                    index.append([kind, place, at, view])
        entries.append({"title": quantity.title, "axis": quantity.axis, "subjects": members})
    if not traces:
        return None
    figure = go.Figure(traces, _layout(460, "time (s)"))
    end_s = max(
        float(one.times_s[-1]) for variant in shown for one in variant.runs[0].series.all if len(one.times_s)
    )
    figure.update_xaxes(range=[0, end_s])
    figure.update_yaxes(rangemode="nonnegative")
    names = {
        "quantities": entries,
        "subjects": [str(subject) for subject in subjects],
        "variants": [variant.label for variant in shown],
        "traces": index,
        "end_s": end_s,
        "first": max(1, FIRST_LINES // len(shown)),
    }
    return Chart(figure, names, tuple(_series_notes(variants, left_out, lines)))


def _series_notes(variants: Sequence[Variant], left_out: int, lines: _Lines) -> Iterator[str]:
    if len(variants) > MAX_VARIANTS:
        yield f"Only the first {MAX_VARIANTS} of {len(variants)} are drawn; the tables have all."
    if left_out:
        yield f"{left_out} more series are in the run folders; {MAX_SUBJECTS} of a kind are drawn."
    if lines.thinned:
        yield (
            f"{lines.thinned} of {lines.drawn} lines have too many points for a screen: of each of {BUCKETS} "
            "equal parts of time they show the smallest and the largest value; zooming in shows no more."
        )


class _Lines:
    """Makes the lines, and counts those that are thinned."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        self._count = len(variants)
        self.drawn = 0
        self.thinned = 0

    def of(
        self, variant: Variant, at: int, subject: Subject, metric: str, place: int
    ) -> Iterator[tuple[str, go.Scatter]]:
        """Yield the mean with its band, and the lowest seed's points where these are something else."""
        scale = scale_of(metric)
        name = str(subject) if self._count == 1 else f"{subject}, {variant.label}"
        style = _style(place * self._count + at, at if self._count > 1 else place, place)
        band = mean_over_seeds(variant.runs, metric, subject)
        if band is None or not len(band.times_s):
            return
        is_mean = len(variant.runs) > 1
        mean = band.mean * scale.factor
        half_width = band.half_width * scale.factor if is_mean else None
        is_other = is_mean or metric.endswith("_bps")
        if half_width is not None and half_width.any():
            envelope = thinned_band(band.times_s, mean - half_width, mean + half_width)
            yield MEAN, _band(envelope.times_s, envelope.low, envelope.high, name, style["line"]["color"])
        yield MEAN if is_other else BOTH, self._line(band.times_s, mean, half_width, name, scale.unit, style)
        one = variant.runs[0].series.of(metric).get(subject)
        if is_other and one is not None and len(one.times_s):
            seed = f"{name}, seed {variant.runs[0].seed}"
            yield POINTS, self._line(one.times_s, one.values * scale.factor, None, seed, scale.unit, style)

    def _line(
        self,
        times_s: Doubles,
        values: Doubles,
        half_width: Doubles | None,
        name: str,
        unit: str,
        style: dict[str, Any],
    ) -> go.Scatter:
        self.drawn += 1
        chosen = thinned(times_s, values)
        if chosen is not None:
            self.thinned += 1
            times_s, values = times_s[chosen], values[chosen]
            half_width = None if half_width is None else half_width[chosen]
        interval = "" if half_width is None else " ± %{customdata:.3~g}"
        return go.Scatter(
            x=_single(times_s),
            y=_single(values),
            customdata=None if half_width is None else _single(half_width),
            name=html.escape(name),
            hovertemplate=f"%{{x:.4~g}} s: %{{y:.4~g}}{interval} {unit}",
            visible=False,
            mode="lines+markers",
            **style,
        )


def _style(colour: int, dash: int, symbol: int) -> dict[str, Any]:
    shade = COLOURS[colour % len(COLOURS)]
    return {
        "line": {"color": shade, "dash": DASHES[dash % len(DASHES)], "width": 1.6},
        "marker": {
            "symbol": SYMBOLS[symbol % len(SYMBOLS)],
            "size": 7,
            "maxdisplayed": MARKERS_ON_A_LINE,
        },
    }


def _band(times_s: Doubles, low: Doubles, high: Doubles, name: str, colour: str) -> go.Scatter:
    return go.Scatter(
        x=_single(np.concatenate([times_s, times_s[::-1]])),
        y=_single(np.concatenate([high, low[::-1]])),
        name=html.escape(name),
        fill="toself",
        fillcolor=colour,
        opacity=0.18,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        visible=False,
    )


def _single(values: Doubles) -> npt.NDArray[np.float32]:
    """Return values with the seven digits that a screen can use; the run folder has all."""
    return values.astype(np.float32)


def figures_chart(variants: Sequence[Variant], rows: Sequence[Row]) -> Chart | None:
    """Return the summary's figures with their intervals as one figure with all its points hidden.

    Parameters
    ----------
    variants
        What is compared.
    rows
        The figures that may be chosen.

    Returns
    -------
    Chart or None
        ``choices`` has the choices: title of the axis, height, and the numbers of their traces. None without
        any figure.
    """
    shown = variants[:MAX_VARIANTS]
    metrics = dict.fromkeys(row.metric for row in rows)
    traces: list[go.Scatter] = []
    choices, left_out = [], 0
    for metric in metrics:
        found = [row for row in rows if row.metric == metric]
        left_out += len(found[MAX_SUBJECTS:])
        found = found[:MAX_SUBJECTS]
        unit = scale_of(metric).unit
        title = title_of(metric)
        points = list(_estimates(shown, found))
        choices.append(_choice(title, f"{title} ({unit})" if unit else title, found, points, len(traces)))
        traces += points
        if len(shown) > 1 and (points := list(_differences(shown, found))):
            name = f"{title}: difference to {shown[0].label}, paired"
            choices.append(_choice(name, f"{title}: difference (%)", found, points, len(traces)))
            traces += points
    if not traces:
        return None
    figure = go.Figure(traces, _layout(300, ""))
    figure.update_layout(
        scattermode="group",
        yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
    )
    notes = (
        (f"{left_out} figures more are in the tables; {MAX_SUBJECTS} of a kind are drawn.",)
        if left_out
        else ()
    )
    return Chart(figure, {"figures": choices}, notes)


def _choice(
    title: str, axis: str, rows: Sequence[Row], points: Sequence[go.Scatter], first: int
) -> dict[str, Any]:
    height = 130 + len(rows) * (20 + 12 * len(points)) + 18 * len(points)
    return {
        "title": title,
        "axis": html.escape(axis),
        "height": height,
        "first": first,
        "count": len(points),
    }


def _estimates(variants: Sequence[Variant], rows: Sequence[Row]) -> Iterator[go.Scatter]:
    for at, variant in enumerate(variants):
        points = [
            (str(row.subject), _scaled(found, scale_of(row.metric).factor))
            for row in rows
            if (found := row.estimates[at]) is not None
        ]
        if points:
            yield _dots(points, variant.label, at, scale_of(rows[0].metric).unit)


def _differences(variants: Sequence[Variant], rows: Sequence[Row]) -> Iterator[go.Scatter]:
    for at, variant in enumerate(variants[1:]):
        points = [
            (str(row.subject), _scaled(difference, 100 / abs(base.mean)))
            for row in rows
            if (difference := row.differences[at]) is not None
            and (base := row.estimates[0]) is not None
            and base.mean
        ]
        if points:
            yield _dots(points, variant.label, at + 1, "%")


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    half_width = None if estimate.half_width is None else estimate.half_width * factor
    return estimate._replace(mean=estimate.mean * factor, half_width=half_width)


def _dots(points: Sequence[tuple[str, Estimate]], label: str, at: int, unit: str) -> go.Scatter:
    estimates = [estimate for _, estimate in points]
    return go.Scatter(
        x=[estimate.mean for estimate in estimates],
        y=[html.escape(name) for name, _ in points],
        error_x={
            "type": "data",
            "array": [estimate.half_width for estimate in estimates],
            "thickness": 1.4,
            "width": 5,
        },
        customdata=[number(estimate.mean, estimate.half_width) for estimate in estimates],
        name=html.escape(label),
        hovertemplate=f"%{{y}}: %{{customdata}} {unit}",
        mode="markers",
        orientation="h",
        marker={"symbol": SYMBOLS[at % len(SYMBOLS)], "size": 10, "color": COLOURS[at % len(COLOURS)]},
        visible=False,
    )


def _layout(height: int, x_title: str) -> go.Layout:
    return go.Layout(
        template="none",
        autosize=True,
        height=height,
        margin={"l": 60, "r": 12, "t": 30, "b": 46},
        xaxis={"title": {"text": x_title}, "zeroline": True, "automargin": True},
        yaxis={"title": {"text": ""}, "zeroline": False, "automargin": True},
        legend={"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "maxheight": 0.4},
        showlegend=True,
        hoverlabel={"namelength": -1},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode="zoom",
    )
