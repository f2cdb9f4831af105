"""``anabranch transfer-figures``, which ``make transfer-figures`` calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from anabranch.bed import Unavailable, find
from anabranch.cli.document import read_marked
from anabranch.cli.outcome import FAILED, BadUsage, ended_by_sigterm, reported
from anabranch.cli.show import console, plain_table, progress_bar

# They load the plotting library, which takes longer than most commands: they are imported when needed.
if TYPE_CHECKING:
    from anabranch.papers.transfer import Result


def transfer_figures(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Run two cells alone, half a minute; fail if they are far off."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Runs at a time in the simulator; all cores unless given."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where runs and plots are kept.")] = Path("runs/transfer"),
    write: Annotated[
        Path | None, typer.Option(help="Write verdicts, plots and tables into this document.")
    ] = None,
) -> None:
    """Measure ``anabranchd send`` and ``receive`` on the kernel, beside MPTCP and TCP; reuse complete runs.

    A claim that does not hold is an answer, not a failure: the exit code is 0.
    """
    with reported():
        from anabranch.papers.transfer import campaign, real_time_s, sane
        from anabranch.papers.transfer_document import BEGIN, END, draw, replaced

        find()
        if quick and write is not None:
            raise BadUsage("--write: expected the whole campaign, without --quick")
        text = ""
        if write is not None:
            for marker in (BEGIN, END):
                text = read_marked(write, marker)
        total_s = real_time_s(quick)
        console().print(f"{total_s / 60:.0f} min of real time on the kernel, less what is complete already")
        with ended_by_sigterm(), progress_bar("transfer", 1, total_s) as progress:
            result = campaign(out, quick=quick, jobs=jobs, progress=progress)
        if not result.kernel.cells():
            reasons = dict.fromkeys(why for one in result.lost for why in one.why)
            raise Unavailable(f"too few runs on the kernel count on this machine now: {'; '.join(reasons)}")
        if quick:
            wrong = sane(result.kernel)
            for line in wrong:
                typer.echo(f"error: {line}", err=True)
            if wrong:
                raise typer.Exit(FAILED)
            return
        _print(result)
        draw(result, out / "plots")
        if write is not None:
            figures = write.parent / write.stem
            draw(result, figures)
            write.write_text(replaced(text, result, figures.name), encoding="utf-8")
            typer.echo(f"tables in {write}, plots in {figures}")


def _print(result: Result) -> None:
    from anabranch.papers.transfer_document import score

    table = plain_table("id", "claim", "paper", "simulator", "", "kernel", "", "why, on the kernel")
    for one in result.claims:
        claim, sim, kernel = one.claim, one.sim, one.kernel
        cells = (claim.id, claim.claim, claim.paper, sim.ours, sim.verdict, kernel.ours, kernel.verdict)
        table.add_row(*(escape(cell) for cell in (*cells, kernel.why)))
    console().print(table)
    console().print(score(result), markup=False)
