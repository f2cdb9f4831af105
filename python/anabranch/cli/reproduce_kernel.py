"""``anabranch reproduce --engine kernel``."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.markup import escape

from anabranch.bed import find
from anabranch.cli.document import read_marked
from anabranch.cli.outcome import BadUsage, ended_by_sigterm
from anabranch.cli.show import console, plain_table, progress_bar
from anabranch.papers import ON_KERNEL
from anabranch.papers.document import end
from anabranch.papers.kernel import OnKernel, Result, real_time_s, reproduce_on_kernel
from anabranch.papers.kernel_document import begin, replaced, score

#: The name for every paper that is measured on the kernel.
ALL = "all"


def on_kernel(
    name: str, out: Path, *, quick: bool, jobs: int | None, write: Path | None, as_json: bool
) -> None:
    """Run what of a paper a kernel can do on both engines, and judge its claims on each."""
    chosen = _named(name)
    text = _document(write, chosen, quick=quick)
    find()
    if not as_json:
        minutes = sum(real_time_s(one.plan(quick)) for one in chosen) / 60
        console().print(f"{minutes:.0f} min of real time on the kernel, less what is complete already")
    results = []
    for one in chosen:
        with ended_by_sigterm():
            results.append(_reproduce(one, out, quick=quick, jobs=jobs))
        if not as_json:
            _print(results[-1])
        if write is not None:
            text = replaced(text, results[-1])
            write.write_text(text, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({"papers": [one.as_json() for one in results]}, indent=2))


def _named(name: str) -> Sequence[OnKernel]:
    if name == ALL:
        return ON_KERNEL
    by_name = {one.paper.name: one for one in ON_KERNEL}
    if name not in by_name:
        nearest = difflib.get_close_matches(name, [*by_name, ALL], n=1, cutoff=0.4)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise BadUsage(
            f"{name}: not measured on the kernel; expected one of {', '.join(by_name)}, or {ALL}{hint}"
        )
    return (by_name[name],)


def _document(write: Path | None, chosen: Sequence[OnKernel], *, quick: bool) -> str:
    """Read the document before anything is run."""
    if write is None:
        return ""
    if quick:
        raise BadUsage("--write: expected the whole reproduction, without --quick")
    for one in chosen:
        for marker in (begin(one.paper.name), end(one.paper.name)):
            read_marked(write, marker)
    return write.read_text(encoding="utf-8")


def _reproduce(one: OnKernel, out: Path, *, quick: bool, jobs: int | None) -> Result:
    with progress_bar(one.paper.name, 1, real_time_s(one.plan(quick))) as progress:
        return reproduce_on_kernel(one, out, quick=quick, jobs=jobs, progress=progress)


def _print(result: Result) -> None:
    table = plain_table("id", "claim", "paper", "simulator", "", "kernel", "", "why, on the kernel")
    for one in result.claims:
        claim, sim, kernel = one.claim, one.sim, one.kernel
        cells = (claim.id, claim.claim, claim.paper, sim.ours, sim.verdict, kernel.ours, kernel.verdict)
        table.add_row(*(escape(cell) for cell in (*cells, kernel.why)))
    out, paper = console(), result.on_kernel.paper
    out.print(f"{paper.name}: {paper.title}", markup=False, soft_wrap=True)
    out.print(table)
    lines = [f"{score(result)}; {len(result.runs)} runs; intervals are 95 % intervals over seeds"]
    lines += [
        f"does not count: {', '.join(one.cell)}, seed {one.seed}: {'; '.join(one.why)}" for one in result.lost
    ]
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
