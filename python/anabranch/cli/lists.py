"""``anabranch list``: what a scenario can name, and the scenarios there are."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from anabranch import _engine
from anabranch.cli.outcome import BadUsage, reported
from anabranch.cli.show import console, plain_table


class Kind(StrEnum):
    """What can be listed."""

    CONGESTION = "congestion"
    SCHEDULERS = "schedulers"
    PATH_MANAGERS = "path-managers"
    LINKS = "links"
    RADIOS = "radios"
    SCENARIOS = "scenarios"


def list_names(
    kind: Annotated[
        Kind | None,
        typer.Argument(
            metavar="KIND",
            help="congestion, schedulers, path-managers, links, radios or scenarios; all unless given.",
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where scenario files lie.")] = Path("scenarios"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what a scenario can name: congestion controls, schedulers, links and so on; and scenario files."""
    with reported():
        if kind is Kind.SCENARIOS and not folder.is_dir():
            raise BadUsage(f"{folder}: no such folder; give the one with scenario files by --folder")
        kinds = list(Kind) if kind is None else [kind]
        rows = {kind.value: _rows(kind, folder) for kind in kinds}
        if as_json:
            typer.echo(json.dumps(rows, indent=2))
            return
        out = console()
        for name, entries in rows.items():
            out.print(_table(name, entries))


def _rows(kind: Kind, folder: Path) -> Sequence[Any]:
    sources: dict[Kind, Callable[[], Sequence[Any]]] = {
        Kind.CONGESTION: _engine.list_algorithms,
        Kind.SCHEDULERS: _engine.list_schedulers,
        Kind.PATH_MANAGERS: _engine.list_path_managers,
        Kind.LINKS: _engine.list_links,
        Kind.RADIOS: _engine.list_radios,
        Kind.SCENARIOS: lambda: [_scenario(path) for path in sorted(folder.rglob("*.toml"))],
    }
    return sources[kind]()


def _scenario(path: Path) -> dict[str, str]:
    try:
        title = tomllib.loads(path.read_text(encoding="utf-8")).get("title", "")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        title = "(not readable; see anabranch check)"
    return {"name": str(path), "title": str(title)}


def _table(name: str, entries: Sequence[dict[str, Any]]) -> Table:
    if name in (Kind.SCHEDULERS, Kind.PATH_MANAGERS):
        table = plain_table(name, "what it is", "checked", "parameters (default)")
        for entry in entries:
            table.add_row(entry["name"], entry["title"], entry["tag"], _parameters(entry))
        return table
    if name != Kind.CONGESTION:
        table = plain_table(name, "what it is")
        for entry in entries:
            table.add_row(entry["name"], entry["title"])
        return table
    table = plain_table(name, "what it is", "kind", "hosts", "checked", "parameters (default)")
    for entry in entries:
        kind = f"{'coupled ' if entry['coupled'] else ''}{entry['kind']}"
        table.add_row(
            entry["name"],
            entry["title"],
            kind,
            ", ".join(entry["hosts"]),
            entry["tag"],
            _parameters(entry),
        )
    return table


def _parameters(entry: dict[str, Any]) -> str:
    return ", ".join(f"{param['name']} ({param['default']})" for param in entry["params"])
