"""Runs of many experiments together: sweeps, tuning, papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch._engine import AnabranchError, Cancelled, Control
from anabranch.experiment import Experiment, available_cores
from anabranch.results import Run
from anabranch.workers import Progress, Workers


@dataclass(frozen=True)
class Task:
    """One run: an experiment and a seed."""

    experiment: Experiment
    seed: int

    def __str__(self) -> str:
        """Name the run in messages."""
        scenario = self.experiment.scenario.name
        values = ", ".join(f"{key}={value}" for key, value in self.experiment.overrides.items())
        return f"{scenario} with {values}, seed {self.seed}" if values else f"{scenario}, seed {self.seed}"

    @property
    def duration_s(self) -> float:
        """Simulated time of the run, in seconds."""
        return self.experiment.scenario.duration_s


def run_tasks(
    tasks: Sequence[Task], out: Path, *, jobs: int | None = None, progress: Progress | None = None
) -> list[Run]:
    """Make many runs in the simulator, on several threads.

    A run that is complete already is reused; a damaged one is made again, see :attr:`Run.damaged`. The
    result does not depend on ``jobs``. Whatever ends the call, finished runs are kept and unfinished ones
    leave nothing.

    Parameters
    ----------
    tasks
        The runs to make.
    out
        Where runs are kept: ``<out>/<scenario>/<key>/seed-<n>``.
    jobs
        Runs at a time; all cores unless given.
    progress
        Called from this thread with the simulated time that all runs together have reached, in seconds.

    Returns
    -------
    list of Run
        The runs, in the order of ``tasks``.

    Raises
    ------
    OutputError
        If ``out`` cannot be written to.
    RunError
        If a run fails; the message names it, and the others are cancelled.
    """

    def run_one(task: Task, control: Control) -> Run:
        try:
            outcome = task.experiment.scenario.run(task.seed, out, False, [], control)
        except Cancelled:
            raise
        except AnabranchError as error:
            raise type(error)(f"{task}: {error}") from error
        except Exception as error:
            error.add_note(f"in the run {task}")
            raise
        return Run(outcome["path"], reused=outcome["reused"], damaged=outcome["damaged"], is_verified=True)

    workers = Workers(run_one, tasks, jobs or available_cores())
    return workers.make_all(lambda task: task.duration_s, progress)
