"""``anabranch reproduce``."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from anabranch.cli.document import read_marked
from anabranch.cli.outcome import BadUsage, ended_by_sigterm, reported
from anabranch.cli.scenario import Engine
from anabranch.cli.show import console, plain_table, progress_bar

# The papers load the plotting library, which takes longer than most commands: they are imported when needed.
if TYPE_CHECKING:
    from anabranch.papers.model import Paper
    from anabranch.papers.reproduction import Reproduction

#: The papers, in their order.
NAMES = ("mfvl", "stcp", "ee-mptcp", "mptcp-iot", "mpcoa")

#: The name for every paper.
ALL = "all"


def reproduce(
    name: Annotated[
        str,
        typer.Argument(metavar="PAPER", help=f"{', '.join(NAMES)}, or {ALL}."),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and fewer points.")] = False,
    engine: Annotated[
        Engine,
        typer.Option(help="Where it is run; kernel: on both engines, with the verdicts side by side."),
    ] = Engine.SIM,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs at a time; all cores unless given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where runs are kept, and plots in plots/.")] = Path(
        "runs/reproduce"
    ),
    write: Annotated[
        Path | None, typer.Option(help="Write claims, plots and tables into this document.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run what a paper has run, draw its figures, and judge every claim of it. Complete runs are reused.

    A claim that does not hold is an answer, not a failure: the exit code is 0.
    """
    with reported():
        if engine is Engine.KERNEL:
            from anabranch.cli.reproduce_kernel import on_kernel

            on_kernel(name, out, quick=quick, jobs=jobs, write=write, as_json=as_json)
            return
        from anabranch.papers.document import replaced
        from anabranch.papers.reproduction import draw

        papers = _named(name)
        text = _document(write, papers, quick=quick)
        reproductions = []
        for paper in papers:
            with ended_by_sigterm():
                reproductions.append(_reproduce(paper, out, quick=quick, jobs=jobs))
            draw(paper, reproductions[-1].measured, out / "plots")
            if not as_json:
                _print(reproductions[-1], out / "plots")
            if write is not None:
                figures = write.parent / write.stem
                draw(paper, reproductions[-1].measured, figures)
                text = replaced(text, reproductions[-1], figures.name)
                write.write_text(text, encoding="utf-8")
        if as_json:
            typer.echo(json.dumps({"papers": [one.as_json() for one in reproductions]}, indent=2))


def _named(name: str) -> Sequence[Paper]:
    from anabranch.papers import PAPERS

    if name == ALL:
        return PAPERS
    by_name = {paper.name: paper for paper in PAPERS}
    if name not in by_name:
        nearest = difflib.get_close_matches(name, [*by_name, ALL], n=1, cutoff=0.4)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise BadUsage(f"{name}: no such paper; there are {', '.join(by_name)}, and {ALL}{hint}")
    return (by_name[name],)


def _document(write: Path | None, papers: Sequence[Paper], *, quick: bool) -> str:
    """Read the document before anything is run."""
    from anabranch.papers.document import begin, end

    if write is None:
        return ""
    if quick:
        raise BadUsage("--write: expected the whole reproduction, without --quick")
    for paper in papers:
        for marker in (begin(paper.name), end(paper.name)):
            read_marked(write, marker)
    return write.read_text(encoding="utf-8")


def _reproduce(paper: Paper, out: Path, *, quick: bool, jobs: int | None) -> Reproduction:
    from anabranch.papers import reproduction

    total_s = reproduction.simulated_s(paper.plan(quick))
    with progress_bar(paper.name, 1, total_s) as progress:
        return reproduction.reproduce(paper, out, quick=quick, jobs=jobs, progress=progress)


def _print(reproduction: Reproduction, plots: Path) -> None:
    from anabranch.papers.document import score

    table = plain_table("id", "claim", "paper", "ours", "verdict", "why")
    for one in reproduction.claims:
        claim, outcome = one.claim, one.outcome
        cells = (claim.id, claim.claim, claim.paper, outcome.ours, outcome.verdict, outcome.why)
        table.add_row(*(escape(cell) for cell in cells))
    out = console()
    out.print(f"{reproduction.paper.name}: {reproduction.paper.title}", markup=False, soft_wrap=True)
    out.print(table)
    out.print(
        f"{score(reproduction)}; {reproduction.runs} runs; intervals are 95 % intervals over seeds",
        markup=False,
        soft_wrap=True,
    )
    names = ", ".join(f"{reproduction.paper.name}-{plot.name}.svg" for plot in reproduction.paper.plots)
    out.print(f"plots in {plots}: {names}", markup=False, soft_wrap=True)
