"""The plots of STCP: counterparts of the figures 2 and 3, and the windows behind them."""

from __future__ import annotations

from matplotlib.figure import Figure

from anabranch.papers.drawing import finish, panels, sweep, traces
from anabranch.papers.model import Measured, Plot
from anabranch.papers.stcp_rules import OTHERS, TITLES, gain
from anabranch.report.drawing import COLOURS


def _number(text: str) -> float:
    return float(text.split()[0])


def _goodput(measured: Measured) -> Figure:
    figure, axes = panels(columns=2)
    for one, kind in zip(axes, ("cbr", "vbr"), strict=True):
        lines = {
            title: [(_number(cell[2]), cell) for cell in measured.cells(kind, name)]
            for name, title in TITLES.items()
        }
        sweep(one, measured, lines, "goodput_bps", factor=1e-3)
        one.set_title(kind.upper(), loc="left")
        one.set_xlabel("background (kbit/s)")
    return finish(figure, axes, ["goodput (kbit/s)"] * 2, from_zero=False)


def _gains(measured: Measured) -> Figure:
    claimed = {"newreno": 2.6, "compound": 0.94, "cubic": 1.03, "htcp": 1.21}
    figure, axes = panels()
    for number, base in enumerate(OTHERS):
        for offset, kind in enumerate(("cbr", "vbr")):
            found = gain(measured, "stcp", base, [kind])
            axes[0].bar(
                number + 0.3 * offset,
                100 * (found.mean - 1),
                yerr=100 * (found.half_width or 0.0),
                width=0.28,
                capsize=3,
                color=COLOURS[offset],
                label=kind.upper() if number == 0 else None,
            )
        label = "paper" if number == 0 else None
        axes[0].plot([number - 0.15, number + 0.45], [claimed[base]] * 2, color="k", ls="--", label=label)
    axes[0].axhline(0, color="0.4", lw=0.8)
    axes[0].set_xticks([number + 0.15 for number in range(len(OTHERS))], [TITLES[base] for base in OTHERS])
    return finish(figure, axes, ["gain of STCP in goodput (%)"], from_zero=False)


def _windows(measured: Measured) -> Figure:
    figure, axes = panels()
    lines = {title: (("window", name), "window") for name, title in TITLES.items()}
    traces(axes[0], measured, lines, first_seed=True)
    axes[0].set_xlim(0, 60)
    return finish(figure, axes, ["window (packets)"])


def _delays(measured: Measured) -> Figure:
    figure, axes = panels(columns=2)
    lines = {
        title: [(_number(cell[2]), cell) for cell in measured.cells("delay", name)]
        for name, title in TITLES.items()
    }
    sweep(axes[0], measured, lines, "goodput_bps", factor=1e-3)
    sweep(axes[1], measured, lines, "drops")
    for one in axes:
        one.set_xlabel("one-way propagation delay (ms)")
    return finish(figure, axes, ["goodput (kbit/s)", "packets dropped"])


PLOTS = (
    Plot("goodput", "figure 2", "Goodput over the rate of the background, constant and varying", _goodput),
    Plot(
        "gains",
        "figure 3",
        "Gain of STCP in goodput, averaged over 100 to 500 kbit/s, beside the paper's",
        _gains,
    ),
    Plot(
        "windows",
        "no figure",
        "Windows beside 300 kbit/s of CBR, the first minute of the first seed",
        _windows,
    ),
    Plot("delays", "no figure, conclusion", "Over the delay, beside 300 kbit/s of CBR", _delays),
)
