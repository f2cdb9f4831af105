"""Means with confidence intervals, for samples of independent seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

#: Confidence of every interval that the project prints.
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A mean and half of the width of its 95 % confidence interval.

    The half width is None for a single value, from which no interval follows.
    """

    mean: float
    half_width: float | None
    size: int


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values with its interval, by Student's t distribution.

    Parameters
    ----------
    values
        At least one value.

    Returns
    -------
    Estimate
        The mean and its interval.
    """
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, size=1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half_width = t_quantile(0.5 + CONFIDENCE / 2, count - 1) * math.sqrt(variance / count)
    return Estimate(mean, half_width, size=count)


def ratio(first: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """Return the mean of ``other`` over that of ``first``, two independent samples, with its interval.

    The variance of the ratio is that of Taylor's first order, (s2²/n2 + r² s1²/n1) / m1², its degrees of
    freedom those of Welch and Satterthwaite for the two terms, rounded down.

    Parameters
    ----------
    first, other
        At least one value each.

    Returns
    -------
    Estimate or None
        The ratio; its size is that of the smaller sample, and it has no interval if that is 1. None if the
        mean of ``first`` is zero.
    """
    size = min(len(first), len(other))
    means = [math.fsum(sample) / len(sample) for sample in (first, other)]
    if means[0] == 0.0:
        return None
    quotient = means[1] / means[0]
    if size == 1:
        return Estimate(quotient, None, size)
    weights = ((quotient / means[0]) ** 2, (1.0 / means[0]) ** 2)
    terms = [
        weight * math.fsum((value - mean) ** 2 for value in sample) / (len(sample) - 1) / len(sample)
        for weight, mean, sample in zip(weights, means, (first, other), strict=True)
    ]
    variance = math.fsum(terms)
    if variance == 0.0:
        return Estimate(quotient, 0.0, size)
    shares = ((term / variance) ** 2 / (len(s) - 1) for term, s in zip(terms, (first, other), strict=True))
    degrees = max(1, math.floor(1.0 / math.fsum(shares) + 1e-9))
    return Estimate(quotient, t_quantile(0.5 + CONFIDENCE / 2, degrees) * math.sqrt(variance), size)


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
