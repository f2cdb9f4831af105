"""``anabranch tune --emit-agent``: what was recommended, and nothing that the agent cannot have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from anabranch._engine import list_algorithms
from anabranch.experiment import Experiment
from anabranch.stats import Estimate
from anabranch.tuning import Grid, Impact, TuningError, find_target
from anabranch.tuning.agent import agent_toml, check_emission
from anabranch.tuning.measure import Target
from anabranch.tuning.optimum import Choice
from support import REPOSITORY, Command

TUTORIAL = REPOSITORY / "scenarios/tutorial/tuning.toml"
GRID = Grid(("fullmesh", "pcdc"), ("lia",), (1.0, 2.0, 3.0, 4.0, 5.0), (1, 2))


def target(tmp_path: Path, *pairs: tuple[str, str]) -> Target:
    """The tutorial's connection, with changes of its text."""
    text = TUTORIAL.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "changed.toml"
    path.write_text(text, encoding="utf-8")
    return find_target(Experiment(path))


def choice(path_manager: str, congestion: str = "lia", buffer_mib: float = 0.05) -> Choice:
    return Choice(path_manager, congestion, buffer_mib, 7.5, 8.0, 1.0)


def impacts(*used: str) -> dict[str, Impact]:
    factors = {name: Estimate(0.1, 0.01, 2) for name in ("wifi", "cellular")}
    return {"lia": Impact(factors, used)}


def read(text: str) -> dict[str, Any]:
    """The configuration; the agent itself finds it good where its program is at hand."""
    program = os.environ.get("ANABRANCHD") or shutil.which("anabranchd")
    for built in ("release", "debug"):
        found = REPOSITORY / "target" / built / "anabranchd"
        program = program or (str(found) if found.is_file() else None)
    if program is not None:
        done = subprocess.run(
            [program, "agent", "--check", "--config", "/dev/stdin"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return tomllib.loads(text)


def test_a_full_mesh_uses_every_interface_and_says_what_is_not_the_agents(tmp_path: Path) -> None:
    text = agent_toml(target(tmp_path), choice("fullmesh"), {})
    assert read(text) == {
        "agent": {"set_pm_type": True},
        "interface": [{"name": "wifi"}, {"name": "cellular"}],
        "connection": [{"policy": "fullmesh"}],
    }
    for line in (
        "#   anabranchd cc load lia",
        '#   sysctl -w net.ipv4.tcp_rmem="4096 52429 52429"',
        '#   sysctl -w net.ipv4.tcp_wmem="4096 16384 52429"',
    ):
        assert line in text.splitlines()


def test_what_pcdc_leaves_out_is_a_spare_interface(tmp_path: Path) -> None:
    config = read(agent_toml(target(tmp_path), choice("pcdc"), impacts("wifi")))
    assert config["interface"] == [{"name": "wifi"}, {"name": "cellular", "role": "backup"}]
    assert config["connection"] == [{"policy": "fullmesh"}]


def test_radios_and_backups_of_the_scenario_go_along(tmp_path: Path) -> None:
    radios = """
[[interface]]
node = "phone"
link = "wifi"
radio = "wifi"
[[interface]]
node = "phone"
link = "cellular"
radio = "lte"
power = { theta = "1 W", beta = "2 W" }
"""
    text = TUTORIAL.read_text(encoding="utf-8") + radios
    path = tmp_path / "radios.toml"
    path.write_text(text, encoding="utf-8")
    config = read(agent_toml(find_target(Experiment(path)), choice("energy"), {}))
    assert config["interface"] == [
        {"name": "wifi", "radio": "wifi"},
        {"name": "cellular", "radio": "lte", "power": {"theta": "1 W"}},
    ]
    assert config["connection"] == [{"policy": "energy"}]


def test_a_control_of_the_simulator_alone_is_said_to_be_one(tmp_path: Path) -> None:
    simulated = [one["name"] for one in list_algorithms() if "kernel" not in one["hosts"]]
    for name in simulated[:1]:
        assert f"{name} runs in the simulator only" in agent_toml(
            target(tmp_path), choice("fullmesh", name), {}
        )


@pytest.mark.parametrize(
    ("manager", "words"),
    [
        ("ndiffports", "the agent has one subflow per pair of addresses"),
        ("static", "the agent decides by itself"),
    ],
)
def test_a_path_manager_that_the_agent_cannot_have_is_refused_before_any_run(
    anabranch: Command, tmp_path: Path, manager: str, words: str
) -> None:
    out, file = tmp_path / "out", tmp_path / "agent.toml"
    arguments = ["--congestion", "lia", "--buffers", "1:5:1", "--seeds", "2", "--out", out]
    done = anabranch("tune", TUTORIAL, *arguments, "--path-managers", manager, "--emit-agent", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--emit-agent: {manager}: {words}" in done.stderr
    assert not out.exists()
    assert not file.exists()


def test_a_link_that_can_be_no_interface_is_refused(tmp_path: Path) -> None:
    named = target(tmp_path, ('[[link]]\nname = "cellular"', '[[link]]\nname = "the-cellular-modem"'))
    with pytest.raises(TuningError, match="'the-cellular-modem', the first link of subflow 'cellular'"):
        check_emission(named, GRID)


def test_the_file_is_written_beside_what_is_printed(anabranch: Command, tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    arguments = ["--congestion", "lia", "--buffers", "0.2:1:0.2", "--seeds", "2", "--out", tmp_path / "out"]
    done = anabranch("tune", TUTORIAL, *arguments, "--set", "duration=2 s", "--json", "--emit-agent", file)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["recommendation"]
    text = file.read_text(encoding="utf-8")
    assert f"path manager {found['path_manager']}, congestion control {found['congestion']}" in text
    assert {one["name"] for one in read(text)["interface"]} == {"wifi", "cellular"}
