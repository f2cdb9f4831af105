"""What is run for MPCOA: its campaign on synthetic paths, in two stages because PCDC chooses by the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from anabranch.experiment import Experiment
from anabranch.papers.model import Cell, Measured, Planned
from anabranch.papers.mpcoa_printed import SITES, printed, traditional_mib
from anabranch.papers.reproduction import scenario_file
from anabranch.results import Run
from anabranch.stats import Estimate
from anabranch.tuning.grid import Grid, Samples
from anabranch.tuning.impact import impact_factor, used
from anabranch.tuning.measure import FULL_MESH, PCDC, Setting, Target, find_target

#: The only figure: goodput of the connection, in Mbit/s.
THROUGHPUT = "goodput_mbit_per_s"

#: No subflow is silent.
NONE = "none"

#: The buffers of the paper's grid in MiB, and a twentieth of its runs.
BUFFERS_MIB = tuple(at / 2 for at in range(1, 61))
QUICK_BUFFERS_MIB = (0.5, 6.0, 12.0, 18.0, 24.0, 30.0)
SEEDS, QUICK_SEEDS = 9, 3

#: Congestion controls over changing paths, if time is short.
QUICK_CHANGING = ("cubic", "hybla")

LARGEST_MIB = BUFFERS_MIB[-1]
CONGESTIONS: tuple[str, ...] = tuple(printed()["congestions"])

#: What the paper leaves open, at 30 MiB: the scenario, and what is set.
VARIANTS: dict[str, tuple[str, dict[str, str]]] = {
    "no random loss": ("srl-hu", {"link.*.loss": "0 %"}),
    "0.1 % random loss": (
        "srl-hu",
        {f"link.{local}-{remote}.loss": "0.1 %" for local in "KPTU" for remote in ("C", "CU")},
    ),
    "queues of 500 ms before HU": ("srl-hu", {"link.C.queue": "6.25 MB", "link.CU.queue": "1.25 MB"}),
    "without opportunistic retransmission and penalisation": (
        "srl-hu",
        {"transport.opportunistic_retransmission": "false", "transport.penalisation": "false"},
    ),
    "Uninett at 300 Mbit/s": (
        "unis-hin",
        {"link.U.rate": "300 Mbit/s", "link.U-remote.rate": "300 Mbit/s"},
    ),
}
VARIANT_SEEDS = 5

#: SRL-HU while CERNET's paths change: from the second half minute on they lose 1 % instead of 0.01 %.
CALM, BUSY = "calm", "busy"
_CHANGE = ", ".join(f'{{ at = "30 s", link = "{link}", loss = "1 %" }}' for link in ("K-C", "U-C"))
WINDOWS: dict[str, dict[str, str]] = {
    CALM: {"duration": "60 s", "change": f"[{_CHANGE}]", "measure.from": "0 s", "measure.to": "30 s"},
    BUSY: {"duration": "60 s", "change": f"[{_CHANGE}]", "measure.from": "30 s", "measure.to": "60 s"},
}


@cache
def target(site: str, overrides: tuple[tuple[str, str], ...] = ()) -> Target:
    """Return the connection of a scenario."""
    return find_target(Experiment(scenario_file(f"mpcoa/{site}.toml"), overrides))


def buffers_mib(quick: bool) -> tuple[float, ...]:
    """Return the buffers, in MiB."""
    return QUICK_BUFFERS_MIB if quick else BUFFERS_MIB


def changing(measured: Measured) -> list[str]:
    """Return the congestion controls that were run while paths change."""
    return list({cell[2]: None for cell in measured.cells("changing")})


def sites(measured: Measured) -> list[str]:
    """Return the scenarios whose campaign was run: all three, but for a part of it on the kernel."""
    return [site for site in SITES if measured.cells("buffer", site)]


def congestions(measured: Measured, site: str) -> list[str]:
    """Return the congestion controls that were run in the campaign of one scenario."""
    return list({cell[3]: None for cell in measured.cells("buffer", site)})


def cell_of(site: str, manager: str, congestion: str, buffer_mib: float) -> Cell:
    """Name a cell of the campaign."""
    return ("buffer", site, manager, congestion, f"{buffer_mib:g} MiB")


def plan(quick: bool) -> list[Planned]:
    """Return the first stage: full mesh, and the measurement that PCDC chooses by."""
    return list(_first(quick))


def _first(quick: bool) -> Iterator[Planned]:
    seeds = QUICK_SEEDS if quick else SEEDS
    for site in SITES:
        of = target(site)
        for congestion in CONGESTIONS:
            for buffer in buffers_mib(quick):
                setting = Setting(FULL_MESH, congestion, buffer)
                yield Planned(cell_of(site, FULL_MESH, congestion, buffer), of.with_(setting), seeds)
            half = Setting(FULL_MESH, congestion, traditional_mib(site) / 2)
            yield Planned(("half", site, congestion), of.with_(half), seeds)
            yield from _silenced(("impact", site, congestion), of, congestion, seeds)
    for window, overrides in WINDOWS.items():
        of = target("srl-hu", tuple(overrides.items()))
        for congestion in QUICK_CHANGING if quick else CONGESTIONS:
            yield from _silenced(("changing", window, congestion), of, congestion, seeds)
    if not quick:
        for name, (site, overrides) in VARIANTS.items():
            of = target(site, tuple(overrides.items()))
            for congestion in CONGESTIONS:
                yield from _silenced(("variant", name, congestion), of, congestion, VARIANT_SEEDS)
                middle = of.with_(Setting(FULL_MESH, congestion, 18.0))
                yield Planned(("variant-18", name, congestion), middle, VARIANT_SEEDS)


def _silenced(prefix: Cell, of: Target, congestion: str, seeds: int) -> Iterator[Planned]:
    """Plan PCDC's measurement: with all subflows, and without each one."""
    for name in (NONE, *of.regular):
        silent = () if name == NONE else (name,)
        setting = Setting(FULL_MESH, congestion, LARGEST_MIB, silent)
        yield Planned((*prefix, name), of.with_(setting), seeds)


def then(quick: bool, measured: Measured) -> list[Planned]:
    """Return the second stage: PCDC with the subflows that the first one chose."""
    return list(_second(quick, measured))


def _second(quick: bool, measured: Measured) -> Iterator[Planned]:
    seeds = QUICK_SEEDS if quick else SEEDS
    for site in SITES:
        of = target(site)
        for congestion in CONGESTIONS:
            silent = _standby(measured, ("impact", site, congestion))
            for buffer in buffers_mib(quick):
                setting = Setting(FULL_MESH, congestion, buffer, silent)
                yield Planned(cell_of(site, PCDC, congestion, buffer), of.with_(setting), seeds)
    busy = target("srl-hu", tuple(WINDOWS[BUSY].items()))
    for congestion in changing(measured):
        for window in WINDOWS:
            silent = _standby(measured, ("changing", window, congestion))
            setting = Setting(FULL_MESH, congestion, LARGEST_MIB, silent)
            yield Planned(("chosen", window, congestion), busy.with_(setting), seeds)
    for name in {cell[1]: None for cell in measured.cells("variant")}:
        site, overrides = VARIANTS[name]
        of = target(site, tuple(overrides.items()))
        for congestion in CONGESTIONS:
            silent = _standby(measured, ("variant", name, congestion))
            setting = Setting(FULL_MESH, congestion, LARGEST_MIB, silent)
            yield Planned(("variant-pcdc", name, congestion), of.with_(setting), VARIANT_SEEDS)


def impacts(measured: Measured, prefix: Cell) -> dict[str, Estimate]:
    """Return the impact factors of all subflows, from the cells whose names begin with ``prefix``."""
    with_all = measured.of((*prefix, NONE), THROUGHPUT)
    return {
        cell[-1]: impact_factor(with_all, measured.of(cell, THROUGHPUT))
        for cell in measured.cells(*prefix)
        if cell[-1] != NONE
    }


def chosen(factors: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Return the subflows that PCDC uses."""
    return used({name: factor.mean for name, factor in factors.items()})


def _standby(measured: Measured, prefix: Cell) -> tuple[str, ...]:
    factors = impacts(measured, prefix)
    return tuple(name for name in factors if name not in chosen(factors))


def extract(_cell: Cell, run: Run) -> dict[str, float]:
    """Return the goodput of a run."""
    return {THROUGHPUT: target("srl-hu").goodput_mbit_per_s(run)}


def samples(measured: Measured, site: str) -> Samples:
    """Return the campaign of one scenario as the samples of a tuning."""
    cells, names = measured.cells("buffer", site), congestions(measured, site)
    buffers = sorted({float(cell[4].removesuffix(" MiB")) for cell in cells})
    values = np.array(
        [
            [
                [measured.of(cell_of(site, manager, congestion, buffer), THROUGHPUT) for buffer in buffers]
                for congestion in names
            ]
            for manager in (FULL_MESH, PCDC)
        ]
    )
    grid = Grid((FULL_MESH, PCDC), tuple(names), tuple(buffers), tuple(range(1, values.shape[3] + 1)))
    return Samples(grid, values)
