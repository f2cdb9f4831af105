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
    assert "did you mean goodput_bps? there are" in unknown.stderr


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
        (["--vary", "name=a,b"], "name: says where runs and table are kept"),
        (["--vary", "seed=1,2"], "seed: is a column of the table"),
        (["--vary", "duration=5 s,,6 s"], "an empty value"),
        (["--vary", "link.path1.rate=1,2"], "1 has no unit"),
        (["--vary", "duration=5 s,6 s", "--seeds", "1.5"], "--seeds"),
        (["--vary", "duration=5 s,6 s", "--scheduler", "192.0.2.1"], "an address with a port"),
        (["--vary", "duration=5 s,6 s", "--scheduler", ""], "an address with a port"),
        (["--vary", "duration=5 s,6 s", "--algorithms", "none.py"], "none.py: no such Python file"),
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


def test_a_scenario_that_is_none_is_named(anabranch: Command, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.toml", "no such file"), (tmp_path, "a directory")):
        for command in (["sweep", path, "--vary", "duration=5 s,6 s"], ["tune", path]):
            done = anabranch(*command)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"error: {path}: {words}")
            assert done.stderr.count("\n") == 1


def test_a_place_that_cannot_be_written_to_is_named_in_one_line(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("", encoding="utf-8")
    tune = ["tune", scenario, "--congestion", "lia", "--buffers", "1,2,3,4,5", "--seeds", 2]
    for command in (["sweep", scenario, *ARGUMENTS], tune):
        done = anabranch(*command, "--out", taken)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {taken}/two-paths/")
        assert done.stderr.endswith("choose another place with --out\n")
        assert done.stderr.count("\n") == 1
    assert taken.read_text(encoding="utf-8") == ""


def test_a_table_that_cannot_be_written_costs_no_run(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    table = tmp_path / "out/two-paths/sweep.parquet"
    table.mkdir(parents=True)
    done = anabranch("sweep", scenario, *ARGUMENTS, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {table}: cannot be written: Is a directory\n"
    table.rmdir()
    again = anabranch("sweep", scenario, *ARGUMENTS, "--out", tmp_path / "out")
    assert "6 runs, 6 of them reused" in again.stdout


def test_a_second_sweep_keeps_the_runs_of_the_first_and_replaces_its_table(
    scenario: Path, tmp_path: Path
) -> None:
    first = ab.sweep(scenario, VARY, out=tmp_path)
    second = ab.sweep(scenario, {"link.path1.rate": ["1 Mbit/s", "2 Mbit/s"]}, out=tmp_path)
    assert second.path == first.path
    assert set(second.to_polars()["link.path1.rate"].unique()) == {"1 Mbit/s", "2 Mbit/s"}
    assert all(run.path.is_dir() for run in first.runs)
    again = ab.sweep(scenario, VARY, out=tmp_path)
    assert all(run.reused for run in again.runs)


def test_two_sweeps_at_once_into_one_folder_both_end_well(scenario: Path, tmp_path: Path) -> None:
    command = ["sweep", scenario, "--vary", "duration=5:12:1 s", "--seeds", 4, "--out", tmp_path / "both"]
    with started(*command) as one, started(*command) as other:
        for process in (one, other):
            stdout, stderr = process.communicate(timeout=60)
            assert (process.returncode, stderr) == (0, "")
            assert "8 points, 32 runs" in stdout
    ab.sweep(scenario, {"duration": [f"{s} s" for s in range(5, 13)]}, seeds=4, out=tmp_path / "alone")
    assert tree(tmp_path / "both") == tree(tmp_path / "alone")


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
