"""Long series drawn with fewer points, without hiding an extreme."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.results import Doubles

#: Equal parts of time of which each shows its smallest and its largest value.
BUCKETS = 500

#: Series of so many points are shown as they are.
MAX_POINTS = 2 * BUCKETS


class Envelope(NamedTuple):
    """The lowest and the highest of a band, at some times."""

    times_s: Doubles
    low: Doubles
    high: Doubles


def thinned(times_s: Doubles, values: Doubles) -> npt.NDArray[np.intp] | None:
    """Return which points of a series to draw.

    Parameters
    ----------
    times_s
        Times, ascending.
    values
        One for each.

    Returns
    -------
    array or None
        Positions, ascending: the first and the last point, and of each of `BUCKETS` equal parts of time the
        smallest and the largest value. None if all points are to be drawn.
    """
    if len(times_s) <= MAX_POINTS:
        return None
    starts = _starts(times_s)
    ends = np.append(starts[1:], len(times_s))
    extremes = [
        start + choose(values[start:end])
        for start, end in zip(starts, ends, strict=True)
        for choose in (np.argmin, np.argmax)
    ]
    return np.unique([0, *extremes, len(times_s) - 1])


def thinned_band(times_s: Doubles, low: Doubles, high: Doubles) -> Envelope:
    """Return a band, of a long series the extremes of each part of time at the time of its first point."""
    if len(times_s) <= MAX_POINTS:
        return Envelope(times_s, low, high)
    starts = _starts(times_s)
    return Envelope(
        np.append(times_s[starts], times_s[-1]),
        np.append(np.minimum.reduceat(low, starts), low[-1]),
        np.append(np.maximum.reduceat(high, starts), high[-1]),
    )


def _starts(times_s: Doubles) -> npt.NDArray[np.intp]:
    """Return the position of the first point of each part of time that has one."""
    share = (times_s - times_s[0]) / (times_s[-1] - times_s[0])
    bucket = np.minimum((share * BUCKETS).astype(np.intp), BUCKETS - 1)
    return np.flatnonzero(np.diff(bucket, prepend=-1))
