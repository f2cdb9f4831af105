"""Impact factors of subflows, and which of them PCDC uses (MPCOA, eqs. (5) and (6))."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.stats import ROUNDING, Estimate, ratio
from anabranch.tuning.grid import TuningError


def impact_factor(with_all: Sequence[float], without: Sequence[float]) -> Estimate:
    """Return the impact factor of a subflow: 1 minus the throughput without it over that with all.

    Means of equally long runs take the place of the paper's sums over T + 1 and T samples, whose unequal
    numbers bias the factor by 1 / (T + 1).

    Parameters
    ----------
    with_all, without
        Throughputs by seed, at least one each.

    Returns
    -------
    Estimate
        The factor, with its interval if there are several seeds.

    Raises
    ------
    TuningError
        If nothing is delivered with all subflows.
    """
    quotient = ratio(list(zip(with_all, without, strict=True)))
    if quotient is None:
        raise TuningError("nothing is delivered with all subflows: no impact factor follows")
    factor = 1 - quotient.mean
    return quotient._replace(mean=factor if abs(factor) > ROUNDING else 0.0)


def used(factors: Mapping[str, float]) -> tuple[str, ...]:
    """Return the subflows with a positive impact factor, or the one with the largest if none has.

    A factor of 0 is not used: the paper's eq. (6) removes only those below 0, its pseudocode takes only those
    above.

    Parameters
    ----------
    factors
        Impact factor by subflow, at least one.

    Returns
    -------
    tuple of str
        The names, in their order.
    """
    positive = tuple(name for name, factor in factors.items() if factor > 0)
    return positive or (max(factors, key=lambda name: factors[name]),)
