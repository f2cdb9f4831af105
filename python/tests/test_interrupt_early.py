"""Ctrl-C before the command is there: it ends at once and says nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anabranch as ab
from support import LIMIT_S

#: Runs `anabranch list congestion` as Ctrl-C finds it in a terminal, with SIGINT at one import: counted from
#: the first of the command's own, since what comes before is the interpreter's. Prints how many there were.
COMMAND = """
import os, runpy, signal, sys

class Counter:
    seen = 0

    def find_spec(self, name, path=None, target=None):
        if Counter.seen or name == "anabranch.cli.commands":
            Counter.seen += 1
        if Counter.seen == int(os.environ["AT_IMPORT"]):
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Counter())
try:
    runpy.run_module("anabranch", run_name="__main__", alter_sys=True)
finally:
    sys.stderr.write(str(Counter.seen))
"""
NEVER = -1
MOMENTS = 12


def interrupted(at_import: int) -> subprocess.CompletedProcess[str]:
    """The command, interrupted at that import."""
    command = [sys.executable, "-c", COMMAND, "list", "congestion"]
    surroundings = {**os.environ, "AT_IMPORT": str(at_import)}
    return subprocess.run(
        command, env=surroundings, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def test_an_interrupt_of_the_imports_ends_quietly() -> None:
    whole = interrupted(NEVER)
    imports = int(whole.stderr)
    assert imports > 100, "the command imports its libraries after it has seen to Ctrl-C"
    for moment in range(MOMENTS):
        ended = interrupted(1 + moment * (imports - 1) // (MOMENTS - 1))
        assert ended.returncode in (-signal.SIGINT, 130), (moment, ended)
        assert "Traceback" not in ended.stderr


def test_what_the_package_offers_is_found_when_asked_for() -> None:
    for name in ab.__all__:
        assert getattr(ab, name) is not None
    assert set(ab.__all__) <= set(dir(ab))
    assert ab.__version__ == ab._engine.VERSION
    assert not hasattr(ab, "nothing")
