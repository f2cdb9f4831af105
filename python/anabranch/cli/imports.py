"""``anabranch import``: results of other programs as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch import netperfmeter
from anabranch.cli.outcome import BadUsage, reported

app = typer.Typer(
    name="import",
    help="Read the results of other programs into tables for pandas, R or DuckDB.",
    no_args_is_help=True,
)


@app.callback()
def _root() -> None:
    pass


@app.command("netperfmeter")
def from_netperfmeter(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of one kind: .sca, .vec, either with .bz2.")
    ],
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="The table to write: Parquet, or CSV with the end .csv."),
    ],
) -> None:
    """Write scalars, or vectors, of NetPerfMeter as one table (docs/netperfmeter.md)."""
    with reported():
        try:
            table = netperfmeter.read(*files)
            table.write(to)
        except netperfmeter.NetPerfMeterError as error:
            raise BadUsage(str(error)) from None
        except OSError as error:
            raise BadUsage(f"--to {to}: {error.strerror or error}") from None
        typer.echo(f"{table.kind}: {table.rows} rows in {to}")
