"""A twentieth of MPCOA's campaign: how fast many runs are made."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from anabranch.campaign import Task, run_tasks
from anabranch.papers.mpcoa_cells import CONGESTIONS, SEEDS, target
from anabranch.papers.mpcoa_printed import SITES, printed
from anabranch.tuning.impact import used
from anabranch.tuning.measure import FULL_MESH, Setting

#: 3 of the paper's 60 buffers, in MiB: the middles of three equal parts.
BUFFERS_MIB = (5.0, 15.0, 25.0)

#: What the sample may take on two cores, in seconds.
GOAL_S = 60.0


@dataclass(frozen=True)
class Sample:
    """What the sample has taken.

    Attributes
    ----------
    planned, made
        Runs; PCDC with every subflow is full mesh, so fewer are made than are planned.
    simulated_s
        Simulated time of the runs that were made, in seconds.
    took_s, processor_s
        Wall time and processor time of this process, in seconds.
    jobs
        Runs at a time.
    """

    planned: int
    made: int
    simulated_s: float
    took_s: float
    processor_s: float
    jobs: int

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"MPCOA, 1/20 of the campaign: {self.planned} runs, {self.made} of them different, in "
            f"{self.took_s:.1f} s on {self.jobs} cores ({self.processor_s:.1f} s of processor time; goal on "
            f"two: {GOAL_S:g} s), {self.made / self.took_s:.1f} runs per second, "
            f"{self.simulated_s / self.took_s:,.0f} times faster than real time"
        )


def planned() -> list[Task]:
    """Return the runs: 3 scenarios, 6 congestion controls, 2 path managers, 3 buffers and 9 seeds.

    PCDC uses the subflows that it uses in the paper, so that the sample does not depend on what is measured.
    """
    tasks = []
    for site in SITES:
        of = target(site)
        for at, congestion in enumerate(CONGESTIONS):
            chosen = used({name: factors[at] for name, factors in printed()[site]["impact"].items()})
            standby = tuple(name for name in of.regular if name not in chosen)
            for silent in ((), standby):
                for buffer in BUFFERS_MIB:
                    experiment = of.with_(Setting(FULL_MESH, congestion, buffer, silent))
                    tasks += [Task(experiment, seed) for seed in range(1, SEEDS + 1)]
    return tasks


def measure(jobs: int) -> Sample:
    """Make the runs in a folder that is removed afterwards; time the making, not the planning.

    Parameters
    ----------
    jobs
        Runs at a time.

    Returns
    -------
    Sample
        What it has taken.
    """
    tasks = planned()
    different = list({(task.experiment.scenario.key, task.seed): task for task in tasks}.values())
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        begun_s, before = time.monotonic(), os.times()
        run_tasks(different, Path(folder), jobs=jobs)
        took_s, after = time.monotonic() - begun_s, os.times()
    processor_s = after.user - before.user + after.system - before.system
    simulated_s = sum(task.duration_s for task in different)
    return Sample(len(tasks), len(different), simulated_s, took_s, processor_s, jobs)
