"""Stands in for anabranch-bed: it speaks the same protocol, but has the simulator make the runs.

``$FAKE_BED`` says how it behaves; each of its options is appended to the file that ``$FAKE_BED_LOG`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import anabranch as ab
from support import as_kernel_run

#: Nothing waits longer for a signal.
LIMIT_S = 60


def main() -> int:
    """Behave as ``$FAKE_BED`` says; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["run"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--out", type=Path, required=True)
    for flag in ("--force", "--capture", "--native-congestion", "--json"):
        parser.add_argument(flag, action="store_true")
    applications = ["own", "iperf3", "anabranchd", "anabranchd-tls"]
    parser.add_argument("--application", choices=applications, required=True)
    options = parser.parse_args()
    note(" ".join(sys.argv[1:]))
    behaviour = os.environ.get("FAKE_BED", "runs")
    if behaviour == "waits":
        return wait_for_a_signal()
    if behaviour in ENDINGS:
        stdout, stderr, code = ENDINGS[behaviour]
        print(stdout, end="", flush=True)
        print(stderr, end="", file=sys.stderr)
        return code
    experiment = ab.Experiment(options.file, [tuple(text.split("=", 1)) for text in options.set])
    if behaviour == "is slower":
        experiment = experiment.with_(**{"link.path.rate": "2 Mbit/s"})
    seeds = [options.seed] if options.seeds is None else range(1, options.seeds + 1)
    return run(experiment, seeds, options.out, loses_second=behaviour == "loses the second")


#: What it prints, what it says on standard error, and its exit code.
ENDINGS = {
    "is busy": ("", "error: another bed runs on this host (process 7)\nwait for it\n", 1),
    "refuses": ("", "error: --engine kernel: a kernel has no scheduler of the name roundrobin\n", 2),
    "lacks": ("", "skipped: no TUN device here: modprobe tun\n", 4),
    "is interrupted": ("", "error: interrupted: finished runs are kept\n", 130),
    "panics": ("", "thread 'main' panicked at src/main.rs:1:1:\nindex out of bounds\n", 101),
    "prints garbage": ("Segmentation fault\n", "", 0),
    "prints another protocol": ('{"event": "run", "folder": "/tmp"}\n', "", 0),
    "forgets": ("", "", 0),
}


def run(experiment: ab.Experiment, seeds: list[int] | range, out: Path, *, loses_second: bool) -> int:
    """Make runs; the second may not count."""
    duration_s = experiment.scenario.duration_s
    for seed in seeds:
        tell(event="progress", seed=seed, attempt=1, reached_s=duration_s / 2, duration_s=duration_s)
        invalid = ["lateness p99 3.1 ms, above 2 ms"] if loses_second and seed == 2 else []
        with tempfile.TemporaryDirectory() as aside:
            path, reused = as_kernel_run(experiment.run(seed=seed, out=aside), out, invalid)
        valid = not invalid
        tell(
            event="run", seed=seed, path=str(path), reused=reused, damaged=None, valid=valid, invalid=invalid
        )
    if loses_second:
        print("error: runs that do not count: seed 2", file=sys.stderr)
    return int(loses_second)


def wait_for_a_signal() -> int:
    """Wait for SIGINT or SIGTERM, take some time to wind up, and note what has come."""
    received: list[int] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, receive)
    end = time.monotonic() + LIMIT_S
    while not received and time.monotonic() < end:
        tell(event="progress", seed=1, attempt=1, reached_s=1.0, duration_s=5.0)
        note("waiting")
        time.sleep(0.02)
    time.sleep(0.3)
    note(f"wound up after {signal.Signals(received[0]).name}")
    print("error: interrupted: finished runs are kept", file=sys.stderr)
    return 128 + received[0]


def tell(**event: object) -> None:
    """Print an event."""
    print(json.dumps(event), flush=True)


def note(text: str) -> None:
    """Append a line to the log."""
    if "FAKE_BED_LOG" in os.environ:
        with Path(os.environ["FAKE_BED_LOG"]).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
