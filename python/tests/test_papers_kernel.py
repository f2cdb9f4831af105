"""``anabranch reproduce --engine kernel``: what is run, what counts and is written; a short real check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from anabranch.cli import reproduce_kernel as command
from anabranch.cli.commands import app
from anabranch.equilibrium import figure
from anabranch.experiment import Experiment
from anabranch.papers import ON_KERNEL
from anabranch.papers.claims import claims
from anabranch.papers.document import end
from anabranch.papers.judging import GAIN, above
from anabranch.papers.kernel import Impossible, OnKernel, experiments, figures, real_time_s
from anabranch.papers.kernel_document import begin
from anabranch.papers.model import Cell, Measured, Outcome, Paper, Planned, Rule, Table, trace_metrics
from anabranch.results import Run, Subject
from support import REPOSITORY

#: A real check may have to repeat runs; this is an upper bound and not what it takes.
LIMIT_S = 400


def _extract(_cell: Cell, run: Run) -> dict[str, float]:
    goodput_bps = figure(run, Subject("meter"), "goodput_bps")
    series = next(one for one in run.series.all if one.metric == "goodput_bps")
    return {"goodput_bps": goodput_bps} | trace_metrics("goodput", series.times_s, series.values)


def _judge(measured: Measured) -> Outcome:
    ratio = measured.ratio(("rate", "wide"), ("rate", "narrow"), "goodput_bps")
    return above(ratio, 1.0, "goodput of wide over narrow", GAIN)


@pytest.fixture
def on_kernel(scenario: Path) -> OnKernel:
    """A paper with the claims of STCP; all but the last are that a wider link carries more."""

    def plan(quick: bool) -> list[Planned]:
        wide = Experiment(scenario).with_(duration="2 s")
        narrow = wide.with_(**{"link.path1.rate": "0.5 Mbit/s"})
        seeds = 2 if quick else 3
        cells = {"wide": wide, "narrow": narrow, "again": wide}
        return [Planned(("rate", name), experiment, seeds) for name, experiment in cells.items()]

    rules = tuple(Rule(claim.id, "goodput", "less goodput", _judge) for claim in claims("stcp"))
    paper = Paper("S1", "stcp", "A paper", plan, _extract, rules, (), ())
    *judged, last = (claim.id for claim in claims("stcp"))
    needs: dict[str, tuple[Cell, ...]] = dict.fromkeys(judged, (("rate",),))
    impossible = (Impossible("a token ring", "is not there"),)
    table = Table("Cells", "By name.", lambda measured: [["name"], *([cell[1]] for cell in measured.cells())])
    untested = {last: "no kernel does that"}
    return OnKernel(paper, plan, needs, untested, ("goodput_bps",), impossible, tables=(table,))


Invoke = Callable[..., Result]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, on_kernel: OnKernel, fake_bed: Path) -> Invoke:
    """The command with that paper alone, and a program in place of the test bed."""
    assert not fake_bed.exists()
    monkeypatch.setattr(command, "ON_KERNEL", (on_kernel,))

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, ["reproduce", "--engine", "kernel", *map(str, arguments)])

    return run


@pytest.mark.parametrize("one", ON_KERNEL, ids=lambda one: str(one.paper.name))
def test_every_claim_is_judged_or_has_a_reason(one: OnKernel) -> None:
    names = {claim.id for claim in claims(one.paper.name)}
    assert set(one.needs) | set(one.untested) == names
    assert not set(one.needs) & set(one.untested)
    beginnings = {words for needed in one.needs.values() for words in needed}
    cells = [planned.cell for planned in one.plan(False)]
    assert all(any(cell[: len(words)] == words for cell in cells) for words in beginnings)


@pytest.mark.parametrize("one", ON_KERNEL, ids=lambda one: str(one.paper.name))
def test_the_plans_have_cells_of_the_paper_and_end_within_the_hour(one: OnKernel) -> None:
    kinds = {planned.cell[0] for planned in one.paper.plan(False)}
    for quick, most_s in ((True, 360.0), (False, 3600.0)):
        plan = one.plan(quick)
        assert {planned.cell[0] for planned in plan} <= kinds | set(one.own_kinds)
        assert 0.0 < real_time_s(plan) <= most_s
        assert all(planned.seeds >= 2 for planned in plan)


@pytest.mark.parametrize("one", [one for one in ON_KERNEL if one.needs], ids=lambda one: str(one.paper.name))
def test_the_shorter_plan_judges_a_claim(one: OnKernel) -> None:
    cells = [planned.cell for planned in one.plan(True)]
    judged = [
        claim
        for claim, needed in one.needs.items()
        if all(any(cell[: len(words)] == words for cell in cells) for words in needed)
    ]
    assert judged


def test_mpcoa_runs_pcdc_with_the_subflows_of_the_paper() -> None:
    (mpcoa,) = (one for one in ON_KERNEL if one.paper.name == "mpcoa")
    backups: dict[tuple[str, str], set[str]] = {}
    for planned in mpcoa.plan(False):
        kind, site, manager, congestion, _buffer = planned.cell
        assert (kind, site) == ("buffer", "srl-hu")
        (connection,) = json.loads(planned.experiment.scenario.canonical)["connection"]
        assert connection["path_manager"] == "fullmesh"
        silent = {one["name"] for one in connection["subflow"] if one.get("backup")}
        assert backups.setdefault((manager, congestion), silent) == silent, "with every buffer"
    assert backups["fullmesh", "hybla"] == set()
    assert backups["pcdc", "hybla"] == {"P-C", "P-CU", "T-C", "T-CU"}, "table 3"


def test_cells_with_the_same_scenario_are_run_once(on_kernel: OnKernel) -> None:
    plan = on_kernel.plan(False)
    assert [seeds for _, seeds in experiments(plan).values()] == [3, 3]
    assert real_time_s(plan) == 12.0


def test_both_engines_are_judged_by_the_same_rules(invoke: Invoke, fake_bed: Path, tmp_path: Path) -> None:
    result = invoke("stcp", "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["papers"]
    assert found["seeds"] == [1, 2, 3]
    assert found["lost"] == []
    assert [one["cell"][1] for one in found["cells"]] == ["wide", "narrow", "again"]
    assert all(one["metric"] == "goodput_bps" and one["sim"] == one["kernel"] for one in found["cells"])
    *judged, last = found["claims"]
    for row in judged:
        assert row["sim"]["verdict"] == row["kernel"]["verdict"] == "reproduced"
        # The stand-in has the simulator make the runs.
        assert row["sim"] == row["kernel"]
    assert last["kernel"] == {
        "ours": "-",
        "low": None,
        "high": None,
        "verdict": "not testable",
        "why": "no kernel does that",
    }
    assert fake_bed.read_text(encoding="utf-8").count("--seeds 3") == 2, "once for each scenario"


def test_a_run_that_does_not_count_is_repeated_named_and_in_no_figure(
    invoke: Invoke, fake_bed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BED", "loses the second")
    document = tmp_path / "papers-kernel.md"
    document.write_text(f"Before.\n{begin('stcp')}\nold\n{end('stcp')}\nAfter.\n", encoding="utf-8")
    result = invoke("stcp", "--out", tmp_path / "out", "--write", document)
    assert result.exit_code == 0, result.output
    assert fake_bed.read_text(encoding="utf-8").count("--seeds 3") == 4, "each scenario once more"
    assert "does not count: rate, narrow, seed 2: lateness p99 3.1 ms, above 2 ms" in result.stdout
    text = document.read_text(encoding="utf-8")
    assert text.startswith(f"Before.\n{begin('stcp')}\n\nOf 7 claims 6 judged on the kernel: 6 reproduced; ")
    assert "6 of 6 as simulated" in text
    assert text.endswith(f"{end('stcp')}\nAfter.\n")
    assert "old" not in text
    assert "of 6 runs 2 do not count. Judged are the seeds that count in every cell: 1, 3." in text
    assert "  - rate, wide, seed 2: lateness p99 3.1 ms, above 2 ms" in text
    assert text.count("| rate, wide; rate, again | ") == 1, "the same runs, once"
    assert text.count("| rate, narrow | ") == 1
    assert "| S1-C7 | no kernel does that |" in text
    assert "| a token ring | is not there |" in text
    assert "**Cells.** By name.\n\n| engine | name |" in text
    assert "| simulator | again |\n| kernel | wide |" in text, "one table of both engines"


def test_a_level_without_enough_runs_is_left_out_with_all_its_cells(
    on_kernel: OnKernel, tmp_path: Path
) -> None:
    plan = [*on_kernel.plan(False)[:2], Planned(("other", "wide"), on_kernel.plan(False)[0].experiment, 3)]
    runs = {}
    for number, (key, (experiment, repetitions)) in enumerate(experiments(plan).items()):
        made = list(experiment.run(seeds=range(1, repetitions + 1), out=tmp_path))
        for run in made[number:] if number else []:
            run.manifest["environment"] = {"invalid": ["late"]}
        runs[key] = made
    measured, seeds, lost, left_out = figures(on_kernel.paper, plan, runs)
    assert left_out == (("rate", "wide"), ("rate", "narrow"))
    assert [one.seed for one in lost] == [2, 3]
    assert measured.cells() == [("other", "wide")]
    assert measured.metrics(("other", "wide")) == ["goodput_bps"], "traces are not averaged over runs"
    assert seeds == (1, 2, 3)


def test_complete_runs_are_reused(invoke: Invoke, tmp_path: Path) -> None:
    first = invoke("stcp", "--quick", "--json", "--out", tmp_path)
    again = invoke("all", "--quick", "--json", "--out", tmp_path)
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    # Two scenarios with two seeds, on both engines.
    assert len(list(tmp_path.rglob("run.json"))) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mpcoa"], "mpcoa: not measured on the kernel; expected one of stcp, or all"),
        (["stpc"], "did you mean stcp?"),
        (["stcp", "--quick", "--write", "papers.md"], "--write: expected the whole reproduction"),
        (["stcp", "--write", "no/papers.md"], "--write no/papers.md: No such file"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch,
    on_kernel: OnKernel,
    invoke: Invoke,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    unplanned = replace(on_kernel, plan=lambda _quick: pytest.fail("planned"))
    monkeypatch.setattr(command, "ON_KERNEL", (unplanned,))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.rglob("run.json"))


def test_a_backup_carries_nothing_on_this_machines_kernel_either(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "anabranch", "reproduce", "ee-mptcp", "--engine", "kernel", "--quick"]
    arguments += ["--json", "--out", str(tmp_path)]
    until = time.monotonic() + LIMIT_S
    while True:
        done = subprocess.run(
            arguments, cwd=REPOSITORY, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if "another bed runs" not in done.stderr or time.monotonic() > until:
            break
        time.sleep(1)
    required = "bed" in os.environ.get("ANABRANCH_REQUIRE", "").split(",")
    if done.returncode == 4 and not required:
        pytest.skip(done.stderr.removeprefix("skipped: ").strip())
    assert done.returncode == 0, done.stderr + done.stdout
    (found,) = json.loads(done.stdout)["papers"]
    if len(found["seeds"]) < 2:
        pytest.skip(f"too few runs on the kernel count on this machine now: {found['lost']}")
    shares = {tuple(one["cell"][:2]): one for one in found["cells"] if one["metric"] == "wlan_share"}
    default, subset = shares["testbed", "minrtt"], shares["testbed, subset", "WLAN"]
    for engine in ("sim", "kernel"):
        assert default[engine] < 0.95, "both paths carry data"
        # Where WLAN loses so much that it stands still, the backup steps in for a while.
        assert subset[engine] > 0.95
