"""The usual rules: what the interval of a figure says about a claim.

*Reproduced*: all of the 95 % interval is where the claim puts it. *Partly*: all of it is on the claimed side,
but not of the claimed size; or only some parts of the claim hold. *Not reproduced*: anything else, so also an
interval that has values on both sides, which the sentence then says. *Not testable*: there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.papers.model import Outcome, Verdict
from anabranch.stats import Estimate
from anabranch.units import number


@dataclass(frozen=True)
class Unit:
    """How a figure is shown: its unit, and what the value is multiplied with.

    With ``less`` that is subtracted before: a ratio of 1.03 less 1 is 3 percent.
    """

    name: str = ""
    factor: float = 1.0
    less: float = 0.0
    signed: bool = False

    def text(self, value: float) -> str:
        """Show a value without an interval."""
        scaled = (value - self.less) * self.factor
        sign = "+" if self.signed and scaled else ""
        return f"{scaled:{sign}.4g} {self.name}".rstrip()

    def estimate(self, estimate: Estimate) -> str:
        """Show a value with its interval."""
        if not math.isfinite(estimate.mean):
            return "-"
        mean = (estimate.mean - self.less) * self.factor
        half_width = None if estimate.half_width is None else estimate.half_width * self.factor
        shown = number(mean, half_width, signed=self.signed)
        return f"{shown} {self.name}".rstrip()


#: A plain number.
PLAIN = Unit()
#: A ratio as a gain: 1.03 is +3 %.
GAIN = Unit("%", 100.0, less=1.0, signed=True)
#: A share: 0.5 is 50 %.
SHARE = Unit("%", 100.0)
#: bit/s as Mbit/s.
RATE = Unit("Mbit/s", 1e-6)


def interval(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return both ends of the 95 % interval; None without one."""
    if estimate.half_width is None or not math.isfinite(estimate.mean):
        return None, None
    return estimate.mean - estimate.half_width, estimate.mean + estimate.half_width


def is_above(estimate: Estimate, bound: float) -> bool:
    """Whether all of the interval is above a bound."""
    low, _ = interval(estimate)
    return low is not None and low > bound


def is_below(estimate: Estimate, bound: float) -> bool:
    """Whether all of the interval is below a bound."""
    _, high = interval(estimate)
    return high is not None and high < bound


def above(estimate: Estimate, bound: float, what: str, unit: Unit = PLAIN) -> Outcome:
    """Judge the claim that a figure is above a bound.

    Parameters
    ----------
    estimate
        The figure.
    bound
        The bound; for the order of two algorithms 1 for their ratio, 0 for their difference.
    what
        What the figure is, as the beginning of a sentence: "goodput of MFast over LIA".
    unit
        How it is shown.

    Returns
    -------
    Outcome
        Reproduced if all of the interval is above.
    """
    return _sided(estimate, bound, what, unit, up=True)


def below(estimate: Estimate, bound: float, what: str, unit: Unit = PLAIN) -> Outcome:
    """Judge the claim that a figure is below a bound, see :func:`above`."""
    return _sided(estimate, bound, what, unit, up=False)


def _sided(estimate: Estimate, bound: float, what: str, unit: Unit, *, up: bool) -> Outcome:
    low, high = interval(estimate)
    if low is None or high is None:
        return _untold(estimate, what, unit)
    shown, edge = unit.estimate(estimate), unit.text(bound)
    side, other = ("above", "below") if up else ("below", "above")
    if (low > bound) if up else (high < bound):
        verdict, why = Verdict.REPRODUCED, f"{what} is {shown}, {side} {edge}"
    elif (high < bound) if up else (low > bound):
        verdict, why = Verdict.NOT_REPRODUCED, f"{what} is {shown}, {other} {edge}"
    else:
        verdict, why = Verdict.NOT_REPRODUCED, f"{what} is {shown}, which cannot be told from {edge}"
    return Outcome(shown, low, high, verdict, why)


def sized(
    estimate: Estimate,
    claimed: float,
    tolerance: float,
    what: str,
    unit: Unit = PLAIN,
    *,
    neutral: float | None = None,
) -> Outcome:
    """Judge the claim that a figure has a size.

    Parameters
    ----------
    estimate
        The figure.
    claimed
        The size in the paper.
    tolerance
        How far ours may be from it, in the same unit.
    what
        What the figure is, as the beginning of a sentence.
    unit
        How it is shown.
    neutral
        The value that would mean no effect; None if the claim has no direction.

    Returns
    -------
    Outcome
        Reproduced if all of the interval is within the tolerance; partly if it is not, but all of it is on
        the same side of ``neutral`` as the claimed size.
    """
    low, high = interval(estimate)
    if low is None or high is None:
        return _untold(estimate, what, unit)
    shown, size = unit.estimate(estimate), unit.text(claimed)
    if claimed - tolerance <= low and high <= claimed + tolerance:
        return Outcome(shown, low, high, Verdict.REPRODUCED, f"{what} is {shown}, the paper's {size}")
    if neutral is not None and (low > neutral if claimed > neutral else high < neutral):
        why = f"{what} is {shown}: the direction of the paper, not its {size}"
        return Outcome(shown, low, high, Verdict.PARTLY, why)
    if neutral is not None and low <= neutral <= high:
        why = f"{what} is {shown}, which cannot be told from {unit.text(neutral)}; the paper has {size}"
        return Outcome(shown, low, high, Verdict.NOT_REPRODUCED, why)
    why = f"{what} is {shown}; the paper has {size}"
    return Outcome(shown, low, high, Verdict.NOT_REPRODUCED, why)


def between(estimate: Estimate, least: float, most: float, what: str, unit: Unit = PLAIN) -> Outcome:
    """Judge the claim that a figure lies within bounds.

    Parameters
    ----------
    estimate
        The figure.
    least, most
        The bounds.
    what
        What the figure is, as the beginning of a sentence.
    unit
        How it is shown.

    Returns
    -------
    Outcome
        Reproduced if all of the interval is within them.
    """
    low, high = interval(estimate)
    if low is None or high is None:
        return _untold(estimate, what, unit)
    shown, bounds = unit.estimate(estimate), f"{unit.text(least)} to {unit.text(most)}"
    if least <= low and high <= most:
        return Outcome(shown, low, high, Verdict.REPRODUCED, f"{what} is {shown}, within {bounds}")
    return Outcome(shown, low, high, Verdict.NOT_REPRODUCED, f"{what} is {shown}, not within {bounds}")


def combined(*outcomes: Outcome, ours: str | None = None) -> Outcome:
    """Judge a claim of several parts; the interval is that of the first.

    Parameters
    ----------
    *outcomes
        At least one part.
    ours
        The figure to show; those of all parts unless given.

    Returns
    -------
    Outcome
        Reproduced if every part is, not reproduced if none is even partly; not testable if one is not.
    """
    verdicts = {outcome.verdict for outcome in outcomes}
    if Verdict.NOT_TESTABLE in verdicts:
        verdict = Verdict.NOT_TESTABLE
    elif len(verdicts) == 1:
        verdict = outcomes[0].verdict
    else:
        verdict = Verdict.PARTLY
    why = "; ".join(outcome.why for outcome in outcomes)
    shown = "; ".join(outcome.ours for outcome in outcomes) if ours is None else ours
    return Outcome(shown, outcomes[0].low, outcomes[0].high, verdict, why)


def rising(
    steps: Sequence[Estimate], whole: Estimate, what: str, unit: Unit = PLAIN, *, up: bool = True
) -> Outcome:
    """Judge the claim that a figure rises along a sweep.

    Parameters
    ----------
    steps
        The difference of each point to the point before, paired by seed.
    whole
        The difference of the last to the first, paired by seed.
    what
        What the figure is, as the beginning of a sentence.
    unit
        How it is shown.
    up
        Whether it is claimed to rise; else to fall.

    Returns
    -------
    Outcome
        Reproduced if the last is above the first and no step goes the other way; partly if only the former
        holds.
    """
    ends = _sided(whole, 0.0, f"the change of {what} from the first to the last point", unit, up=up)
    against = [step for step in steps if (is_below(step, 0.0) if up else is_above(step, 0.0))]
    if ends.verdict is not Verdict.REPRODUCED or not against:
        return ends
    worst = min(against, key=lambda step: step.mean if up else -step.mean)
    why = f"{ends.why}, but {len(against)} of {len(steps)} steps go the other way, by {unit.estimate(worst)}"
    return replace(ends, verdict=Verdict.PARTLY, why=why)


def not_testable(why: str, ours: str = "-") -> Outcome:
    """Return that a claim cannot be tested, and why."""
    return Outcome(ours, None, None, Verdict.NOT_TESTABLE, why)


def because(outcome: Outcome, remark: str) -> Outcome:
    """Add to the sentence of an outcome, such as under which assumption the claim would hold."""
    return replace(outcome, why=f"{outcome.why}; {remark}")


def _untold(estimate: Estimate, what: str, unit: Unit) -> Outcome:
    if not math.isfinite(estimate.mean):
        return not_testable(f"{what}: the base is zero")
    return not_testable(f"{what}: one run has no interval", unit.estimate(estimate))
