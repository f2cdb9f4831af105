"""What several tests share: a small scenario, and the content of a folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anabranch as ab

REPOSITORY = Path(__file__).resolve().parents[2]

#: Two paths from S to D; X is connected to nothing.
TWO_PATHS = """\
name = "two-paths"
title = "A meter with two paths"
duration = "5 s"

[transport]
profile = "ns2"
window_cap = "50 packets"

[[node]]
names = ["S", "R1", "R2", "D", "X"]

[[link]]
name = "s-r1"
between = ["S", "R1"]
rate = "10 Mbit/s"
delay = "2 ms"
queue = "unlimited"

[[link]]
name = "s-r2"
between = ["S", "R2"]
rate = "10 Mbit/s"
delay = "2 ms"
queue = "unlimited"

[[link]]
name = "path1"
between = ["R1", "D"]
rate = "3 Mbit/s"
delay = "10 ms"
queue = "20 packets"
loss = "0.5 %"

[[link]]
name = "path2"
between = ["R2", "D"]
rate = "1 Mbit/s"
delay = "20 ms"
queue = "20 packets"

[[connection]]
name = "meter"
from = "S"
to = "D"
protocol = "mptcp"
congestion = "lia"
traffic = { kind = "ftp", start = "uniform(0 s, 0.5 s)" }

[[connection.subflow]]
name = "p1"
via = ["R1"]

[[connection.subflow]]
name = "p2"
via = ["R2"]
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


#: How long, in seconds, a test waits for what a process does.
LIMIT_S = 60


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start the command; kill it if the test fails before it ends."""
    command = [sys.executable, "-m", "anabranch", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path: Path, pattern: str) -> None:
    """Wait until something appears."""
    end = time.monotonic() + LIMIT_S
    while not any(path.glob(pattern)):
        assert time.monotonic() < end, f"{pattern} has not appeared"
        time.sleep(0.02)


def as_kernel_run(
    run: ab.Run, out: Path, invalid: Sequence[str] = (), version: str = "0.1.0+src.0123456789ab@6.18.44"
) -> tuple[Path, bool]:
    """Copy a simulated run to where the kernel engine would put it; return where, and if it was there."""
    manifest = dict(run.manifest)
    manifest["engine"], manifest["version"] = "kernel", version
    parts = ["kernel", version, json.dumps(manifest["canonical"]), json.dumps(manifest["overrides"])]
    manifest["key"] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    manifest["environment"] = {
        "kernel": "6.18.44",
        "invalid": list(invalid),
        "attempts": 3 if invalid else 1,
        "notes": ["send_jitter is the machine's own"],
        "sysctls": {},
        "facts": {"emulator_lateness_p99_us": 70.0 + run.seed},
    }
    folder = out / str(manifest["scenario"]) / manifest["key"][:12] / f"seed-{run.seed}"
    was_there = folder.exists()
    shutil.copytree(run.path, folder, dirs_exist_ok=True)
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder, was_there
