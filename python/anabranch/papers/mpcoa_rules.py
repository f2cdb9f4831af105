"""How MPCOA's claims are judged. Ratios are paired by seed; with 30 MiB unless a buffer is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from anabranch import stats
from anabranch.papers.judging import (
    GAIN,
    SHARE,
    above,
    because,
    below,
    combined,
    interval,
    is_above,
    is_below,
    sized,
)
from anabranch.papers.model import Cell, Measured, Outcome, Rule, Verdict
from anabranch.papers.mpcoa_cells import (
    BUSY,
    CALM,
    CONGESTIONS,
    LARGEST_MIB,
    THROUGHPUT,
    cell_of,
    changing,
    chosen,
    congestions,
    impacts,
    samples,
)
from anabranch.papers.mpcoa_elsewhere import best_pair, declines, larger_gain, pcdc_is_better
from anabranch.papers.mpcoa_printed import SITES, SMALLEST_MIB, curves, printed, traditional_mib
from anabranch.stats import Estimate
from anabranch.tuning.grid import Samples
from anabranch.tuning.measure import FULL_MESH, PCDC
from anabranch.tuning.optimum import Choice, global_maximum_first
from anabranch.tuning.regression import regress

DELTA: float = printed()["delta"]

#: How far our gain of PCDC with Hybla may be from the paper's 72.4 %.
GAIN_TOLERANCE = 0.25

#: How far, relatively, a buffer's share of the traditional one may be from the paper's.
SHARE_TOLERANCE = 0.3

#: Path managers that differ by less are equal.
EQUAL = 0.02

#: Around the paper's optimum of 18.12 MiB, and the largest buffers, in MiB.
MIDDLE_MIB = (15.0, 21.0)
LARGE_MIB = (27.0, 30.0)


def ratio_of_sums(measured: Measured, cells: Iterable[Cell], base: Iterable[Cell]) -> Estimate:
    """Return the throughput of some cells together over that of others, paired by seed."""
    pairs = list(zip(_sums(measured, base), _sums(measured, cells), strict=True))
    found = stats.ratio(pairs)
    if found is None:
        raise ValueError("no throughput in the base")
    return found


def _sums(measured: Measured, cells: Iterable[Cell]) -> Sequence[float]:
    sums: Sequence[float] = np.sum([measured.of(cell, THROUGHPUT) for cell in cells], axis=0).tolist()
    return sums


def largest(site: str, manager: str, congestion: str) -> Cell:
    """Name the cell with 30 MiB."""
    return cell_of(site, manager, congestion, LARGEST_MIB)


def gain(measured: Measured, site: str, congestion: str) -> Estimate:
    """Return the throughput with PCDC over that with full mesh, with 30 MiB."""
    return measured.ratio(largest(site, PCDC, congestion), largest(site, FULL_MESH, congestion), THROUGHPUT)


def gain_of_all(measured: Measured, site: str) -> Estimate:
    """Return the same over all congestion controls together."""
    names = congestions(measured, site)
    return ratio_of_sums(
        measured,
        [largest(site, PCDC, congestion) for congestion in names],
        [largest(site, FULL_MESH, congestion) for congestion in names],
    )


def choices(of: Samples, delta: float) -> list[Choice]:
    """Return what MPCOA chooses on each seed alone: its parabolas, global maximum first."""
    low, high = of.grid.buffers_mib[0], of.grid.buffers_mib[-1]
    found = []
    for seed in range(len(of.grid.seeds)):
        parabolas = {
            (manager, congestion): parabola
            for at, manager in enumerate(of.grid.path_managers)
            for congestion, parabola in zip(
                of.grid.congestions,
                regress(of.buffers_mib, of.mbit_per_s[at, :, :, seed]).parabolas(),
                strict=True,
            )
        }
        found.append(global_maximum_first(dict(parabolas), delta, low, high))
    return found


def share_of_traditional(measured: Measured, site: str, *, as_printed: bool = False) -> Estimate:
    """Return MPCOA's buffer over the traditional one, one value per seed."""
    whole = traditional_mib(site, as_printed=as_printed)
    return stats.estimate([one.buffer_mib / whole for one in choices(samples(measured, site), DELTA)])


def _counted(estimates: Mapping[str, Estimate], overall: Estimate, what: str, *, up: bool) -> Outcome:
    """Judge a claim about several cases: reproduced if it holds in all of them, partly in some."""
    holds = is_above if up else is_below
    yes = [name for name, one in estimates.items() if holds(one, 1.0)]
    no = [name for name in estimates if name not in yes]
    verdict = Verdict.REPRODUCED if not no else Verdict.PARTLY if yes else Verdict.NOT_REPRODUCED
    low, high = interval(overall)
    shown = f"{len(yes)} of {len(estimates)}; together {GAIN.estimate(overall)}"
    parts = ", ".join(f"{name} {GAIN.estimate(one)}" for name, one in estimates.items())
    return Outcome(shown, low, high, verdict, f"{what}: {parts}; it holds for {', '.join(yes) or 'none'}")


def _c1(measured: Measured) -> Outcome:
    claimed = 71.9 / 41.7
    outcome = sized(
        gain(measured, "srl-hu", "hybla"),
        claimed,
        GAIN_TOLERANCE,
        "throughput of PCDC over full mesh with Hybla",
        GAIN,
        neutral=1.0,
    )
    outcome = larger_gain(outcome, measured, "srl-hu", "hybla", claimed)
    if not measured.cells("impact"):
        return outcome
    return because(outcome, _subset(measured, "srl-hu", "hybla"))


def _subset(measured: Measured, site: str, congestion: str) -> str:
    factors = impacts(measured, ("impact", site, congestion))
    names = ", ".join(chosen(factors))
    paper = ", ".join(printed()[site]["subsets"][congestion])
    return f"PCDC uses {names} with {congestion} here, in the paper {paper}"


def _c2(measured: Measured) -> Outcome:
    names = congestions(measured, "srl-hu")
    gains = {congestion: gain(measured, "srl-hu", congestion) for congestion in names}
    overall = gain_of_all(measured, "srl-hu")
    outcome = _counted(gains, overall, "throughput of PCDC over full mesh", up=True)
    return pcdc_is_better(outcome, measured)


def _c3(measured: Measured) -> Outcome:
    parts = []
    for site in SITES:
        claimed = printed()[site]["share_of_traditional"]
        parts.append(
            sized(
                share_of_traditional(measured, site),
                claimed,
                SHARE_TOLERANCE * claimed,
                f"{site}: the buffer over the traditional one",
                SHARE,
                neutral=1.0,
            )
        )
    arithmetic = ", ".join(f"{100 * _printed_buffer(site) / traditional_mib(site):.2f} %" for site in SITES)
    return because(combined(*parts), f"from the printed coefficients it follows as {arithmetic}")


def _printed_buffer(site: str) -> float:
    """Return the buffer that follows from the paper's own coefficients, in MiB."""
    return global_maximum_first(dict(curves(site)), DELTA, SMALLEST_MIB, LARGEST_MIB).buffer_mib


def _c4(measured: Measured) -> Outcome:
    parts = [
        below(
            share_of_traditional(measured, site), 0.5, f"{site}: the buffer over the traditional one", SHARE
        )
        for site in SITES
    ]
    literal = ", ".join(
        f"{100 * _printed_buffer(site) / traditional_mib(site, as_printed=True):.1f} %" for site in SITES
    )
    return because(
        combined(*parts),
        "the traditional one is that of Table 5; eq. (1) as printed gives smaller ones, of which the "
        f"paper's own buffers are {literal}",
    )


def _c5(measured: Measured) -> Outcome:
    claimed = {"srl-hu": (PCDC, "hybla"), "unis-hin": (PCDC, "cubic"), "uit-haw": (FULL_MESH, "scalable")}
    outcome = combined(*(_is_best(measured, site, *pair) for site, pair in claimed.items()))
    return best_pair(outcome, measured)


def _is_best(measured: Measured, site: str, manager: str, congestion: str) -> Outcome:
    """Judge that a pair is the best one; pairs whose runs are the same ones count once."""
    cell = largest(site, manager, congestion)
    own = measured.of(cell, THROUGHPUT)
    others = [
        other
        for of in (FULL_MESH, PCDC)
        for name in CONGESTIONS
        if measured.of(other := largest(site, of, name), THROUGHPUT) != own
    ]
    best = max(others, key=lambda other: measured.mean(other, THROUGHPUT).mean)
    pair, second = f"{manager} with {congestion}", f"{best[2]} with {best[3]}"
    what = f"{site}: throughput of {pair} over the best other pair, {second}"
    return above(measured.ratio(cell, best, THROUGHPUT), 1.0, what, GAIN)


def _c6(measured: Measured) -> Outcome:
    falls = {
        f"{manager} with {congestion}": ratio_of_sums(
            measured,
            _between(measured, manager, congestion, LARGE_MIB),
            _between(measured, manager, congestion, MIDDLE_MIB),
        )
        for manager in (FULL_MESH, PCDC)
        for congestion in congestions(measured, "srl-hu")
    }
    # Cells of the two ranges have equal weights where the numbers of buffers differ, too.
    weights = _number(measured, LARGE_MIB) / _number(measured, MIDDLE_MIB)
    scaled = {name: _scaled(one, 1 / weights) for name, one in falls.items()}
    outcome = _counted(
        scaled,
        scaled[f"{PCDC} with hybla"],
        "throughput with 27 to 30 MiB over that with 15 to 21 MiB",
        up=False,
    )
    return declines(outcome, measured)


def _scaled(one: Estimate, factor: float) -> Estimate:
    half_width = None if one.half_width is None else one.half_width * factor
    return Estimate(one.mean * factor, half_width, one.size)


def _between(measured: Measured, manager: str, congestion: str, limits: tuple[float, float]) -> list[Cell]:
    cells = measured.cells("buffer", "srl-hu", manager, congestion)
    return [cell for cell in cells if limits[0] <= float(cell[4].removesuffix(" MiB")) <= limits[1]]


def _number(measured: Measured, limits: tuple[float, float]) -> int:
    return len(_between(measured, FULL_MESH, congestions(measured, "srl-hu")[0], limits))


def _c7(measured: Measured) -> Outcome:
    equal = sized(
        gain_of_all(measured, "uit-haw"), 1.0, EQUAL, "uit-haw: throughput of PCDC over full mesh", GAIN
    )
    better = [
        above(gain_of_all(measured, site), 1.0, f"{site}: throughput of PCDC over full mesh", GAIN)
        for site in ("srl-hu", "unis-hin")
    ]
    return combined(equal, *better)


def _c8(measured: Measured) -> Outcome:
    parts = []
    for site in SITES:
        half = ratio_of_sums(
            measured,
            [("half", site, congestion) for congestion in CONGESTIONS],
            [largest(site, FULL_MESH, congestion) for congestion in CONGESTIONS],
        )
        what = f"{site}: throughput with half of the traditional buffer over that with 30 MiB"
        parts.append(above(half, 1 - DELTA, what, SHARE))
        of = samples(measured, site)
        saved = stats.estimate(
            [
                given.buffer_mib / whole.buffer_mib
                for given, whole in zip(choices(of, DELTA), choices(of, 0.0), strict=True)
            ]
        )
        what = f"{site}: buffer when 7 % are given up over that when nothing is"
        parts.append(below(saved, 1 - DELTA, what, SHARE))
    return combined(*parts)


def _c9(measured: Measured) -> Outcome:
    turned = [
        f"{name} with {congestion}"
        for congestion in changing(measured)
        for name, calm in impacts(measured, ("changing", CALM, congestion)).items()
        if _has_turned(calm, impacts(measured, ("changing", BUSY, congestion))[name])
    ]
    count = sum(len(impacts(measured, ("changing", CALM, congestion))) for congestion in changing(measured))
    signs = (
        f"{len(turned)} of {count} impact factors have changed their sign with both intervals clear of 0"
        + (f" ({', '.join(turned)})" if turned else "")
    )
    better = above(
        ratio_of_sums(
            measured,
            [("chosen", BUSY, congestion) for congestion in changing(measured)],
            [("chosen", CALM, congestion) for congestion in changing(measured)],
        ),
        1.0,
        "after the change, throughput with the subflows chosen then over those chosen before",
        GAIN,
    )
    verdict = Verdict.REPRODUCED if turned else Verdict.NOT_REPRODUCED
    changed = Outcome(f"{len(turned)} of {count} signs changed", better.low, better.high, verdict, signs)
    return combined(changed, better)


def _has_turned(one: Estimate, other: Estimate) -> bool:
    return (is_above(one, 0.0) and is_below(other, 0.0)) or (is_below(one, 0.0) and is_above(other, 0.0))


RULES = (
    Rule(
        "S4-C1",
        "goodput of PCDC over full mesh with Hybla on SRL-HU: 72.4 % more, within 25 points",
        "a ratio of 1 or less; with one above 1 of another size it is partly reproduced",
        _c1,
    ),
    Rule(
        "S4-C2",
        "the same ratio for each of six congestion controls: above 1",
        "a ratio that is not above 1 with all of its interval; if some are, it is partly reproduced",
        _c2,
    ),
    Rule(
        "S4-C3",
        "buffer by MPCOA's parabolas (7 %, global maximum first) on each seed over the traditional one of "
        "Table 5: the paper's shares within 30 % of each",
        "a share of another size; below 1 it is partly reproduced",
        _c3,
    ),
    Rule(
        "S4-C4",
        "the same shares: below 50 % in all three scenarios",
        "a share whose interval is not below 50 %",
        _c4,
    ),
    Rule(
        "S4-C5",
        "goodput of the named pair over the best other pair: above 1 in each scenario; pairs with equal "
        "runs, which PCDC with all subflows is, count once",
        "another pair that is as good or better",
        _c5,
    ),
    Rule(
        "S4-C6",
        "mean goodput over 27 to 30 MiB against that over 15 to 21 MiB, for the 12 pairs: below 1",
        "a ratio that is not below 1 with all of its interval; if some are below, it is partly reproduced",
        _c6,
    ),
    Rule(
        "S4-C7",
        "goodput of PCDC over full mesh, all congestion controls together: 1 within 2 % on UiT-HAW, above 1 "
        "on SRL-HU and on UNIS-HiN",
        "a difference on UiT-HAW, or none on one of the others",
        _c7,
    ),
    Rule(
        "S4-C8",
        "goodput of full mesh with half of the traditional buffer of Table 5 above 93 % of that with 30 MiB; "
        "MPCOA's buffer with 7 % below 93 % of that with 0 %; in each scenario",
        "a goodput of 93 % or less; a buffer that shrinks by no more than the throughput",
        _c8,
    ),
    Rule(
        "S4-C9",
        "SRL-HU whose CERNET paths lose 1 % instead of 0.01 % after 30 s: an impact factor that changes its "
        "sign with both intervals clear of 0; goodput after the change with the subflows chosen then over "
        "those chosen before: above 1",
        "no such factor; a ratio that is not above 1 with all of its interval",
        _c9,
    ),
)
