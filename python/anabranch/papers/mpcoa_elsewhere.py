"""What would become of MPCOA's claims under other assumptions: sentences that change no verdict."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.papers.judging import GAIN, because, is_above, is_below
from anabranch.papers.model import Cell, Measured, Outcome, Verdict
from anabranch.papers.mpcoa_cells import CONGESTIONS, NONE, THROUGHPUT, VARIANTS
from anabranch.stats import Estimate
from anabranch.tuning.measure import FULL_MESH, PCDC


def variants(measured: Measured, site: str) -> list[str]:
    """Return the assumptions about a scenario that were run; none if time was short."""
    names = {cell[1]: None for cell in measured.cells("variant-pcdc")}
    return [name for name in names if VARIANTS[name][0] == site]


def variant_cell(name: str, manager: str, congestion: str) -> Cell:
    """Name the cell of one assumption with 30 MiB."""
    return ("variant-pcdc", name, congestion) if manager == PCDC else ("variant", name, congestion, NONE)


def _most(measured: Measured, site: str, counts: Sequence[int]) -> tuple[str, int] | None:
    """Return the assumption with the largest count, and that count, if there is any."""
    found = list(zip(variants(measured, site), counts, strict=True))
    return max(found, key=lambda one: one[1]) if found else None


def pcdc_is_better(outcome: Outcome, measured: Measured) -> Outcome:
    """Add under which assumption PCDC is better than full mesh with the most congestion controls (SRL-HU)."""
    if outcome.verdict is Verdict.REPRODUCED:
        return outcome
    most = _most(
        measured,
        "srl-hu",
        [
            sum(is_above(_gain(measured, name, congestion), 1.0) for congestion in CONGESTIONS)
            for name in variants(measured, "srl-hu")
        ],
    )
    if most is None:
        return outcome
    name, count = most
    return because(outcome, f"of other assumptions it holds most often with {name}, for {count} of 6")


def _gain(measured: Measured, name: str, congestion: str) -> Estimate:
    return measured.ratio(
        variant_cell(name, PCDC, congestion), variant_cell(name, FULL_MESH, congestion), THROUGHPUT
    )


def larger_gain(outcome: Outcome, measured: Measured, site: str, congestion: str, claimed: float) -> Outcome:
    """Add the gain of PCDC nearest to the claimed one under other assumptions."""
    gains = {name: _gain(measured, name, congestion) for name in variants(measured, site)}
    if outcome.verdict is Verdict.REPRODUCED or not gains:
        return outcome
    name = min(gains, key=lambda one: abs(gains[one].mean - claimed))
    return because(outcome, f"nearest to it under another assumption ({name}) {GAIN.estimate(gains[name])}")


def declines(outcome: Outcome, measured: Measured) -> Outcome:
    """Add under which assumption the throughput of full mesh falls most often from 18 to 30 MiB (SRL-HU)."""
    if outcome.verdict is Verdict.REPRODUCED:
        return outcome
    most = _most(
        measured,
        "srl-hu",
        [
            sum(
                is_below(
                    measured.ratio(
                        variant_cell(name, FULL_MESH, congestion),
                        ("variant-18", name, congestion),
                        THROUGHPUT,
                    ),
                    1.0,
                )
                for congestion in CONGESTIONS
            )
            for name in variants(measured, "srl-hu")
        ],
    )
    if most is None:
        return outcome
    name, count = most
    where = f"with {name}, {count} of 6 with full mesh" if count else "in none"
    return because(outcome, f"of other assumptions it declines from 18 to 30 MiB most often {where}")


def best_pair(outcome: Outcome, measured: Measured) -> Outcome:
    """Add the best pair by means under every other assumption."""
    if outcome.verdict is Verdict.REPRODUCED:
        return outcome
    names = [name for site in ("srl-hu", "unis-hin") for name in variants(measured, site)]
    if not names:
        return outcome
    parts = ", ".join(f"{_best_pair(measured, name)} ({name})" for name in names)
    return because(outcome, f"best under other assumptions: {parts}")


def _best_pair(measured: Measured, name: str) -> str:
    means = {
        f"{manager} with {congestion}": measured.mean(variant_cell(name, manager, congestion), THROUGHPUT)
        for manager in (FULL_MESH, PCDC)
        for congestion in CONGESTIONS
    }
    return max(means, key=lambda pair: means[pair].mean)
