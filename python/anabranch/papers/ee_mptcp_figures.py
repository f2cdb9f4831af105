"""EE-MPTCP (S2): the counterparts of its figures, and what its claims depend on."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from anabranch.papers.drawing import finish, panels, sweep
from anabranch.papers.ee_mptcp_rules import JOULE, SECONDS, against_round_robin, leading, levels
from anabranch.papers.judging import GAIN, SHARE
from anabranch.papers.model import Cell, Measured, Plot, Table

#: How schedulers are called in legends, in their order.
NAMES = {
    "roundrobin": "round-robin",
    "roundrobin-waits": "round-robin that waits",
    "emptcp": "eMPTCP",
    "emptcp-uncapped": "eMPTCP without cap",
    "dmptcp": "DMPTCP",
    "ee-mptcp": "EE-MPTCP",
    "minrtt": "minRTT",
    "blest": "BLEST",
    "ecf": "ECF",
    "emptcp-regions": "eMPTCP by regions",
    "energy-late": "energy, LTE late",
    "emtcp": "eMTCP",
}


#: Those that are drawn; the others lie upon minRTT, see the table.
DRAWN = ("roundrobin", "roundrobin-waits", "emptcp", "dmptcp", "ee-mptcp", "minrtt", "emtcp")


def _lines(measured: Measured, kind: str) -> dict[str, list[tuple[float, Cell]]]:
    """Return the cells of a sub-experiment by scheduler, over the numbers in their words."""
    return {
        name: [(leading(cell[2]), cell) for cell in cells]
        for scheduler, name in NAMES.items()
        if scheduler in DRAWN and (cells := measured.cells(kind, scheduler))
    }


def _pair(
    measured: Measured, kind: str, abscissa: str, metrics: dict[str, str], *, is_wide: bool = False
) -> Figure:
    """Draw two figures over the number in the cells; with ``is_wide`` on a logarithmic ordinate."""
    figure, axes = panels(2)
    lines = _lines(measured, kind)
    for one, metric in zip(axes, metrics, strict=True):
        sweep(one, measured, lines, metric)
        one.set_xlabel(abscissa)
        one.set_xticks([leading(word) for word in levels(measured, kind)])
        if is_wide:
            one.set_yscale("log")
    return finish(figure, axes, list(metrics.values()), from_zero=not is_wide)


_TIME_AND_ENERGY = {"completion_s": "mean completion time (s)", "energy_j": "energy (J)"}


def _by_number(kind: str, abscissa: str, measured: Measured) -> Figure:
    return _pair(measured, kind, abscissa, _TIME_AND_ENERGY, is_wide=kind in ("medium", "long"))


def _testbed(measured: Measured) -> Figure:
    figure, axes = panels(2, 2)
    lines = _lines(measured, "testbed")
    metrics = {
        "energy_j": ("energy (J)", 1.0),
        "completion_s": ("completion time (s)", 1.0),
        "wlan_share": ("share of WLAN (%)", 100.0),
        "wlan_bps": ("throughput over WLAN (Mbit/s)", 1e-6),
    }
    for one, (metric, (_, factor)) in zip(axes, metrics.items(), strict=True):
        sweep(one, measured, lines, metric, factor=factor)
        one.set_xlabel("file (kB)")
    return finish(figure, axes, [label for label, _ in metrics.values()])


def _tail(measured: Measured) -> Figure:
    metrics = {"completion_p50_s": "median completion time (s)", "completion_p95_s": "95th percentile (s)"}
    return _pair(measured, "long", "flows of 10 MB", metrics, is_wide=True)


def _buffer(measured: Measured) -> Figure:
    figure = _pair(measured, "buffer", "receive buffer (kB)", _TIME_AND_ENERGY)
    for axes in figure.axes:
        ticks = axes.get_xticks()
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    return figure


def _largest(measured: Measured, kind: str) -> str:
    return max(levels(measured, kind), key=leading)


def _schedulers(measured: Measured) -> list[list[str]]:
    rows = [["flows", "scheduler", "mean", "median", "95th percentile", "energy", "with tails"]]
    metrics = ("completion_s", "completion_p50_s", "completion_p95_s", "energy_j", "energy_tail_j")
    units = (SECONDS, SECONDS, SECONDS, JOULE, JOULE)
    for kind in ("short", "medium", "long"):
        word = _largest(measured, kind)
        for scheduler, name in NAMES.items():
            if cells := measured.cells(kind, scheduler, word):
                means = [measured.mean(cells[0], metric) for metric in metrics]
                shown = [unit.estimate(mean) for unit, mean in zip(units, means, strict=True)]
                rows.append([f"{leading(word)} {kind}", name, *shown])
    return rows


def _assumptions(measured: Measured) -> list[list[str]]:
    metrics = {
        "completion_s": "completion time lower by",
        "energy_j": "energy lower by",
        "energy_whole_j": "energy with base power until the last flow ends lower by",
    }
    found = [against_round_robin(measured, metric) for metric in metrics]
    rows = [[name, *(SHARE.estimate(one[name]) for one in found)] for name in found[0]]
    return [["assumption", *metrics.values()], *rows]


def _testbeds(measured: Measured) -> list[list[str]]:
    heads = ["assumption", "default", "eMTCP", "share of WLAN, default", "eMTCP", "energy, default", "eMTCP"]
    bases = {"as above": ("testbed", "800 kB")} | {
        word: ("testbeds", word) for word in levels(measured, "testbeds")
    }
    rows = [heads]
    for name, (kind, word) in bases.items():
        row = [name]
        for metric, unit in (("completion_s", SECONDS), ("wlan_share", SHARE), ("energy_j", JOULE)):
            for scheduler in ("minrtt", "emtcp"):
                cells = measured.cells(kind, scheduler, word)
                row.append(unit.estimate(measured.mean(cells[0], metric)) if cells else "as above")
        rows.append(row)
    return rows


#: By metric, the model of energy.
MODELS = {
    "energy_j": "linear, downlink slopes, while a radio carries anything",
    "energy_whole_j": "linear, base power until the last flow ends",
    "energy_up_j": "linear, uplink slopes for what is sent",
    "energy_active_j": "Huang without tails",
    "energy_tail_j": "Huang with the whole tail",
}


def _models(measured: Measured) -> list[list[str]]:
    rows = [
        ["model of energy", *(f"{_largest(measured, kind)}, {kind}" for kind in ("short", "medium", "long"))]
    ]
    for metric, model in MODELS.items():
        ratios = [
            measured.ratio((kind, "ee-mptcp", word), (kind, "roundrobin", word), metric)
            for kind in ("short", "medium", "long")
            for word in (_largest(measured, kind),)
        ]
        rows.append([model, *(GAIN.estimate(ratio) for ratio in ratios)])
    return rows


def _by_flows(kind: str, figure: str, flows: str) -> Plot:
    caption = f"Mean completion time and energy of {flows} by their number"
    return Plot(kind, figure, caption, partial(_by_number, kind, "flows"))


PLOTS = (
    Plot("testbed", "Figures 3 and 4", "One upload over WLAN and 3G, by its size", _testbed),
    _by_flows("short", "Figure 5", "short flows, 57 kB on average,"),
    _by_flows("medium", "Figure 6", "flows of 1 MB"),
    _by_flows("long", "Figure 7", "flows of 10 MB"),
    Plot(
        "wlans",
        "Figure 8",
        "Mean completion time and energy of 20 flows of 1 MB over LTE and so many WLANs",
        partial(_by_number, "wlans", "WLANs"),
    ),
    Plot(
        "tail", "Section 5.2", "Median and 95th percentile of the completion times of flows of 10 MB", _tail
    ),
    Plot(
        "buffer",
        "no figure",
        "30 flows of 10 MB by the receive buffer, which the paper does not give",
        _buffer,
    ),
)

TABLES = (
    Table(
        "The test bed",
        "Completion time, WLAN's share and energy of an upload of 800 kB with the default scheduler and "
        "with eMTCP. The paper has 3.91 s and 4.98 s, 58.70 % and 60.28 %.",
        _testbeds,
    ),
    Table(
        "What the headline depends on",
        "EE-MPTCP against round-robin, 30 flows of 10 MB: what the paper leaves open, varied one by one. "
        "The paper has 79.9 % and 79.2 %.",
        _assumptions,
    ),
    Table(
        "How energy is counted",
        "Energy of EE-MPTCP over that of round-robin for the largest number of flows, by the model of "
        "energy. The paper's constants are downlink slopes, though its robots upload, and know no tail.",
        _models,
    ),
    Table(
        "All schedulers",
        "Means with 95 % intervals; energy by the paper's linear model, and by Huang's with the whole tail.",
        _schedulers,
    ),
)
