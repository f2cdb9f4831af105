"""Rate traces in the format of mahimahi: made, read, imported and described.

A trace is a list of times in milliseconds, at each of which a link can send 1500 bytes; it repeats at its
last one. What is made here is the same on every machine: integers, exactly rounded operations and
:mod:`decimal`, no function of the platform's mathematical library.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import NamedTuple

#: What one opportunity carries.
OPPORTUNITY_BITS = 12_000

#: The rate of a made trace is constant for so long.
STEP_MS = 100

#: The longest trace that is made or imported, in opportunities.
MOST_OPPORTUNITIES = 2_000_000

_RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_TIMES_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}

#: A weight of 1.
_UNIT = 1_000_000


class TraceError(ValueError):
    """A trace, or what is to become one, is wrong; the message says where and how."""


class Info(NamedTuple):
    """What a trace is like; rates in bits per second."""

    length_s: float
    opportunities: int
    mean_bps: float
    #: Over the whole seconds of the trace; None if it is shorter than one.
    min_1s_bps: float | None
    max_1s_bps: float | None


def rate_of(text: str) -> int:
    """Read a rate such as ``10 Mbit/s``, in bits per second."""
    return _quantity(text, _RATES, "a rate such as 10 Mbit/s")


def length_of(text: str) -> int:
    """Read a length such as ``30 s``, in milliseconds."""
    return _quantity(text, _TIMES_MS, "a time such as 30 s")


def _quantity(text: str, units: dict[str, int], expected: str) -> int:
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/")
    unit = text.strip()[len(number) :]
    try:
        value = Fraction(number.strip()) * units[unit]
    except (ValueError, KeyError, ZeroDivisionError):
        raise TraceError(f"{text!r}: expected {expected} (units: {', '.join(units)})") from None
    if value <= 0 or value.denominator != 1:
        raise TraceError(f"{text!r}: expected {expected}, above 0 and whole in {next(iter(units))}")
    return int(value)


def make(kind: str, mean_bps: int, length_ms: int, seed: int) -> list[int]:
    """Make a trace.

    Parameters
    ----------
    kind
        One of :data:`KINDS`.
    mean_bps
        Its mean rate, met as exactly as whole opportunities allow.
    length_ms
        Its length.
    seed
        What random kinds are drawn from.

    Returns
    -------
    list[int]
        The times of its opportunities.

    Raises
    ------
    TraceError
        If there is no such kind, or not one opportunity or too many in the length.
    """
    if kind not in KINDS:
        raise TraceError(f"{kind!r}: no such kind; expected one of {', '.join(KINDS)}")
    steps = -(-length_ms // STEP_MS)
    durations = [STEP_MS] * (steps - 1) + [length_ms - STEP_MS * (steps - 1)]
    count = (mean_bps * length_ms + 500 * OPPORTUNITY_BITS) // (1000 * OPPORTUNITY_BITS)
    if not 1 <= count <= MOST_OPPORTUNITIES:
        raise TraceError(
            f"{mean_bps} bit/s for {length_ms} ms make {count} opportunities of 1500 B; "
            f"expected 1 to {MOST_OPPORTUNITIES}"
        )
    weights = _SHAPES[kind](steps, random.Random(seed))
    if not any(weights):
        weights = [_UNIT] * steps
    return _opportunities(list(zip(durations, weights, strict=True)), count)


def _opportunities(spans: Sequence[tuple[int, int]], count: int) -> list[int]:
    """Spread opportunities over spans of (milliseconds, rate): the n-th comes when n shares are carried."""
    total = sum(duration * rate for duration, rate in spans)
    times: list[int] = []
    begin = carried = 0
    for duration, rate in spans:
        while rate and (len(times) + 1) * total <= (carried + duration * rate) * count:
            missing = (len(times) + 1) * total - carried * count
            times.append(begin - -missing // (rate * count))
        begin += duration
        carried += duration * rate
    times[-1] = begin
    return times


def _constant(steps: int, _rng: random.Random) -> list[int]:
    return [_UNIT] * steps


def _sine(steps: int, _rng: random.Random) -> list[int]:
    """Vary by 80 % in 10 s."""
    period = 10_000 // STEP_MS
    return [_UNIT + round(0.8 * _UNIT * _sine_of(step % period / period)) for step in range(steps)]


def _sine_of(turns: float) -> float:
    """Return the sine of an angle in ``[0, 1)`` turns, by its series: good to 1e-6."""
    if turns > 0.5:
        return -_sine_of(turns - 0.5)
    x = 2 * math.pi * min(turns, 0.5 - turns)
    term = result = x
    for k in range(1, 6):
        term *= -x * x / (2 * k * (2 * k + 1))
        result += term
    return result


def _normal(rng: random.Random) -> float:
    """Return a number of mean 0 and deviation 1: twelve uniform ones make it nearly normal."""
    return math.fsum(rng.random() for _ in range(12)) - 6.0


def _fading(steps: int, rng: random.Random, memory_ms: int) -> Iterator[float]:
    """Yield a first-order autoregressive process of deviation 1."""
    keeps = 1 - STEP_MS / memory_ms
    value = _normal(rng)
    for _ in range(steps):
        yield value
        value = keeps * value + math.sqrt(1 - keeps * keeps) * _normal(rng)


def _lte_drive(steps: int, rng: random.Random) -> list[int]:
    """Slow and fast fading, and an outage about every 20 s."""
    amplitude_db = Decimal(10).ln() / 20
    slow = list(_fading(steps, rng, 20_000))
    fast = list(_fading(steps, rng, 1_000))
    weights = [
        int((Decimal(6 * far + 3 * near) * amplitude_db).exp() * _UNIT)
        for far, near in zip(slow, fast, strict=True)
    ]
    for step in range(steps):
        if rng.random() < STEP_MS / 20_000:
            for silent in range(step, min(step + 2 + int(rng.random() * 5), steps)):
                weights[silent] = 0
    return weights


def _wifi_fade(steps: int, rng: random.Random) -> list[int]:
    """Walk over the rates of 802.11g."""
    rates = [6, 9, 12, 18, 24, 36, 48, 54]
    at, weights = len(rates) - 2, []
    for _ in range(steps):
        weights.append(rates[at] * _UNIT)
        if rng.random() < 0.2:
            at = min(max(at + (1 if rng.random() < 0.5 else -1), 0), len(rates) - 1)
    return weights


_SHAPES: dict[str, Callable[[int, random.Random], list[int]]] = {
    "constant": _constant,
    "sine": _sine,
    "lte-drive": _lte_drive,
    "wifi-fade": _wifi_fade,
}

#: What :func:`make` makes.
KINDS = tuple(_SHAPES)


def read(path: str | PathLike[str]) -> list[int]:
    """Read a trace in the format of mahimahi.

    Raises
    ------
    TraceError
        If the file is none; the message names the line.
    """
    times: list[int] = []
    for number, line in _lines(path):
        if not (line.isascii() and line.isdigit() and len(line) < 10):
            raise TraceError(f"{path}:{number}: {line!r} is no time; expected whole milliseconds")
        time = int(line)
        if times and time < times[-1]:
            raise TraceError(
                f"{path}:{number}: {time} comes after {times[-1]}; expected times that do not decrease"
            )
        times.append(time)
    if not times or times[-1] == 0:
        raise TraceError(f"{path}: the trace has no length; expected a last time above 0")
    return times


def read_csv(path: str | PathLike[str]) -> list[int]:
    """Make a trace of a recording: lines of a time in seconds and a rate in bits per second.

    Each rate holds until the next line's time; the last line ends the trace. A first line without numbers and
    lines that begin with ``#`` are passed over. Times are rounded to milliseconds and count from the first.

    Raises
    ------
    TraceError
        If the file is none; the message names the line.
    """
    points: list[tuple[int, int]] = []
    for number, line in _lines(path):
        fields = [field.strip() for field in line.split(",")]
        if line.startswith("#") or (number == 1 and not any(c.isdigit() for c in line)):
            continue
        try:
            time_s, rate_bps = (Fraction(field) for field in fields)
        except (ValueError, ZeroDivisionError):
            raise TraceError(
                f"{path}:{number}: {line!r}; expected a time in s, a comma and a rate in bit/s"
            ) from None
        if rate_bps < 0:
            raise TraceError(f"{path}:{number}: the rate {fields[1]} is negative")
        time_ms = round(time_s * 1000)
        if points and time_ms <= points[-1][0]:
            raise TraceError(f"{path}:{number}: the time {fields[0]} is not after the line before")
        points.append((time_ms, round(rate_bps)))
    if len(points) < 2:
        raise TraceError(f"{path}: expected at least two lines; the last one ends the trace")
    spans = [(end - begin, rate) for (begin, rate), (end, _) in pairwise(points)]
    bits_1000 = sum(duration * rate for duration, rate in spans)
    count = (bits_1000 + 500 * OPPORTUNITY_BITS) // (1000 * OPPORTUNITY_BITS)
    if not 1 <= count <= MOST_OPPORTUNITIES:
        raise TraceError(f"{path}: {count} opportunities of 1500 B; expected 1 to {MOST_OPPORTUNITIES}")
    return _opportunities(spans, count)


def _lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TraceError(f"{path}: not a text file") from None
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    return enumerate(text.splitlines(), start=1)


def write(path: str | PathLike[str], times: Iterable[int]) -> None:
    """Write a trace in the format of mahimahi."""
    Path(path).write_text("".join(f"{time}\n" for time in times), encoding="ascii", newline="\n")


def info(times: Sequence[int]) -> Info:
    """Describe a trace: what one second carries is what came after its beginning, up to its end."""
    seconds = range(times[-1] // 1000)
    counts = [bisect_right(times, 1000 * s + 1000) - bisect_right(times, 1000 * s) for s in seconds]
    rates = [float(count * OPPORTUNITY_BITS) for count in counts]
    return Info(
        length_s=times[-1] / 1000,
        opportunities=len(times),
        mean_bps=len(times) * OPPORTUNITY_BITS * 1000 / times[-1],
        min_1s_bps=min(rates, default=None),
        max_1s_bps=max(rates, default=None),
    )
