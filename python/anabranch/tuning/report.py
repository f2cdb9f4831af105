"""The answer of a tuning in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.stats import estimate
from anabranch.tuning.curves import smallest_within, value
from anabranch.tuning.grid import Samples
from anabranch.tuning.measure import FULL_MESH, PCDC, Measured, Target
from anabranch.tuning.optimum import Choice, Regret, Tuning, next_of_grid, regrets, tune
from anabranch.units import number

#: Shares of the throughput that the trade-off is shown for.
SHARES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True)
class Point:
    """A point of the trade-off: what is given up, and the smallest buffer that then suffices."""

    delta: float
    buffer_mib: float
    mbit_per_s: float
    share_of_largest_buffer: float


@dataclass(frozen=True)
class Answer:
    """The tuning, the regret on every seed, the trade-off, and all of it in sentences."""

    delta: float
    tuning: Tuning
    regrets: tuple[Regret, ...]
    trade_off: tuple[Point, ...]
    sentences: tuple[str, ...]

    @property
    def choice(self) -> Choice:
        """The recommendation."""
        return self.tuning.choice


def answer(measured: Measured, delta: float) -> Answer:
    """Tune, and say what came of it.

    Parameters
    ----------
    measured
        The throughputs.
    delta
        The part of the throughput that is given up, from 0 up to but not including 1.

    Returns
    -------
    Answer
        The answer.

    Raises
    ------
    TuningError
        If the design is singular, or there is one seed only.
    """
    samples = measured.samples
    tuning = tune(samples, delta)
    costs = tuple(regrets(samples, delta))
    return Answer(
        delta,
        tuning,
        costs,
        tuple(trade_off(samples, tuning)),
        tuple(_sentences(measured, tuning, costs, delta)),
    )


def trade_off(samples: Samples, tuning: Tuning) -> list[Point]:
    """Return the smallest buffer for every share that may be given up, with the chosen pair.

    By the model; by the means at the buffers of the grid if the models were rejected.
    """
    choice = tuning.choice
    buffers = samples.grid.buffers_mib
    if tuning.model is not None:
        curve = tuning.fits[choice.path_manager][tuning.model].curves[choice.congestion]
        found = [smallest_within(curve, share, buffers[0], buffers[-1]) for share in SHARES]
        throughputs = [value(curve, buffer) for buffer in found]
    else:
        manager = samples.grid.path_managers.index(choice.path_manager)
        means = samples.means[manager, samples.grid.congestions.index(choice.congestion)]
        places = [int((means >= (1 - share) * means.max()).argmax()) for share in SHARES]
        found = [buffers[place] for place in places]
        throughputs = [float(means[place]) for place in places]
    return [
        Point(share, buffer, throughput, buffer / buffers[-1])
        for share, buffer, throughput in zip(SHARES, found, throughputs, strict=True)
    ]


def _sentences(measured: Measured, tuning: Tuning, costs: Sequence[Regret], delta: float) -> list[str]:
    samples, choice = measured.samples, tuning.choice
    grid = samples.grid
    at = next_of_grid(grid.buffers_mib, choice.buffer_mib)
    manager = grid.path_managers.index(choice.path_manager)
    seen = estimate([*samples.mbit_per_s[manager, grid.congestions.index(choice.congestion), at]])
    lines = []
    if tuning.model is None:
        lines.append(
            "model rejected: no model explains the throughputs well enough; the measured maximum counts"
        )
    lines.append(
        f"recommended: path manager {choice.path_manager}, congestion control {choice.congestion}, send and "
        f"receive buffer {choice.buffer_mib:.3g} MiB"
    )
    source = "measured" if tuning.model is None else f"by the model ({tuning.model})"
    lines.append(
        f"throughput {choice.mbit_per_s:.4g} Mbit/s {source}, {100 * delta:g} % or less below the largest, "
        f"{choice.largest_mbit_per_s:.4g} Mbit/s at {choice.largest_at_mib:.3g} MiB; measured with "
        f"{grid.buffers_mib[at]:g} MiB: {number(seen.mean, seen.half_width)} Mbit/s"
    )
    lines += _remarks(measured, choice)
    share = estimate([100 * one.throughput_share for one in costs]).mean
    worst = max(100 * one.throughput_share for one in costs)
    extra = estimate([one.extra_mib for one in costs]).mean
    lines.append(
        f"regret on held-out seeds against exhaustive search: {share:.1f} % of the throughput (at worst "
        f"{worst:.1f} %), {extra:+.2g} MiB of buffer"
    )
    return lines


def _remarks(measured: Measured, choice: Choice) -> list[str]:
    impact = measured.impacts.get(choice.congestion)
    if impact is None:
        return []
    unsure = [
        name
        for name, factor in impact.factors.items()
        if factor.half_width is not None and abs(factor.mean) <= factor.half_width
    ]
    lines = []
    if len(impact.used) == len(impact.factors):
        lines.append(f"PCDC uses every subflow with {choice.congestion}, which is what {FULL_MESH} does")
    elif choice.path_manager == PCDC:
        standby = [name for name in impact.factors if name not in impact.used]
        lines.append(f"PCDC uses {', '.join(impact.used)}; backups are {', '.join(standby)}")
    if unsure:
        lines.append(
            f"noise decides about {', '.join(unsure)} with {choice.congestion}: the interval of the impact "
            "factor includes 0"
        )
    return lines


def as_json(target: Target, measured: Measured, found: Answer) -> dict[str, Any]:
    """Return everything as plain values: what was measured, the models, the recommendation."""
    samples, tuning = measured.samples, found.tuning
    grid = samples.grid
    return {
        "scenario": target.experiment.scenario.name,
        "connection": target.connection,
        "overrides": target.experiment.overrides,
        "runs": measured.runs,
        "reused": measured.reused,
        "delta": found.delta,
        "grid": {
            "path_managers": grid.path_managers,
            "congestions": grid.congestions,
            "buffers_mib": grid.buffers_mib,
            "seeds": grid.seeds,
        },
        "mbit_per_s": samples.mbit_per_s.tolist(),
        "impacts": {
            congestion: {
                "factors": {name: list(factor[:2]) for name, factor in impact.factors.items()},
                "used": impact.used,
            }
            for congestion, impact in measured.impacts.items()
        },
        "models": [
            {
                "path_manager": manager,
                "model": fit.model,
                "r2": fit.r2,
                "p": fit.p_value,
                "held_out_mbit_per_s": fit.held_out_mbit_per_s,
                "accepted": fit.is_accepted,
                "curves": {congestion: vars(curve) for congestion, curve in fit.curves.items()},
            }
            for manager, of in tuning.fits.items()
            for fit in of.values()
        ],
        "model": tuning.model,
        "recommendation": vars(tuning.choice),
        "trade_off": [vars(point) for point in found.trade_off],
        "regret": [
            {"seed": one.seed, "throughput_share": one.throughput_share, "extra_mib": one.extra_mib}
            for one in found.regrets
        ],
    }
