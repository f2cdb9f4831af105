"""The counterparts of MPCOA's figures 5 to 8, and tables of what its algorithm finds here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch.papers.drawing import finish, panels
from anabranch.papers.judging import GAIN
from anabranch.papers.model import Measured, Plot, Table
from anabranch.papers.mpcoa_cells import (
    BUSY,
    CALM,
    CONGESTIONS,
    NONE,
    THROUGHPUT,
    VARIANTS,
    changing,
    chosen,
    impacts,
    samples,
    sites,
)
from anabranch.papers.mpcoa_printed import (
    PATH_MANAGERS,
    SITES,
    SMALLEST_MIB,
    curves,
    printed,
    traditional_mib,
)
from anabranch.papers.mpcoa_rules import DELTA, largest, ratio_of_sums, share_of_traditional
from anabranch.report.drawing import COLOURS
from anabranch.results import Doubles
from anabranch.tuning.optimum import (
    Choice,
    global_maximum_first,
    measured_maximum,
    regrets,
    smallest_buffer_first,
    tune,
)
from anabranch.tuning.plots import throughputs
from anabranch.tuning.regression import Model
from anabranch.units import number

SITE_NAMES = {"srl-hu": "SRL-HU", "unis-hin": "UNIS-HiN", "uit-haw": "UiT-HAW"}


def _by_buffer(site: str, measured: Measured) -> Figure:
    of = samples(measured, site)
    fits = tune(of, DELTA).fits
    figure, axes = panels(2, height=3.4)
    for one, manager in zip(axes, of.grid.path_managers, strict=True):
        throughputs(one, of, fits[manager], manager)
    top = max(one.get_ylim()[1] for one in axes)
    finish(figure, axes, ["throughput (Mbit/s)"] * 2)
    for one in axes:
        one.set_ylim(0, top)
    return figure


def _with_30_mib(site: str, measured: Measured) -> Figure:
    figure, (axes,) = panels(height=3.4)
    for number_of, manager in enumerate(PATH_MANAGERS):
        places: Doubles = np.arange(len(CONGESTIONS), dtype=np.float64) + (number_of - 0.5) * 0.38
        values = [np.array(measured.of(largest(site, manager, name), THROUGHPUT)) for name in CONGESTIONS]
        means = [one.mean() for one in values]
        axes.bar(places, means, width=0.36, label=manager, color=COLOURS[number_of], alpha=0.7)
        _bars(axes, places, means, values, (0.0, 1.0), 0.8)
        _bars(axes, places, means, values, (0.1, 0.9), 3.0)
    axes.set_xticks(range(len(CONGESTIONS)), CONGESTIONS)
    return finish(figure, [axes], ["throughput (Mbit/s)"])


def _bars(
    axes: Axes,
    places: Doubles,
    means: list[float],
    values: list[Doubles],
    quantiles: tuple[float, float],
    width: float,
) -> None:
    low, high = (np.array([np.quantile(one, part) for one in values]) for part in quantiles)
    lengths = np.maximum([np.array(means) - low, high - np.array(means)], 0.0)
    axes.errorbar(places, means, lengths, fmt="none", ecolor="0.2", elinewidth=width)


def _over_time(measured: Measured) -> Figure:
    figure, axes = panels(2, height=3.2)
    for one, window in zip(axes, (CALM, BUSY), strict=True):
        for number_of, congestion in enumerate(changing(measured)):
            factors = impacts(measured, ("changing", window, congestion))
            places = np.arange(len(factors)) + (number_of - 2.5) * 0.13
            errors = [factor.half_width or 0.0 for factor in factors.values()]
            means = [factor.mean for factor in factors.values()]
            colour = COLOURS[number_of]
            one.errorbar(places, means, errors, fmt="o", ms=3, lw=0.8, label=congestion, color=colour)
        one.axhline(0, color="0.4", lw=0.8)
        if max(abs(limit) for limit in one.get_ylim()) > 1.0:
            one.set_yscale("symlog", linthresh=1.0)  # where one subflow decides, a factor is far below 0
        one.set_xticks(range(len(factors)), list(factors))
        one.set_title(f"{window}: {'0 to 30 s' if window == CALM else '30 to 60 s'}", loc="left")
    return finish(figure, axes, ["impact factor"] * 2, from_zero=False)


_CAPTION = (
    "Points are means, bars reach from the 10 % to the 90 % quantile over the seeds; dotted: the paper's "
    "parabola, line: the saturating curve."
)
_BARS = "Thick bars reach from the 10 % to the 90 % quantile over the seeds, thin ones over all of them."

PLOTS = (
    Plot("srl-hu-buffer", "figure 5", f"SRL-HU. {_CAPTION}", partial(_by_buffer, "srl-hu")),
    Plot("srl-hu", "figure 6", f"SRL-HU with buffers of 30 MiB. {_BARS}", partial(_with_30_mib, "srl-hu")),
    Plot("unis-hin", "figure 7", f"UNIS-HiN with 30 MiB. {_BARS}", partial(_with_30_mib, "unis-hin")),
    Plot("uit-haw", "figure 8", f"UiT-HAW with 30 MiB. {_BARS}", partial(_with_30_mib, "uit-haw")),
    Plot("unis-hin-buffer", "none", f"UNIS-HiN. {_CAPTION}", partial(_by_buffer, "unis-hin")),
    Plot("uit-haw-buffer", "none", f"UiT-HAW. {_CAPTION}", partial(_by_buffer, "uit-haw")),
    Plot(
        "changing",
        "none",
        "Impact factors on SRL-HU before and after CERNET's paths lose 1 % instead of 0.01 %, with 95 % "
        "intervals.",
        _over_time,
    ),
)


def _arithmetic(_measured: Measured) -> list[list[str]]:
    rows = [["scenario", "reading", "path manager", "congestion control", "buffer", "throughput", "Table 5"]]
    for site in SITES:
        paper = printed()[site]["choice"]
        for reading, rule in (
            ("global maximum first", global_maximum_first),
            ("eqs. (10) and (11) literally", smallest_buffer_first),
        ):
            found = rule(dict(curves(site)), DELTA, SMALLEST_MIB, printed()["largest_buffer_mib"])
            rows.append(
                [
                    SITE_NAMES[site],
                    reading,
                    found.path_manager,
                    found.congestion,
                    f"{found.buffer_mib:.2f} MiB",
                    f"{found.mbit_per_s:.2f} Mbit/s",
                    f"{paper['path_manager']}, {paper['congestion']}, {paper['buffer_mib']:.2f} MiB, "
                    f"{paper['mbit_per_s']:.2f} Mbit/s",
                ]
            )
    return rows


def _traditional(measured: Measured) -> list[list[str]]:
    rows = [["scenario", "reading of eq. (1)", "traditional buffer", "paper's buffer of it", "ours of it"]]
    for site in SITES:
        for as_printed in (False, True):
            whole = traditional_mib(site, as_printed=as_printed)
            ours = share_of_traditional(measured, site, as_printed=as_printed)
            rows.append(
                [
                    SITE_NAMES[site],
                    "as printed" if as_printed else "3 (max RTT + max RTO), Table 5",
                    f"{whole:.4g} MiB",
                    f"{100 * printed()[site]['choice']['buffer_mib'] / whole:.1f} %",
                    f"{number(100 * ours.mean, 100 * (ours.half_width or 0.0))} %",
                ]
            )
    return rows


def _impact(site: str, measured: Measured) -> list[list[str]]:
    by_congestion = {name: impacts(measured, ("impact", site, name)) for name in CONGESTIONS}
    rows = [["subflow", *CONGESTIONS]]
    for subflow in by_congestion[CONGESTIONS[0]]:
        cells = []
        for at, factors in enumerate(by_congestion.values()):
            factor, paper = factors[subflow], printed()[site]["impact"][subflow][at]
            star = "*" if subflow in chosen(factors) else ""
            cells.append(f"{number(factor.mean, factor.half_width, signed=True)}{star} ({paper:+g})")
        rows.append([subflow, *cells])
    return rows


def _models(measured: Measured) -> list[list[str]]:
    rows = [["scenario", "path manager", "model", "R²", "p", "error at held-out buffers", "accepted"]]
    for site in sites(measured):
        for manager, of in tune(samples(measured, site), DELTA).fits.items():
            rows += [
                [
                    SITE_NAMES[site],
                    manager,
                    model,
                    f"{fit.r2:.3f}",
                    f"{fit.p_value:.2g}",
                    f"{fit.held_out_mbit_per_s:.3g} Mbit/s",
                    "yes" if fit.is_accepted else "no",
                ]
                for model, fit in of.items()
            ]
    return rows


def _choices(measured: Measured) -> list[list[str]]:
    rows = [["scenario", "by", "path manager", "congestion control", "buffer", "throughput", "largest"]]
    for site in sites(measured):
        of = samples(measured, site)
        tuning = tune(of, DELTA)
        low, high = of.grid.buffers_mib[0], of.grid.buffers_mib[-1]
        found = {
            "parabola, global maximum first": global_maximum_first(
                tuning.curves(Model.PARABOLA), DELTA, low, high
            ),
            "parabola, eqs. (10) and (11) literally": smallest_buffer_first(
                tuning.curves(Model.PARABOLA), DELTA, low, high
            ),
            "saturating, global maximum first": global_maximum_first(
                tuning.curves(Model.SATURATING), DELTA, low, high
            ),
            "measured maximum, no model": measured_maximum(of, DELTA),
        }
        rows += [_choice(SITE_NAMES[site], by, choice) for by, choice in found.items()]
    return rows


def _choice(site: str, by: str, choice: Choice) -> list[str]:
    return [
        site,
        by,
        choice.path_manager,
        choice.congestion,
        f"{choice.buffer_mib:.2f} MiB",
        f"{choice.mbit_per_s:.4g} Mbit/s",
        f"{choice.largest_mbit_per_s:.4g} Mbit/s at {choice.largest_at_mib:.2f} MiB",
    ]


def _regret(measured: Measured) -> list[list[str]]:
    rows = [["scenario", "mean throughput lacking", "at worst", "mean buffer more than needed"]]
    for site in SITES:
        found = regrets(samples(measured, site), DELTA)
        shares = [100 * one.throughput_share for one in found]
        extra = sum(one.extra_mib for one in found) / len(found)
        rows.append(
            [
                SITE_NAMES[site],
                f"{sum(shares) / len(shares):.1f} %",
                f"{max(shares):.1f} %",
                f"{extra:+.2f} MiB",
            ]
        )
    return rows


def _sensitivity(measured: Measured) -> list[list[str]]:
    rows = [["scenario", "assumption", *CONGESTIONS, "all together"]]
    for site in SITES:
        bases = [largest(site, "fullmesh", name) for name in CONGESTIONS]
        cells = [largest(site, "pcdc", name) for name in CONGESTIONS]
        rows.append([SITE_NAMES[site], "as in the campaign", *_gains(measured, cells, bases)])
    for name in {cell[1]: None for cell in measured.cells("variant-pcdc")}:
        bases = [("variant", name, congestion, NONE) for congestion in CONGESTIONS]
        cells = [("variant-pcdc", name, congestion) for congestion in CONGESTIONS]
        rows.append([SITE_NAMES[VARIANTS[name][0]], name, *_gains(measured, cells, bases)])
    return rows


def _gains(measured: Measured, cells: list[tuple[str, ...]], bases: list[tuple[str, ...]]) -> list[str]:
    gains = [measured.ratio(cell, base, THROUGHPUT) for cell, base in zip(cells, bases, strict=True)]
    return [GAIN.estimate(one) for one in [*gains, ratio_of_sums(measured, cells, bases)]]


def _best_of_variants(measured: Measured) -> list[list[str]]:
    rows = [["scenario", "assumption", "best pair", "throughput", "second", "throughput of the second"]]
    variants = {cell[1]: None for cell in measured.cells("variant-pcdc")}
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
        (site, "as in the campaign"): {
            f"{manager} with {name}": largest(site, manager, name)
            for manager in PATH_MANAGERS
            for name in CONGESTIONS
        }
        for site in SITES
    }
    for variant in variants:
        found[VARIANTS[variant][0], variant] = {
            **{f"fullmesh with {name}": ("variant", variant, name, NONE) for name in CONGESTIONS},
            **{f"pcdc with {name}": ("variant-pcdc", variant, name) for name in CONGESTIONS},
        }
    for (site, assumption), cells in found.items():
        means = {pair: measured.mean(cell, THROUGHPUT) for pair, cell in cells.items()}
        ranked = sorted(means, key=lambda pair: -means[pair].mean)[:2]
        values = [
            text
            for pair in ranked
            for text in (pair, f"{number(means[pair].mean, means[pair].half_width)} Mbit/s")
        ]
        rows.append([SITE_NAMES[site], assumption, *values])
    return rows


def _impact_table(site: str) -> Table:
    rows: Callable[[Measured], list[list[str]]] = partial(_impact, site)
    return Table(
        f"Impact factors, {SITE_NAMES[site]} (Tables 2 and 3)",
        "Ours with 95 % intervals, a star where PCDC uses the subflow; in brackets the paper's.",
        rows,
    )


MODELS = Table(
    "Models",
    "The paper's rule accepts R² of at least 0.90 and p of at most 0.05; every fifth buffer is held out in "
    "turn.",
    _models,
)
CHOICES = Table("Choices", "7 % of the throughput given up.", _choices)

TABLES = (
    Table(
        "What follows from the printed coefficients",
        "No run: the arithmetic of Tables 4 and 5, with either reading of eqs. (10) and (11).",
        _arithmetic,
    ),
    Table(
        "The traditional buffer",
        "Eq. (1) in both readings, with the RTT, RTO and rates that the paper gives.",
        _traditional,
    ),
    *(_impact_table(site) for site in SITES),
    MODELS,
    CHOICES,
    Table(
        "Regret",
        "The choice of all other seeds on the seed that is held out, against exhaustive search there.",
        _regret,
    ),
    Table(
        "PCDC over full mesh with 30 MiB, under other assumptions",
        "What the paper leaves open, one at a time; without --quick only.",
        _sensitivity,
    ),
    Table("Best pairs with 30 MiB", "The same assumptions.", _best_of_variants),
)
