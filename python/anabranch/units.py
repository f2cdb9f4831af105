"""From metric names, which carry base units, to figures that people read."""

from __future__ import annotations

import math
from typing import NamedTuple

from anabranch.stats import Estimate


class Scale(NamedTuple):
    """A unit for people: its name, and what a value in the base unit is multiplied with."""

    unit: str
    factor: float


#: By the end of the metric's name; the first that fits.
_SCALES = {
    "_mbit_per_s": Scale("Mbit/s", 1.0),
    "rtt_s": Scale("ms", 1e3),
    "per_bit_j": Scale("nJ/bit", 1e9),
    "_bps": Scale("Mbit/s", 1e-6),
    "_s": Scale("s", 1.0),
    "_packets": Scale("packets", 1.0),
    "_bytes": Scale("bytes", 1.0),
    "_j": Scale("J", 1.0),
    "_w": Scale("W", 1.0),
    "_rate": Scale("%", 100.0),
    "utilization": Scale("%", 100.0),
}


#: A smaller half width is the rounding of sums, relative to the value and as such: no metric is known so
#: exactly in the unit in which it is shown.
_RELATIVE_NOISE, _NOISE = 1e-9, 1e-12

#: With more digits after the point, powers of ten are easier to read.
_DECIMALS_MAX = 9


#: Ends of names that are units.
_UNITS = frozenset({"bps", "s", "packets", "bytes", "j", "w"})


def scale_of(metric: str) -> Scale:
    """Return the unit in which a metric is shown; counts and indices have none."""
    return next((scale for end, scale in _SCALES.items() if metric.endswith(end)), Scale("", 1.0))


def title_of(metric: str) -> str:
    """Return the name of a metric without its unit: ``mean_rtt_s`` is ``mean rtt``."""
    metric = metric.removesuffix("_mbit_per_s")
    stem, _, last = metric.rpartition("_")
    return (stem if stem and last in _UNITS else metric).replace("_", " ")


def number(value: float, half_width: float | None, *, signed: bool = False) -> str:
    """Return a value with as many digits as its interval warrants, and the interval.

    Parameters
    ----------
    value
        The value.
    half_width
        Half of the width of its interval, of which two significant digits are shown. Without it, or if
        it is zero or no more than rounding, the value has five, or all before the point if these are more.
    signed
        Whether a positive value has its sign.

    Returns
    -------
    str
        The text, such as ``2.345 ± 0.012``.
    """
    if half_width is not None and half_width <= max(_RELATIVE_NOISE * abs(value), _NOISE):
        half_width = 0.0
        value = 0.0 if abs(value) <= _NOISE else value
    sign = "+" if signed and value else ""
    if half_width is None or half_width == 0.0:
        is_long = 99_999.5 <= abs(value) < 1e15
        text = format(value, f"{sign}.0f" if is_long else f"{sign}.5g")
        return text if half_width is None else f"{text} ± 0"
    decimals = max(0, 1 - math.floor(math.log10(half_width)))
    if decimals > _DECIMALS_MAX:
        return f"{value:{sign}.3g} ± {half_width:.2g}"
    return f"{value:{sign}.{decimals}f} ± {half_width:.{decimals}f}"


def estimate_text(metric: str, estimate: Estimate, *, signed: bool = False) -> str:
    """Return an estimate in the unit in which its metric is shown."""
    factor = scale_of(metric).factor
    half_width = None if estimate.half_width is None else estimate.half_width * factor
    return number(estimate.mean * factor, half_width, signed=signed)
