"""Runs on a Dask cluster of two workers on this machine: the same bytes, whatever becomes of a worker."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import anabranch as ab
from anabranch import Call, CongestionControl, cluster
from anabranch.bundle import pack, unpack
from anabranch.campaign import Task, run_tasks
from anabranch.cli.commands import app
from anabranch.cluster_worker import Batch, Item, make
from support import LIMIT_S, REPOSITORY, TWO_PATHS, Command, started, tree, wait_for

VARY = ["--vary", "link.path1.rate=1:3:1 Mbit/s", "--vary", "connection.meter.congestion=lia,reno"]

#: A module that a worker loads first, and that hides this package from it.
HIDING = "import sys\nsys.modules['anabranch'] = None\n"


@contextmanager
def program(folder: Path, name: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program of Dask; it has ended afterwards."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *map(str, arguments)]
    with (
        (folder / f"{name}.log").open("ab") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


class Cluster(NamedTuple):
    """A scheduler, its address, and its workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def two_workers(folder: Path, *arguments: object) -> Iterator[Cluster]:
    """Start a scheduler and two workers; all have ended afterwards."""
    told = folder / "scheduler.json"
    with ExitStack() as running:
        options = [
            "--host",
            "127.0.0.1",
            "--port",
            0,
            "--no-dashboard",
            "--no-show",
            "--scheduler-file",
            told,
        ]
        scheduler = running.enter_context(program(folder, "scheduler", *options))
        wait_for(folder, told.name)
        address = json.loads(told.read_text(encoding="utf-8"))["address"]
        options = ["--nthreads", 1, "--no-nanny", "--no-dashboard", *arguments]
        workers = [
            running.enter_context(
                program(folder, "worker", address, *options, "--local-directory", folder / f"local{number}")
            )
            for number in range(2)
        ]
        end = time.monotonic() + LIMIT_S
        while (folder / "worker.log").read_bytes().count(b"Registered to") < 2:
            assert time.monotonic() < end, "the workers have not come"
            time.sleep(0.1)
        yield Cluster(address, scheduler, workers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the workers of the common cluster keep their files."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The scheduler of a cluster of two workers that no test harms."""
    with two_workers(folder) as cluster_:
        yield cluster_.address


def test_a_cluster_gives_the_bytes_of_this_machine_and_resumes(
    anabranch: Command, address: str, scenario: Path, tmp_path: Path
) -> None:
    command = ["sweep", scenario, *VARY, "--seeds", 3]
    here = anabranch(*command, "--out", tmp_path / "here")
    there = anabranch(*command, "--out", tmp_path / "there", "--scheduler", address)
    assert (there.returncode, there.stderr) == (0, "")
    assert there.stdout == here.stdout.replace(str(tmp_path / "here"), str(tmp_path / "there"))
    whole = tree(tmp_path / "here")
    assert tree(tmp_path / "there") == whole
    damaged = next((tmp_path / "there").glob("two-paths/*/seed-2"))
    (damaged / "summary.json").write_text("{}", encoding="utf-8")
    again = anabranch(*command, "--out", tmp_path / "there", "--scheduler", address)
    assert "18 runs, 17 of them reused" in again.stdout
    assert f"made again: {damaged}" in again.stdout
    assert tree(tmp_path / "there") == whole


def test_a_tuning_on_a_cluster_is_that_of_this_machine(
    anabranch: Command, address: str, scenario: Path, tmp_path: Path
) -> None:
    command = ["tune", scenario, "--congestion", "lia,cubic", "--buffers", "0.05:0.25:0.05", "--seeds", 2]
    here = anabranch(*command, "--out", tmp_path / "here", "--json")
    there = anabranch(*command, "--out", tmp_path / "there", "--json", "--scheduler", address)
    assert (there.returncode, there.stderr) == (0, "")
    assert there.stdout == here.stdout
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    again = anabranch(*command, "--out", tmp_path / "there", "--scheduler", address)
    assert (again.returncode, again.stderr) == (0, "")
    runs = json.loads(there.stdout)["runs"]
    assert f"{runs} runs, {runs} of them reused" in again.stdout


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    scenario = tmp_path / "two-paths.toml"
    scenario.write_text(TWO_PATHS.replace('duration = "5 s"', 'duration = "200 s"'), encoding="utf-8")
    command = ["sweep", scenario, *VARY, "--seeds", 5]
    with (
        two_workers(tmp_path) as running,
        started(*command, "--out", tmp_path / "there", "--scheduler", running.address) as process,
    ):
        wait_for(tmp_path / "there", "two-paths/*/seed-*")
        running.workers[0].send_signal(signal.SIGKILL)
        assert process.poll() is None, "the sweep has ended before the worker"
        stdout, stderr = process.communicate(timeout=2 * LIMIT_S)
    assert (process.returncode, stderr) == (0, "")
    assert "30 runs, 0 of them reused" in stdout
    ab.sweep(
        scenario,
        {
            "link.path1.rate": [f"{rate} Mbit/s" for rate in (1, 2, 3)],
            "connection.meter.congestion": ["lia", "reno"],
        },
        seeds=5,
        out=tmp_path / "here",
    )
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


def test_an_interrupt_stops_the_runs_of_the_workers(
    address: str, folder: Path, scenario: Path, tmp_path: Path
) -> None:
    endless = ["--vary", "duration=9000000 s,9000001 s,9000002 s"]
    out = tmp_path / "out"
    with started("sweep", scenario, *endless, "--out", out, "--scheduler", address) as process:
        for worker in ("local0", "local1"):
            wait_for(folder / worker, "**/two-paths/*/.tmp-*")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "interrupted: finished runs are kept\n"
    assert not out.exists()
    # Workers that were still at it would not get to this one.
    (run,) = run_tasks([Task(ab.load(scenario), 1)], out, cluster=address)
    assert run.seed == 1


def test_traces_travel_with_the_scenario(address: str, tmp_path: Path) -> None:
    experiment = traced(tmp_path, "../traces/b.up")
    task = Task(experiment, 1)
    (there,) = run_tasks([task], tmp_path / "there", cluster=address)
    (here,) = run_tasks([task], tmp_path / "here")
    assert tree(there.path) == tree(here.path)


def traced(folder: Path, name: str) -> ab.Experiment:
    """A scenario in a folder of its own with a trace in another one; an override names a second trace."""
    for path, text in (("a.up", "0\n4\n"), ("b.up", "0\n2\n3\n")):
        (folder / "traces").mkdir(exist_ok=True)
        (folder / "traces" / path).write_text(text, encoding="utf-8")
    scenario = folder / "scenarios" / "traced.toml"
    scenario.parent.mkdir()
    text = TWO_PATHS.replace('rate = "3 Mbit/s"', 'trace = "../traces/a.up"')
    scenario.write_text(text, encoding="utf-8")
    return ab.load(scenario).with_(**{"link.path1.trace": name})


def test_a_bundle_has_what_the_scenario_names(tmp_path: Path) -> None:
    experiment = traced(tmp_path, "../traces/b.up")
    bundle = pack(experiment)
    assert sorted(name for name, _ in bundle.files) == ["scenarios/traced.toml", "traces/a.up", "traces/b.up"]
    elsewhere = tmp_path / "elsewhere"
    assert unpack(bundle, elsewhere).key == experiment.scenario.key


def test_the_configuration_of_an_agent_travels_with_the_scenario(tmp_path: Path) -> None:
    experiment = ab.load(REPOSITORY / "examples/agent/handover.toml")
    bundle = pack(experiment)
    assert sorted(name for name, _ in bundle.files) == ["agent.toml", "handover.toml"]
    assert unpack(bundle, tmp_path / "elsewhere").key == experiment.scenario.key


def test_an_absolute_path_cannot_travel(tmp_path: Path) -> None:
    with pytest.raises(ab.ScenarioError, match="absolute path"):
        pack(traced(tmp_path, str(tmp_path / "traces" / "b.up")))


def test_a_scenario_that_has_changed_is_noticed(address: str, scenario: Path, tmp_path: Path) -> None:
    task = Task(ab.load(scenario), 4)
    scenario.write_text(TWO_PATHS.replace("3 Mbit/s", "4 Mbit/s"), encoding="utf-8")
    with pytest.raises(ab.ClusterError, match=r"two-paths, seed 4: .* has changed"):
        run_tasks([task], tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_a_worker_of_another_version_is_refused(
    address: str, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "VERSION", "0.0.0+src.other")
    with pytest.raises(
        ab.ClusterError, match=rf"worker tcp://.*: has anabranch {ab.__version__}".replace("+", r"\+")
    ):
        run_tasks([Task(ab.load(scenario), 1)], tmp_path / "out", cluster=address)


def test_a_worker_without_this_package_is_refused(scenario: Path, tmp_path: Path) -> None:
    hiding = tmp_path / "hiding.py"
    hiding.write_text(HIDING, encoding="utf-8")
    with (
        two_workers(tmp_path, "--preload", hiding) as running,
        pytest.raises(ab.ClusterError, match="anabranch is not installed there"),
    ):
        run_tasks([Task(ab.load(scenario), 1)], tmp_path / "out", cluster=running.address)


def test_a_scheduler_that_is_lost_is_said_and_finished_runs_are_kept(tmp_path: Path) -> None:
    scenario, out = tmp_path / "two-paths.toml", tmp_path / "out"
    scenario.write_text(TWO_PATHS, encoding="utf-8")
    command = ["sweep", scenario, "--vary", "duration=5 s,9000000 s"]
    with (
        two_workers(tmp_path) as running,
        started(*command, "--out", out, "--scheduler", running.address) as process,
    ):
        wait_for(out, "two-paths/*/seed-*")
        running.scheduler.kill()
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, stdout) == (1, "")
    assert stderr == "error: the connection to the scheduler is lost; finished runs are kept\n"
    (kept,) = out.glob("two-paths/*/seed-1")
    assert ab.open_run(kept).seed == 1


def test_a_failure_within_a_batch_keeps_the_runs_before_it(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = SimpleNamespace(local_directory=tmp_path)
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    experiment = ab.load(scenario)
    good = Item(pack(experiment), experiment.scenario.key, 1)
    made = make(Batch((good, good._replace(key="of another file"), good), ab.__version__, "campaign"))
    files, error = made.runs
    assert isinstance(files, dict)
    assert set(files) == {"run.json", "summary.json", "summary.csv", "series.parquet"}
    assert isinstance(error, ab.ClusterError)
    assert list(tmp_path.iterdir()) == [scenario], "a worker leaves nothing behind"


def test_a_scheduler_that_does_not_answer_is_named(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
    for address in (nobody, "nonsense://", "192.0.2.1"):
        with pytest.raises(ab.ClusterError, match=f"{address}: no Dask scheduler"):
            run_tasks([Task(ab.load(scenario), 1)], tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_without_distributed_the_command_is_skipped(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(tmp_path)
    arguments = ["sweep", str(scenario), "--vary", "duration=5 s", "--scheduler", "tcp://127.0.0.1:1"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 4
    assert "pip install 'anabranch[cluster]'" in done.stderr
    assert list(tmp_path.iterdir()) == [scenario]


def test_jobs_and_algorithms_in_python_are_for_this_machine(scenario: Path, tmp_path: Path) -> None:
    class Local(CongestionControl):
        name = "local"

        def ack(self, call: Call) -> None:
            """Leave the window as it is."""

    task = Task(ab.load(scenario).with_(**{"connection.meter.congestion": "local"}), 1)
    with pytest.raises(ValueError, match="local: written in Python"):
        run_tasks([task], tmp_path, cluster="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="jobs is for this machine"):
        run_tasks([task], tmp_path, jobs=2, cluster="tcp://127.0.0.1:1")
