"""``anabranch check`` and ``anabranch run``."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from anabranch.bed import KernelOptions
from anabranch.cli.outcome import FAILED, BadUsage, ended_by_sigterm, reported
from anabranch.cli.show import console, figures_table, plain_table, progress_bar
from anabranch.compare import Variant, compare
from anabranch.congestion import load_algorithms
from anabranch.experiment import Experiment
from anabranch.results import Runs
from anabranch.wording import seeds_text, usual

MAX_SEED = 2**64 - 1
MAX_SEEDS = 1_000_000
MAX_JOBS = 1024


class Engine(StrEnum):
    """What carries the packets."""

    SIM = "sim"
    KERNEL = "kernel"


class Application(StrEnum):
    """What sends and receives on the kernel."""

    OWN = "own"
    IPERF3 = "iperf3"
    ANABRANCHD = "anabranchd"
    ANABRANCHD_TLS = "anabranchd-tls"


File = Annotated[Path, typer.Argument(metavar="FILE", help="A scenario file.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the file; may be repeated."),
]
Algorithms = Annotated[
    list[Path] | None,
    typer.Option(
        "--algorithms",
        metavar="FILE.py",
        help="Run a Python file that defines congestion controls; may be repeated.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, max=MAX_JOBS, help="Runs at a time; all cores unless given.")
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Make the runs on the workers of this Dask cluster, such as tcp://192.0.2.1:8786.",
        show_default=False,
    ),
]


def check_jobs(jobs: int | None, cluster: str | None) -> None:
    """Refuse an address without a port, and a number of runs at a time where a cluster decides about that."""
    if cluster is None:
        return
    if re.fullmatch(r"(\w+://)?[^/\s]+:\d+", cluster) is None:
        raise BadUsage(
            f"--scheduler {cluster}: expected an address with a port, such as tcp://192.0.2.1:8786"
        )
    if jobs is not None:
        raise BadUsage("--jobs is for this machine; a cluster makes as many runs as its workers have threads")


def check(
    file: File, overrides: Overrides = None, algorithms: Algorithms = None, as_json: AsJson = False
) -> None:
    """Check a scenario file, and say what is in it or what is wrong with it."""
    with reported():
        load_algorithm_files(algorithms)
        scenario = Experiment(file, pairs(overrides)).scenario
        if as_json:
            typer.echo(
                json.dumps(
                    {
                        "name": scenario.name,
                        "title": scenario.title,
                        "description": scenario.description,
                        "source": scenario.source,
                        "duration_s": scenario.duration_s,
                        "counts": dict(scenario.counts),
                        "key": scenario.key,
                        "canonical": json.loads(scenario.canonical),
                    },
                    indent=2,
                )
            )
            return
        table = plain_table(scenario.name, scenario.title)
        table.add_row("duration", f"{scenario.duration_s:g} s")
        for name, count in scenario.counts:
            table.add_row(name, str(count))
        console().print(table)


def run(
    file: File,
    engine: Annotated[
        Engine, typer.Option(help="What carries the packets: the simulator, or this machine's Linux kernel.")
    ] = Engine.SIM,
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help="Run with this seed.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=MAX_SEEDS, metavar="N", help="Run with the seeds 1 to N.")
    ] = None,
    overrides: Overrides = None,
    algorithms: Algorithms = None,
    out: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("runs"),
    force: Annotated[bool, typer.Option("--force", help="Make complete runs again.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_JOBS, help="Runs at a time, in the simulator; all cores unless given."),
    ] = None,
    capture: Annotated[
        bool, typer.Option("--capture", help="Write the packets of every path to packets.pcapng.")
    ] = False,
    qlog: Annotated[
        bool, typer.Option("--qlog", help="In the simulator: write what every subflow did to events.qlog.")
    ] = False,
    native_congestion: Annotated[
        bool,
        typer.Option("--native-congestion", help="On the kernel: use its own congestion control, not ours."),
    ] = False,
    application: Annotated[
        Application | None, typer.Option(help="On the kernel: what sends and receives; own unless given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario with one seed (1 unless given) or many. A run that is complete already is reused."""
    with reported():
        if seed is not None and seeds is not None:
            raise BadUsage("--seed and --seeds exclude each other")
        options = _kernel_options(engine, jobs, qlog, native_congestion, application)
        load_algorithm_files(algorithms)
        experiment = Experiment(file, pairs(overrides))
        if engine is Engine.KERNEL and experiment.scenario.in_python:
            names = " and ".join(experiment.scenario.in_python)
            raise BadUsage(f"{names}: written in Python, for --engine sim")
        numbers = [1 if seed is None else seed] if seeds is None else list(range(1, seeds + 1))
        scenario = experiment.scenario
        bar = progress_bar(scenario.name, len(numbers), scenario.duration_s)
        with ended_by_sigterm(), bar as progress:
            runs = experiment.run(
                engine=engine.value,
                seeds=numbers,
                out=out,
                force=force,
                capture=capture,
                qlog=qlog,
                jobs=jobs,
                progress=progress,
                kernel=options,
            )
        if as_json:
            typer.echo(json.dumps(_as_json(experiment, runs), indent=2))
        else:
            _print(experiment, runs)
        if any(run.invalid for run in runs):
            raise typer.Exit(FAILED)


def _kernel_options(
    engine: Engine,
    jobs: int | None,
    qlog: bool,
    native_congestion: bool,
    application: Application | None,
) -> KernelOptions | None:
    """Return the options of the kernel engine, None for the simulator; refuse those of the other engine."""
    if engine is Engine.KERNEL:
        if jobs is not None:
            raise BadUsage(
                "--jobs is for --engine sim; runs on the kernel share the processor and are made one after "
                "the other"
            )
        if qlog:
            raise BadUsage("--qlog is for --engine sim; a kernel does not tell what its subflows do")
        sender = Application.OWN if application is None else application
        return KernelOptions(native_congestion, sender.value)
    given = {
        "--native-congestion": native_congestion,
        "--application": application is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise BadUsage(f"{name} is for --engine kernel")
    return None


def load_algorithm_files(algorithms: list[Path] | None) -> None:
    """Run the files of ``--algorithms``."""
    for path in algorithms or []:
        load_algorithms(path)


def pairs(overrides: list[str] | None) -> list[tuple[str, str]]:
    """Return what ``--set`` says: keys and values."""
    found = []
    for text in overrides or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadUsage(f"--set {text}: expected KEY=VALUE")
        found.append((key.strip(), value.strip()))
    return found


def _as_json(experiment: Experiment, runs: Runs) -> dict[str, Any]:
    return {
        "scenario": experiment.scenario.name,
        "title": experiment.scenario.title,
        "overrides": experiment.overrides,
        "key": runs[0].key,
        "engine": runs[0].engine,
        "runs": [
            {
                "seed": run.seed,
                "path": str(run.path),
                "reused": run.reused,
                "damaged": run.damaged,
                "invalid": run.invalid,
                "summary": run.summary,
            }
            for run in runs
        ],
    }


def _print(experiment: Experiment, runs: Runs) -> None:
    out = console()
    out.print(experiment.scenario.title, markup=False)
    for key, value in experiment.overrides.items():
        out.print(f"with {key} = {value}", markup=False)
    if valid := tuple(run for run in runs if not run.invalid):
        variant = Variant(experiment.scenario.name, valid)
        out.print(figures_table([variant], usual(compare([variant]))))
        out.print(seeds_text([variant]), markup=False)
    for line in _remarks(runs):
        out.print(line, markup=False, soft_wrap=True)
    reused = sum(run.reused for run in runs)
    if len(runs) == 1:
        state = "reused from" if reused else "in"
        out.print(f"run {state} {runs[0].path}", markup=False, soft_wrap=True)
    else:
        out.print(
            f"{len(runs)} runs, {reused} of them reused, in {runs[0].path.parent}",
            markup=False,
            soft_wrap=True,
        )


def _remarks(runs: Runs) -> list[str]:
    """Say what was damaged, what does not count and where a scenario could not be followed to the letter."""
    damaged = [f"made again: {run.damaged}" for run in runs if run.damaged is not None]
    invalid = [f"does not count: seed {run.seed}: {'; '.join(run.invalid)}" for run in runs if run.invalid]
    notes = dict.fromkeys(note for run in runs for note in run.environment.get("notes", ()))
    return [*damaged, *invalid, *(f"note: {note}" for note in notes)]
