"""Comparisons in words, the same on the terminal and in reports."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.compare import Row, Variant
from anabranch.results import Subject
from anabranch.stats import Estimate
from anabranch.units import estimate_text, number

#: Figures that are shown unless others are asked for.
USUAL_METRICS = frozenset(
    {
        "goodput_bps",
        "throughput_bps",
        "completion_s",
        "drops",
        "loss_rate",
        "retransmits",
        "timeouts",
        "mean_srtt_s",
        "energy_linear_j",
        "energy_huang_j",
        "send_memory_peak_bytes",
        "receive_memory_peak_bytes",
    }
)

#: Connections, subflows, interfaces and hosts of which figures are shown unless they are asked for; with
#: more, those of the whole run are.
MAX_SUBJECTS = 24


def usual(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are shown unless others are asked for."""
    flows = [row for row in rows if row.subject.is_at_a_node and row.metric in USUAL_METRICS]
    if len({row.subject for row in flows}) > MAX_SUBJECTS:
        return [row for row in rows if row.subject == Subject()]
    return flows


def cell_text(metric: str, estimate: Estimate | None, seeds: int) -> str:
    """Return a figure in the unit in which it is shown, and of how many seeds it is if not of all."""
    if estimate is None:
        return "-"
    missing = f" ({estimate.size} of {seeds} seeds)" if estimate.size < seeds else ""
    return estimate_text(metric, estimate) + missing


def difference_text(metric: str, difference: Estimate | None, base: Estimate | None) -> str:
    """Return a difference to a figure, and what it is relative to that."""
    if difference is None or base is None:
        return "-"
    relative = f" ({100 * difference.mean / base.mean:+.1f} %)" if base.mean and difference.mean else ""
    return estimate_text(metric, difference, signed=True) + relative


def percent(difference: Estimate | None) -> str:
    """Return a relative difference as text; a dash where there is none."""
    if difference is None:
        return "-"
    half_width = None if difference.half_width is None else 100 * difference.half_width
    mean = 100 * difference.mean
    return (f"{mean:+.1f}" if half_width is None else number(mean, half_width, signed=True)) + " %"


def seeds_text(variants: Sequence[Variant]) -> str:
    """Say over how many seeds the figures are, and what the intervals are."""
    counts = sorted({len(variant.runs) for variant in variants})
    if counts == [1]:
        return "one seed each: no intervals"
    text = f"mean over {' or '.join(map(str, counts))} seeds ± half of the 95 % confidence interval"
    if len(variants) == 1:
        return text
    return f"{text}; differences are to {variants[0].label}, paired by seed"
