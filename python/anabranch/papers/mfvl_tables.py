"""The tables of MFVL HCCA: what the paper leaves open, a base line, and the background."""

from __future__ import annotations

import tomllib
from importlib import resources

from anabranch.papers.judging import GAIN, PLAIN, RATE, SHARE, Unit
from anabranch.papers.mfvl_rules import ROLES_CHOSEN, coupled
from anabranch.papers.model import Cell, Measured, Table

_LOSS = Unit("%", 100.0)
_NANOJOULE = Unit("", 1e9)


def _against_lia(measured: Measured, name: str) -> list[list[str]]:
    rows = [["", "goodput of MFVL, Mbit/s", "over LIA", "loss rate of MFVL", "of LIA"]]
    for cell in measured.cells(name, "mfvl"):
        base = (name, "lia", cell[2])
        rows.append(
            [
                cell[2],
                _bare(RATE.estimate(measured.mean(cell, "goodput_bps"))),
                GAIN.estimate(measured.ratio(cell, base, "goodput_bps")),
                _LOSS.estimate(measured.mean(cell, "loss_rate")),
                _LOSS.estimate(measured.mean(base, "loss_rate")),
            ]
        )
    return rows


def _bare(text: str) -> str:
    """Drop the unit, which the head of the column has."""
    return text.removesuffix(" Mbit/s")


def _harm(measured: Measured) -> list[list[str]]:
    rows = [["TCP", "beside", "on path 1 keeps", "on path 2 keeps", "the meter's goodput, Mbit/s"]]
    names = {"mfvl": "MFVL", "lia": "LIA", "own kind": "two flows of its kind"}
    for cell in measured.cells("beside TCP"):
        base = ("beside TCP", "own kind", cell[2])
        kept = [SHARE.estimate(measured.ratio(cell, base, f"tcp{number}_bps")) for number in (1, 2)]
        goodput = _bare(RATE.estimate(measured.mean(cell, "goodput_bps")))
        rows.append(["NewReno" if cell[2] == "reno" else "CUBIC", names[cell[1]], *kept, goodput])
    return rows


def _detectors(measured: Measured) -> list[list[str]]:
    rows = [["detector", "difference of RTT", "shared: hits", "disjoint: false alarms"]]
    found = [
        cell
        for detector in ("retransmissions", ROLES_CHOSEN, "rfc8382")
        for cell in measured.cells("detector", detector, "shared")
    ]
    for _, detector, _, difference in found:
        shares = [coupled(measured, detector, topology, difference) for topology in ("shared", "disjoint")]
        rows.append([detector, difference, *(SHARE.estimate(share) for share in shares)])
    return rows


def _energy(measured: Measured) -> list[list[str]]:
    rows = [["", "nJ/bit", "retransmissions", "goodput, Mbit/s"]]
    for cell in measured.cells("energy"):
        rows.append(
            [
                "MFVL" if cell[1] == "mfvl" else "LIA",
                _NANOJOULE.estimate(measured.mean(cell, "energy_per_bit_j")),
                PLAIN.estimate(measured.mean(cell, "retransmits")),
                _bare(RATE.estimate(measured.mean(cell, "goodput_bps"))),
            ]
        )
    return rows


def _peers(measured: Measured) -> list[list[str]]:
    file = resources.files(__package__) / "mfvl_peers.toml"
    peers = tomllib.loads(file.read_text(encoding="utf-8"))["peer"]
    heads = ("path 1, Mbit/s", "path 2, Mbit/s", "window 1", "window 2", "queue 1 drops", "queue 2 drops")
    names = ("path1_mbps", "path2_mbps", "cwnd1_packets", "cwnd2_packets", "drops1", "drops2")
    rows = [["LIA, set-up 1", *heads]]
    rows += [[peer["name"], *(f"{peer[name]:g}" for name in names)] for peer in peers]
    lia: Cell = ("setup 1", "lia")
    ours = [_bare(RATE.estimate(measured.mean(lia, f"throughput{number}_bps"))) for number in (1, 2)]
    ours += [PLAIN.estimate(measured.mean(lia, f"mean_cwnd{number}")) for number in (1, 2)]
    ours += [PLAIN.estimate(measured.mean(lia, f"queue_drops{number}")) for number in (1, 2)]
    return [*rows, ["ours, with the radios", *ours]]


def _background(measured: Measured) -> list[list[str]]:
    rows = [["the meter runs", "background on path 1, Mbit/s", "on path 2, Mbit/s"]]
    cells = {"LIA": ("setup 1", "lia"), "MVegas": ("setup 1", "mvegas"), "MFast": ("setup 1", "mfast")}
    cells["MFVL"] = ("setup 3", "mfvl")
    for name, cell in cells.items():
        rates = [_bare(RATE.estimate(measured.mean(cell, f"cbr{number}_bps"))) for number in (1, 2)]
        rows.append([name, *rates])
    return rows


TABLES = (
    Table(
        "Sensitivity: the rate of 802.11",
        'The paper has "parameters based on the 802.11 standard of NS2" and no rate; 11 Mbit/s is assumed. '
        "Background 1 Mbit/s. With 1 or 2 Mbit/s the radio is the bottleneck of path 1.",
        lambda measured: _against_lia(measured, "radio"),
    ),
    Table(
        "Sensitivity: readings and the transport",
        "Set-up 3, background 1 Mbit/s. The claims are judged by the corrected algorithm with its roles as "
        "given (MFast on path 1) and equation (11) as a difference; each row changes one thing, for LIA as "
        "well where it is of the transport.",
        lambda measured: _against_lia(measured, "reading"),
    ),
    Table(
        "Sensitivity: the sweep under other assumptions",
        "The claims about the largest gain and the largest reduction are about a sweep; here it is with "
        "assumptions that make more of a difference.",
        lambda measured: _against_lia(measured, "sweep"),
    ),
    Table(
        "Over the rate of the background",
        "The numbers of figures 19 and 20.",
        lambda measured: _against_lia(measured, "cbr"),
    ),
    Table(
        "Beside other TCP flows",
        "What one TCP on each path keeps of its goodput beside a flow of its own kind; 100 % is no harm. "
        "No other background.",
        _harm,
    ),
    Table(
        "Detectors of a shared bottleneck",
        "Share of runs in which the one decision, after T = 50 s, coupled the subflows; the runs are those "
        "of [shared-bottleneck.md](shared-bottleneck.md). A decision is seen by comparison with the same run "
        "in which none can couple.",
        _detectors,
    ),
    Table(
        "Energy of the meter's radios",
        "Two Wi-Fi radios with the constants of a phone, model with states ([energy.md](energy.md)).",
        _energy,
    ),
    Table(
        "LIA beside other simulators",
        "The base line is what a gain is relative to. The other simulators have no radio hops; one run each.",
        _peers,
    ),
    Table(
        "The background",
        "Counterpart of figures 4 and 5: what of 1 Mbit/s during 20 of 48.5 s (0.412 Mbit/s) arrives.",
        _background,
    ),
)
