"""Runs of many experiments together: sweeps, tuning, papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch._engine import AnabranchError, Cancelled, Control, OutputError
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
    tasks: Sequence[Task],
    out: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """Make many runs in the simulator, on several threads or on a Dask cluster.

    A run that is complete already is reused; a damaged one is made again, see :attr:`Run.damaged`. The
    result does not depend on ``jobs`` or ``cluster``. Whatever ends the call, finished runs are kept and
    unfinished ones leave nothing.

    Parameters
    ----------
    tasks
        The runs to make.
    out
        Where runs are kept: ``<out>/<scenario>/<key>/seed-<n>``.
    jobs
        Runs at a time on this machine; all cores unless given.
    cluster
        The scheduler of a Dask cluster whose workers make the runs, such as ``tcp://192.0.2.1:8786``.
    progress
        Called from this thread with the simulated time that all runs together have reached, in seconds; of
        a cluster, that of finished runs.

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
    ClusterError
        If the cluster cannot be reached, or has another version of this package.
    Unavailable
        If a cluster is asked for and the package ``distributed`` is missing.
    """
    if cluster is not None:
        from anabranch.cluster import run_on_cluster

        if jobs is not None:
            raise ValueError(
                "jobs is for this machine; a cluster makes as many runs as its workers have threads"
            )
        return run_on_cluster(tasks, out, cluster, progress)

    def run_one(task: Task, control: Control) -> Run:
        try:
            outcome = task.experiment.scenario.run(task.seed, out, False, [], control)
        except (Cancelled, OutputError):
            raise
        except AnabranchError as error:
            raise type(error)(f"{task}: {error}") from error
        except Exception as error:
            error.add_note(f"in the run {task}")
            raise
        return Run(outcome["path"], reused=outcome["reused"], damaged=outcome["damaged"], is_verified=True)

    workers = Workers(run_one, tasks, available_cores() if jobs is None else jobs)
    return workers.make_all(lambda task: task.duration_s, progress)
