"""The kernel engine as seen from Python: finding the program, listening to it, ending it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import anabranch as ab
from anabranch import bed
from support import TWO_PATHS, Command

LIMIT_S = 60


def test_a_run_is_made_listened_to_and_reused(fake_bed: Path, scenario: Path, tmp_path: Path) -> None:
    reached: list[float] = []
    experiment = ab.load(scenario).with_(duration="2 s")
    options = ab.KernelOptions(native_congestion=True, application="iperf3")
    out = tmp_path / "out"
    runs = experiment.run(
        engine="kernel", seeds=[1, 2], out=out, capture=True, progress=reached.append, kernel=options
    )
    assert [(run.seed, run.engine, run.reused, run.invalid) for run in runs] == [
        (1, "kernel", False, ()),
        (2, "kernel", False, ()),
    ]
    assert runs[0].environment["kernel"] == "6.18.44"
    assert reached == [1.0, 2.0, 3.0, 4.0]
    (call,) = fake_bed.read_text(encoding="utf-8").splitlines()
    assert call == (
        f"run {scenario} --seeds 2 --out {out} --json --set duration=2 s "
        "--capture --native-congestion --application iperf3"
    )
    again = experiment.run(engine="kernel", seed=2, out=out, force=True)
    assert again.reused
    assert again.path == runs[1].path
    assert " --seed 2 " in fake_bed.read_text(encoding="utf-8")
    assert " --force --application own" in fake_bed.read_text(encoding="utf-8")


def test_seeds_that_are_not_one_to_n_are_asked_for_singly(
    fake_bed: Path, scenario: Path, tmp_path: Path
) -> None:
    runs = ab.load(scenario).run(engine="kernel", seeds=[5, 3, 5], out=tmp_path / "out")
    assert [run.seed for run in runs] == [5, 3, 5]
    calls = fake_bed.read_text(encoding="utf-8").splitlines()
    assert [call.split("--seed ")[1][0] for call in calls] == ["5", "3"]


def test_the_simulator_has_no_environment(scenario: Path, tmp_path: Path) -> None:
    run = ab.load(scenario).run(out=tmp_path / "out")
    assert (run.engine, run.environment, run.invalid) == ("sim", {}, ())


ERRORS = {
    "is busy": (ab.RunError, 1, "another bed runs on this host (process 7)\nwait for it"),
    "refuses": (ab.ScenarioError, 2, "--engine kernel: a kernel has no scheduler of the name roundrobin"),
    "lacks": (ab.Unavailable, 4, "no TUN device here: modprobe tun"),
    "is interrupted": (ab.Cancelled, 130, "anabranch-bed was interrupted"),
    "panics": (ab.RunError, 1, "anabranch-bed has ended with exit code 101: index out of bounds"),
    "forgets": (ab.RunError, 1, "anabranch-bed has ended without a run of seed 1"),
    "prints garbage": (
        ab.RunError,
        1,
        "anabranch-bed has printed what is not understood: 'Segmentation fault'; "
        "build it anew with: make bed",
    ),
    "prints another protocol": (
        ab.RunError,
        1,
        "anabranch-bed has printed what is not understood: "
        '\'{"event": "run", "folder": "/tmp"}\'; build it anew with: make bed',
    ),
}


@pytest.mark.usefixtures("fake_bed")
@pytest.mark.parametrize("behaviour", ERRORS)
def test_what_goes_wrong_is_an_exception_and_an_exit_code(
    anabranch: Command, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    kind, code, message = ERRORS[behaviour]
    monkeypatch.setenv("FAKE_BED", behaviour)
    with pytest.raises(kind) as caught:
        ab.load(scenario).run(engine="kernel", out=tmp_path / "out")
    assert type(caught.value) is kind
    assert str(caught.value) == message
    done = anabranch("run", scenario, "--engine", "kernel", "--out", tmp_path / "out")
    assert done.returncode == code
    assert done.stdout == ""
    mark = {4: f"skipped: {message}\n", 130: "interrupted: finished runs are kept\n"}
    assert done.stderr == mark.get(code, f"error: {message}\n")


def test_a_scenario_is_checked_before_the_program_is_looked_for(
    anabranch: Command, scenario: Path, fake_bed: Path
) -> None:
    done = anabranch("run", scenario, "--engine", "kernel", "--set", "duration=0 s")
    assert done.returncode == 2
    assert not fake_bed.exists()


def test_a_missing_program_is_said_so(
    anabranch: Command, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANABRANCH_BED", raising=False)
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = anabranch("run", scenario, "--engine", "kernel")
    assert done.returncode == 4
    assert done.stderr == "skipped: --engine kernel needs anabranch-bed; build it with: make bed\n"
    monkeypatch.setenv("ANABRANCH_BED", str(scenario))
    done = anabranch("run", scenario, "--engine", "kernel")
    assert done.returncode == 4
    assert f"($ANABRANCH_BED names {scenario}, which is no program)" in done.stderr


def test_the_program_is_found_in_the_build_and_then_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, installed = tmp_path / "release" / bed.PROGRAM, tmp_path / "bin" / bed.PROGRAM
    for program in (built, installed):
        program.parent.mkdir()
        program.touch(mode=0o755)
    monkeypatch.setenv("ANABRANCH_BED", "")
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(installed.parent))
    assert bed.find() == built
    built.unlink()
    assert bed.find() == installed


@pytest.mark.usefixtures("fake_bed")
def test_a_run_that_does_not_count_is_named_and_not_averaged(
    anabranch: Command, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BED", "loses the second")
    arguments = ("run", scenario, "--engine", "kernel", "--seeds", 3, "--out", tmp_path / "out")
    done = anabranch(*arguments)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "does not count: seed 2: lateness p99 3.1 ms, above 2 ms" in done.stdout
    assert "mean over 2 seeds" in done.stdout
    assert "note: send_jitter is the machine's own" in done.stdout
    done = anabranch(*arguments, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["engine"] == "kernel"
    assert [one["invalid"] for one in answer["runs"]] == [[], ["lateness p99 3.1 ms, above 2 ms"], []]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--engine", "kernel", "--jobs", "2"], "--jobs"),
        (["--engine", "kernel", "--qlog"], "--qlog"),
        (["--native-congestion"], "--native-congestion"),
        (["--application", "own"], "--application"),
        (["--engine", "kernel", "--application", "nc"], "--application"),
    ],
)
def test_options_of_the_other_engine_are_refused(
    anabranch: Command, scenario: Path, fake_bed: Path, arguments: list[str], named: str
) -> None:
    done = anabranch("run", scenario, *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert not fake_bed.exists()


def test_options_of_the_other_engine_are_refused_in_python(scenario: Path) -> None:
    with pytest.raises(ValueError, match="one after the other"):
        ab.load(scenario).run(engine="kernel", seeds=[1], jobs=2)
    with pytest.raises(ValueError, match="qlog is for the simulator"):
        ab.load(scenario).run(engine="kernel", qlog=True)
    with pytest.raises(ValueError, match="engine='kernel'"):
        ab.load(scenario).run(kernel=ab.KernelOptions())


def waiting(log: Path) -> None:
    """Wait until the program waits for a signal."""
    end = time.monotonic() + LIMIT_S
    while not (log.exists() and "waiting" in log.read_text(encoding="utf-8")):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_are_forwarded_and_the_end_is_waited_for(
    scenario: Path,
    tmp_path: Path,
    fake_bed: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    monkeypatch.setenv("FAKE_BED", "waits")
    command = [sys.executable, "-m", "anabranch", "run", str(scenario), "--engine", "kernel"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            waiting(fake_bed)
            process.send_signal(number)
            time.sleep(0.1)  # while the program winds up
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == code
    assert stdout == ""
    assert stderr == ("interrupted: finished runs are kept\n" if code == 130 else "")
    assert fake_bed.read_text(encoding="utf-8").splitlines()[-1] == f"wound up after {number.name}"


def test_a_program_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, pid = tmp_path / "stubborn", tmp_path / "pid"
    script.write_text(
        f"#!/bin/sh\ntrap '' TERM INT\necho $$ > {pid}\necho garbage\nwhile :; do sleep 0.05; done\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    scenario = tmp_path / "two-paths.toml"
    scenario.write_text(TWO_PATHS, encoding="utf-8")
    monkeypatch.setenv("ANABRANCH_BED", str(script))
    monkeypatch.setattr(bed, "WIND_UP_S", 0.2)
    with pytest.raises(ab.RunError, match="'garbage'"):
        ab.load(scenario).run(engine="kernel", out=tmp_path / "out")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)
