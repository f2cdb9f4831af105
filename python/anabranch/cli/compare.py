"""``anabranch compare``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from anabranch.cli.outcome import BadUsage, reported
from anabranch.cli.show import console, figures_table, verdicts_table
from anabranch.compare import Row, Variant, collect, relabelled
from anabranch.compare import compare as rows_of
from anabranch.stats import Estimate
from anabranch.verdict import Judged, judge, same_scenario
from anabranch.wording import seeds_text, usual


def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders with run folders in them.", metavar="RUN...")
    ],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Show this figure, of everything that has it; may be repeated."),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show every figure.")] = False,
    labels: Annotated[
        str | None, typer.Option(help="Names of what is compared, separated by commas.")
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(help="Draw goodput, drops, windows, power and memory over time into this folder."),
    ] = None,
    verdict: Annotated[
        bool | None,
        typer.Option(
            "--verdict/--no-verdict",
            help="Judge whether simulator and kernel agree; done unasked for one scenario on both.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Lay runs side by side: figures with 95 % intervals, paired differences, verdicts, plots.

    Runs that differ in nothing but the seed are averaged; the others are compared with the first.
    """
    with reported():
        variants, notes = collect(runs)
        if labels is not None:
            variants = named(variants, labels)
        rows = _chosen(rows_of(variants), metrics, show_all)
        judged = _judged(variants, verdict)
        drawn = _draw(variants, plots) if plots is not None else []
        if as_json:
            typer.echo(json.dumps(_as_json(variants, rows, judged, drawn, notes), indent=2))
            return
        out = console()
        out.print(figures_table(variants, rows))
        for line in (seeds_text(variants), *notes):
            out.print(line, markup=False, soft_wrap=True)
        if judged:
            out.print(verdicts_table(judged))
            out.print(
                "differences of the kernel to the simulator ± half of their 95 % interval, paired by seed"
            )
        if drawn:
            names = ", ".join(path.name for path in drawn)
            out.print(f"plots in {plots}: {names}", markup=False, soft_wrap=True)


def named(variants: Sequence[Variant], labels: str) -> tuple[Variant, ...]:
    """Return the variants with other labels, separated by commas; refuse another number of them."""
    names = [name.strip() for name in labels.split(",")]
    if len(names) != len(variants):
        found = "; ".join(variant.label for variant in variants)
        raise BadUsage(f"--labels gives {len(names)} names for {len(variants)}: {found}")
    return relabelled(variants, names)


def _chosen(rows: list[Row], metrics: list[str] | None, show_all: bool) -> list[Row]:
    if show_all:
        return rows
    if not metrics:
        return usual(rows)
    known = dict.fromkeys(row.metric for row in rows)
    for metric in metrics:
        if metric not in known:
            raise BadUsage(f"--metric {metric}: no run has it; there are {', '.join(known)}")
    return [row for row in rows if row.metric in metrics]


def _judged(variants: Sequence[Variant], wanted: bool | None) -> list[Judged]:
    fit = same_scenario(variants)
    if wanted and not fit:
        found = "; ".join(f"{variant.label} ({variant.engine})" for variant in variants)
        raise BadUsage(
            f"--verdict: expected one scenario, once in the simulator and once on the kernel: {found}"
        )
    if not fit or wanted is False:
        return []
    sim, kernel = sorted(variants, key=lambda variant: variant.engine == "kernel")
    return judge(sim, kernel)


def _draw(variants: Sequence[Variant], folder: Path) -> list[Path]:
    from anabranch.plots import draw

    try:
        return draw(variants, folder)
    except OSError as error:
        raise BadUsage(f"--plots {folder}: cannot write there: {error.strerror}") from error


def _as_json(
    variants: Sequence[Variant],
    rows: Sequence[Row],
    judged: Sequence[Judged],
    drawn: Sequence[Path],
    notes: Sequence[str],
) -> dict[str, Any]:
    return {
        "variants": [
            {
                "label": variant.label,
                "scenario": variant.scenario,
                "engine": variant.engine,
                "overrides": variant.overrides,
                "key": variant.runs[0].key,
                "seeds": variant.seeds,
                "runs": [str(run.path) for run in variant.runs],
            }
            for variant in variants
        ],
        "figures": [
            {
                **row.subject._asdict(),
                "metric": row.metric,
                "estimates": [_estimate(estimate) for estimate in row.estimates],
                "differences": [_estimate(difference) for difference in row.differences],
            }
            for row in rows
        ],
        "verdicts": [
            {
                **one.subject._asdict(),
                "metric": one.metric,
                "sim": _estimate(one.sim),
                "kernel": _estimate(one.kernel),
                "difference": _estimate(one.difference),
                "tolerance": one.tolerance.share,
                "is_goal": one.tolerance.is_goal,
                "verdict": one.verdict,
            }
            for one in judged
        ],
        "plots": [str(path) for path in drawn],
        "notes": list(notes),
    }


def _estimate(estimate: Estimate | None) -> dict[str, float | None] | None:
    return None if estimate is None else estimate._asdict()
