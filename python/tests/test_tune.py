"""The command ``anabranch tune`` on a small scenario, and the runs that it makes."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from anabranch.experiment import Experiment
from anabranch.tuning import Grid, Plan, Setting, TuningError, find_target
from anabranch.tuning.measure import Target
from support import LIMIT_S, REPOSITORY, TWO_PATHS, Command, started, wait_for

#: The second path is slow and has a long queue, so that it holds the first one up where buffers are small.
UNLIKE_PATHS = (
    TWO_PATHS.replace('profile = "ns2"\nwindow_cap = "50 packets"', 'profile = "linux"')
    .replace('delay = "10 ms"\nqueue = "20 packets"', 'delay = "10 ms"\nqueue = "100 packets"')
    .replace('delay = "20 ms"\nqueue = "20 packets"', 'delay = "150 ms"\nqueue = "200 packets"')
    .replace('duration = "5 s"', 'duration = "10 s"')
)

SMALL = ["--congestion", "lia,cubic", "--buffers", "0.05:0.4:0.05", "--seeds", "2"]


@pytest.fixture
def unlike(tmp_path: Path) -> Path:
    """A scenario with two unlike paths."""
    path = tmp_path / "unlike.toml"
    path.write_text(UNLIKE_PATHS, encoding="utf-8")
    return path


def changed(tmp_path: Path, *pairs: tuple[str, str]) -> Target:
    """Find the target of a changed scenario."""
    text = UNLIKE_PATHS
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "changed.toml"
    path.write_text(text, encoding="utf-8")
    return find_target(Experiment(path))


def test_a_tuning_from_the_runs_to_the_recommendation(
    anabranch: Command, unlike: Path, tmp_path: Path
) -> None:
    arguments = ["tune", unlike, *SMALL, "--out", tmp_path / "out"]
    done = anabranch(*arguments, "--json", "--plot", tmp_path / "one.svg")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    # Where buffers are small, LIA over both paths is held up by the slow one, which PCDC then leaves out.
    assert found["impacts"]["lia"]["used"] == ["p1"]
    factors = found["impacts"]["lia"]["factors"]
    assert factors["p1"][0] > 0 > factors["p2"][0]
    fullmesh, pcdc = found["mbit_per_s"]
    assert all(sum(alone) > sum(both) for alone, both in zip(pcdc[0], fullmesh[0], strict=True))
    # 8 buffers x 2 congestion controls x 2 seeds with full mesh; two of PCDC's three phases are not among
    # them, and those without p2 are the largest buffer of PCDC's own 8.
    used = [found["impacts"][name]["used"] for name in ("lia", "cubic")]
    own = sum(8 - 1 for one in used if one == ["p1"])
    assert found["runs"] == 2 * (16 + 4 + own)
    largest = max(sum(cell) / 2 for manager in found["mbit_per_s"] for of in manager for cell in of)
    assert found["recommendation"]["largest_mbit_per_s"] == pytest.approx(largest, rel=0.1)
    assert 0.05 <= found["recommendation"]["buffer_mib"] <= 0.4
    assert {(one["path_manager"], one["model"]) for one in found["models"]} == {
        (manager, model) for manager in ("fullmesh", "pcdc") for model in ("parabola", "saturating")
    }
    again = anabranch(*arguments, "--plot", tmp_path / "two.svg")
    assert again.returncode == 0, again.stderr
    assert f"{found['runs']} runs, {found['runs']} of them reused" in again.stdout
    assert f"recommended: path manager {found['recommendation']['path_manager']}" in again.stdout
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_an_interrupted_tuning_keeps_finished_runs_and_goes_on(
    anabranch: Command, unlike: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["tune", unlike, *SMALL, "--out", out]
    with started(*command, "--jobs", 1) as process:
        wait_for(out, "two-paths/*/seed-2")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "interrupted: finished runs are kept\n"
    kept = [path.parent for path in out.rglob("run.json")]
    assert len(kept) >= 2
    assert not any(".tmp-" in str(path) for path in out.rglob("*"))
    done = anabranch(*command, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reused"] == len(kept)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--buffers", "1:x:2"], "'x' is no number"),
        (["--buffers", ""], "is no number"),
        (["--buffers", "1,2"], "2 different buffers; expected at least 5"),
        (["--seeds", "1"], "seeds: 1; expected at least 2"),
        (["--congestion", ""], "congestion controls: expected names"),
        (["--congestion", "cubik"], 'did you mean "cubic"'),
        (["--congestion", "lia,lia"], "singular"),
        (["--path-managers", "fulmesh"], 'did you mean "fullmesh"'),
        (["--connection", "metre"], "no MPTCP connection is called 'metre'; expected one of meter"),
        (["--delta", "1"], "expected a share from 0 to below 1"),
        (["--jobs", "1", "--scheduler", "tcp://192.0.2.1:8786"], "--jobs is for this machine"),
        (["--plot", "a.txt"], "ends in .svg, .pdf or .png"),
        (["--plot", "/proc/version/a.svg"], "cannot write in /proc/version"),
        (["--scheduler", "192.0.2.1"], "an address with a port, such as tcp://192.0.2.1:8786"),
        (["--delta", "nan"], "expected a share from 0 to below 1"),
        (["--buffers", "0.0001,0.0002,0.0003,0.0004,0.0005"], "does not hold one segment"),
        (["--buffers", "1:100:0.001"], "are 99001; expected at most 1000"),
        (["--buffers", "5:1:1"], "are none"),
        (["--algorithms", "none.py"], "none.py: no such Python file"),
        (["--set", "transport.windowcap=9 packets"], "unknown key"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_is_written(
    anabranch: Command, unlike: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    out = tmp_path / "out"
    done = anabranch("tune", unlike, *SMALL, *arguments, "--out", out)
    assert done.returncode == 2, done.stdout
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert not out.exists()


def test_a_silent_subflow_is_an_open_backup_and_carries_nothing(unlike: Path, tmp_path: Path) -> None:
    target = find_target(Experiment(unlike))
    run = target.with_(Setting("fullmesh", "lia", 0.25, ("p2",))).run(seed=1, out=tmp_path / "out")
    delivered = {
        figure.subject.subflow: figure.value for figure in run.figures if figure.metric == "throughput_bps"
    }
    assert delivered["p1"] > 2e6
    assert delivered["p2"] == 0.0
    assert target.goodput_mbit_per_s(run) == pytest.approx(delivered["p1"] / 1e6, rel=0.01)


def test_names_without_a_name_are_numbers(tmp_path: Path) -> None:
    target = changed(tmp_path, ('name = "p1"\n', ""), ('name = "p2"\n', ""))
    assert target.regular == ("0", "1")
    canonical = json.loads(target.with_(Setting("fullmesh", "lia", 1.0, ("1",))).scenario.canonical)
    assert [one.get("backup") for one in canonical["connection"][0]["subflow"]] == [None, True]


def test_backups_of_the_file_stay_backups_and_are_not_chosen_from(tmp_path: Path) -> None:
    target = changed(tmp_path, ('name = "p2"', 'name = "p2"\nbackup = true'))
    assert target.regular == ("p1",)
    with pytest.raises(TuningError, match="1 subflows that are no backups; PCDC needs at least 2"):
        Plan(target, Grid(("pcdc",), ("lia",), (1.0, 2.0, 3.0, 4.0, 5.0), (1, 2)))


def test_pcdc_needs_subflows_that_it_can_name(tmp_path: Path) -> None:
    text = UNLIKE_PATHS.replace('congestion = "lia"', 'congestion = "lia"\npath_manager = "fullmesh"')
    path = tmp_path / "mesh.toml"
    path.write_text(text.partition("[[connection.subflow]]")[0], encoding="utf-8")
    target = find_target(Experiment(path))
    buffers = (1.0, 2.0, 3.0, 4.0, 5.0)
    with pytest.raises(TuningError, match="follow from the topology"):
        Plan(target, Grid(("fullmesh", "pcdc"), ("lia",), buffers, (1, 2)))
    assert Plan(target, Grid(("fullmesh",), ("lia",), buffers, (1, 2))).runs == 10


def test_a_congestion_control_of_a_subflow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="subflow 'p2' of 'meter' has a congestion control of its own"):
        changed(
            tmp_path, ('congestion = "lia"', 'congestion = "reno"'), ('"p2"', '"p2"\ncongestion = "cubic"')
        )


def test_of_several_connections_one_is_named(tmp_path: Path, unlike: Path) -> None:
    table = "[[connection]]" + UNLIKE_PATHS.partition("[[connection]]")[2]
    path = tmp_path / "two.toml"
    path.write_text(UNLIKE_PATHS + table.replace('"meter"', '"other"'), encoding="utf-8")
    with pytest.raises(TuningError, match="2 MPTCP connections; name one of meter, other"):
        find_target(Experiment(path))
    assert find_target(Experiment(path), "other").connection == "other"
    tcp = UNLIKE_PATHS.partition("[[connection.subflow]]")[0]
    tcp = tcp.replace('protocol = "mptcp"\ncongestion = "lia"', 'protocol = "tcp"\ncongestion = "reno"')
    path.write_text(tcp, encoding="utf-8")
    with pytest.raises(TuningError, match="no MPTCP connection"):
        find_target(Experiment(path))


def test_the_tutorial_prints_what_it_says(anabranch: Command, tmp_path: Path) -> None:
    text = (REPOSITORY / "docs/tuning.md").read_text(encoding="utf-8")
    command = next(line for line in text.splitlines() if line.startswith("anabranch tune "))
    name, *arguments = shlex.split(command.replace("scenarios/", f"{REPOSITORY}/scenarios/"))
    assert name == "anabranch"
    done = anabranch(*arguments, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    shown = text.partition("and prints:\n\n```\n")[2].partition("```")[0].splitlines()
    printed = [line.strip() for line in done.stdout.splitlines()]
    for line in shown:
        if not set(line.strip()) <= set("─. "):
            assert line.strip() in printed, line


KERNEL = [
    "--engine",
    "kernel",
    "--congestion",
    "lia,cubic",
    "--buffers",
    "0.1:0.5:0.1",
    "--set",
    "duration=5 s",
]


def test_a_tuning_on_the_kernel_lays_the_simulators_beside(
    anabranch: Command, unlike: Path, tmp_path: Path, fake_bed: Path
) -> None:
    arguments = ["tune", unlike, *KERNEL, "--seeds", "2", "--out", tmp_path / "out"]
    done = anabranch(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    # The program in the test bed's place has the simulator make the runs.
    assert found["sim"]["recommendation"] == found["recommendation"]
    assert found["sim"]["worth"][0] == 1.0
    calls = fake_bed.read_text(encoding="utf-8").splitlines()
    assert len(calls) == found["runs"] / 2, "a call for both seeds of each setting"
    again = anabranch(*arguments)
    assert again.returncode == 0, again.stderr
    assert (
        "the same pair; on the kernel its setting delivers 100.0 ± 0.0 % of what the kernel's own does"
        in again.stdout
    )


def test_seeds_that_do_not_count_on_the_kernel_are_in_no_figure(
    anabranch: Command, unlike: Path, tmp_path: Path, fake_bed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BED", "loses the second")
    arguments = ["tune", unlike, *KERNEL, "--path-managers", "fullmesh", "--out", tmp_path / "out"]
    done = anabranch(*arguments, "--seeds", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["grid"]["seeds"] == [1, 3]
    assert len(fake_bed.read_text(encoding="utf-8").splitlines()) == 2 * 10, "each setting is asked for twice"
    done = anabranch(*arguments, "--seeds", "2")
    assert done.returncode == 2
    assert "runs on the kernel count with 1 of 2 seeds, expected at least 2" in done.stderr
    assert "lateness p99 3.1 ms, above 2 ms" in done.stderr


def test_what_the_kernel_cannot_tune_is_refused_before_anything_is_run(
    anabranch: Command, unlike: Path, tmp_path: Path, fake_bed: Path
) -> None:
    out = tmp_path / "out"
    done = anabranch("tune", unlike, *KERNEL, "--scheduler", "tcp://192.0.2.1:8786", "--out", out)
    assert done.returncode == 2
    assert "--scheduler is for the simulator" in done.stderr
    assert not out.exists()
    assert not fake_bed.exists()
