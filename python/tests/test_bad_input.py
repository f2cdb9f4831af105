"""What a user can get wrong: exit code 2, one clear message, nothing half-written."""

from __future__ import annotations

import ctypes
import os
import random
from pathlib import Path

import pytest

from support import TWO_PATHS, Command

#: What is replaced in the scenario, by what, and what the message must say.
MISTAKES = {
    "unknown key": ('delay = "10 ms"', 'delai = "10 ms"', ["delai", "delay"]),
    "wrong unit": ('rate = "3 Mbit/s"', 'rate = "3 ms"', ["rate", "3 ms", "Mbit/s"]),
    "negative rate": ('rate = "3 Mbit/s"', 'rate = "-3 Mbit/s"', ["rate", "-3 Mbit/s"]),
    "zero rate": ('rate = "3 Mbit/s"', 'rate = "0 Mbit/s"', ["rate", "0 bit/s", "1 bit/s"]),
    "unknown node": ('between = ["R1", "D"]', 'between = ["R1", "DD"]', ["DD", '"D"']),
    "unreachable destination": ('to = "D"', 'to = "X"', ["meter", '"X"']),
    "two nodes of one name": ('"D", "X"]', '"D", "X", "R1"]', ["R1"]),
    "unknown congestion control": ('congestion = "lia"', 'congestion = "lai"', ["lai", "lia"]),
    "not TOML": ('name = "two-paths"', 'name = "two-paths', ["1"]),
}


def assert_refused(anabranch: Command, tmp_path: Path, *arguments: object) -> str:
    """Run the scenario; return the one message."""
    out = tmp_path / "out"
    done = anabranch("run", *arguments, "--out", out)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    assert not out.exists()
    message: str = done.stderr
    return message


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_file_is_named_with_its_place(
    anabranch: Command, tmp_path: Path, mistake: str
) -> None:
    old, new, words = MISTAKES[mistake]
    assert old in TWO_PATHS
    path = tmp_path / "wrong.toml"
    path.write_text(TWO_PATHS.replace(old, new), encoding="utf-8")
    message = assert_refused(anabranch, tmp_path, path)
    for word in [f"{path}:", *words]:
        assert word in message
    assert anabranch("check", path).stderr == message


@pytest.mark.parametrize("content", [b"", b"\n# nothing\n"], ids=["empty", "a comment alone"])
def test_an_empty_file_is_refused(anabranch: Command, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.toml"
    path.write_bytes(content)
    assert str(path) in assert_refused(anabranch, tmp_path, path)


def test_ten_megabytes_of_random_bytes_are_refused(anabranch: Command, tmp_path: Path) -> None:
    path = tmp_path / "random.toml"
    path.write_bytes(random.Random(1).randbytes(10_000_000))
    message = assert_refused(anabranch, tmp_path, path)
    assert len(message) < 1000


def test_a_folder_and_a_missing_file_are_refused(anabranch: Command, tmp_path: Path) -> None:
    assert "directory" in assert_refused(anabranch, tmp_path, tmp_path)
    assert "missing.toml" in assert_refused(anabranch, tmp_path, tmp_path / "missing.toml")


def test_an_override_that_is_wrong_is_named(anabranch: Command, tmp_path: Path, scenario: Path) -> None:
    message = assert_refused(anabranch, tmp_path, scenario, "--set", "transport.windowcap=9 packets")
    assert "--set" in message
    assert "window_cap" in message
    assert "KEY=VALUE" in assert_refused(anabranch, tmp_path, scenario, "--set", "duration")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", "1", "--seeds", "2"],
        ["--seeds", "0"],
        ["--seeds", "1000000000000"],
        ["--seed", "-1"],
        ["--seed", str(2**64)],
        ["--jobs", "0"],
        ["--jobs", "1000000"],
        ["--engine", "ns2"],
        ["--frobnicate"],
    ],
)
def test_wrong_usage_is_refused(anabranch: Command, scenario: Path, arguments: list[str]) -> None:
    done = anabranch("run", scenario, *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_no_permission_to_write_is_found_before_the_run(
    anabranch: Command, tmp_path: Path, scenario: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    done = anabranch("run", scenario, "--out", closed / "runs", preexec_fn=_obey_permissions)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {closed}")
    assert "Permission denied" in done.stderr
    assert list(closed.iterdir()) == []


def _obey_permissions() -> None:
    """Take from root the right to write everywhere (CAP_DAC_OVERRIDE)."""
    pr_capbset_drop, cap_dac_override = 24, 1
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(pr_capbset_drop, cap_dac_override, 0, 0, 0) != 0:
        raise OSError("cannot drop CAP_DAC_OVERRIDE")


def test_a_place_that_is_a_file_is_refused(anabranch: Command, scenario: Path) -> None:
    done = anabranch("run", scenario, "--out", scenario)
    assert done.returncode == 2
    assert str(scenario) in done.stderr


def test_comparing_what_is_no_run_is_refused(anabranch: Command, tmp_path: Path, scenario: Path) -> None:
    for path in (tmp_path / "missing", scenario):
        done = anabranch("compare", path)
        assert done.returncode == 2
        assert str(path) in done.stderr
