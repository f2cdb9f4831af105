"""``anabranch tune``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from anabranch.bed import find
from anabranch.cli.outcome import BadUsage, ended_by_sigterm, reported
from anabranch.cli.scenario import (
    MAX_SEEDS,
    Algorithms,
    AsJson,
    ClusterAddress,
    Engine,
    File,
    Jobs,
    Overrides,
    check_jobs,
    load_algorithm_files,
    pairs,
)
from anabranch.cli.show import console, plain_table, progress_bar
from anabranch.experiment import Experiment
from anabranch.tuning import Grid, Measured, Plan, TuningError, find_target, parse_buffers
from anabranch.tuning.agent import agent_toml, check_emission
from anabranch.tuning.beside import Beside, beside
from anabranch.tuning.regression import LARGEST_P, LEAST_R2, Fit
from anabranch.tuning.report import Answer, answer, as_json
from anabranch.units import number

#: What MPCOA compares.
CONGESTIONS = "cubic,olia,hybla,reno,scalable,vegas"
PATH_MANAGERS = "fullmesh,pcdc"
BUFFERS = "1:16:1"


def tune(
    file: File,
    connection: Annotated[
        str | None,
        typer.Option(
            help="The MPTCP connection to tune; may be left out if there is one.", show_default=False
        ),
    ] = None,
    congestion: Annotated[
        str, typer.Option(metavar="NAME,...", help="Congestion controls to choose from.")
    ] = CONGESTIONS,
    path_managers: Annotated[
        str, typer.Option(metavar="NAME,...", help="Path managers to choose from.")
    ] = PATH_MANAGERS,
    buffers: Annotated[
        str,
        typer.Option(
            metavar="FROM:TO:STEP", help="Sizes of send and receive buffer in MiB, or a list with commas."
        ),
    ] = BUFFERS,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SEEDS, metavar="N", help="Run with the seeds 1 to N; at least 2.")
    ] = 5,
    delta: Annotated[
        float,
        typer.Option(help="Share of the throughput to give up for a smaller buffer, from 0 to below 1."),
    ] = 0.05,
    overrides: Overrides = None,
    algorithms: Algorithms = None,
    out: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("runs"),
    engine: Annotated[
        Engine,
        typer.Option(help="Where it is run; kernel: there and in the simulator, which is laid beside."),
    ] = Engine.SIM,
    jobs: Jobs = None,
    scheduler: ClusterAddress = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw throughputs, models and the trade-off.")
    ] = None,
    emit_agent: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Write the configuration with which `anabranchd agent` does the same."
        ),
    ] = None,
    json_wanted: AsJson = False,
) -> None:
    """Find path manager, congestion control and buffer size together, after MPCOA."""
    with reported():
        if not 0 <= delta < 1:
            raise BadUsage(f"--delta {delta:g}: expected a share from 0 to below 1")
        check_jobs(jobs, scheduler)
        if plot is not None:
            _check_plot(plot)
        if emit_agent is not None:
            _check_place("--emit-agent", emit_agent)
        load_algorithm_files(algorithms)
        try:
            grid = Grid(
                _names(path_managers), _names(congestion), parse_buffers(buffers), tuple(range(1, seeds + 1))
            )
            target = find_target(Experiment(file, pairs(overrides)), connection)
            plan = Plan(target, grid)
            if emit_agent is not None:
                check_emission(target, grid)
            if scheduler is not None and (in_python := plan.in_python):
                raise BadUsage(f"{' and '.join(in_python)}: written in Python, for runs on this machine")
            sim = None
            if engine is Engine.KERNEL:
                _check_kernel(plan, scheduler)
                sim = answer(plan.measure(out, jobs=jobs), delta)
            with (
                ended_by_sigterm(),
                progress_bar(
                    target.experiment.scenario.name, plan.runs, target.experiment.scenario.duration_s
                ) as progress,
            ):
                measured = plan.measure(
                    out,
                    engine=engine.value,
                    jobs=None if sim is not None else jobs,
                    cluster=scheduler,
                    progress=progress,
                )
            found = answer(measured, delta)
            compared = None if sim is None else beside(measured.samples, found.choice, sim.choice)
            configuration = "" if emit_agent is None else agent_toml(target, found.choice, measured.impacts)
        except TuningError as error:
            raise BadUsage(str(error)) from None
        if emit_agent is not None:
            emit_agent.write_text(configuration, encoding="utf-8")
        if plot is not None:
            from anabranch.tuning.plots import draw

            draw(measured.samples, found, plot)
        if json_wanted:
            shown = as_json(target, measured, found)
            shown |= {} if compared is None else compared.as_json()
            typer.echo(json.dumps(shown, indent=2))
        else:
            _print(measured, found, target.experiment.scenario.title, compared)


def _check_kernel(plan: Plan, scheduler: str | None) -> None:
    """Refuse what the kernel engine cannot do, before anything is run."""
    if scheduler is not None:
        raise BadUsage("--scheduler is for the simulator; runs on the kernel are made on this machine")
    if plan.in_python:
        raise BadUsage(f"{' and '.join(plan.in_python)}: written in Python, for the simulator only")
    find()


def _check_plot(path: Path) -> None:
    """Refuse a file that could not be written when all runs are made."""
    if path.suffix not in (".svg", ".pdf", ".png"):
        raise BadUsage(f"--plot {path}: expected a file name that ends in .svg, .pdf or .png")
    _check_place("--plot", path)


def _check_place(option: str, path: Path) -> None:
    if path.is_dir():
        raise BadUsage(f"{option} {path}: a directory; expected a file name")
    folder = next(one for one in (path.parent, *path.parent.parents) if one.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise BadUsage(f"{option} {path}: cannot write in {folder}; choose another place")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _print(measured: Measured, found: Answer, title: str, compared: Beside | None) -> None:
    out = console()
    out.print(title, markup=False)
    if measured.impacts:
        out.print("\nImpact factors; PCDC uses those with a star", markup=False)
        out.print(_impacts(measured))
    out.print("\nModels of throughput by buffer", markup=False)
    out.print(_fits(found))
    pair = f"{found.choice.path_manager} with {found.choice.congestion}"
    out.print(f"\nWhat giving up throughput saves: {pair}", markup=False)
    out.print(_trade_off(found))
    out.print()
    more = [] if compared is None else compared.sentences()
    lost = [f"does not count: {one}" for one in measured.lost]
    for line in [*found.sentences, *more, *lost]:
        out.print(line, markup=False, soft_wrap=True)
    out.print(f"{measured.runs} runs, {measured.reused} of them reused", markup=False)


def _impacts(measured: Measured) -> Table:
    table = plain_table("subflow")
    for congestion in measured.impacts:
        table.add_column(congestion, justify="right")
    for subflow in next(iter(measured.impacts.values())).factors:
        cells = []
        for impact in measured.impacts.values():
            factor = impact.factors[subflow]
            star = " *" if subflow in impact.used else "  "
            cells.append(number(factor.mean, factor.half_width, signed=True) + star)
        table.add_row(subflow, *cells)
    return table


def _fits(found: Answer) -> Table:
    table = plain_table("path manager", "model")
    for head in ("R²", "p", "error at held-out buffers", "verdict"):
        table.add_column(head, justify="right")
    for manager, of in found.tuning.fits.items():
        for fit in of.values():
            error = f"{fit.held_out_mbit_per_s:.3g} Mbit/s"
            table.add_row(manager, fit.model, f"{fit.r2:.3f}", f"{fit.p_value:.2g}", error, _verdict(fit))
    return table


def _verdict(fit: Fit) -> str:
    if fit.is_accepted:
        return "accepted"
    why = f"R² < {LEAST_R2:g}" if fit.r2 < LEAST_R2 else f"p > {LARGEST_P:g}"
    return f"model rejected: {why}"


def _trade_off(found: Answer) -> Table:
    table = plain_table()
    for head in ("given up", "buffer", "throughput", "of the largest buffer"):
        table.add_column(head, justify="right")
    for point in found.trade_off:
        table.add_row(
            f"{100 * point.delta:g} %",
            f"{point.buffer_mib:.3g} MiB",
            f"{point.mbit_per_s:.4g} Mbit/s",
            f"{100 * point.share_of_largest_buffer:.0f} %",
        )
    return table
