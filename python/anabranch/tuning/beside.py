"""What the simulator's recommendation is worth on the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch.stats import Estimate, ratio
from anabranch.tuning.grid import Samples
from anabranch.tuning.optimum import Choice, next_of_grid


@dataclass(frozen=True)
class Beside:
    """Two recommendations, and what they deliver on the kernel.

    Attributes
    ----------
    kernel, sim
        The recommendations by the runs on each engine.
    worth
        The throughput on the kernel with the simulator's recommendation over that with the kernel's own,
        paired by seed, each with the next larger buffer of the grid.
    """

    kernel: Choice
    sim: Choice
    worth: Estimate

    @property
    def is_same_pair(self) -> bool:
        """Whether both recommend the same path manager and congestion control."""
        return (self.kernel.path_manager, self.kernel.congestion) == (
            self.sim.path_manager,
            self.sim.congestion,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the simulator's recommendation, and what it is worth, as plain values."""
        return {"sim": {"recommendation": vars(self.sim), "worth": list(self.worth[:2])}}

    def sentences(self) -> list[str]:
        """Say it."""
        half_width = 100 * (self.worth.half_width or 0.0)
        return [
            f"the simulator recommends: path manager {self.sim.path_manager}, congestion control "
            f"{self.sim.congestion}, send and receive buffer {self.sim.buffer_mib:.3g} MiB",
            f"{'the same' if self.is_same_pair else 'another'} pair; on the kernel its setting delivers "
            f"{100 * self.worth.mean:.1f} ± {half_width:.1f} % of what the kernel's own does",
        ]


def beside(samples: Samples, kernel: Choice, sim: Choice) -> Beside:
    """Compare two recommendations by the runs on the kernel.

    Parameters
    ----------
    samples
        The throughputs on the kernel.
    kernel, sim
        The recommendations; path managers and congestion controls are of the grid.

    Returns
    -------
    Beside
        Both, and what the simulator's is worth.
    """
    own, other = (_throughputs(samples, choice) for choice in (kernel, sim))
    worth = ratio(list(zip(own, other, strict=True)))
    return Beside(kernel, sim, Estimate(1.0, None, len(own)) if worth is None else worth)


def _throughputs(samples: Samples, choice: Choice) -> list[float]:
    grid = samples.grid
    manager = grid.path_managers.index(choice.path_manager)
    congestion = grid.congestions.index(choice.congestion)
    at = next_of_grid(grid.buffers_mib, choice.buffer_mib)
    return [float(value) for value in samples.mbit_per_s[manager, congestion, at]]
