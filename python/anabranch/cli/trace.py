"""``anabranch trace``: rate traces for links."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anabranch import traces
from anabranch.cli.outcome import BadUsage, reported
from anabranch.cli.show import console, plain_table

app = typer.Typer(
    name="trace",
    help="Make, describe and import rate traces (docs/links.md).",
    no_args_is_help=True,
)


class Format(StrEnum):
    """What can be imported."""

    CSV = "csv"
    MAHIMAHI = "mahimahi"


File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where the trace goes.", show_default=False)]


@contextmanager
def _reported() -> Iterator[None]:
    with reported():
        try:
            yield
        except traces.TraceError as error:
            raise BadUsage(str(error)) from None


@app.command("make")
def make(
    kind: Annotated[str, typer.Option(help=f"{', '.join(traces.KINDS)}.", show_default=False)],
    mean: Annotated[str, typer.Option(help='Mean rate, such as "10 Mbit/s".', show_default=False)],
    length: Annotated[str, typer.Option(help='Length, such as "30 s".', show_default=False)],
    out: Out,
    seed: Annotated[int, typer.Option(min=0, help="What random kinds are drawn from.")] = 1,
) -> None:
    """Make a trace: the same kind, mean, length and seed give the same file everywhere."""
    with _reported():
        traces.write(out, traces.make(kind, traces.rate_of(mean), traces.length_of(length), seed))


@app.command("info")
def info(file: File, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Say how long a trace is, and how fast."""
    with _reported():
        found = traces.info(traces.read(file))
        if as_json:
            typer.echo(json.dumps(found._asdict(), indent=2))
            return
        table = plain_table(str(file), "")
        table.add_row("length", f"{found.length_s:g} s")
        table.add_row("opportunities of 1500 B", str(found.opportunities))
        table.add_row("mean rate", _rate(found.mean_bps))
        table.add_row("least in one second", _rate(found.min_1s_bps))
        table.add_row("most in one second", _rate(found.max_1s_bps))
        console().print(table)


def _rate(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.3f} Mbit/s"


@app.command("import")
def import_(
    file: File,
    from_: Annotated[Format, typer.Option("--from", help="What FILE is: csv has lines of seconds, bit/s.")],
    out: Out,
) -> None:
    """Make a trace of a recording, or check one that exists already."""
    with _reported():
        times = traces.read_csv(file) if from_ is Format.CSV else traces.read(file)
        traces.write(out, times)
