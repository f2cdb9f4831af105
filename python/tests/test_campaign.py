"""Runs of many experiments together: in order, reused, made again, and errors that name the run."""

from __future__ import annotations

from pathlib import Path

import pytest

import anabranch as ab
from anabranch import Call, CongestionControl
from anabranch.campaign import Task, run_tasks
from support import tree


@pytest.fixture
def tasks(scenario: Path) -> list[Task]:
    """Two experiments that take turns, with two seeds each."""
    lia = ab.load(scenario)
    reno = lia.with_(**{"connection.meter.congestion": "reno"})
    return [Task(experiment, seed) for seed in (2, 1) for experiment in (lia, reno)]


def test_runs_come_in_the_order_of_the_tasks(tasks: list[Task], tmp_path: Path) -> None:
    runs = run_tasks(tasks, tmp_path / "out")
    assert [(run.key, run.seed) for run in runs] == [
        (task.experiment.scenario.key, task.seed) for task in tasks
    ]
    assert not any(run.reused for run in runs)
    assert all(run.reused for run in run_tasks(tasks, tmp_path / "out"))


def test_runs_are_those_of_the_experiment_with_any_number_of_jobs(tasks: list[Task], tmp_path: Path) -> None:
    for jobs in (1, 3):
        run_tasks(tasks, tmp_path / f"jobs{jobs}", jobs=jobs)
    for task in tasks:
        task.experiment.run(seed=task.seed, out=tmp_path / "alone")
    alone = tree(tmp_path / "alone")
    assert alone == tree(tmp_path / "jobs1") == tree(tmp_path / "jobs3")


def test_a_damaged_run_is_made_again_and_said_so(tasks: list[Task], tmp_path: Path) -> None:
    runs = run_tasks(tasks, tmp_path / "out")
    whole = tree(tmp_path / "out")
    (runs[2].path / "summary.csv").write_text("", encoding="utf-8")
    again = run_tasks(tasks, tmp_path / "out")
    assert [run.reused for run in again] == [True, True, False, True]
    assert "summary.csv" in (again[2].damaged or "")
    assert tree(tmp_path / "out") == whole


def test_an_error_names_its_run_and_ends_the_others(scenario: Path, tmp_path: Path) -> None:
    class Broken(CongestionControl):
        name = "broken"

        def ack(self, call: Call) -> None:
            """Fail."""
            raise ZeroDivisionError

    lia = ab.load(scenario)
    broken = lia.with_(**{"connection.meter.congestion": "broken"})
    endless = lia.with_(duration="9000000 s")
    tasks = [Task(endless, 1), Task(broken, 7)]
    with pytest.raises(ZeroDivisionError) as error:
        run_tasks(tasks, tmp_path / "out", jobs=2)
    assert error.value.__notes__[-1] == "in the run two-paths with connection.meter.congestion=broken, seed 7"
    assert list(tmp_path.glob("out/**/run.json")) == []


def test_a_place_that_cannot_be_written_to_is_named(tasks: list[Task], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    with pytest.raises(ab.OutputError, match=r"file/out/two-paths/.*: cannot write runs here: .*--out"):
        run_tasks(tasks[:1], file / "out")


def test_progress_is_simulated_time_and_reaches_the_end(tasks: list[Task], tmp_path: Path) -> None:
    reached: list[float] = []
    run_tasks(tasks, tmp_path / "out", progress=reached.append)
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(20.0)


def test_no_tasks_make_no_runs(tmp_path: Path) -> None:
    assert run_tasks([], tmp_path / "out") == []
    assert not (tmp_path / "out").exists()
