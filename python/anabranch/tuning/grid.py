"""What a tuning measures: path managers, congestion controls, buffers and seeds; the throughputs found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

MIB = 2**20

#: With fewer, a fit leaves nothing to judge it by when a fifth of the buffers is held out.
MIN_BUFFERS = 5

#: More are a slip of the pen.
MAX_BUFFERS = 1000

#: One is held out, one is left.
MIN_SEEDS = 2


class TuningError(Exception):
    """What was asked for, or what was measured, does not allow a tuning; the message says why."""


@dataclass(frozen=True)
class Grid:
    """Every combination of these is measured.

    Attributes
    ----------
    path_managers, congestions
        Names.
    buffers_mib
        Sizes of the send buffer and of the receive buffer, ascending, in MiB.
    seeds
        The seeds.

    Raises
    ------
    TuningError
        If it is too small to fit anything, or names something twice.
    """

    path_managers: tuple[str, ...]
    congestions: tuple[str, ...]
    buffers_mib: tuple[float, ...]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check it."""
        _check_names("path managers", self.path_managers)
        _check_names("congestion controls", self.congestions)
        count = len(set(self.buffers_mib))
        if count < MIN_BUFFERS:
            raise TuningError(
                f"{count} different buffers; expected at least {MIN_BUFFERS}: "
                "with fewer, the design of the regression is singular or leaves nothing to judge it by"
            )
        if list(self.buffers_mib) != sorted(set(self.buffers_mib)) or self.buffers_mib[0] <= 0:
            raise TuningError("buffers must be above 0 MiB, ascending and different")


def _check_names(what: str, names: Sequence[str]) -> None:
    if not names or "" in names:
        raise TuningError(f"{what}: expected names with commas between them")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise TuningError(f"{what}: {twice[0]!r} is named twice, which makes the design singular")


@dataclass(frozen=True)
class Samples:
    """The throughputs of a grid.

    Attributes
    ----------
    grid
        The grid.
    mbit_per_s
        Throughputs by path manager, congestion control, buffer and seed, in Mbit/s.
    """

    grid: Grid
    mbit_per_s: Doubles

    def __post_init__(self) -> None:
        """Check the shape: a wrong one is a defect of the caller."""
        grid = self.grid
        shape = (len(grid.path_managers), len(grid.congestions), len(grid.buffers_mib), len(grid.seeds))
        if self.mbit_per_s.shape != shape:
            raise ValueError(f"{self.mbit_per_s.shape} throughputs for a grid of {shape}")

    @property
    def buffers_mib(self) -> Doubles:
        """The buffers as an array, in MiB."""
        return np.array(self.grid.buffers_mib)

    @property
    def means(self) -> Doubles:
        """Means over the seeds by path manager, congestion control and buffer, in Mbit/s."""
        means: Doubles = self.mbit_per_s.mean(axis=3)
        return means

    def without_seed(self, index: int) -> Samples:
        """Return all but one seed, by its position."""
        seeds = tuple(seed for at, seed in enumerate(self.grid.seeds) if at != index)
        return Samples(replace(self.grid, seeds=seeds), np.delete(self.mbit_per_s, index, axis=3))


def check_seeds(count: int) -> None:
    """Refuse fewer seeds than holding one out needs.

    Raises
    ------
    TuningError
        If there are fewer than :data:`MIN_SEEDS`.
    """
    if count < MIN_SEEDS:
        raise TuningError(f"seeds: {count}; expected at least {MIN_SEEDS}, so that one can be held out")


def parse_buffers(text: str) -> tuple[float, ...]:
    """Read ``from:to:step`` or a list with commas, in MiB.

    Parameters
    ----------
    text
        For example ``0.5:30:0.5``, where 30 is included, or ``1,2,4,8,16``.

    Returns
    -------
    tuple of float
        The buffers, ascending.

    Raises
    ------
    TuningError
        If it is neither, or not numeric, or empty, or has more than :data:`MAX_BUFFERS` values.
    """
    expected = "expected FROM:TO:STEP or a list such as 1,2,4,8,16, in MiB"
    if ":" not in text:
        values = [_number(part, text, expected) for part in text.split(",")]
        if len(set(values)) < len(values):
            raise TuningError(f"buffers {text!r}: one is there twice")
        return tuple(float(value) for value in sorted(values))
    parts = [_number(part, text, expected) for part in text.split(":")]
    if len(parts) != 3:
        raise TuningError(f"buffers {text!r}: {expected}")
    first, last, step = parts
    if step <= 0 or last < first:
        raise TuningError(f"buffers {text!r} are none; FROM is at most TO, and STEP above 0")
    count = int((last - first) / step) + 1
    if count > MAX_BUFFERS:
        raise TuningError(f"buffers {text!r} are {count}; expected at most {MAX_BUFFERS}")
    return tuple(float(first + step * at) for at in range(count))


def _number(part: str, text: str, expected: str) -> Decimal:
    try:
        value = Decimal(part.strip())
    except InvalidOperation:
        raise TuningError(f"buffers {text!r}: {part.strip()!r} is no number; {expected}") from None
    if not value.is_finite() or value <= 0:
        raise TuningError(f"buffers {text!r}: {part.strip()!r} is not above 0; {expected}")
    return value
