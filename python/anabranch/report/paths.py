"""Wires, and the ways that flows take over them: by docs/scenario.md, "Paths", or as path managers open them.

The engine's own (crates/scenario/src/routes.rs, mesh.rs) are in no run folder; a test holds these against
where packets went.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Wire(NamedTuple):
    """A link between two nodes, or a medium among its stations, with its settings in words."""

    name: str
    ends: tuple[str, ...]
    forward: tuple[str, ...]
    back: tuple[str, ...]
    is_medium: bool

    @property
    def is_shared(self) -> bool:
        """Whether more than two nodes are on it."""
        return len(self.ends) > 2


class Hop(NamedTuple):
    """One wire of a path: its number, and the nodes that it is taken from and to."""

    wire: int
    start: str
    end: str


class Paths:
    """Paths with the fewest hops.

    Of several, the one whose first different hop stands first in the file, links before media.

    Parameters
    ----------
    wires
        Links, then media, in the order of the file.
    """

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = wires
        self._at: dict[str, list[int]] = {}
        for number, wire in enumerate(wires):
            for end in wire.ends:
                self._at.setdefault(end, []).append(number)
        self._distances: dict[str, dict[str, int]] = {}

    def through(self, nodes: Sequence[str]) -> tuple[Hop, ...]:
        """Return the hops from the first node to the last through those between; none if there is no way."""
        hops: list[Hop] = []
        for start, end in itertools.pairwise(nodes):
            if start == end:
                continue
            leg = self._shortest(start, end)
            if leg is None:
                return ()
            hops += leg
        return tuple(hops)

    def pairs(self, start: str, end: str) -> list[tuple[str, tuple[Hop, ...]]]:
        """Return name and way of the subflow of each pair of addresses, as the engine makes them.

        A node has an address on each of its wires. The first subflow takes the shortest way; that of another
        pair leaves by the one wire and arrives by the other, and passes neither end between.
        """
        first = self.through([start, end])
        if not first:
            return []
        first_pair = first[0].wire, first[-1].wire
        found = [(self._pair_name(*first_pair), first)]
        for remote in self._at[end]:
            for local in self._at[start]:
                if (local, remote) != first_pair and (hops := self._over(start, local, remote, end)):
                    found.append((self._pair_name(local, remote), hops))
        return found

    def _pair_name(self, local: int, remote: int) -> str:
        name = self._wires[local].name
        return name if local == remote else f"{name}.{self._wires[remote].name}"

    def _over(self, start: str, local: int, remote: int, end: str) -> tuple[Hop, ...]:
        """Return the shortest way that leaves by one wire and arrives by the other; empty without one."""
        if local == remote:
            return (Hop(local, start, end),) if end in self._wires[local].ends else ()
        best: tuple[Hop, ...] = ()
        for behind in self._wires[local].ends:
            for before in self._wires[remote].ends:
                if {behind, before} & {start, end}:
                    continue
                between = self._between(behind, before, (start, end))
                if between is not None and (not best or len(between) + 2 < len(best)):
                    best = (Hop(local, start, behind), *between, Hop(remote, before, end))
        return best

    def _between(self, start: str, goal: str, ends: Sequence[str]) -> list[Hop] | None:
        came_by: dict[str, Hop | None] = {start: None}
        waiting = deque([start])
        while waiting and goal not in came_by:
            node = waiting.popleft()
            for number in self._at[node]:
                for neighbour in self._wires[number].ends:
                    if neighbour not in ends and neighbour not in came_by:
                        came_by[neighbour] = Hop(number, node, neighbour)
                        waiting.append(neighbour)
        if goal not in came_by:
            return None
        hops = []
        while (hop := came_by[goal]) is not None:
            hops.append(hop)
            goal = hop.start
        return hops[::-1]

    def _shortest(self, start: str, end: str) -> list[Hop] | None:
        distance = self._distances_to(end)
        if start not in distance:
            return None
        hops, node = [], start
        while node != end:
            hops.append(self._first_hop(node, distance))
            node = hops[-1].end
        return hops

    def _first_hop(self, node: str, distance: Mapping[str, int]) -> Hop:
        for number in self._at[node]:
            nearest = min(
                (end for end in self._wires[number].ends if end != node), key=lambda end: distance[end]
            )
            if distance[nearest] == distance[node] - 1:
                return Hop(number, node, nearest)
        raise AssertionError("a node with a distance has a nearer neighbour")

    def _distances_to(self, end: str) -> dict[str, int]:
        if end not in self._distances:
            distance = {end: 0}
            level = [end]
            while level:
                reached = []
                for node in level:
                    for number in self._at.get(node, ()):
                        for neighbour in self._wires[number].ends:
                            if neighbour not in distance:
                                distance[neighbour] = distance[node] + 1
                                reached.append(neighbour)
                level = reached
            self._distances[end] = distance
        return self._distances[end]
