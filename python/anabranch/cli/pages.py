"""``anabranch pages``, which ``make pages`` calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.algorithm_pages import document, measured, names
from anabranch.cli.outcome import BadUsage, ended_by_sigterm, reported


def pages(
    only: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Congestion controls; all unless given.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the pages lie.")] = Path("docs/algorithms"),
    scenarios: Annotated[Path, typer.Option(help="Where scenario files lie.")] = Path("scenarios"),
) -> None:
    """Measure congestion controls and write tables and plots into their pages."""
    from anabranch.algorithm_plots import draw

    with reported(), ended_by_sigterm():
        known = names()
        for name in only or known:
            if name not in known:
                raise BadUsage(f"no congestion control of the registry is called {name}")
        for name in only or known:
            page = folder / f"{name}.md"
            try:
                text = page.read_text(encoding="utf-8")
                text = document(text, name, measured(name, scenarios))
            except (OSError, ValueError) as error:
                raise BadUsage(f"{page}: {error}") from error
            draw(name, scenarios, folder.parent / "figures" / "algorithms")
            page.write_text(text, encoding="utf-8")
            typer.echo(page)
