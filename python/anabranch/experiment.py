"""From a scenario file to runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, overload

from anabranch import _engine
from anabranch.bed import KernelOptions, Order, run_on_kernel
from anabranch.results import EVENTS, PACKETS, Run, Runs
from anabranch.workers import Progress as Progress
from anabranch.workers import Workers

#: What carries the packets.
Engine = Literal["sim", "kernel"]


class Experiment:
    """A scenario file with overrides. It never changes; :meth:`with_` makes another one.

    Parameters
    ----------
    path
        The scenario file.
    overrides
        Dotted keys and their values, as in ``--set key=value``.

    Raises
    ------
    ScenarioError
        If the scenario is refused.
    """

    def __init__(self, path: str | PathLike[str], overrides: Sequence[tuple[str, str]] = ()) -> None:
        self.path = Path(path)
        self.overrides = dict(overrides)
        self.scenario = _engine.Scenario(self.path, list(self.overrides.items()))

    def __repr__(self) -> str:
        """Show the file and the overrides."""
        return f"Experiment({str(self.path)!r}, {list(self.overrides.items())!r})"

    def with_(self, **overrides: object) -> Experiment:
        """Return the same scenario with other values.

        Parameters
        ----------
        **overrides
            Values by key: ``with_(duration="20 s", **{"link.r1-r2.rate": "2 Mbit/s"})``.

        Returns
        -------
        Experiment
            The changed experiment.

        Raises
        ------
        ScenarioError
            If the scenario is refused.
        """
        texts = {key: value_text(value) for key, value in overrides.items()}
        return Experiment(self.path, tuple({**self.overrides, **texts}.items()))

    @overload
    def run(
        self,
        *,
        engine: Engine = ...,
        seed: int = ...,
        out: str | PathLike[str] = ...,
        force: bool = ...,
        capture: bool = ...,
        qlog: bool = ...,
        kernel: KernelOptions | None = ...,
    ) -> Run: ...
    @overload
    def run(
        self,
        *,
        engine: Engine = ...,
        seeds: Iterable[int],
        out: str | PathLike[str] = ...,
        force: bool = ...,
        capture: bool = ...,
        qlog: bool = ...,
        jobs: int | None = ...,
        progress: Progress | None = ...,
        kernel: KernelOptions | None = ...,
    ) -> Runs: ...
    def run(
        self,
        *,
        engine: Engine = "sim",
        seed: int = 1,
        seeds: Iterable[int] | None = None,
        out: str | PathLike[str] = "runs",
        force: bool = False,
        capture: bool = False,
        qlog: bool = False,
        jobs: int | None = None,
        progress: Progress | None = None,
        kernel: KernelOptions | None = None,
    ) -> Run | Runs:
        """Run the scenario with one seed or many, in the simulator or on the kernel.

        A run that is complete already is reused. The result does not depend on ``jobs``. Runs on the kernel
        may not count, see :attr:`Run.invalid`.

        Parameters
        ----------
        engine
            ``sim`` for the simulator, ``kernel`` for the TCP and MPTCP of this machine.
        seed
            The seed, if there is one.
        seeds
            The seeds, if there are many.
        out
            Where runs are kept: ``<out>/<scenario>/<key>/seed-<n>``.
        force
            Whether to make complete runs again.
        capture
            Whether to write the packets of every path, see :attr:`Run.packets`. A complete run without them
            is made again.
        qlog
            Whether to write what every subflow did, see :attr:`Run.qlog`; in the simulator only.
        jobs
            Runs at a time; all cores unless given. On the kernel they are made one after the other.
        progress
            Called from this thread while runs are under way.
        kernel
            Options for ``engine="kernel"``.

        Returns
        -------
        Run or Runs
            One run for ``seed``, a sequence for ``seeds``.

        Raises
        ------
        OutputError
            If ``out`` cannot be written to.
        RunError
            If a run fails.
        ScenarioError
            If the kernel cannot do what the scenario asks for.
        Unavailable
            If this machine lacks what the kernel engine needs.
        """
        numbers = [seed] if seeds is None else list(seeds)
        if engine == "kernel":
            if jobs is not None:
                raise ValueError("jobs is for the simulator; on the kernel runs are made one after the other")
            if self.scenario.in_python:
                names = " and ".join(self.scenario.in_python)
                raise ValueError(f"{names}: written in Python, for the simulator only")
            if qlog:
                raise ValueError("qlog is for the simulator; a kernel does not tell what its subflows do")
            options = KernelOptions() if kernel is None else kernel
            order = Order(self.path, tuple(self.overrides.items()), Path(out), force, capture, options)
            runs = run_on_kernel(order, numbers, self.scenario.duration_s, progress)
        else:
            if kernel is not None:
                raise ValueError("kernel holds options for engine='kernel'")
            cores = 1 if seeds is None else jobs or available_cores()
            files = [PACKETS] * capture + [EVENTS] * qlog
            runs = self._run_all(numbers, Path(out), force, files, cores, progress)
        return runs[0] if seeds is None else Runs(runs)

    def _run_all(
        self,
        seeds: list[int],
        out: Path,
        force: bool,
        files: list[str],
        jobs: int,
        progress: Progress | None,
    ) -> list[Run]:
        def run_one(seed: int, control: _engine.Control) -> Run:
            outcome = self.scenario.run(seed, out, force, files, control)
            path, reused, damaged = outcome["path"], outcome["reused"], outcome["damaged"]
            return Run(path, reused=reused, damaged=damaged, is_verified=True)

        return Workers(run_one, seeds, jobs).make_all(lambda _: self.scenario.duration_s, progress)


def load(path: str | PathLike[str]) -> Experiment:
    """Load a scenario file and check it.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Experiment
        The scenario, ready to run.

    Raises
    ------
    ScenarioError
        If the scenario is refused: the message names file, line, key and what was expected.
    """
    return Experiment(path)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def value_text(value: object) -> str:
    """Return a value as ``--set`` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
