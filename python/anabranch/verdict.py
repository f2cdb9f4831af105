"""Whether the kernel gives what the simulator gives: a verdict for each figure of one scenario.

The definitions are in docs/agreement.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from anabranch.compare import Sample, Variant, by_figure
from anabranch.results import Subject
from anabranch.stats import Estimate, estimate, ratio


class Tolerance(NamedTuple):
    """By which share of the simulator's figure the kernel's may differ, and whether that is a goal."""

    share: float
    is_goal: bool


#: The figures that are judged, in the order of tables.
TOLERANCES = {
    "goodput_bps": Tolerance(0.05, is_goal=True),
    "completion_s": Tolerance(0.10, is_goal=True),
    "throughput_bps": Tolerance(0.10, is_goal=False),
    "mean_srtt_s": Tolerance(0.10, is_goal=False),
    "mean_cwnd_packets": Tolerance(0.15, is_goal=False),
    "latency_mean_s": Tolerance(0.10, is_goal=False),
    "retransmits": Tolerance(0.25, is_goal=False),
}


class Verdict(StrEnum):
    """What the interval of a difference says about its tolerance."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNCLEAR = "unclear"


class Judged(NamedTuple):
    """One figure of both engines.

    ``difference`` is the kernel's mean over the simulator's, less one, over the seeds that both have, with
    its 95 % interval; None where there is no such seed or where the simulator's mean is zero.
    """

    subject: Subject
    metric: str
    sim: Estimate | None
    kernel: Estimate | None
    difference: Estimate | None
    tolerance: Tolerance
    verdict: Verdict

    @property
    def is_within(self) -> bool:
        """Whether the difference of the means is within the tolerance, whatever its interval."""
        if self.difference is None:
            return self.verdict is Verdict.AGREES
        return abs(self.difference.mean) <= self.tolerance.share


def same_scenario(variants: Sequence[Variant]) -> bool:
    """Return whether these are one variant of the simulator and one of the kernel, of the same scenario."""
    return (
        sorted(variant.engine for variant in variants) == ["kernel", "sim"]
        and variants[0].runs[0].manifest["canonical"] == variants[1].runs[0].manifest["canonical"]
    )


def judge(sim: Variant, kernel: Variant) -> list[Judged]:
    """Judge every figure of two variants that has a tolerance.

    A connection with one subflow has its goodput and its retransmissions judged once, not again as those of
    the subflow.

    Parameters
    ----------
    sim, kernel
        Runs of the same scenario on the two engines.

    Returns
    -------
    list of Judged
        In the order of the tolerances, within a metric in that of the engine.
    """
    tables = [by_figure(variant.runs) for variant in (sim, kernel)]
    names = dict.fromkeys(name for table in tables for name in table)
    subflows: dict[str, set[str]] = {}
    for subject, _ in names:
        if subject.connection is not None and subject.subflow is not None:
            subflows.setdefault(subject.connection, set()).add(subject.subflow)
    judged = []
    for metric in TOLERANCES:
        for subject, name in names:
            if name != metric or subject.connection is None:
                continue
            alone = subject.subflow is not None and len(subflows[subject.connection]) == 1
            if alone and metric in ("throughput_bps", "retransmits"):
                continue
            samples = [table.get((subject, metric), {}) for table in tables]
            complete = [
                len(sample) == len(variant.runs)
                for sample, variant in zip(samples, (sim, kernel), strict=True)
            ]
            judged.append(_judged(subject, metric, samples[0], samples[1], complete=all(complete)))
    return judged


def _judged(subject: Subject, metric: str, sim: Sample, kernel: Sample, *, complete: bool) -> Judged:
    tolerance = TOLERANCES[metric]
    pairs = [(sim[seed], kernel[seed]) for seed in sim if seed in kernel]
    quotient = ratio(pairs) if pairs else None
    difference = None if quotient is None else quotient._replace(mean=quotient.mean - 1.0)
    if not complete:
        verdict = Verdict.UNCLEAR
    elif difference is not None:
        verdict = verdict_of(difference, tolerance.share)
    else:
        verdict = Verdict.AGREES if pairs and not any(kernel.values()) else Verdict.UNCLEAR
    estimates = [estimate(list(sample.values())) if sample else None for sample in (sim, kernel)]
    return Judged(subject, metric, estimates[0], estimates[1], difference, tolerance, verdict)


def verdict_of(difference: Estimate, tolerance: float) -> Verdict:
    """Return what the interval of a relative difference says.

    Parameters
    ----------
    difference
        The difference as a share, such as -0.02.
    tolerance
        What is tolerated, as a share.

    Returns
    -------
    Verdict
        ``agrees`` if the whole interval is within the tolerance, ``differs`` if all of it is outside on one
        side, else ``unclear``; ``unclear`` without an interval.
    """
    if difference.half_width is None:
        return Verdict.UNCLEAR
    low, high = difference.mean - difference.half_width, difference.mean + difference.half_width
    if -tolerance <= low and high <= tolerance:
        return Verdict.AGREES
    if low > tolerance or high < -tolerance:
        return Verdict.DIFFERS
    return Verdict.UNCLEAR
