"""The runs of a tuning: which settings of a scenario are run, and what they deliver.

PCDC itself would take 2 n + 1 phases of half a minute in every run. As in MPCOA its measurement is made once
per congestion control, with the largest buffer and in runs of its own: all subflows, then all but each one.
The runs with PCDC then begin with what it decided: the others are backups.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anabranch.campaign import Task, run_tasks
from anabranch.equilibrium import figure
from anabranch.experiment import Engine, Experiment, Progress
from anabranch.kernel_runs import after, run_until_they_count
from anabranch.results import Run, Subject
from anabranch.stats import Estimate
from anabranch.tuning.grid import MIB, MIN_SEEDS, Grid, Samples, TuningError, check_seeds
from anabranch.tuning.impact import impact_factor, used

FULL_MESH = "fullmesh"
PCDC = "pcdc"


@dataclass(frozen=True)
class Setting:
    """What is set in a run.

    Attributes
    ----------
    path_manager, congestion
        Names.
    buffer_mib
        Send buffer and receive buffer, in MiB.
    silent
        Subflows that are open, but only backups.
    """

    path_manager: str
    congestion: str
    buffer_mib: float
    silent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """The connection of a scenario that is tuned.

    Attributes
    ----------
    experiment
        The scenario.
    connection
        Name of the connection.
    subflows
        The subflows that the file lists, as the tables it has of them.
    """

    experiment: Experiment
    connection: str
    subflows: tuple[Mapping[str, Any], ...]

    @property
    def regular(self) -> tuple[str, ...]:
        """The subflows that the file does not call backups: those that PCDC chooses from."""
        return tuple(str(one["name"]) for one in self.subflows if not one.get("backup", False))

    def with_(self, setting: Setting) -> Experiment:
        """Return the scenario with a setting; buffers have their size from the start, no series is written.

        Raises
        ------
        ScenarioError
            If the scenario does not know a name.
        """
        connection = f"connection.{self.connection}"
        size = f"{round(setting.buffer_mib * MIB)} B"
        overrides = {
            **self.experiment.overrides,
            "measure.interval": "0 s",
            f"{connection}.path_manager": setting.path_manager,
            f"{connection}.congestion": setting.congestion,
            f"{connection}.transport.send_buffer": size,
            f"{connection}.transport.send_buffer_tuning": "false",
            f"{connection}.transport.receive_buffer": size,
            f"{connection}.transport.receive_buffer_tuning": "false",
        }
        if setting.silent:
            tables = (
                {**one, "backup": True} if one["name"] in setting.silent else one for one in self.subflows
            )
            overrides[f"{connection}.subflow"] = f"[{', '.join(map(_toml, tables))}]"
        return Experiment(self.experiment.path, tuple(overrides.items()))

    def goodput_mbit_per_s(self, run: Run) -> float:
        """Return what the connection delivered in the measured window, in Mbit/s."""
        return figure(run, Subject(connection=self.connection), "goodput_bps") / 1e6


def _toml(value: Any) -> str:
    """Write a value of a scenario file; text is escaped as in JSON, which TOML reads alike."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def find_target(experiment: Experiment, connection: str | None = None) -> Target:
    """Find the connection to tune.

    Parameters
    ----------
    experiment
        The scenario.
    connection
        Its name; may be left out if there is one MPTCP connection.

    Returns
    -------
    Target
        The connection.

    Raises
    ------
    TuningError
        If there is none, or there are several and none is named, or the named one is no MPTCP connection.
    """
    tables = json.loads(experiment.scenario.canonical).get("connection", [])
    found = {one["name"]: one for one in tables if one.get("protocol") == "mptcp" and "count" not in one}
    if not found:
        raise TuningError(f"{experiment.path}: no MPTCP connection that is not one of a family")
    if connection is None:
        if len(found) > 1:
            raise TuningError(
                f"{experiment.path}: {len(found)} MPTCP connections; name one of {', '.join(found)}"
            )
        (connection,) = found
    if connection not in found:
        raise TuningError(
            f"{experiment.path}: no MPTCP connection is called {connection!r}; expected one of "
            f"{', '.join(found)}"
        )
    subflows = found[connection].get("subflow", [])
    named = tuple({"name": str(at), **one} for at, one in enumerate(subflows))
    own = next((one["name"] for one in named if "congestion" in one), None)
    if own is not None:
        raise TuningError(
            f"{experiment.path}: subflow {own!r} of {connection!r} has a congestion control of its own, "
            "which a tuning would not reach"
        )
    return Target(experiment, connection, named)


@dataclass(frozen=True)
class Impact:
    """What PCDC's measurement found with one congestion control.

    Attributes
    ----------
    factors
        Impact factor by subflow.
    used
        The subflows that PCDC uses.
    """

    factors: Mapping[str, Estimate]
    used: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """The throughputs of a tuning, and the impact factors by congestion control, which only PCDC has.

    ``lost`` says of each run on the kernel that does not count why; its seed is in no figure.
    """

    samples: Samples
    impacts: Mapping[str, Impact]
    runs: int
    reused: int
    lost: tuple[str, ...] = ()


class Plan:
    """The runs of a tuning; making it checks all that can be checked before the first run.

    Parameters
    ----------
    target
        What is tuned.
    grid
        What is measured.

    Raises
    ------
    ScenarioError
        If the scenario does not know a name of the grid.
    TuningError
        If there are too few seeds, or PCDC has nothing to choose from.
    """

    def __init__(self, target: Target, grid: Grid) -> None:
        check_seeds(len(grid.seeds))
        self.target = target
        self.grid = grid
        #: What the runs that PCDC's decision does not matter for set.
        self.first: tuple[Setting, ...] = tuple(
            Setting(manager, congestion, buffer)
            for manager in grid.path_managers
            if manager != PCDC
            for congestion in grid.congestions
            for buffer in grid.buffers_mib
        )
        if PCDC in grid.path_managers:
            self._check_subflows()
            self.first += tuple(
                setting for congestion in grid.congestions for setting in self._phases(congestion)
            )
        # Of settings that differ in nothing but the size of a buffer one is enough to check.
        different = {(one.path_manager, one.congestion, one.silent): one for one in self.first}
        scenarios = [target.with_(setting).scenario for setting in different.values()]
        #: Congestion controls of it that are written in Python, which a cluster cannot run.
        self.in_python = list(dict.fromkeys(name for one in scenarios for name in one.in_python))

    def _check_subflows(self) -> None:
        name, regular = self.target.connection, self.target.regular
        if not self.target.subflows:
            raise TuningError(
                f"the subflows of {name!r} follow from the topology; list them as [[connection.subflow]]s, "
                "so that PCDC can silence one, or leave out pcdc"
            )
        if len(regular) < 2:
            raise TuningError(
                f"{name!r} has {len(regular)} subflows that are no backups; PCDC needs at least 2, or leave "
                "out pcdc"
            )

    @property
    def runs(self) -> int:
        """Number of runs, at most."""
        second = PCDC in self.grid.path_managers
        later = len(self.grid.congestions) * len(self.grid.buffers_mib) if second else 0
        return (len(set(self.first)) + later) * len(self.grid.seeds)

    def _phases(self, congestion: str) -> list[Setting]:
        """Return the settings of PCDC's measurement: all subflows, then all but each one."""
        largest = self.grid.buffers_mib[-1]
        silent: list[tuple[str, ...]] = [(), *((name,) for name in self.target.regular)]
        return [Setting(FULL_MESH, congestion, largest, one) for one in silent]

    def measure(
        self,
        out: Path,
        *,
        engine: Engine = "sim",
        jobs: int | None = None,
        cluster: str | None = None,
        progress: Progress | None = None,
    ) -> Measured:
        """Make the runs; those that are complete already are reused.

        Of those on the kernel that do not count all runs with that seed are left out.

        Parameters
        ----------
        out
            Where they are kept.
        engine
            ``sim`` for the simulator, ``kernel`` for the TCP and MPTCP of this machine.
        jobs
            Runs at a time; all cores unless given. On the kernel they are made one after the other.
        cluster
            The scheduler of a Dask cluster whose workers make the runs.
        progress
            Called with the simulated time that all runs together have reached, in seconds.

        Returns
        -------
        Measured
            What they delivered.

        Raises
        ------
        TuningError
            If too few seeds count on the kernel.
        """
        duration_s = self.target.experiment.scenario.duration_s
        runs = self._run(self.first, out, engine, jobs, cluster, progress)
        seeds = self._counted(runs)
        impacts = (
            {congestion: self._impact(congestion, runs, seeds) for congestion in self.grid.congestions}
            if PCDC in self.grid.path_managers
            else {}
        )
        second = [
            self._setting(PCDC, congestion, buffer, impacts)
            for congestion in impacts
            for buffer in self.grid.buffers_mib
        ]
        before_s = len(runs) * len(self.grid.seeds) * duration_s
        later = after(before_s, progress)
        runs |= self._run([one for one in second if one not in runs], out, engine, jobs, cluster, later)
        seeds = self._counted(runs)
        mbit_per_s = [
            [
                [
                    self._goodputs(runs[self._setting(manager, congestion, buffer, impacts)], seeds)
                    for buffer in self.grid.buffers_mib
                ]
                for congestion in self.grid.congestions
            ]
            for manager in self.grid.path_managers
        ]
        all_runs = [run for of in runs.values() for run in of]
        return Measured(
            Samples(replace(self.grid, seeds=seeds), np.array(mbit_per_s)),
            impacts,
            len(all_runs),
            sum(run.reused for run in all_runs),
            tuple(f"seed {run.seed}: {'; '.join(run.invalid)}" for run in all_runs if run.invalid),
        )

    def _counted(self, runs: Mapping[Setting, list[Run]]) -> tuple[int, ...]:
        """Return the seeds whose runs all count."""
        invalid = [run for of in runs.values() for run in of if run.invalid]
        lost = {run.seed for run in invalid}
        seeds = tuple(seed for seed in self.grid.seeds if seed not in lost)
        if len(seeds) < MIN_SEEDS:
            raise TuningError(
                f"runs on the kernel count with {len(seeds)} of {len(self.grid.seeds)} seeds, expected at "
                f"least {MIN_SEEDS}; the first that does not: {'; '.join(invalid[0].invalid)}"
            )
        return seeds

    def _setting(
        self, manager: str, congestion: str, buffer: float, impacts: Mapping[str, Impact]
    ) -> Setting:
        if manager != PCDC:
            return Setting(manager, congestion, buffer)
        silent = tuple(name for name in self.target.regular if name not in impacts[congestion].used)
        return Setting(FULL_MESH, congestion, buffer, silent)

    def _run(
        self,
        settings: Iterable[Setting],
        out: Path,
        engine: Engine,
        jobs: int | None,
        cluster: str | None,
        progress: Progress | None,
    ) -> dict[Setting, list[Run]]:
        different = list(dict.fromkeys(settings))
        experiments = [self.target.with_(setting) for setting in different]
        if engine == "kernel":
            of_one_s = len(self.grid.seeds) * self.target.experiment.scenario.duration_s
            return {
                setting: run_until_they_count(one, self.grid.seeds, out, after(at * of_one_s, progress))
                for at, (setting, one) in enumerate(zip(different, experiments, strict=True))
            }
        tasks = [Task(experiment, seed) for experiment in experiments for seed in self.grid.seeds]
        made = run_tasks(tasks, out, jobs=jobs, cluster=cluster, progress=progress)
        count = len(self.grid.seeds)
        return {setting: made[at * count : (at + 1) * count] for at, setting in enumerate(different)}

    def _goodputs(self, runs: Iterable[Run], seeds: Sequence[int]) -> list[float]:
        return [self.target.goodput_mbit_per_s(run) for run in runs if run.seed in seeds]

    def _impact(self, congestion: str, runs: Mapping[Setting, list[Run]], seeds: Sequence[int]) -> Impact:
        phases = self._phases(congestion)
        with_all, *without = (self._goodputs(runs[setting], seeds) for setting in phases)
        factors = {
            name: impact_factor(with_all, goodputs)
            for name, goodputs in zip(self.target.regular, without, strict=True)
        }
        return Impact(factors, used({name: factor.mean for name, factor in factors.items()}))
