"""The commands of ``anabranch``, and the application that they make up."""

from __future__ import annotations

import typer

from anabranch._engine import VERSION
from anabranch.cli import (
    agreement,
    bench,
    compare,
    coupling,
    export,
    imports,
    lists,
    pages,
    report,
    reproduce,
    scenario,
    sweep,
    trace,
    transfer_figures,
    tune,
)

app = typer.Typer(
    name="anabranch",
    help="A laboratory for multipath transport: simulate, compare, repeat.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(lists.list_names)
app.command("check")(scenario.check)
app.command("run")(scenario.run)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("report")(report.report)
app.command("export")(export.export)
app.command("tune")(tune.tune)
app.command("reproduce")(reproduce.reproduce)
app.command("bench", hidden=True)(bench.bench)
app.command("agreement", hidden=True)(agreement.agreement)
app.command("coupling", hidden=True)(coupling.coupling)
app.command("transfer-figures", hidden=True)(transfer_figures.transfer_figures)
app.command("pages", hidden=True)(pages.pages)
app.add_typer(trace.app)
app.add_typer(imports.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"anabranch {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass
