"""Means with confidence intervals, for samples of independent seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

#: Confidence of every interval that the project prints.
CONFIDENCE = 0.95

#: What is smaller against the values that it comes from is the rounding of sums and differences: some
#: thousand times the 2e-16 of a double.
ROUNDING = 1e-12


class Estimate(NamedTuple):
    """A mean and half of the width of its 95 % confidence interval.

    The half width is None for a single value, from which no interval follows.
    """

    mean: float
    half_width: float | None
    size: int


def estimate(values: Sequence[float], *, of: float = 0.0) -> Estimate:
    """Return the mean of independent values with its interval, by Student's t distribution.

    Parameters
    ----------
    values
        At least one value.
    of
        The largest of the numbers of which the values are differences; differences that are the rounding of
        these count as none.

    Returns
    -------
    Estimate
        The mean and its interval.
    """
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, size=1)
    noise = ROUNDING * max(of, *map(abs, values))
    if max(values) - min(values) <= noise:
        # The mean of equal values, rounded, may not be the value, and their variance not zero.
        return Estimate(values[0] if abs(values[0]) > noise else 0.0, 0.0, count)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half_width = t_quantile(0.5 + CONFIDENCE / 2, count - 1) * math.sqrt(variance / count)
    return Estimate(mean, half_width, size=count)


def ratio(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """Return the mean of the second values over that of the first, with its interval; pairs are independent.

    The ratio estimator of survey sampling: the variance of r is s²/n / m1², s² being the variance of the
    residuals ``second - r first`` and m1 the mean of the first values (Cochran, Sampling Techniques, 2.11);
    Student's quantile has n - 1 degrees of freedom.

    Parameters
    ----------
    pairs
        At least one.

    Returns
    -------
    Estimate or None
        The ratio; without an interval if there is only one pair. None if the mean of the first values is
        zero.
    """
    size = len(pairs)
    total = math.fsum(first for first, _ in pairs)
    if total == 0.0:
        return None
    quotient = math.fsum(second for _, second in pairs) / total
    if size == 1:
        return Estimate(quotient, None, size)
    variance = math.fsum((second - quotient * first) ** 2 for first, second in pairs) / (size - 1) / size
    quantile = t_quantile(0.5 + CONFIDENCE / 2, size - 1)
    half_width = quantile * math.sqrt(variance) / abs(total / size)
    if half_width <= ROUNDING * abs(quotient):
        return Estimate(1.0 if abs(quotient - 1.0) <= ROUNDING else quotient, 0.0, size)
    return Estimate(quotient, half_width, size)


@cache
def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution.

    Parameters
    ----------
    probability
        From 0.5 up to but not including 1.
    degrees
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        The value that a t-distributed variable stays below with ``probability``.
    """
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < probability:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_cdf(value: float, degrees: int) -> float:
    """Return the probability that a t-distributed variable stays below ``value``.

    Exact finite sums for whole degrees of freedom: Abramowitz and Stegun, 26.7.3 and 26.7.4.

    Parameters
    ----------
    value
        At least 0.
    degrees
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        The probability.
    """
    angle = math.atan(value / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    if degrees % 2 == 0:
        term = total = 1.0
        for k in range(1, degrees // 2):
            term *= cosine * cosine * (2 * k - 1) / (2 * k)
            total += term
        central = sine * total
    else:
        total, term = 0.0, cosine
        for k in range(1, (degrees - 1) // 2 + 1):
            total += term
            term *= cosine * cosine * (2 * k) / (2 * k + 1)
        central = 2 / math.pi * (angle + sine * total)
    return 0.5 + central / 2
