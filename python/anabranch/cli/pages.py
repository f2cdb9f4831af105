"""``anabranch pages``, which ``make pages`` calls."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from anabranch import algorithm_pages, policy_pages
from anabranch.cli.outcome import BadUsage, ended_by_sigterm, reported


def pages(
    only: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Congestion controls, schedulers, path managers; all unless given."
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the documentation lies.")] = Path("docs"),
    scenarios: Annotated[Path, typer.Option(help="Where scenario files lie.")] = Path("scenarios"),
) -> None:
    """Measure congestion controls, schedulers and path managers; write tables and plots into their pages."""
    from anabranch.algorithm_plots import draw

    with reported(), ended_by_sigterm():
        algorithms = algorithm_pages.names()
        policies = {kind.folder: kind.names() for kind in policy_pages.KINDS}
        known = {*algorithms, *(name for names in policies.values() for name in names)}
        for name in only or ():
            if name not in known:
                raise BadUsage(f"no congestion control, scheduler or path manager is called {name}")
        for name in algorithms:
            if only is None or name in only:
                part = algorithm_pages.measured(name, scenarios)
                draw(name, scenarios, folder / "figures" / "algorithms")
                _write(folder / "algorithms" / f"{name}.md", part, "Measured")
        for kind in policy_pages.KINDS:
            if only is None or any(name in only for name in policies[kind.folder]):
                _write_policies(kind, folder / kind.folder, scenarios)


def _write_policies(kind: policy_pages.Kind, folder: Path, scenarios: Path) -> None:
    names = kind.names()
    with tempfile.TemporaryDirectory() as out:
        measured = policy_pages.measure(kind, sorted({*names, kind.baseline}), scenarios, Path(out))
    for name in names:
        _write(folder / f"{name}.md", policy_pages.part(kind, name, measured), policy_pages.HEADING)
    _write(folder / "README.md", policy_pages.summary(kind, measured), policy_pages.HEADING)


def _write(page: Path, part: str, heading: str) -> None:
    try:
        text = page.read_text(encoding="utf-8")
        page.write_text(algorithm_pages.document(text, page.stem, part, heading), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadUsage(f"{page}: {error}") from error
    typer.echo(page)
