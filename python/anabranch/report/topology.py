"""The network of a run, from the canonical scenario in its manifest: what a drawing shows of it.

Left out: what changes and events do to links and subflows while the run lasts, and which interfaces the agent
of a node does not allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from anabranch.report.paths import Hop, Paths, Wire

#: With more nodes, or larger families, only the first member of each family is shown.
MAX_NODES = 40
MAX_MEMBERS = 100


class Node(NamedTuple):
    """A host or router, and for how many it stands."""

    name: str
    members: int


class Route(NamedTuple):
    """A path, the flows that take it, and whether they are datagrams."""

    names: tuple[str, ...]
    is_datagram: bool
    hops: tuple[Hop, ...]

    @property
    def title(self) -> str:
        """Name for a legend."""
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return f"{self.names[0]}{more}: {self.hops[0].start} to {self.hops[-1].end}"


class Topology(NamedTuple):
    """What is drawn: nodes, wires and routes, in the order of the file."""

    nodes: tuple[Node, ...]
    wires: tuple[Wire, ...]
    routes: tuple[Route, ...]
    is_reduced: bool


def read_topology(canonical: Mapping[str, Any]) -> Topology:
    """Return the network of a scenario.

    Parameters
    ----------
    canonical
        ``canonical`` of a manifest.

    Returns
    -------
    Topology
        Flows whose ends are not shown, because the topology is reduced, are left out.
    """
    is_reduced = _is_large(canonical)
    nodes = tuple(_nodes(canonical.get("node", ()), is_reduced))
    wires = tuple(_wires(canonical, is_reduced))
    routes = _routes(canonical, {node.name for node in nodes}, wires, is_reduced)
    return Topology(nodes, wires, routes, is_reduced)


def _is_large(canonical: Mapping[str, Any]) -> bool:
    nodes = sum(_count(entry) * len(_names_of(entry)) for entry in canonical.get("node", ()))
    entries = [entry for kind in ("link", "connection", "datagram") for entry in canonical.get(kind, ())]
    return nodes > MAX_NODES or any(_count(entry) > MAX_MEMBERS for entry in entries)


def _count(entry: Mapping[str, Any]) -> int:
    return int(entry.get("count", 1))


def _names_of(entry: Mapping[str, Any]) -> Sequence[str]:
    return entry.get("names") or [entry["name"]]


def member(pattern: str, index: int) -> str:
    """Return the name of a family's member: ``{i}``, ``{i/K}`` and ``{i%K}`` replaced."""

    def number(found: re.Match[str]) -> str:
        operator, operand = found.groups()
        if operator is None:
            return str(index)
        return str(index // int(operand) if operator == "/" else index % int(operand))

    return re.sub(r"\{i(?:([/%])(\d+))?\}", number, pattern)


def _members(entry: Mapping[str, Any], is_reduced: bool) -> range:
    return range(1 if is_reduced else _count(entry))


def _nodes(entries: Sequence[Mapping[str, Any]], is_reduced: bool) -> Iterator[Node]:
    for entry in entries:
        for index in _members(entry, is_reduced):
            for pattern in _names_of(entry):
                yield Node(member(pattern, index), _count(entry) if is_reduced else 1)


def _wires(canonical: Mapping[str, Any], is_reduced: bool) -> Iterator[Wire]:
    for entry in canonical.get("link", ()):
        forward = settings(entry)
        reverse = entry.get("reverse", {})
        if "trace" in reverse:
            reverse = {"rate": None, **reverse}
        elif "rate" in reverse:
            reverse = {"trace": None, **reverse}
        back = settings({**entry, **reverse})
        for index in _members(entry, is_reduced):
            first, second = (member(end, index) for end in entry["between"])
            name = member(entry.get("name", f"{first}-{second}"), index)
            yield Wire(name, (first, second), forward, back, is_medium=False)
    for entry in canonical.get("medium", ()):
        words = (entry.get("phy", "802.11b"), *settings(entry))
        yield Wire(entry["name"], tuple(entry["stations"]), words, words, is_medium=True)


def settings(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return rate, delay, queue, loss and jitter of one direction in words, those that there are."""
    words = []
    if entry.get("trace") is not None:
        words.append("rate from a trace")
    elif entry.get("rate") is not None:
        words.append(str(entry["rate"]))
    if "delay" in entry:
        words.append(str(entry["delay"]))
    queue = entry.get("queue")
    if isinstance(queue, Mapping):
        words.append(f"{queue['kind']} {queue.get('limit', '')}".rstrip())
    elif queue is not None:
        words.append("no queue limit" if queue == "unlimited" else str(queue))
    loss = entry.get("loss", 0)
    if isinstance(loss, Mapping):
        words.append("loss in bursts")
    elif loss and not re.fullmatch(r"0(\.0*)? *%", str(loss)):
        words.append(f"loss {loss}")
    jitter = entry.get("jitter")
    if jitter is not None:
        words.append(f"jitter {jitter['range'] if isinstance(jitter, Mapping) else jitter}")
    return tuple(words)


def _routes(
    canonical: Mapping[str, Any], nodes: set[str], wires: Sequence[Wire], is_reduced: bool
) -> tuple[Route, ...]:
    paths = Paths(wires)
    managed = set(_with_agents(canonical.get("node", ())))
    flows: dict[tuple[bool, tuple[Hop, ...]], list[str]] = {}
    for kind, entry in [
        *(("connection", entry) for entry in canonical.get("connection", ())),
        *(("datagram", entry) for entry in canonical.get("datagram", ())),
    ]:
        for index in _members(entry, is_reduced):
            start, end = member(entry["from"], index), member(entry["to"], index)
            name = member(entry["name"], index)
            if not nodes.issuperset((start, end)):
                continue
            if _is_mesh(entry) or (start in managed and _may_be_mesh(entry)):
                ways = [(f"{name}/{pair}", hops) for pair, hops in paths.pairs(start, end)]
            else:
                ways = []
                for number, subflow in enumerate(entry.get("subflow") or [entry]):
                    via = [member(node, index) for node in subflow.get("via", ())]
                    label = name if subflow is entry else f"{name}/{subflow.get('name', number)}"
                    if nodes.issuperset(via):
                        ways.append((label, paths.through([start, *via, end])))
            for label, hops in ways:
                if hops:
                    flows.setdefault((kind == "datagram", hops), []).append(label)
    return tuple(Route(tuple(names), datagram, hops) for (datagram, hops), names in flows.items())


def _with_agents(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        if "agent" in entry:
            for index in range(_count(entry)):
                yield from (member(pattern, index) for pattern in _names_of(entry))


def _may_be_mesh(entry: Mapping[str, Any]) -> bool:
    """Return whether an agent takes the subflows of a connection from the topology."""
    return entry.get("protocol") == "mptcp" and not entry.get("subflow")


def _is_mesh(entry: Mapping[str, Any]) -> bool:
    """Return whether a path manager makes the subflows of pairs of addresses, not all on one path."""
    manager = entry.get("path_manager", "default")
    name = manager["name"] if isinstance(manager, Mapping) else manager
    return name not in ("default", "ndiffports") and not entry.get("subflow")
