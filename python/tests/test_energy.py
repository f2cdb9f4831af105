"""Energy and memory in run folders, tables and plots."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import anabranch as ab
from anabranch.compare import collect
from anabranch.plots import draw
from anabranch.results import Subject
from support import TWO_PATHS, Command

PHONE = Subject(node="S", link="s-r1")
METERED = """
[measure]
memory = true

[[interface]]
node = "S"
link = "s-r1"
radio = "wifi"

[[interface]]
node = "S"
link = "s-r2"
radio = "lte"
"""


@pytest.fixture
def run(tmp_path: Path) -> ab.Run:
    """A run with interfaces and memory."""
    path = tmp_path / "metered.toml"
    path.write_text(TWO_PATHS + METERED, encoding="utf-8")
    return ab.load(path).run(out=tmp_path / "out")


def test_figures_and_series_of_interfaces_and_nodes_are_read_back(run: ab.Run) -> None:
    energy = run.summary["interfaces"]["S"]["s-r1"]
    figures = {(one.subject, one.metric): one.value for one in run.figures}
    assert figures[PHONE, "energy_linear_j"] == energy["energy_linear_j"] > 0
    power = run.series.of("power_linear_w")[PHONE]
    # The bins have 100 ms.
    assert power.values.sum() * 0.1 == pytest.approx(energy["energy_linear_j"])
    assert run.summary["nodes"]["S"]["send_memory_peak_bytes"] > 0
    assert Subject(node="D") in run.series.of("receive_memory_bytes")
    assert (str(PHONE), str(Subject(node="S"))) == ("interface S/s-r1", "node S")


def test_the_long_table_has_a_column_for_nodes(run: ab.Run) -> None:
    frame = run.series.to_polars()
    assert frame.columns == ["time_s", "connection", "subflow", "link", "node", "metric", "value"]
    of_phone = frame.filter((pl.col("node") == "S") & (pl.col("link") == "s-r2"))
    assert set(of_phone["metric"]) == {"power_linear_w", "power_huang_w"}


def test_energy_is_among_the_usual_figures_and_in_the_plots(
    anabranch: Command, run: ab.Run, tmp_path: Path
) -> None:
    done = anabranch("compare", run.path)
    assert done.returncode == 0, done.stderr
    assert "interface S/s-r1" in done.stdout
    assert "energy huang J" in done.stdout
    names = {path.name for path in draw(collect([run.path]).variants, tmp_path / "plots")}
    assert {"power.svg", "send-memory.svg", "receive-memory.svg"} <= names


def test_radios_are_listed(anabranch: Command) -> None:
    done = anabranch("list", "radios", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["name"] for one in json.loads(done.stdout)["radios"]] == ["wifi", "lte", "3g"]
