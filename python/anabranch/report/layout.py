"""Where the boxes of a drawing go: layers from left to right, deterministically.

The method of Sugiyama, Tagawa and Toda (1981): layers by longest path, points where a line passes a layer,
orders by barycentres; then heights that differ least from those of neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: Passes over all layers; the best order seen counts.
SWEEPS = 12


class Point(NamedTuple):
    """A place in a drawing: the layer, and the height in boxes, downwards."""

    layer: int
    height: float


class Layout(NamedTuple):
    """The place of each box, and the points that each line passes, its ends included."""

    boxes: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]


def layered(count: int, lines: Sequence[tuple[int, int]], arcs: Sequence[tuple[int, int]]) -> Layout:
    """Place boxes in layers.

    Parameters
    ----------
    count
        Number of boxes.
    lines
        Pairs of boxes that are joined.
    arcs
        Pairs of boxes of which the first should be left of the second; one that contradicts those before it
        is ignored.

    Returns
    -------
    Layout
        The places.
    """
    layers = _layers(count, lines, arcs)
    chains, layer_of = _chains(lines, layers)
    neighbours: list[list[int]] = [[] for _ in layer_of]
    for chain in chains:
        for one, other in itertools.pairwise(chain):
            neighbours[one].append(other)
            neighbours[other].append(one)
    rows = _ordered(layer_of, neighbours)
    heights = _heights(rows, neighbours)
    points = [Point(layer, height) for layer, height in zip(layer_of, heights, strict=True)]
    return Layout(tuple(points[:count]), tuple(tuple(points[item] for item in chain) for chain in chains))


def _layers(count: int, lines: Sequence[tuple[int, int]], arcs: Sequence[tuple[int, int]]) -> list[int]:
    after: list[list[int]] = [[] for _ in range(count)]
    for one, other in dict.fromkeys(arcs):
        if one != other and not _reaches(after, other, one):
            after[one].append(other)
    layers: list[int | None] = [None] * count
    has_before = {other for others in after for other in others}
    depth = [0] * count
    for item in _topological(after):
        for other in after[item]:
            depth[other] = max(depth[other], depth[item] + 1)
    for item in range(count):
        if after[item] or item in has_before:
            layers[item] = depth[item]
    for item in range(count):
        if after[item] and item not in has_before:
            layers[item] = min(depth[other] for other in after[item]) - 1
    if count and all(layer is None for layer in layers):
        layers[0] = 0
    is_changed = True
    while is_changed:
        is_changed = False
        for pair in lines:
            for one, other in (pair, pair[::-1]):
                placed = layers[one]
                if placed is not None and layers[other] is None:
                    layers[other] = placed + 1
                    is_changed = True
    return [0 if layer is None else layer for layer in layers]


def _reaches(after: Sequence[Sequence[int]], start: int, goal: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        item = waiting.pop()
        if item == goal:
            return True
        for other in after[item]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def _topological(after: Sequence[Sequence[int]]) -> list[int]:
    missing = [0] * len(after)
    for others in after:
        for other in others:
            missing[other] += 1
    order = [item for item, count in enumerate(missing) if count == 0]
    for item in order:
        for other in after[item]:
            missing[other] -= 1
            if missing[other] == 0:
                order.append(other)
    return order


def _chains(lines: Sequence[tuple[int, int]], layers: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Return the items that each line passes, and the layer of every item; passing points are new items."""
    layer_of = list(layers)
    chains = []
    for one, other in lines:
        step = 1 if layers[other] > layers[one] else -1
        between = range(layers[one] + step, layers[other], step)
        first = len(layer_of)
        layer_of.extend(between)
        chains.append([one, *range(first, len(layer_of)), other])
    return chains, layer_of


def _ordered(layer_of: Sequence[int], neighbours: Sequence[Sequence[int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for item, layer in enumerate(layer_of):
        rows[layer].append(item)
    best, fewest = rows, _crossings(rows, neighbours)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        rows = [list(row) for row in rows]
        forward = sweep % 2 == 0
        numbers = range(1, len(rows)) if forward else range(len(rows) - 2, -1, -1)
        for number in numbers:
            fixed = {item: at for at, item in enumerate(rows[number - 1 if forward else number + 1])}
            _sort(rows[number], fixed, neighbours)
        crossings = _crossings(rows, neighbours)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _sort(row: list[int], fixed: Mapping[int, int], neighbours: Sequence[Sequence[int]]) -> None:
    """Order a row by the mean place of neighbours in a fixed one; items without one stay where they are."""
    keys = {}
    for item in row:
        found = [fixed[other] for other in neighbours[item] if other in fixed]
        if found:
            keys[item] = sum(found) / len(found)
    slots = [at for at, item in enumerate(row) if item in keys]
    for slot, item in zip(slots, sorted((row[at] for at in slots), key=lambda item: keys[item]), strict=True):
        row[slot] = item


def _crossings(rows: Sequence[Sequence[int]], neighbours: Sequence[Sequence[int]]) -> int:
    count = 0
    for left, right in itertools.pairwise(rows):
        place = {item: at for at, item in enumerate(right)}
        ends = [
            (at, place[other]) for at, item in enumerate(left) for other in neighbours[item] if other in place
        ]
        count += sum(
            (one[0] - other[0]) * (one[1] - other[1]) < 0
            for number, one in enumerate(ends)
            for other in ends[:number]
        )
    return count


def _heights(rows: Sequence[Sequence[int]], neighbours: Sequence[Sequence[int]]) -> list[float]:
    heights = [0.0] * len(neighbours)
    for row in rows:
        for at, item in enumerate(row):
            heights[item] = at - (len(row) - 1) / 2
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else list(reversed(rows)):
            wanted = []
            for item in row:
                found = [heights[other] for other in neighbours[item]]
                wanted.append(sum(found) / len(found) if found else heights[item])
            for item, height in zip(row, spread(wanted), strict=True):
                heights[item] = height
    # Halves, so that lines that are nearly level are; heights at least 1 apart stay so.
    halves = [round(2 * height) / 2 for height in heights]
    top = min(halves, default=0.0)
    return [height - top for height in halves]


def spread(wanted: Sequence[float]) -> list[float]:
    """Return ascending heights at least 1 apart, with the least sum of squared differences to those wanted.

    Pool adjacent violators (Barlow et al., Statistical Inference under Order Restrictions, 1972).
    """
    pools: list[tuple[float, int]] = []
    for at, height in enumerate(wanted):
        mean, size = height - at, 1
        while pools and pools[-1][0] >= mean:
            before, members = pools.pop()
            mean, size = (before * members + mean * size) / (members + size), members + size
        pools.append((mean, size))
    shifts = [mean for mean, size in pools for _ in range(size)]
    return [shift + at for at, shift in enumerate(shifts)]
