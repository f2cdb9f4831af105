"""Runs: the same bytes every time, reused when complete, made again when not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anabranch as ab
from support import Command, tree


def test_equal_seeds_give_equal_bytes_with_any_number_of_jobs(scenario: Path, tmp_path: Path) -> None:
    experiment = ab.load(scenario)
    for jobs in (1, 2, 2):
        experiment.run(seeds=range(1, 5), out=tmp_path / f"out{jobs}", jobs=jobs, force=True)
    one = tree(tmp_path / "out1")
    assert one == tree(tmp_path / "out2")
    assert {Path(name).name for name in one} == {
        "run.json",
        "series.parquet",
        "summary.csv",
        "summary.json",
    }
    assert len(one) == 4 * 4
    summaries = {content for name, content in one.items() if name.endswith("summary.json")}
    assert len(summaries) == 4, "every seed gives a different run"


def test_no_file_says_where_or_when_it_was_made(scenario: Path, tmp_path: Path) -> None:
    run = ab.load(scenario).run(out=tmp_path / "out")
    for name, content in tree(run.path).items():
        assert str(tmp_path).encode() not in content, name


def test_a_complete_run_is_reused_and_force_makes_it_again(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    def run(*arguments: str) -> list[bool]:
        done = anabranch("run", scenario, "--seeds", 2, "--out", tmp_path / "out", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return [one["reused"] for one in json.loads(done.stdout)["runs"]]

    assert run() == [False, False]
    before = tree(tmp_path / "out")
    assert run() == [True, True]
    assert run("--force") == [False, False]
    assert tree(tmp_path / "out") == before
    assert "2 of them reused" in anabranch("run", scenario, "--seeds", 2, "--out", tmp_path / "out").stdout


def test_a_damaged_run_is_made_again_and_said_so(anabranch: Command, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ab.load(scenario).run(out=out)
    whole = tree(out)
    series = run.path / "series.parquet"
    series.write_bytes(series.read_bytes()[:-1])
    with pytest.raises(ab.RunFolderError, match=r"series\.parquet: \d+ bytes where"):
        ab.open_run(run.path)
    assert anabranch("compare", run.path).returncode == 2
    done = anabranch("run", scenario, "--out", out)
    assert done.returncode == 0
    assert "made again" in done.stdout
    assert tree(out) == whole


def test_other_overrides_are_another_run(scenario: Path, tmp_path: Path) -> None:
    experiment = ab.load(scenario)
    slower = experiment.with_(**{"link.path1.rate": "1 Mbit/s"})
    assert experiment.overrides == {}
    one, other = (e.run(out=tmp_path / "out") for e in (experiment, slower))
    assert one.path != other.path
    assert other.manifest["overrides"] == {"link.path1.rate": "1 Mbit/s"}
    assert goodput_bps(other) < 0.8 * goodput_bps(one)


def goodput_bps(run: ab.Run) -> float:
    """Goodput of the one connection."""
    value = run.summary["connections"]["meter"]["goodput_bps"]
    assert isinstance(value, float)
    return value


def test_summary_and_figures_agree(scenario: Path, tmp_path: Path) -> None:
    run = ab.load(scenario).run(out=tmp_path / "out")
    summary = run.summary
    for subject, metric, value in run.figures:
        if subject.link is not None:
            metrics = summary["links"][subject.link]
        elif subject.subflow is not None:
            metrics = summary["subflows"][subject.connection][subject.subflow]
        elif subject.connection is not None:
            metrics = summary["connections"][subject.connection]
        else:
            metrics = summary["run"]
        assert metrics[metric] == value


def test_series_are_the_same_in_every_library(scenario: Path, tmp_path: Path) -> None:
    series = ab.load(scenario).run(out=tmp_path / "out").series
    frame = series.to_polars()
    assert frame.columns == ["time_s", "connection", "subflow", "link", "metric", "value"]
    assert series.to_arrow().to_pydict() == frame.to_dict(as_series=False)
    assert series.to_pandas()["value"].to_list() == frame["value"].to_list()
    assert sum(len(one.values) for one in series.all) == len(frame)
    for subject, one in series.of("cwnd_packets").items():
        chosen = frame.filter(pl.col("subflow") == subject.subflow, pl.col("metric") == "cwnd_packets")
        assert np.array_equal(one.times_s, chosen["time_s"].to_numpy())
        assert np.array_equal(one.values, chosen["value"].to_numpy())


def test_progress_reaches_the_end(scenario: Path, tmp_path: Path) -> None:
    reached: list[float] = []
    ab.load(scenario).run(seeds=[1, 2, 3], out=tmp_path / "out", progress=reached.append)
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(15.0)


def test_check_says_what_is_in_a_scenario(anabranch: Command, scenario: Path) -> None:
    done = anabranch("check", scenario, "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer["name"] == "two-paths"
    assert answer["duration_s"] == 5.0
    assert answer["counts"]["subflows"] == 2
    assert "A meter with two paths" in anabranch("check", scenario).stdout


def test_list_has_every_kind(anabranch: Command) -> None:
    done = anabranch("list", "--json")
    assert done.returncode == 0
    names = {kind: [entry["name"] for entry in entries] for kind, entries in json.loads(done.stdout).items()}
    assert {"reno", "lia"} <= set(names["congestion"])
    assert {"minrtt", "roundrobin"} <= set(names["schedulers"])
    assert names["links"] == ["link", "medium"]
    for kind, entries in names.items():
        table = anabranch("list", kind, "--folder", ".").stdout
        assert all(name in table for name in entries)


def test_output_into_a_pipe_has_no_control_characters(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    done = anabranch("run", scenario, "--seeds", 2, "--out", tmp_path / "out")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


def test_output_that_knows_only_ascii_is_enough(anabranch: Command, scenario: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = anabranch("run", scenario, "--seeds", 2, "--out", tmp_path / "out", env=environment)
    assert done.returncode == 0, done.stderr
    assert "goodput Mbit/s" in done.stdout
