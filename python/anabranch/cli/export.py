"""``anabranch export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.outcome import reported
from anabranch.results import open_run


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder with packets (--capture).")],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The pcap file to write.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="NODE", help="Whose view; the first connection's opener unless given."),
    ] = None,
) -> None:
    """Write what one host sees of a run's packets as classic pcap, for programs that follow TCP."""
    with reported():
        host, packets = open_run(run).export_packets(to, at)
        typer.echo(f"{packets} packets as seen at {host}, in {to}")
