"""Comparison: who is compared with whom, and the numbers by hand."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import anabranch as ab
from anabranch.compare import Variant, collect, compare
from anabranch.results import Figure, Run, Subject
from support import Command

METER = Subject("meter")


def variant(label: str, values: dict[int, float]) -> Variant:
    """Runs with one figure, by seed."""
    runs = [
        SimpleNamespace(seed=seed, figures=(Figure(METER, "goodput_bps", value),))
        for seed, value in values.items()
    ]
    return Variant(label, tuple(cast(Run, run) for run in runs))


def test_differences_are_paired_by_seed() -> None:
    first = variant("a", {1: 10.0, 2: 20.0, 3: 30.0, 9: 1000.0})
    other = variant("b", {1: 11.0, 2: 22.0, 3: 33.0, 8: 0.0})
    (row,) = compare([first, other])
    assert row.subject == METER
    # Seeds 1, 2 and 3 are common: differences 1, 2, 3; mean 2; deviation 1; t(2) = 4.30265.
    difference = row.differences[0]
    assert difference is not None
    assert difference.size == 3
    assert difference.mean == pytest.approx(2.0)
    assert difference.half_width == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert row.estimates[0] is not None
    assert row.estimates[0].mean == pytest.approx(265.0)


def test_without_two_common_seeds_there_is_no_difference() -> None:
    (row,) = compare([variant("a", {1: 1.0, 2: 1.0}), variant("b", {2: 1.0, 3: 1.0})])
    assert row.differences == (None,)


def test_a_figure_that_a_variant_lacks_has_no_estimate() -> None:
    empty = Variant("b", (cast(Run, SimpleNamespace(seed=1, figures=())),))
    (row,) = compare([variant("a", {1: 1.0}), empty])
    assert row.estimates[1] is None
    assert row.differences == (None,)


@pytest.fixture
def out(scenario: Path, tmp_path: Path) -> Path:
    """Three seeds with LIA, as the file says, and three with Reno."""
    experiment = ab.load(scenario)
    for one in (experiment.with_(**{"connection.meter.congestion": "reno"}), experiment):
        one.run(seeds=range(1, 4), out=tmp_path / "out")
    return tmp_path / "out"


def test_a_folder_is_sorted_into_variants_with_telling_names(out: Path) -> None:
    variants, notes = collect([out])
    assert [one.label for one in variants] == ["congestion=lia", "congestion=reno"]
    assert [one.seeds for one in variants] == [(1, 2, 3), (1, 2, 3)]
    assert notes == ()
    reno = variants[1].runs[0].path.parent
    assert [one.label for one in collect([reno, out]).variants] == ["congestion=reno", "congestion=lia"]
    assert [one.label for one in collect([reno]).variants] == ["two-paths"]


def test_runs_of_other_versions_are_left_out_and_said_so(out: Path) -> None:
    old = out / "old"
    shutil.copytree(next(out.glob("two-paths/*/seed-1")), old)
    manifest = json.loads((old / "run.json").read_text(encoding="utf-8"))
    manifest["version"], manifest["key"] = "0.0.1", "0" * 64
    (old / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    variants, notes = collect([out])
    assert len(variants) == 2
    assert len(notes) == 1
    assert "1 runs of other versions" in notes[0]
    assert len(collect([old]).variants) == 1


def test_the_table_has_the_numbers_of_the_summaries(anabranch: Command, out: Path) -> None:
    done = anabranch("compare", out, "--json", "--metric", "goodput_bps")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    labels = [one["label"] for one in answer["variants"]]
    assert labels == ["congestion=lia", "congestion=reno"]
    (row,) = [one for one in answer["figures"] if one["connection"] == "meter"]
    lia, reno = (
        [json.loads((Path(run) / "summary.json").read_text(encoding="utf-8")) for run in one["runs"]]
        for one in answer["variants"]
    )
    values = [
        [summary["connections"]["meter"]["goodput_bps"] for summary in summaries] for summaries in (lia, reno)
    ]
    mean = sum(values[0]) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values[0]) / 2)
    assert row["estimates"][0]["mean"] == pytest.approx(mean)
    assert row["estimates"][0]["half_width"] == pytest.approx(4.30265 * deviation / math.sqrt(3), rel=1e-5)
    differences = [b - a for a, b in zip(*values, strict=True)]
    assert row["differences"][0]["mean"] == pytest.approx(sum(differences) / 3)
    text = anabranch("compare", out).stdout
    assert f"{mean / 1e6:.2f}"[:3] in text
    assert "paired by seed" in text


def test_labels_and_metrics_are_checked(anabranch: Command, out: Path) -> None:
    assert "MFVL" in anabranch("compare", out, "--labels", "MFVL,LIA").stdout
    done = anabranch("compare", out, "--labels", "one")
    assert done.returncode == 2
    assert "congestion=reno" in done.stderr
    done = anabranch("compare", out, "--metric", "goodput")
    assert done.returncode == 2
    assert "goodput_bps" in done.stderr


def test_plots_are_equal_to_the_byte_and_name_no_date(anabranch: Command, out: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "plots1", tmp_path / "plots2"]
    for folder in folders:
        done = anabranch("compare", out, "--plots", folder)
        assert done.returncode == 0, done.stderr
        assert str(folder) in done.stdout
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == ["cwnd.png", "cwnd.svg", "drops.png", "drops.svg", "goodput.png", "goodput.svg"]
    for name in names:
        content = (folders[0] / name).read_bytes()
        assert content == (folders[1] / name).read_bytes(), name
        assert b"<dc:date>" not in content
    done = anabranch("compare", out, "--plots", out / "two-paths" / "file")
    assert done.returncode == 0
    blocked = tmp_path / "blocked"
    blocked.write_bytes(b"")
    assert anabranch("compare", out, "--plots", blocked).returncode == 2
