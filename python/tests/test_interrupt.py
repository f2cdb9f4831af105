"""Ctrl-C and SIGTERM: finished runs stay, unfinished ones leave nothing."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab
from support import LIMIT_S, TWO_PATHS, started, wait_for


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A scenario that would run for hours."""
    path = tmp_path / "endless.toml"
    path.write_text(TWO_PATHS.replace('duration = "5 s"', 'duration = "9000000 s"'), encoding="utf-8")
    return path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_unfinished_run_leaves_nothing(
    endless: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with started("run", endless, "--seeds", 3, "--jobs", 2, "--out", out) as process:
        wait_for(out, "two-paths/*/.tmp-*")
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert stdout == ""
    assert "Traceback" not in stderr
    assert list(out.iterdir()) == []


def test_finished_runs_stay(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with started("run", scenario, "--seeds", 100_000, "--jobs", 1, "--out", out) as process:
        wait_for(out, "two-paths/*/seed-2")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert stderr == "interrupted: finished runs are kept\n"
    folders = sorted(out.glob("two-paths/*/*"))
    assert len(folders) >= 2
    for folder in folders:
        assert ab.open_run(folder).path == folder


def test_a_terminal_shows_progress(scenario: Path, tmp_path: Path) -> None:
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "anabranch", "run", str(scenario), "--seeds", "2"]
    process = subprocess.Popen(command, stdout=inner, stderr=inner, cwd=tmp_path)
    os.close(inner)
    shown = bytearray()
    try:
        while chunk := os.read(outer, 4096):
            shown += chunk
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(outer)
    assert process.wait(timeout=LIMIT_S) == 0
    assert b"two-paths" in shown
    assert "━".encode() in shown
