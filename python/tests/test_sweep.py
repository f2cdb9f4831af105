"""Sweeps: the whole grid, every figure in one table, resumed, made again, refused in time."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import polars as pl
import pytest

import anabranch as ab
from anabranch.grid import read_axis
from anabranch.sweeps import plan_sweep
from support import TWO_PATHS, Command, started, tree, wait_for

VARY = {
    "link.path1.rate": ["1 Mbit/s", "10 Mbit/s", "3 Mbit/s"],
    "connection.meter.congestion": ["lia", "reno"],
}
ARGUMENTS = [
    *("--vary", "link.path1.rate=1 Mbit/s,10 Mbit/s,3 Mbit/s"),
    *("--vary", "connection.meter.congestion=lia,reno"),
]


def test_the_table_has_every_figure_of_every_run_in_the_order_of_the_grid(
    scenario: Path, tmp_path: Path
) -> None:
    done = ab.sweep(scenario, VARY, seeds=2, out=tmp_path / "out")
    assert done.path == tmp_path / "out/two-paths/sweep.parquet"
    rows = []
    for rate in VARY["link.path1.rate"]:
        for name in VARY["connection.meter.congestion"]:
            point = ab.load(scenario).with_(**{"link.path1.rate": rate, "connection.meter.congestion": name})
            for run in point.run(seeds=[1, 2], out=tmp_path / "out"):
                assert run.reused
                rows += [(rate, name, run.seed, *subject, *rest) for subject, *rest in run.figures]
    table = done.to_arrow()
    assert table.column_names == [*VARY, "seed", "connection", "subflow", "link", "node", "metric", "value"]
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows


def test_values_are_in_the_order_of_the_grid_and_plain_numbers_are_numbers(
    scenario: Path, tmp_path: Path
) -> None:
    vary: dict[str, list[object]] = {
        "link.path1.rate": [*VARY["link.path1.rate"]],
        "transport.stale_after": [1, 2],
    }
    done = ab.sweep(scenario, vary, out=tmp_path / "out")
    frame = done.to_pandas()
    assert list(frame["link.path1.rate"].cat.categories) == VARY["link.path1.rate"]
    assert frame["link.path1.rate"].cat.ordered
    assert frame["transport.stale_after"].unique().tolist() == [1, 2]
    mean = frame[frame["metric"] == "goodput_bps"].groupby("link.path1.rate", observed=True)["value"].mean()
    assert mean.index.to_list() == VARY["link.path1.rate"]
    polars = done.to_polars()
    assert polars["value"].to_list() == frame["value"].to_list()
    assert polars["transport.stale_after"].dtype == pl.Int64


def test_estimates_are_means_over_the_seeds(scenario: Path, tmp_path: Path) -> None:
    done = ab.sweep(scenario, VARY, seeds=[3, 5, 8], out=tmp_path / "out")
    cells = [
        cell
        for cell in done.estimates(["goodput_bps"])
        if cell.subject.connection and not cell.subject.subflow
    ]
    assert [cell.values for cell in cells] == [values for values, _ in done.point_runs()]
    for cell, (_, runs) in zip(cells, done.point_runs(), strict=True):
        values = [run.summary["connections"]["meter"]["goodput_bps"] for run in runs]
        (estimate,) = cell.estimates
        assert estimate is not None
        assert estimate.mean == pytest.approx(sum(values) / 3)
        assert estimate.size == 3


def test_the_command_prints_a_row_for_each_point_and_resumes(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    command = ["sweep", scenario, *ARGUMENTS, "--seeds", 2, "--out", tmp_path / "out"]
    done = anabranch(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 points, 12 runs, 0 of them reused" in done.stdout
    assert done.stdout.count("±") == 6 + 1
    whole = tree(tmp_path / "out")
    damaged = next((tmp_path / "out").glob("two-paths/*/seed-2"))
    (damaged / "series.parquet").write_bytes(b"")
    (tmp_path / "out/two-paths/sweep.parquet").unlink()
    again = anabranch(*command)
    assert "12 runs, 11 of them reused" in again.stdout
    assert f"made again: {damaged}" in again.stdout
    assert tree(tmp_path / "out") == whole


def test_json_has_points_runs_and_chosen_figures(anabranch: Command, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    metrics = ["--metric", "mean_srtt_s", "--metric", "jain_index"]
    done = anabranch("sweep", scenario, *ARGUMENTS, "--out", out, "--json", *metrics)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["vary"] == VARY
    assert [point["values"]["link.path1.rate"] for point in answer["points"]] == [
        rate for rate in VARY["link.path1.rate"] for _ in range(2)
    ]
    for point in answer["points"]:
        assert ab.open_run(point["runs"][0]["path"]).key == point["key"]
    found = {(one["subflow"], one["metric"]) for one in answer["figures"]}
    assert found == {("p1", "mean_srtt_s"), ("p2", "mean_srtt_s"), (None, "jain_index")}
    unknown = anabranch("sweep", scenario, *ARGUMENTS, "--out", out, "--metric", "goodput")
    assert unknown.returncode == 2
    assert "goodput_bps" in unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "empty grid"),
        (["--vary", "link.path1.rat=1 Mbit/s"], 'did you mean "rate"'),
        (["--vary", "connection.meter.congestion=lia,reno,lai"], "lai"),
        (["--vary", "link.path1.rate=1 Mbit/s,3 ms"], "3 ms"),
        (["--vary", "link.path1.rate=fast:faster:1"], "'fast' is no number"),
        (["--vary", "link.path1.rate=5:1:1 Mbit/s"], "ascends"),
        (["--vary", "duration=5 s", "--vary", "duration=6 s"], "duration: given twice"),
        (["--vary", "duration=5 s", "--set", "duration=6 s"], "duration: given twice"),
        (
            ["--vary", "link.path1.rate=1 Mbit/s", "--vary", "link.2.rate=2 Mbit/s,3 Mbit/s"],
            "the same scenario",
        ),
        (["--vary", "duration=1:20000:1 s", "--seeds", "1000"], "20,000,000 runs"),
        (["--vary", "link=1,2"], "link"),
        (["--vary", "duration=5 s,6 s", "--seeds", "0"], "--seeds"),
        (["--vary", "duration=5 s,6 s", "--jobs", "0"], "--jobs"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    anabranch: Command, scenario: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    out = tmp_path / "out"
    done = anabranch("sweep", scenario, *arguments, "--out", out)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_seeds_are_at_least_one_and_each_once(scenario: Path) -> None:
    axes = [read_axis("duration=5 s")]
    for seeds, words in (([], "no seeds"), ([1, 1], "twice")):
        with pytest.raises(ab.GridError, match=words):
            plan_sweep(ab.load(scenario), axes, seeds)


def test_an_interrupted_sweep_keeps_finished_runs_and_goes_on(tmp_path: Path) -> None:
    scenario, out = tmp_path / "two-paths.toml", tmp_path / "out"
    scenario.write_text(TWO_PATHS, encoding="utf-8")
    command = ["sweep", scenario, "--vary", "duration=5 s,9000000 s", "--jobs", 2, "--out", out]
    with started(*command) as process:
        wait_for(out, "two-paths/*/seed-1")
        wait_for(out, "two-paths/*/.tmp-*")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "interrupted: finished runs are kept\n"
    (kept,) = out.glob("two-paths/*/*")
    done = ab.sweep(scenario, {"duration": ["5 s", "6 s"]}, out=out)
    assert [run.reused for run in done.runs] == [True, False]
    assert done.runs[0].path == kept
