"""A small scenario, and the command as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import TWO_PATHS, Command


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario that runs in a fraction of a second."""
    path = tmp_path / "two-paths.toml"
    path.write_text(TWO_PATHS, encoding="utf-8")
    return path


@pytest.fixture
def anabranch(tmp_path: Path) -> Command:
    """The command, run in an empty folder of its own; its output is no terminal."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "anabranch", *map(str, arguments)]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            command, cwd=folder, capture_output=True, text=True, timeout=120, check=False, **options
        )

    return run


@pytest.fixture
def fake_bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of anabranch-bed, see fake_bed.py; returns the file that it logs to."""
    script, log = tmp_path / "anabranch-bed", tmp_path / "fake-bed.log"
    program = Path(__file__).with_name("fake_bed.py")
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("ANABRANCH_BED", str(script))
    monkeypatch.setenv("FAKE_BED_LOG", str(log))
    return log
