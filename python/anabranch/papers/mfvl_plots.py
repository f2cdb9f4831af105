"""The plots of MFVL HCCA: counterparts of the figures 6 to 20."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch.papers.drawing import claimed, finish, intervals, panels, sweep, traces
from anabranch.papers.mfvl_rules import ROLES_CHOSEN, coupled
from anabranch.papers.model import Cell, Measured, Plot

#: When the background sends, in seconds.
BACKGROUND_S = ((5.0, 15.0), (35.0, 45.0))

_TITLES = {"mvegas": "MVegas", "mfast": "MFast", "lia": "LIA", "mfvl": "MFVL"}


def _background(axes: Axes) -> None:
    for begin_s, end_s in BACKGROUND_S:
        axes.axvspan(begin_s, end_s, color="0.5", alpha=0.12, lw=0)


def _over_time(measured: Measured, setup: str) -> Figure:
    figure, axes = panels(columns=2)
    cells = {_TITLES[cell[1]]: cell for cell in measured.cells(setup)}
    traces(axes[0], measured, {label: (cell, "mean goodput") for label, cell in cells.items()}, factor=1e-6)
    traces(axes[1], measured, {label: (cell, "drops") for label, cell in cells.items()})
    for one in axes:
        _background(one)
    return finish(figure, axes, ["goodput since the start (Mbit/s)", "packets dropped so far"])


def _windows(measured: Measured, cells: dict[str, Cell]) -> Figure:
    figure, axes = panels(columns=len(cells))
    for one, (title, cell) in zip(axes, cells.items(), strict=True):
        lines = {"path 1": (cell, "window 1"), "path 2": (cell, "window 2")}
        traces(one, measured, lines, first_seed=True)
        one.set_title(title, loc="left")
        _background(one)
    return finish(figure, axes, ["window (packets)"] * len(axes))


def _setup1_windows(measured: Measured) -> Figure:
    return _windows(measured, {"MVegas": ("setup 1", "mvegas"), "MFast": ("setup 1", "mfast")})


def _setup2_windows(measured: Measured) -> Figure:
    return _windows(measured, {"MVegas on path 1, MFast on path 2": ("setup 2", "mfvl")})


def _setup3_windows(measured: Measured) -> Figure:
    figure = _windows(measured, {"LIA": ("setup 3", "lia"), "MFVL": ("setup 3", "mfvl")})
    claimed(figure.axes[0], 100, "paper: 100")
    claimed(figure.axes[1], 80, "paper: 80, then 75")
    return figure


def _rate(cell: Cell) -> float:
    return float(cell[2].split()[0])


def _sweep(measured: Measured) -> Figure:
    figure, axes = panels(columns=2)
    lines = {
        _TITLES[name]: [(_rate(cell), cell) for cell in measured.cells("cbr", name)]
        for name in ("mfvl", "lia")
    }
    sweep(axes[0], measured, lines, "goodput_bps", factor=1e-6)
    sweep(axes[1], measured, lines, "loss_rate", factor=100.0)
    for one in axes:
        one.set_xlabel("background (Mbit/s)")
    return finish(figure, axes, ["goodput (Mbit/s)", "loss rate (%)"])


def _parameters(measured: Measured) -> Figure:
    figure, axes = panels(columns=2, rows=2)
    titles = ("MFast on both paths",) * 2 + ("MFast and a NewReno", "MVegas on both paths")
    sigma = {"": [(float(cell[1]), cell) for cell in measured.cells("sigma")]}
    sweep(axes[0], measured, sigma, "goodput_bps", factor=1e-6)
    sweep(axes[1], measured, sigma, "loss_rate", factor=100.0)
    beside = {"": [(float(cell[1]), cell) for cell in measured.cells("sigma beside TCP")]}
    sweep(axes[2], measured, beside, "jain1")
    k = {"": [(float(cell[1]), cell) for cell in measured.cells("k")]}
    sweep(axes[3], measured, k, "drops")
    for one, label, title in zip(axes, ("sigma", "sigma", "sigma", "k"), titles, strict=True):
        one.set_xlabel(label)
        one.set_title(title, loc="left")
    labels = ["goodput (Mbit/s)", "loss rate (%)", "Jain's index on path 1", "packets dropped"]
    return finish(figure, axes, labels)


def _detectors(measured: Measured) -> Figure:
    figure, axes = panels(columns=2)
    for one, (topology, title) in zip(
        axes, (("shared", "shared: hits"), ("disjoint", "disjoint: false alarms")), strict=True
    ):
        for detector in ("retransmissions", ROLES_CHOSEN, "rfc8382"):
            cells = measured.cells("detector", detector, topology)
            found = [coupled(measured, *cell[1:]) for cell in cells]
            at = [float(cell[3].split()[0]) for cell in cells]
            means = [100 * share.mean for share in found]
            errors = [100 * (share.half_width or 0.0) for share in found]
            if cells:
                intervals(one, at, means, errors, detector)
        one.set_title(title, loc="left")
        one.set_xlabel("difference of the round-trip times (ms)")
        one.set_ylim(top=105)
    return finish(figure, axes, ["decisions that coupled (%)"] * 2)


PLOTS = (
    Plot(
        "setup1",
        "figures 6 and 7",
        "Set-up 1, background 1 Mbit/s while shaded: goodput since the start, and drops of both subflows",
        lambda measured: _over_time(measured, "setup 1"),
    ),
    Plot("setup1-windows", "figures 8 and 9", "Set-up 1: windows, first seed", _setup1_windows),
    Plot(
        "setup2",
        "figures 10 and 11",
        "Set-up 2: goodput since the start, and drops",
        lambda measured: _over_time(measured, "setup 2"),
    ),
    Plot("setup2-windows", "figure 12", "Set-up 2: windows, first seed", _setup2_windows),
    Plot(
        "setup3",
        "figures 13 and 14",
        "Set-up 3: goodput since the start, and drops",
        lambda measured: _over_time(measured, "setup 3"),
    ),
    Plot("setup3-windows", "figures 15 and 16", "Set-up 3: windows, first seed", _setup3_windows),
    Plot(
        "setup4",
        "figures 17 and 18",
        "Set-up 4, background 2 Mbit/s: goodput since the start, and drops",
        lambda measured: _over_time(measured, "setup 4"),
    ),
    Plot("sweep", "figures 19 and 20", "Goodput and loss rate over the rate of the background", _sweep),
    Plot("parameters", "no figure, sections 3.1.2 and 3.2", "What sigma and k change", _parameters),
    Plot("detectors", "no figure, section 3.4.1", "How often a detector couples, T = 50 s", _detectors),
)
