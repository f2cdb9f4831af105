"""``anabranch reproduce``: what it runs, prints and writes, with a paper of two small cells."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner, Result

from anabranch import papers
from anabranch.cli import reproduce as command
from anabranch.cli.commands import app
from anabranch.equilibrium import figure
from anabranch.experiment import Experiment
from anabranch.papers.claims import claims
from anabranch.papers.document import begin, end
from anabranch.papers.drawing import bars, finish, in_rows, intervals, panels, style
from anabranch.papers.judging import GAIN, above
from anabranch.papers.model import Cell, Measured, Outcome, Paper, Planned, Plot, Rule, Table
from anabranch.papers.reproduction import measure, reproduce, simulated_s
from anabranch.results import Run, Subject


def _extract(_cell: Cell, run: Run) -> dict[str, float]:
    return {"goodput_bps": figure(run, Subject("meter"), "goodput_bps")}


def _judge(measured: Measured) -> Outcome:
    ratio = measured.ratio(("wide",), ("narrow",), "goodput_bps")
    return above(ratio, 1.0, "goodput of [wide] over [narrow]", GAIN)


def _draw(measured: Measured) -> Figure:
    drawn, axes = panels()
    bars(axes[0], measured, {"wide": ("wide",), "narrow": ("narrow",)}, "goodput_bps", factor=1e-6)
    return finish(drawn, axes, ["goodput (Mbit/s)"])


def _rows(measured: Measured) -> list[list[str]]:
    return [["cell", "Mbit/s"]] + [
        [cell[0], f"{measured.mean(cell, 'goodput_bps').mean / 1e6:.2f}"] for cell in measured.cells()
    ]


@pytest.fixture
def paper(scenario: Path) -> Paper:
    """A paper with the claims of STCP, all of them that a wider link carries more."""

    def plan(quick: bool) -> list[Planned]:
        wide = Experiment(scenario)
        narrow = wide.with_(**{"link.path1.rate": "0.5 Mbit/s"})
        seeds = 3 if quick else 4
        return [Planned(("wide",), wide, seeds), Planned(("narrow",), narrow, seeds)]

    rules = tuple(Rule(claim.id, "goodput", "less goodput", _judge) for claim in claims("stcp"))
    plot = Plot("goodput", "figure 1", "Goodput", _draw)
    table = Table("Rates", "Of both.", _rows)
    return Paper("S1", "stcp", "A paper", plan, _extract, rules, (plot,), (table,))


def _invoke(monkeypatch: pytest.MonkeyPatch, paper: Paper, *arguments: object) -> Result:
    monkeypatch.setattr(papers, "PAPERS", (paper,))
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_the_command_names_every_paper_without_loading_them() -> None:
    assert [paper.name for paper in papers.PAPERS] == [*command.NAMES]
    loaded = "import sys, anabranch.cli; print([name for name in sys.modules if 'matplotlib' in name])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_json_has_a_row_for_every_claim(
    monkeypatch: pytest.MonkeyPatch, paper: Paper, tmp_path: Path
) -> None:
    result = _invoke(monkeypatch, paper, "all", "--quick", "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["papers"]
    assert found["paper"] == "stcp"
    assert [row["id"] for row in found["claims"]] == [claim.id for claim in claims("stcp")]
    assert set(found["claims"][0]) == {"id", "claim", "paper", "ours", "low", "high", "verdict", "why"}
    assert {row["verdict"] for row in found["claims"]} == {"reproduced"}
    assert all(row["low"] > 1.0 for row in found["claims"])


def test_the_table_shows_claims_and_counts_verdicts(
    monkeypatch: pytest.MonkeyPatch, paper: Paper, tmp_path: Path
) -> None:
    result = _invoke(monkeypatch, paper, "stcp", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "of 7 claims 7 reproduced; 6 runs" in result.stdout
    assert "[wide]" in result.stdout, "brackets are not markup"
    assert (tmp_path / "plots/stcp-goodput.svg").is_file()


def test_swapping_two_cells_refutes_the_order(paper: Paper, tmp_path: Path) -> None:
    done = reproduce(paper, tmp_path, quick=True)
    assert {one.outcome.verdict for one in done.claims} == {"reproduced"}
    swapped = done.measured.swapped("wide", "narrow")
    assert {rule.judge(swapped).verdict for rule in paper.rules} == {"not reproduced"}


def test_cells_with_the_same_scenario_share_their_runs(paper: Paper, tmp_path: Path) -> None:
    wide, narrow = paper.plan(True)
    plan = [wide, narrow, Planned(("again",), wide.experiment, 4)]
    measured = measure(paper, plan, tmp_path)
    assert simulated_s(plan) == 7 * wide.experiment.scenario.duration_s
    assert len(list(tmp_path.rglob("run.json"))) == 7
    assert measured.of(("again",), "goodput_bps")[:3] == measured.of(("wide",), "goodput_bps")
    assert measured.of(("narrow",), "goodput_bps") != measured.of(("wide",), "goodput_bps")


def test_the_document_has_its_part_replaced_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, paper: Paper, tmp_path: Path
) -> None:
    document = tmp_path / "papers.md"
    document.write_text(f"Before.\n{begin('stcp')}\nold\n{end('stcp')}\nAfter.\n", encoding="utf-8")
    result = _invoke(monkeypatch, paper, "stcp", "--out", tmp_path, "--write", document)
    assert result.exit_code == 0, result.output
    text = document.read_text(encoding="utf-8")
    assert text.startswith(f"Before.\n{begin('stcp')}\n\nOf 7 claims 7 reproduced.")
    assert text.endswith(f"{end('stcp')}\nAfter.\n")
    assert "old" not in text
    assert "| wide |" in text
    (link,) = re.findall(r"!\[Goodput\]\((.*)\)", text)
    assert (tmp_path / link).is_file()
    drawn = (tmp_path / link).read_bytes()
    assert _invoke(monkeypatch, paper, "stcp", "--out", tmp_path, "--write", document).exit_code == 0
    assert document.read_text(encoding="utf-8") == text
    assert (tmp_path / link).read_bytes() == drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stpc"], "stpc: no such paper; there are stcp, and all; did you mean stcp?"),
        (["stcp", "--quick", "--write", "papers.md"], "--write: expected the whole reproduction"),
        (["stcp", "--write", "no/papers.md"], "--write no/papers.md: No such file"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch, paper: Paper, tmp_path: Path, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = _invoke(monkeypatch, replace(paper, plan=lambda _quick: pytest.fail("planned")), *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.rglob("run.json"))


def test_a_document_without_the_markers_is_refused(
    monkeypatch: pytest.MonkeyPatch, paper: Paper, tmp_path: Path
) -> None:
    document = tmp_path / "papers.md"
    document.write_text("Words.\n", encoding="utf-8")
    result = _invoke(monkeypatch, paper, "stcp", "--write", document)
    assert result.exit_code == 2
    assert f"expected a line {begin('stcp')}" in result.output


def test_lines_that_lie_upon_each_other_are_all_seen() -> None:
    styles = [style(number) for number in range(5)]
    widths = [one["linewidth"] for one in styles]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 5
    assert len({one["color"] for one in styles}) == 5
    figure, (axes,) = panels()
    for label in ("first", "second"):
        intervals(axes, [1.0, 2.0], [3.0, 3.0], [0.1, 0.1], label)
    first, second = axes.get_lines()[0], axes.get_lines()[3]
    assert first.get_linewidth() > second.get_linewidth()
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()
    assert finish(figure, [axes], ["y"]).legends


@pytest.mark.parametrize(
    ("names", "width", "ordered", "columns"),
    [
        (["a", "b", "c"], 9.0, ["a", "b", "c"], 3),
        (["one", "two", "three", "four", "five"], 3.0, ["one", "four", "two", "five", "three"], 3),
        (["round-robin that waits"] * 2, 3.0, ["round-robin that waits"] * 2, 1),
    ],
)
def test_a_legend_is_read_in_rows(names: list[str], width: float, ordered: list[str], columns: int) -> None:
    assert in_rows(names, width) == (ordered, columns)
