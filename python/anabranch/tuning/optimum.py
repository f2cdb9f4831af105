"""From models to a recommendation: the largest throughput first, then the smallest buffer near it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.tuning.curves import Curve, smallest_within, value
from anabranch.tuning.grid import Samples, check_seeds
from anabranch.tuning.regression import Fit, Model, fit

#: Two path managers whose largest throughputs differ by less than this share are equally good, and the
#: simpler one, full mesh, is taken (MPCOA, section 5.4).
SAME = 0.01

#: Path managers from the simplest on, where they are equally good.
SIMPLEST_FIRST = ("fullmesh", "pcdc")

Curves = Mapping[tuple[str, str], Curve]


@dataclass(frozen=True)
class Choice:
    """A setting.

    Attributes
    ----------
    path_manager, congestion
        Names.
    buffer_mib
        The buffer, in MiB; not necessarily one of the grid.
    mbit_per_s
        The throughput with it, in Mbit/s.
    largest_mbit_per_s
        The largest throughput of this path manager and congestion control.
    largest_at_mib
        The buffer that has it.
    """

    path_manager: str
    congestion: str
    buffer_mib: float
    mbit_per_s: float
    largest_mbit_per_s: float
    largest_at_mib: float


def choose(
    path_manager: str, congestion: str, curve: Curve, delta: float, low_mib: float, high_mib: float
) -> Choice:
    """Return the smallest buffer of a curve within delta of its maximum (MPCOA, eq. (10)) as a choice."""
    peak = curve.peak(low_mib, high_mib)
    buffer_mib = smallest_within(curve, delta, low_mib, high_mib)
    return Choice(
        path_manager, congestion, buffer_mib, value(curve, buffer_mib), peak.mbit_per_s, peak.buffer_mib
    )


def global_maximum_first(curves: Curves, delta: float, low_mib: float, high_mib: float) -> Choice:
    """Return the pair with the largest throughput, with its smallest buffer within delta of it.

    That is what gives the paper's own Table 5; :func:`smallest_buffer_first` is what its eqs. (10) and (11)
    say.

    Parameters
    ----------
    curves
        By path manager and congestion control.
    delta
        The part of the throughput that is given up.
    low_mib, high_mib
        The range of buffers.

    Returns
    -------
    Choice
        The setting.
    """
    choices = [choose(*pair, curve, delta, low_mib, high_mib) for pair, curve in curves.items()]
    best = max(choices, key=lambda one: one.largest_mbit_per_s)
    as_good = [
        one
        for one in choices
        if one.congestion == best.congestion and one.largest_mbit_per_s > (1 - SAME) * best.largest_mbit_per_s
    ]
    return min(as_good, key=lambda one: (_complexity(one.path_manager), one is not best))


def _complexity(path_manager: str) -> int:
    known = path_manager in SIMPLEST_FIRST
    return SIMPLEST_FIRST.index(path_manager) if known else len(SIMPLEST_FIRST)


def smallest_buffer_first(curves: Curves, delta: float, low_mib: float, high_mib: float) -> Choice:
    """Return the pair with the smallest buffer within delta of its own maximum: eqs. (10), (11) literally."""
    choices = [choose(*pair, curve, delta, low_mib, high_mib) for pair, curve in curves.items()]
    return min(choices, key=lambda one: one.buffer_mib)


def measured_maximum(samples: Samples, delta: float) -> Choice:
    """Return the best of what was measured, by means over the seeds, without any model.

    Parameters
    ----------
    samples
        What was measured.
    delta
        The part of the throughput that is given up.

    Returns
    -------
    Choice
        The setting; its buffer is one of the grid.
    """
    means = samples.means
    largest = means.max()
    by_pair = means.max(axis=2)
    pairs = [
        (_complexity(manager), at, of)
        for at, manager in enumerate(samples.grid.path_managers)
        for of in range(len(samples.grid.congestions))
        if by_pair[at, of] == largest
    ]
    _, at, of = min(pairs)
    curve = means[at, of]
    buffers = samples.grid.buffers_mib
    near = next(index for index, mean in enumerate(curve) if mean >= (1 - delta) * largest)
    return Choice(
        samples.grid.path_managers[at],
        samples.grid.congestions[of],
        buffers[near],
        float(curve[near]),
        float(largest),
        buffers[int(curve.argmax())],
    )


@dataclass(frozen=True)
class Tuning:
    """The answer of a tuning.

    Attributes
    ----------
    choice
        The recommendation.
    model
        What it comes from; None: both models were rejected, and it is the measured maximum.
    fits
        Both models of every path manager.
    """

    choice: Choice
    model: Model | None
    fits: Mapping[str, Mapping[Model, Fit]]

    def curves(self, model: Model) -> dict[tuple[str, str], Curve]:
        """Return the curves of a model by path manager and congestion control."""
        return {
            (manager, congestion): curve
            for manager, of in self.fits.items()
            for congestion, curve in of[model].curves.items()
        }


def tune(samples: Samples, delta: float) -> Tuning:
    """Fit both models and recommend by the better one that is accepted.

    A model is accepted if it is for every path manager (R² of at least 0.90, p of at most 0.05). Of two
    accepted ones that with the smaller error at held-out buffers counts. If none is, the answer is the
    measured maximum.

    Parameters
    ----------
    samples
        What was measured.
    delta
        The part of the throughput that is given up, from 0 up to but not including 1.

    Returns
    -------
    Tuning
        The recommendation.
    """
    managers = samples.grid.path_managers
    fits = {manager: {model: fit(samples, manager, model) for model in Model} for manager in managers}
    accepted = [model for model in Model if all(of[model].is_accepted for of in fits.values())]
    if not accepted:
        return Tuning(measured_maximum(samples, delta), None, fits)
    best = min(accepted, key=lambda model: held_out_error(fits, model))
    tuning = Tuning(measured_maximum(samples, delta), best, fits)
    low, high = samples.grid.buffers_mib[0], samples.grid.buffers_mib[-1]
    return Tuning(global_maximum_first(tuning.curves(best), delta, low, high), best, fits)


def held_out_error(fits: Mapping[str, Mapping[Model, Fit]], model: Model) -> float:
    """Return the error of a model at held-out buffers over all path managers, in Mbit/s."""
    squares = [of[model].held_out_mbit_per_s ** 2 for of in fits.values()]
    return math.sqrt(math.fsum(squares) / len(squares))


@dataclass(frozen=True)
class Regret:
    """What the recommendation of all other seeds costs on one seed, against exhaustive search on that seed.

    Attributes
    ----------
    seed
        The seed that was held out.
    choice
        The recommendation.
    throughput_share
        Part of the largest throughput of all settings that it lacks there, at the grid's next buffer.
    extra_mib
        How much larger that buffer is than the smallest one within delta of the largest throughput.
    """

    seed: int
    choice: Choice
    throughput_share: float
    extra_mib: float


def regrets(samples: Samples, delta: float) -> list[Regret]:
    """Return the regret on each seed when all others are tuned on.

    The best of one seed is partly luck, which no recommendation can have: the regret is an upper bound.

    Parameters
    ----------
    samples
        What was measured.
    delta
        The part of the throughput that is given up.

    Returns
    -------
    list of Regret
        One per seed.

    Raises
    ------
    TuningError
        If there is one seed only.
    """
    check_seeds(len(samples.grid.seeds))
    return [_regret(samples, index, delta) for index in range(len(samples.grid.seeds))]


def _regret(samples: Samples, index: int, delta: float) -> Regret:
    grid = samples.grid
    choice = tune(samples.without_seed(index), delta).choice
    there = samples.mbit_per_s[:, :, :, index]
    manager = grid.path_managers.index(choice.path_manager)
    congestion = grid.congestions.index(choice.congestion)
    at = next_of_grid(grid.buffers_mib, choice.buffer_mib)
    largest = float(there.max())
    lacks = 1 - float(there[manager, congestion, at]) / largest if largest > 0 else 0.0
    near = (there >= (1 - delta) * largest).any(axis=(0, 1))
    smallest_mib = grid.buffers_mib[int(near.argmax())]
    return Regret(grid.seeds[index], choice, lacks, grid.buffers_mib[at] - smallest_mib)


def next_of_grid(buffers_mib: Sequence[float], buffer_mib: float) -> int:
    """Return the index of the smallest buffer of a grid that is not below one, but for rounding."""
    found = (at for at, one in enumerate(buffers_mib) if one >= buffer_mib * (1 - 1e-9))
    return next(found, len(buffers_mib) - 1)
