"""The drawing of a network: boxes, wires with their settings, and the ways of the flows along them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from anabranch.report.layout import Point, layered
from anabranch.report.paths import Wire
from anabranch.report.topology import Topology

#: Colours that people with any colour vision can tell apart (Okabe and Ito 2008), on light and on dark.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C8C8C", "#9467BD")

#: Strokes, as lengths on and off in widths of the line.
STROKES = ((), (4.0, 1.5), (1.2, 1.2), (5.0, 1.2, 1.2, 1.2))

#: Ways that are drawn at most; more could not be told apart.
MAX_ROUTES = 12

#: Inches.
ROW, MARGIN, LEGEND_ROW, GAP = 0.95, 0.3, 0.22, 1.45
BOX_HEIGHT, CHARACTER, SMALL_CHARACTER, BOX_PADDING = 0.34, 0.078, 0.055, 0.24

#: Points.
ROUTE_WIDTH, ROUTE_PITCH = 1.8, 3.2


class _Places(NamedTuple):
    """Centres of boxes and the lines of wires in inches; a shared medium has a box and a line to each end."""

    boxes: tuple[tuple[float, float], ...]
    lines: dict[tuple[int, frozenset[str]], list[tuple[float, float]]]
    width: float
    height: float


def draw_topology(topology: Topology) -> Figure:
    """Return the drawing of a network as a figure of the size that it needs.

    Parameters
    ----------
    topology
        The network.

    Returns
    -------
    Figure
        Boxes are hosts and routers, rounded ones media with more than two stations; grey bands are links,
        dotted ones media; thin lines are the ways of flows from their opener to the other end.
    """
    routes = topology.routes[:MAX_ROUTES]
    labels = [_box_label(node.name, node.members) for node in topology.nodes]
    hubs = [number for number, wire in enumerate(topology.wires) if wire.is_shared]
    labels += ["\n".join((topology.wires[hub].name, *_words(topology.wires[hub]))) for hub in hubs]
    widths = [BOX_PADDING + CHARACTER * max(map(len, label.split("\n"))) for label in labels]
    legend = [(*_look(number), route.title) for number, route in enumerate(routes)]
    places = _places(topology, hubs, max(widths, default=1.0))
    text_width = max((0.8 + 0.075 * len(title) for *_, title in legend), default=0.0)
    size = (
        max(places.width, text_width + 2 * MARGIN),
        places.height + LEGEND_ROW * len(legend) + (0.15 if legend else 0.0),
    )
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, size[0])
    axes.set_ylim(size[1], 0)
    axes.axis("off")
    _draw_wires(axes, topology, places, len(routes))
    for (x, y), label, width, number in zip(places.boxes, labels, widths, range(len(labels)), strict=True):
        _draw_box(axes, x, y, label, width, is_hub=number >= len(topology.nodes))
    for row, (colour, stroke, title) in enumerate(legend):
        y = places.height + LEGEND_ROW * (row + 0.5)
        axes.plot(
            [MARGIN, MARGIN + 0.45], [y, y], color=colour, lw=ROUTE_WIDTH, dashes=stroke or (None, None)
        )
        axes.text(MARGIN + 0.6, y, title, fontsize=8, va="center", parse_math=False)
    return figure


def _look(number: int) -> tuple[str, tuple[float, ...]]:
    return COLOURS[number % len(COLOURS)], STROKES[number % len(STROKES)]


def _box_label(name: str, members: int) -> str:
    return name if members == 1 else f"{name}\n{members} alike"


def _words(wire: Wire) -> tuple[str, ...]:
    """Return a wire's settings in two lines, and what differs on the way back in a third."""
    lines = [", ".join(wire.forward[:2]), ", ".join(wire.forward[2:])]
    differs = [word for word in wire.back if word not in wire.forward]
    if differs:
        lines.append(f"back: {', '.join(differs)}")
    return tuple(line for line in lines if line)


def _places(topology: Topology, hubs: Sequence[int], box_width: float) -> _Places:
    number_of = {node.name: number for number, node in enumerate(topology.nodes)}
    hub_of = {wire: len(number_of) + at for at, wire in enumerate(hubs)}
    keys, lines = [], []
    for number, wire in enumerate(topology.wires):
        ends = [end for end in wire.ends if end in number_of]
        if number in hub_of:
            for end in ends:
                keys.append((number, frozenset((end,))))
                lines.append((number_of[end], hub_of[number]))
        elif len(ends) == 2:
            keys.append((number, frozenset(ends)))
            lines.append((number_of[ends[0]], number_of[ends[1]]))
    arcs = []
    for route in topology.routes:
        for hop in route.hops:
            stops = [number_of[hop.start], number_of[hop.end]]
            if hop.wire in hub_of:
                stops.insert(1, hub_of[hop.wire])
            arcs += list(itertools.pairwise(stops))
    layout = layered(len(number_of) + len(hubs), lines, arcs)
    pitch = box_width + GAP

    def inches(point: Point) -> tuple[float, float]:
        return MARGIN + box_width / 2 + pitch * point.layer, MARGIN + ROW * (point.height + 0.5)

    points = [*layout.boxes, *(point for line in layout.lines for point in line)]
    deepest = max((point.layer for point in points), default=0)
    lowest = max((point.height for point in points), default=0.0)
    return _Places(
        tuple(inches(point) for point in layout.boxes),
        {key: [inches(point) for point in line] for key, line in zip(keys, layout.lines, strict=True)},
        2 * MARGIN + box_width + pitch * deepest,
        2 * MARGIN + ROW * (lowest + 0.8),
    )


def _draw_wires(axes: Axes, topology: Topology, places: _Places, route_count: int) -> None:
    users: dict[tuple[int, frozenset[str]], list[int]] = {key: [] for key in places.lines}
    for number, route in enumerate(topology.routes[:route_count]):
        for hop in route.hops:
            ends = frozenset((hop.start, hop.end))
            keys = [(hop.wire, ends)]
            if topology.wires[hop.wire].is_shared:
                keys = [(hop.wire, frozenset((end,))) for end in (hop.start, hop.end)]
            for key in keys:
                if key in users and number not in users[key]:
                    users[key].append(number)
    for key, line in places.lines.items():
        wire = topology.wires[key[0]]
        width = max(3.5, ROUTE_PITCH * (len(users[key]) + 0.6))
        style = (0, (0.35, 0.35)) if wire.is_medium else "solid"
        xs, ys = zip(*line, strict=True)
        axes.plot(xs, ys, color="#DDDDDD", lw=width, ls=style, solid_capstyle="butt", zorder=1)
        for place, number in enumerate(users[key]):
            colour, stroke = _look(number)
            shift = ROUTE_PITCH * (place - (len(users[key]) - 1) / 2) / 72
            is_upright = xs[0] == xs[-1]
            axes.plot(
                [x + shift * is_upright for x in xs],
                [y + shift * (not is_upright) for y in ys],
                color=colour,
                lw=ROUTE_WIDTH,
                dashes=stroke or (None, None),
                zorder=2,
            )
        if not wire.is_shared:
            _label_wire(axes, wire, line, width / 72)


def _label_wire(axes: Axes, wire: Wire, line: Sequence[tuple[float, float]], width: float) -> None:
    middle = len(line) // 2
    (x0, y0), (x1, y1) = line[middle - 1], line[middle]
    words = _words(wire)
    slope = (y1 - y0) / (x1 - x0) if x0 != x1 else 0.0
    # Beside the middle, where a slanted line is lower, and so high that it stays clear of the line.
    aside = math.copysign(0.15, slope) if slope else 0.0
    clear = abs(slope) * (SMALL_CHARACTER * max(map(len, words), default=0) / 2 - abs(aside))
    axes.text(
        (x0 + x1) / 2 + aside,
        (y0 + y1) / 2 - width / 2 - 0.03 - max(clear, 0.0),
        "\n".join(words),
        fontsize=7,
        ha="center",
        va="bottom",
        linespacing=1.15,
        color="#333333",
        parse_math=False,
        bbox={"facecolor": "white", "alpha": 0.75, "pad": 0.6, "lw": 0},
        zorder=3,
    )


def _draw_box(axes: Axes, x: float, y: float, label: str, width: float, *, is_hub: bool) -> None:
    height = BOX_HEIGHT + 0.13 * label.count("\n")
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle=f"round,pad=0,rounding_size={0.16 if is_hub else 0.04}",
            facecolor="#F3F3F3" if is_hub else "white",
            edgecolor="#444444",
            lw=1.0,
            ls=":" if is_hub else "-",
            zorder=4,
        )
    )
    axes.text(
        x,
        y,
        label,
        fontsize=7 if is_hub else 9,
        ha="center",
        va="center",
        color="black",
        parse_math=False,
        zorder=5,
    )
