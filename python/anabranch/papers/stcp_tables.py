"""The tables of STCP: readings of its algorithm, its estimate of the capacity, what the paper leaves open."""

from __future__ import annotations

from anabranch.papers.judging import GAIN, PLAIN, SHARE, Unit
from anabranch.papers.model import Cell, Measured, Table
from anabranch.papers.stcp_rules import BOTTLENECK_BPS, ON_THE_WIRE, OTHERS, PAYLOAD, TITLES, used
from anabranch.stats import Estimate

_KBPS = Unit("", 1e-3)

#: What a packet pair could show at most: payload at the rate of the bottleneck.
_CAPACITY_BPS = BOTTLENECK_BPS * PAYLOAD / ON_THE_WIRE

_ERROR = Unit("%", 100.0 / _CAPACITY_BPS, less=_CAPACITY_BPS, signed=True)


def _readings(measured: Measured) -> list[list[str]]:
    rows = [["reading", "background", "goodput, kbit/s", "over NewReno", "drops", "the window rests"]]
    for cell in measured.cells("reading"):
        newreno = measured.of(("cbr", "newreno", cell[2]), "goodput_bps")
        base: Cell = ("base",)
        both = Measured(
            {cell: {"goodput_bps": measured.of(cell, "goodput_bps")}, base: {"goodput_bps": newreno}}
        )
        rows.append(
            [
                cell[1],
                cell[2],
                _KBPS.estimate(measured.mean(cell, "goodput_bps")),
                GAIN.estimate(both.ratio(cell, base, "goodput_bps")),
                PLAIN.estimate(measured.mean(cell, "drops")),
                SHARE.estimate(measured.mean(cell, "rests")),
            ]
        )
    return rows


def _capacities(measured: Measured) -> list[list[str]]:
    rows = [["background", "capacity is the", "raises the window by, packets", "estimate, kbit/s", "error"]]
    for cell in measured.cells("capacity"):
        capacity = measured.mean(cell, "capacity_bps")
        rows.append(
            [
                cell[2],
                cell[1],
                PLAIN.estimate(measured.mean(cell, "raise_packets")),
                _KBPS.estimate(capacity),
                _ERROR.estimate(capacity),
            ]
        )
    return rows


def _gains(measured: Measured, name: str, head: str) -> list[list[str]]:
    rows = [[head, "goodput of STCP, kbit/s", "drops", *(f"over {TITLES[base]}" for base in OTHERS)]]
    for cell in measured.cells(name, "stcp"):
        gains = [measured.ratio(cell, (name, base, cell[2]), "goodput_bps") for base in OTHERS]
        rows.append(
            [
                cell[2],
                _KBPS.estimate(measured.mean(cell, "goodput_bps")),
                PLAIN.estimate(measured.mean(cell, "drops")),
                *(GAIN.estimate(one) for one in gains),
            ]
        )
    return rows


def _delays(measured: Measured) -> list[list[str]]:
    rows = [["one-way delay", *(f"{title} uses" for title in TITLES.values())]]
    for cell in measured.cells("delay", "stcp"):
        shares: list[Estimate] = [used(measured, ("delay", name, cell[2])) for name in TITLES]
        rows.append([cell[2], *(SHARE.estimate(share) for share in shares)])
    return rows


def _flows(measured: Measured) -> list[list[str]]:
    rows = [["flows", "", "all together, kbit/s", "Jain's index"]]
    for cell in measured.cells("flows"):
        rows.append(
            [
                cell[2],
                TITLES[cell[1]],
                _KBPS.estimate(measured.mean(cell, "goodput_bps")),
                PLAIN.estimate(measured.mean(cell, "jain_index")),
            ]
        )
    return rows


TABLES = (
    Table(
        "Sensitivity: readings of steps 5 to 8",
        "The printed algorithm is incomplete ([stcp.md](algorithms/stcp.md)). The claims are judged by "
        "available bandwidth and the largest queue seen. The last column is how often the hold branch keeps "
        "the window: the share of tenths of a second in which it did not move though packets were "
        "acknowledged (an upper bound).",
        _readings,
    ),
    Table(
        "The estimate of the capacity",
        "From the window to which the tenth sample raises the first window; the error is against the payload "
        f"that 1 Mbit/s carries, {_CAPACITY_BPS / 1e3:.0f} kbit/s. A raise by few packets says nothing: the "
        "window had already grown as far.",
        _capacities,
    ),
    Table(
        "Sensitivity: the network",
        "Beside 300 kbit/s of CBR; the paper gives neither rates nor whether 120 ms are one way.",
        lambda measured: _gains(measured, "choice", "choice"),
    ),
    Table(
        "Over the delay",
        "Share of what 300 kbit/s of CBR leave of the bottleneck.",
        _delays,
    ),
    Table(
        "Several flows of one kind",
        "Beside 300 kbit/s of CBR, with the fairness among the flows.",
        _flows,
    ),
)
