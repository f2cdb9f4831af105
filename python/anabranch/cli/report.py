"""``anabranch report``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.compare import named
from anabranch.cli.outcome import BadUsage, reported
from anabranch.cli.show import console
from anabranch.compare import Variant, collect


class Format(StrEnum):
    """Format of the files of figures."""

    SVG = "svg"
    PDF = "pdf"
    PNG = "png"


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders with run folders in them.", metavar="RUN...")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    figures: Annotated[
        Path | None, typer.Option(help="Draw the figures into this folder, too, one file each.")
    ] = None,
    file_format: Annotated[
        Format | None, typer.Option("--format", help="Format of these files; svg unless given.")
    ] = None,
    claims: Annotated[
        Path | None,
        typer.Option(help="Show these claims of papers, as anabranch reproduce --json prints them."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Names of what is compared, separated by commas.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write runs into one HTML file that needs no network: conditions, drawing, figures, series, claims.

    Runs that differ in nothing but the seed are averaged; the others are compared with the first.
    """
    with reported():
        if file_format is not None and figures is None:
            raise BadUsage("--format is for --figures DIR")
        variants, notes = collect(runs)
        if labels is not None:
            variants = named(variants, labels)
        from anabranch.report import ClaimsError, draw_figures, read_claims, render

        try:
            papers = () if claims is None else read_claims(claims)
        except ClaimsError as error:
            raise BadUsage(f"--claims {error}") from error
        size = _write(out, render(variants, notes, papers))
        drawn = []
        if figures is not None:
            try:
                drawn = draw_figures(variants, figures, (file_format or Format.SVG).value)
            except OSError as error:
                raise BadUsage(f"--figures {figures}: cannot write there: {error.strerror}") from error
        if as_json:
            answer = {
                "report": str(out),
                "bytes": size,
                "variants": [variant.label for variant in variants],
                "figures": [str(path) for path in drawn],
                "notes": list(notes),
            }
            typer.echo(json.dumps(answer, indent=2))
            return
        _print(out, size, variants, drawn, notes)


def _print(
    out: Path, size: int, variants: Sequence[Variant], drawn: Sequence[Path], notes: Sequence[str]
) -> None:
    lines = list(notes)
    count = sum(len(variant.runs) for variant in variants)
    lines.append(f"report of {count} run{'s' * (count > 1)} in {out} ({size / 1e6:.1f} MB)")
    if drawn:
        lines.append(f"figures in {drawn[0].parent}: {', '.join(path.name for path in drawn)}")
    terminal = console()
    for line in lines:
        terminal.print(line, markup=False, soft_wrap=True)


def _write(path: Path, page: str) -> int:
    """Write the page, so that there is never half of it; return its length in bytes."""
    content = page.encode()
    if path.is_dir():
        raise BadUsage(f"--out {path}: is a folder; expected the name of a file")
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise BadUsage(f"--out {path}: cannot write there: {error.strerror}") from error
    return len(content)
