"""How much buffer a transfer needs: the numbers that the rules, plots and tables of MPTCP-IoT share.

The paper's *buffer requirement* is "the minimum memory size required in order to achieve the same
throughput as the case when a sufficiently large buffer memory is provided" (section 4.4). Here it is the
smallest buffer with 95 % of the goodput at 16 MB, for each seed, on the straight line between two sizes
that have been run. Sizes are run on a grid, not found by bisection: goodput over the buffer need not rise
everywhere, and a grid shows where it does not.

The paper varies ``tcp_rmem`` and ``tcp_wmem``, which limit one socket and count the kernel's overhead.
Buffers of the simulator hold payload. Linux then offers about half of a receive buffer as window
(``tcp_adv_win_scale`` was 1) and charges a sender's packets with about twice their payload, so the same
limit is about twice as large in the kernel's bytes: the second reading that rules and tables name.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.papers.model import Cell, Measured
from anabranch.stats import Estimate, estimate

#: Delay of the 3G path in the test bed.
DELAY = "60 ms"

#: A buffer that is no limit.
LARGE = "16000 kB"

#: What counts as the same throughput.
SAME = 0.95

#: Bytes that Linux charges for a byte of payload, about.
KERNEL = 2.0

GOODPUT = "goodput_bps"

#: What the sub-experiments with a longer file are called.
LONG = "{} of 100 MB"


def buffer_bytes(cell: Cell) -> float:
    """Return the size of the buffer that a cell is about: its last word."""
    return float(cell[-1].removesuffix(" kB")) * 1e3


def needs(measured: Measured, *words: str, share: float = SAME, of_best: bool = False) -> tuple[float, ...]:
    """Return the buffer that is needed, in bytes, for each seed.

    Parameters
    ----------
    measured
        The numbers.
    *words
        What the cells begin with: all but the size of the buffer, one size being :data:`LARGE`.
    share
        The part of the goodput with that which counts as the same.
    of_best
        Whether the best goodput with any size counts in place of that with :data:`LARGE`. That is another
        reading: with much buffer the queue of a slow path may hold the end of the file up.

    Returns
    -------
    tuple of float
        The needs; of a smallest size that is enough already, that size.
    """
    cells = sorted(measured.cells(*words), key=buffer_bytes)
    sizes = [buffer_bytes(cell) for cell in cells]
    by_seed = zip(*(measured.of(cell, GOODPUT) for cell in cells), strict=True)
    return tuple(
        _crossing(sizes, goodputs, share * (max(goodputs) if of_best else goodputs[-1]))
        for goodputs in by_seed
    )


def _crossing(sizes: Sequence[float], goodputs: Sequence[float], target: float) -> float:
    first = next(at for at, goodput in enumerate(goodputs) if goodput >= target)
    if first == 0:
        return sizes[0]
    below, above = goodputs[first - 1], goodputs[first]
    part = (target - below) / (above - below)
    return sizes[first - 1] + part * (sizes[first] - sizes[first - 1])


def need(measured: Measured, *words: str, share: float = SAME, of_best: bool = False) -> Estimate:
    """Return the mean of :func:`needs` over the seeds."""
    return estimate(needs(measured, *words, share=share, of_best=of_best))


def quotient(
    measured: Measured, over: Sequence[str], base: Sequence[str], *, of_best: bool = False
) -> Estimate:
    """Return how many times as much is needed as in the base, paired by seed; see :func:`needs`."""
    needed = (needs(measured, *words, of_best=of_best) for words in (over, base))
    pairs = zip(*needed, strict=True)
    return estimate([value / of_base for value, of_base in pairs])


def scaled(one: Estimate, factor: float) -> Estimate:
    """Return an estimate in another unit."""
    half_width = None if one.half_width is None else one.half_width * factor
    return Estimate(one.mean * factor, half_width, one.size)


def crossover(measured: Measured, one: Sequence[str], other: Sequence[str]) -> Estimate:
    """Return the buffer from which on ``one`` has at least the goodput of ``other``; 0 if it always has.

    Parameters
    ----------
    measured
        The numbers.
    one, other
        What the cells begin with; both have the same sizes.

    Returns
    -------
    Estimate
        The size in bytes, on the straight line between two that have been run.
    """
    cells = sorted(measured.cells(*one), key=buffer_bytes)
    sizes = [buffer_bytes(cell) for cell in cells]
    leads = [
        [
            value - of_other
            for value, of_other in zip(
                measured.of(cell, GOODPUT), measured.of((*other, cell[-1]), GOODPUT), strict=True
            )
        ]
        for cell in cells
    ]
    return estimate([_last_rise(sizes, lead) for lead in zip(*leads, strict=True)])


def _last_rise(sizes: Sequence[float], lead: Sequence[float]) -> float:
    behind = [at for at, value in enumerate(lead) if value < 0]
    if not behind:
        return 0.0
    last = behind[-1]
    if last == len(lead) - 1:
        return sizes[-1]
    part = -lead[last] / (lead[last + 1] - lead[last])
    return sizes[last] + part * (sizes[last + 1] - sizes[last])


def levels(measured: Measured, *words: str) -> list[str]:
    """Return the words that follow these in the cells, each once, in the order of the plan."""
    return list(dict.fromkeys(cell[len(words)] for cell in measured.cells(*words)))


def over_buffers(
    measured: Measured, one: Sequence[str], other: Sequence[str], least: float, most: float
) -> Estimate:
    """Return the mean over some sizes of the buffer of the goodput of one over that of the other.

    Parameters
    ----------
    measured
        The numbers.
    one, other
        What the cells begin with; both have the same sizes.
    least, most
        The sizes that count, in bytes.

    Returns
    -------
    Estimate
        The mean ratio, paired by seed.
    """
    cells = [cell for cell in measured.cells(*one) if least <= buffer_bytes(cell) <= most]
    ratios = [
        [
            value / of_other
            for value, of_other in zip(
                measured.of(cell, GOODPUT), measured.of((*other, cell[-1]), GOODPUT), strict=True
            )
        ]
        for cell in cells
    ]
    return estimate([sum(of_seed) / len(of_seed) for of_seed in zip(*ratios, strict=True)])
