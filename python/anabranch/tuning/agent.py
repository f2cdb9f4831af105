"""The configuration of the device agent (docs/agent.md) that does on a device what a tuning recommends.

Left out: ``to`` and ``port``, which the scenario does not know, so that it is about every connection of
the device.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from anabranch._engine import list_algorithms
from anabranch.tuning.grid import MIB, Grid, TuningError
from anabranch.tuning.measure import FULL_MESH, PCDC, Impact, Setting, Target
from anabranch.tuning.optimum import Choice

#: An interface of Linux: 1 to 15 bytes without white space, slash and colon (dev_valid_name).
_INTERFACE = re.compile(r"[^\s/:]{1,15}")
#: Path managers that the agent does not have, and why.
_REFUSED = {
    "ndiffports": "the agent has one subflow per pair of addresses",
    "static": "the agent decides by itself which subflows there are",
}


class _Interface(NamedTuple):
    """What the subflows over an interface say of it."""

    name: str
    is_spare: bool
    cap: str | None


def check_emission(target: Target, grid: Grid) -> None:
    """Refuse before any run what the agent cannot have.

    Parameters
    ----------
    target
        What is tuned.
    grid
        What is measured.

    Raises
    ------
    TuningError
        For the first such path manager, and as :func:`agent_toml`.
    """
    for name in grid.path_managers:
        if name in _REFUSED:
            raise TuningError(f"--emit-agent: {name}: {_REFUSED[name]}; leave it out of --path-managers")
    interfaces_of(target, FULL_MESH, grid.congestions[0])


def agent_toml(target: Target, choice: Choice, impacts: Mapping[str, Impact]) -> str:
    """Return the configuration.

    Parameters
    ----------
    target
        What was tuned; links and media are named as the interfaces of the device.
    choice
        The recommendation.
    impacts
        What PCDC uses, by congestion control.

    Returns
    -------
    str
        A file for ``anabranchd agent --config``, with comments for what is not the agent's.

    Raises
    ------
    TuningError
        If an interface cannot have the name of its link, or its subflows differ in what the agent knows by
        interface.
    """
    silent = _silent(target, choice, impacts)
    policy = FULL_MESH if choice.path_manager == PCDC else choice.path_manager
    interfaces = interfaces_of(target, policy, choice.congestion, silent)
    size = round(choice.buffer_mib * MIB)
    scenario = target.experiment.scenario
    lines = [
        f"# What `anabranch tune` recommends for {target.connection} of {scenario.name}:",
        f"# path manager {choice.path_manager}, congestion control {choice.congestion}, buffers of {size} B;",
        f"# {choice.mbit_per_s:.4g} Mbit/s in the runs of the tuning.",
        "#",
        *_congestion(choice.congestion),
        "# The buffers are no key of the agent either. For all sockets of this machine:",
        f'#   sysctl -w net.ipv4.tcp_rmem="4096 {min(size, 131072)} {size}"',
        f'#   sysctl -w net.ipv4.tcp_wmem="4096 {min(size, 16384)} {size}"',
        "# or SO_RCVBUF and SO_SNDBUF of the application. The kernel charges its overhead per packet to",
        "# them, the simulator does not: twice as much is on the safe side.",
    ]
    if choice.path_manager == PCDC:
        lines += [
            "#",
            "# PCDC's measurement is done: the subflows that it uses are regular, the others are spare ones.",
            '# With policy = "pcdc", and no role, the agent would measure anew.',
        ]
    lines += ["", "[agent]", "set_pm_type = true"]
    radios = _radios(target)
    for interface in interfaces:
        lines += ["", "[[interface]]", f"name = {json.dumps(interface.name)}"]
        if interface.is_spare:
            lines.append('role = "backup"')
        if interface.cap is not None:
            lines.append(f"cap = {json.dumps(interface.cap)}")
        lines += radios.get(interface.name, [])
    lines += ["", "[[connection]]", f"policy = {json.dumps(policy)}", ""]
    return "\n".join(lines)


def _silent(target: Target, choice: Choice, impacts: Mapping[str, Impact]) -> tuple[str, ...]:
    """Return the subflows that PCDC leaves out with the chosen congestion control."""
    if choice.path_manager != PCDC:
        return ()
    used = impacts[choice.congestion].used
    return tuple(name for name in target.regular if name not in used)


def interfaces_of(
    target: Target, path_manager: str, congestion: str, silent: Sequence[str] = ()
) -> list[_Interface]:
    """Return the interfaces of the node that opens the connection, in the order of its subflows."""
    experiment = target.with_(Setting(path_manager, congestion, 1.0))
    # With the rest of the reports comes the plotting library, which takes longer than most commands.
    from anabranch.report.topology import read_topology

    topology = read_topology(json.loads(experiment.scenario.canonical))
    tables = {str(one["name"]): one for one in target.subflows}
    found: dict[str, _Interface] = {}
    routes = {
        name.partition("/")[2]: topology.wires[route.hops[0].wire].name
        for route in topology.routes
        if not route.is_datagram
        for name in route.names
        if name.partition("/")[0] == target.connection
    }
    for subflow, link in sorted(routes.items(), key=lambda one: _place(one[0], list(tables))):
        table = tables.get(subflow, {})
        is_spare = bool(table.get("backup", False)) or subflow in silent
        interface = _Interface(link, is_spare, table.get("cap"))
        if not _INTERFACE.fullmatch(link):
            raise TuningError(
                f"--emit-agent: {link!r}, the first link of subflow {subflow!r}, can be no interface's name; "
                "name the link as the interface of the device"
            )
        if found.setdefault(link, interface) != interface:
            raise TuningError(
                f"--emit-agent: subflows over {link!r} differ in being a backup or in their cap, which the "
                "agent knows by interface only; expected subflows over interfaces of their own"
            )
    return list(found.values())


def _place(subflow: str, listed: list[str]) -> int:
    return listed.index(subflow) if subflow in listed else 0


def _congestion(name: str) -> list[str]:
    """Return how the congestion control is set, which the agent does not do."""
    hosts = next(one["hosts"] for one in list_algorithms() if one["name"] == name)
    if "kernel" not in hosts:
        return [f"# The congestion control is no key of the agent, and {name} runs in the simulator only."]
    return [
        "# The congestion control is no key of the agent:",
        f"#   anabranchd cc load {name}",
        f"#   anabranchd cc use {name} --netns this",
    ]


def _radios(target: Target) -> dict[str, list[str]]:
    """Return what the scenario says of the radios of the node that opens the connection, by link."""
    canonical: Mapping[str, Any] = json.loads(target.experiment.scenario.canonical)
    (node,) = (one["from"] for one in canonical["connection"] if one["name"] == target.connection)
    radios = {}
    for entry in canonical.get("interface", ()):
        if entry["node"] == node:
            lines = [f"radio = {json.dumps(entry['radio'])}"]
            power = {key: value for key, value in entry.get("power", {}).items() if key in ("b", "theta")}
            if power:
                constants = ", ".join(f"{key} = {json.dumps(value)}" for key, value in power.items())
                lines.append(f"power = {{ {constants} }}")
            radios[str(entry["link"])] = lines
    return radios
