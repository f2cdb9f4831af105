"""Throughput as a function of the buffer: MPCOA's parabola, and one that saturates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from anabranch.tuning.grid import Doubles


class Peak(NamedTuple):
    """The largest throughput of a curve in a range of buffers, and where it is."""

    buffer_mib: float
    mbit_per_s: float


class Curve(Protocol):
    """Throughput in Mbit/s by buffer in MiB."""

    def at(self, buffers_mib: Doubles) -> Doubles:
        """Return the throughputs with some buffers."""

    def peak(self, low_mib: float, high_mib: float) -> Peak:
        """Return where in a range of buffers it is largest; of several places, the smallest one."""

    def reaches(self, mbit_per_s: float, low_mib: float, high_mib: float) -> float:
        """Return the smallest buffer of a range with at least this throughput, which it must reach there."""


def value(curve: Curve, buffer_mib: float) -> float:
    """Return the throughput with one buffer."""
    return float(curve.at(np.array([buffer_mib]))[0])


def smallest_within(curve: Curve, delta: float, low_mib: float, high_mib: float) -> float:
    """Return the smallest buffer whose throughput is at least 1 - delta of the largest: MPCOA, eq. (10).

    Continuous, as the paper's own results are (12.36 and 9.22 MiB lie between its grid points of 0.5 MiB).

    Parameters
    ----------
    curve
        The throughputs.
    delta
        The part that is given up, from 0 up to but not including 1.
    low_mib, high_mib
        The range of buffers.

    Returns
    -------
    float
        The buffer, in MiB.
    """
    peak = curve.peak(low_mib, high_mib)
    # A largest throughput below 0 comes from a useless fit, and 1 - delta of it would lie above it.
    wanted = min((1 - delta) * peak.mbit_per_s, peak.mbit_per_s)
    return curve.reaches(wanted, low_mib, high_mib)


@dataclass(frozen=True)
class Parabola:
    """MPCOA's ``tp = a + m bs + q bs^2`` of one path manager and congestion control (its Table 4)."""

    a: float
    m: float
    q: float

    def at(self, buffers_mib: Doubles) -> Doubles:
        """Return the throughputs with some buffers."""
        return self.a + self.m * buffers_mib + self.q * buffers_mib**2

    def peak(self, low_mib: float, high_mib: float) -> Peak:
        """Return the largest throughput, at an end of the range or at the vertex."""
        places = [low_mib, high_mib]
        if self.q < 0:
            places.append(min(max(-self.m / (2 * self.q), low_mib), high_mib))
        return max((Peak(place, value(self, place)) for place in sorted(places)), key=lambda peak: peak[1])

    def reaches(self, mbit_per_s: float, low_mib: float, high_mib: float) -> float:
        """Return the smallest buffer with at least this throughput."""
        if value(self, low_mib) >= mbit_per_s:
            return low_mib
        if self.q == 0:
            return min((mbit_per_s - self.a) / self.m, high_mib)
        # Of q < 0 this is the root on the rising side, of q > 0 the one to the right of the vertex: in both
        # cases the first one above a buffer at which the parabola is still below.
        discriminant = max(self.m**2 - 4 * self.q * (self.a - mbit_per_s), 0.0)
        return min((math.sqrt(discriminant) - self.m) / (2 * self.q), high_mib)


@dataclass(frozen=True)
class Saturating:
    """``tp = a (1 - exp(-bs / c))``: nothing without a buffer, rising by a / c per MiB, never more than a.

    While the buffer is what limits, a connection has one buffer per round-trip time, a straight line through
    the origin; from then on the paths limit, and more buffer gives nothing. A parabola has neither limit.
    """

    a: float
    c: float

    def at(self, buffers_mib: Doubles) -> Doubles:
        """Return the throughputs with some buffers."""
        return self.a * -np.expm1(-buffers_mib / self.c)

    def peak(self, low_mib: float, high_mib: float) -> Peak:
        """Return the largest throughput, at the largest buffer."""
        place = high_mib if value(self, high_mib) > value(self, low_mib) else low_mib
        return Peak(place, value(self, place))

    def reaches(self, mbit_per_s: float, low_mib: float, high_mib: float) -> float:
        """Return the smallest buffer with at least this throughput."""
        if value(self, low_mib) >= mbit_per_s:
            return low_mib
        if mbit_per_s >= value(self, high_mib):
            return high_mib
        return -self.c * math.log1p(-mbit_per_s / self.a)
