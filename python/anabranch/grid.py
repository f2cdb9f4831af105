"""The points of a sweep: which keys of a scenario are varied, over which values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product

from anabranch._engine import AnabranchError

#: The most points of a grid; each is held in memory as a checked scenario of some 20 kB.
POINTS_MAX = 20_000

#: What opens and closes a stretch in which commas and colons separate nothing.
_BRACKETS = {"(": ")", "[": "]", "{": "}"}

#: A number and its unit. So few digits that sums and quotients are exact in Decimal's 28.
_NUMBER = re.compile(r"([+-]?\d{1,15}(?:\.\d{1,9})?)\s*([a-zA-Z/% ]+)?", re.ASCII)


class GridError(AnabranchError):
    """A grid was refused; the message says where and what was expected."""


@dataclass(frozen=True)
class Axis:
    """A key of a scenario and the values that it takes, as in ``--set key=value``."""

    key: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what makes no grid."""
        if not self.key.strip():
            raise GridError(f"{self.key!r}: expected the key of a scenario")
        if not self.values:
            raise GridError(f"{self.key}: no values; expected at least one")
        for value in self.values:
            if not value:
                raise GridError(f"{self.key}: an empty value; expected one between two commas")
        for at, value in enumerate(self.values):
            if value in self.values[:at]:
                raise GridError(f"{self.key}: {value} is there twice; expected each value once")


def read_axis(text: str) -> Axis:
    """Read ``key=a,b,c`` or ``key=from:to:step``, or a mixture of the two.

    Commas and colons within quotes or brackets separate nothing. A range may have a unit after each number,
    or one after the last; it ends at ``to`` or at the last step before it.

    Parameters
    ----------
    text
        The text, such as ``link.path1.rate=1:5:1 Mbit/s``.

    Returns
    -------
    Axis
        The key and its values.

    Raises
    ------
    GridError
        If it is none: no key, an empty value, a range that is no range, a value twice.
    """
    key, equals, values = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise GridError(f"{text}: expected KEY=VALUE,VALUE,... or KEY=FROM:TO:STEP")
    if not values.strip():
        raise GridError(f"{key}: no values; expected KEY=VALUE,VALUE,... or KEY=FROM:TO:STEP")
    return Axis(key, tuple(value for part in _split(values, ",") for value in _values(key, part.strip())))


def grid(axes: Sequence[Axis], fixed: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return every combination of values, the last key varying fastest.

    Parameters
    ----------
    axes
        At least one, each of another key.
    fixed
        Keys that have a value already.

    Returns
    -------
    list of dict
        The points: a value for each key.

    Raises
    ------
    GridError
        If there is no axis, a key twice, or more points than :data:`POINTS_MAX`.
    """
    if not axes:
        raise GridError("an empty grid; expected at least one key that is varied")
    taken = {_bare(key) for key in fixed}
    for axis in axes:
        if _bare(axis.key) in taken:
            raise GridError(f"{axis.key}: given twice; expected each key once")
        taken.add(_bare(axis.key))
    points = math.prod(len(axis.values) for axis in axes)
    if points > POINTS_MAX:
        raise GridError(f"a grid of {points:,} points; expected at most {POINTS_MAX:,}")
    keys = [axis.key for axis in axes]
    combinations = product(*(axis.values for axis in axes))
    return [dict(zip(keys, values, strict=True)) for values in combinations]


def _bare(key: str) -> str:
    """Write a key without quotes, which it needs for names with dots only."""
    return key.replace('"', "")


def _values(key: str, text: str) -> Iterator[str]:
    """Yield the one value, or those of the range."""
    parts = [part.strip() for part in _split(text, ":")]
    if len(parts) == 1:
        yield text
        return
    if len(parts) != 3:
        raise GridError(f"{key}: {text}: expected FROM:TO:STEP, or text with colons in quotes")
    matches = [_NUMBER.fullmatch(part) for part in parts]
    for part, match in zip(parts, matches, strict=True):
        if match is None:
            raise GridError(
                f"{key}: {text}: {part!r} is no number; expected FROM:TO:STEP such as 1:5:0.5 Mbit/s"
            )
    first, last, step = (Decimal(match[1]) for match in matches if match is not None)
    units = [match[2] for match in matches if match is not None]
    if len({unit for unit in units if unit is not None}) > 1 or (any(units) and units[2] is None):
        raise GridError(
            f"{key}: {text}: expected one unit for all three numbers, after the last or after each"
        )
    if step <= 0:
        raise GridError(f"{key}: {text}: the step is {step}; expected one above 0")
    if first > last:
        raise GridError(f"{key}: {text}: from {first} down to {last}; expected a range that ascends")
    count = int((last - first) // step) + 1
    if count > POINTS_MAX:
        raise GridError(f"{key}: {text}: {count:,} values; expected at most {POINTS_MAX:,}")
    for index in range(count):
        value = f"{(first + index * step).normalize():f}"
        yield value if units[2] is None else f"{value} {units[2]}"


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside of quotes and brackets."""
    parts = [""]
    closing: list[str] = []
    for character in text:
        if closing and character == closing[-1]:
            closing.pop()
        elif character in "\"'" and not (closing and closing[-1] in "\"'"):
            closing.append(character)
        elif character in _BRACKETS and not (closing and closing[-1] in "\"'"):
            closing.append(_BRACKETS[character])
        elif character == separator and not closing:
            parts.append("")
            continue
        parts[-1] += character
    return parts
