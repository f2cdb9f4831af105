"""Coupling: the report's rule, and that it tells coupled from uncoupled controls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.coupling import HOSTS, Case, cases, measure, report
from support import REPOSITORY, Command

FOLDER = REPOSITORY / "scenarios/coupling"
SIM, AS_LINUX, _ = HOSTS


def of(scenario: str, congestion: str) -> Case:
    return next(case for case in cases(FOLDER, [congestion]) if case.name == scenario)


@pytest.mark.parametrize("scenario", [path.stem for path in sorted(FOLDER.glob("shared-*.toml"))])
def test_a_shared_bottleneck_tells_coupled_from_uncoupled(scenario: str, tmp_path: Path) -> None:
    for congestion, other in [("lia", "reno"), ("reno", "lia")]:
        measured = measure(of(scenario, congestion), [SIM], 5, tmp_path)
        assert measured.is_met(SIM), (congestion, measured.value(SIM))
        swapped = replace(measured, case=replace(measured.case, congestion=other))
        assert not swapped.is_met(SIM), "the other algorithm's bounds must refuse it"


@pytest.mark.parametrize("scenario", [path.stem for path in sorted(FOLDER.glob("disjoint-*.toml"))])
def test_disjoint_bottlenecks_are_used(scenario: str, tmp_path: Path) -> None:
    measured = measure(of(scenario, "lia"), [SIM], 2, tmp_path)
    assert measured.is_met(SIM), measured.value(SIM)


def test_bursts_of_linux_for_a_subflow_with_a_small_window_cost_olia_a_share(tmp_path: Path) -> None:
    case = of("shared-30mbit-10ms", "olia")
    hurried = replace(case, settings=(("transport.delayed_ack", "off"),))
    values = [
        measure(one, [host], 7, tmp_path).value(host)
        for one, host in [(case, SIM), (case, AS_LINUX), (hurried, AS_LINUX)]
    ]
    plain, bursts, without_delay = (value.mean for value in values if value is not None)
    assert bursts < 0.85 * plain
    assert without_delay > 0.9 * plain


@pytest.mark.parametrize("scenario", [path.stem for path in sorted(FOLDER.glob("shared-*.toml"))])
def test_a_least_window_of_two_gives_olia_its_share_with_the_scheduler_of_linux(
    scenario: str, tmp_path: Path
) -> None:
    measured = measure(of(scenario, "olia, least_window 2"), [AS_LINUX], 7, tmp_path)
    assert measured.is_met(AS_LINUX), measured.value(AS_LINUX)


def test_a_value_out_of_bounds_is_bold_and_counted(tmp_path: Path) -> None:
    measured = measure(of("shared-20mbit-20ms", "reno"), [SIM], 2, tmp_path)
    good = report([measured], [SIM])
    assert "1 of 1 as wanted" in good
    bad = report([replace(measured, case=replace(measured.case, congestion="lia"))], [SIM])
    assert "0 of 1 as wanted" in bad
    assert "**" in bad.partition("lia | 0.8 to 1.2")[2]


def test_the_command_writes_its_part_of_a_document_only(anabranch: Command, tmp_path: Path) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    text = (FOLDER / "disjoint-20-20.toml").read_text(encoding="utf-8")
    (folder / "disjoint-20-20.toml").write_text(text.replace("20 s", "5 s", 1), encoding="utf-8")
    document = tmp_path / "document.md"
    document.write_text("Words.\n", encoding="utf-8")
    arguments = ["--engine", "sim", "--seeds", "2", "--scenarios", folder, "--out", tmp_path / "out"]
    refused = anabranch("coupling", *arguments, "--write", document)
    assert refused.returncode == 2
    assert "expected a line <!-- Generated" in refused.stderr
    document.write_text("Words.\n<!-- Generated from here on: make coupling -->\nold\n", encoding="utf-8")
    result = anabranch("coupling", *arguments, "--write", document)
    assert result.returncode == 0, result.stderr
    written = document.read_text(encoding="utf-8")
    assert written.startswith("Words.\n<!-- Generated")
    assert "old" not in written
    assert "| `disjoint-20-20` | lia | at least 0.9 |" in written
    assert json.loads(next((tmp_path / "out").rglob("run.json")).read_text(encoding="utf-8"))
