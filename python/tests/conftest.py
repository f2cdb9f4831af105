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
