"""Runs on the kernel for campaigns: those that do not count are repeated."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from anabranch.bed import KernelOptions
from anabranch.experiment import Experiment, Progress
from anabranch.results import Run

#: How often the program is asked for runs that do not count; each time it tries three times itself.
ROUNDS = 2

#: The 99th percentile of the emulator's lateness, in the facts of a run's environment.
LATENESS_FACT = "emulator_lateness_p99_us"


def run_until_they_count(
    experiment: Experiment,
    seeds: Iterable[int],
    out: Path,
    progress: Progress | None = None,
    options: KernelOptions | None = None,
) -> list[Run]:
    """Run an experiment on the kernel; complete runs that count are reused.

    Parameters
    ----------
    experiment
        What is run.
    seeds
        The seeds.
    out
        Where runs are kept.
    progress
        Called with the time that all runs together have reached, in seconds; it goes back when runs have to
        be repeated.
    options
        How they are run, if not as usual.

    Returns
    -------
    list of Run
        The runs in the order of the seeds. Those that do not count after all say so, see
        :attr:`Run.invalid`.

    Raises
    ------
    RunError
        If a run fails.
    ScenarioError
        If the kernel cannot do what the scenario asks for.
    Unavailable
        If this machine lacks what the kernel engine needs.
    """
    numbers = list(seeds)
    runs = experiment.run(engine="kernel", seeds=numbers, out=out, progress=progress, kernel=options)
    for _ in range(ROUNDS - 1):
        if any(run.invalid for run in runs):
            runs = experiment.run(engine="kernel", seeds=numbers, out=out, progress=progress, kernel=options)
    return list(runs)


def lateness(runs: Iterable[Run]) -> str:
    """Say in a sentence how late the emulator was in the runs that count."""
    facts = [run.environment.get("facts", {}) for run in runs if not run.invalid]
    late_us = [float(fact[LATENESS_FACT]) for fact in facts if LATENESS_FACT in fact]
    if not late_us:
        return "Lateness of the emulator: not recorded."
    return (
        "Lateness of the emulator, 99th percentile of a run that counts: "
        f"{statistics.median(late_us):.0f} µs in the median, {max(late_us):.0f} µs at most."
    )


def after(before_s: float, progress: Progress | None) -> Progress | None:
    """Return a progress that counts from a time that others have reached."""
    return None if progress is None else lambda reached_s: progress(before_s + reached_s)
