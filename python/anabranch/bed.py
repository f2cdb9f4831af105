"""Runs on the kernel: the program ``anabranch-bed`` is started, listened to and, if need be, ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from anabranch._engine import AnabranchError, Cancelled, RunError, ScenarioError
from anabranch.results import Run

PROGRAM = "anabranch-bed"

#: How long, in seconds, the program may take to remove its network namespaces after a signal. It is killed
#: then; whoever starts it next removes what it has left.
WIND_UP_S = 30.0

#: What it prints is shown up to this length where it is not understood.
SHOWN_CHARACTERS = 200

#: What the fields of an event must be; events that are not here are passed over.
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "run": {"seed": (int,), "path": (str,), "reused": (bool,), "damaged": (str, type(None))},
    "progress": {"reached_s": (int, float)},
}

_REPOSITORY = Path(__file__).resolve().parents[2]


class Unavailable(AnabranchError):
    """This machine or version lacks something; the message says what."""


@dataclass(frozen=True)
class KernelOptions:
    """What can be chosen for runs on the kernel and not for those in the simulator.

    Parameters
    ----------
    native_congestion
        Whether to use the kernel's own congestion control of the scenario's name, not ours as BPF.
    application
        What sends and receives: ``own`` does exactly what the scenario says; ``iperf3`` is that program;
        ``anabranchd`` are the commands ``anabranchd send`` and ``receive``, ``anabranchd-tls`` the same
        encrypted, for a scenario whose connections are those of one transfer.
    """

    native_congestion: bool = False
    application: Literal["own", "iperf3", "anabranchd", "anabranchd-tls"] = "own"

    def arguments(self) -> list[str]:
        """Return the options of the program."""
        return [*["--native-congestion"] * self.native_congestion, "--application", self.application]


class Order(NamedTuple):
    """What is to be run: a scenario file with overrides, and where to."""

    path: Path
    overrides: Sequence[tuple[str, str]]
    out: Path
    force: bool
    capture: bool
    options: KernelOptions


def find() -> Path:
    """Return the program: what ``$ANABRANCH_BED`` names, else the repository's, else the one in ``$PATH``.

    Raises
    ------
    Unavailable
        If there is none.
    """
    chosen = os.environ.get("ANABRANCH_BED")
    if chosen:
        candidates = [chosen]
    else:
        built = Path(os.environ.get("CARGO_TARGET_DIR", _REPOSITORY / "target"), "release", PROGRAM)
        candidates = [str(built), PROGRAM]
    for candidate in candidates:
        if (found := shutil.which(candidate)) is not None:
            return Path(found)
    what = f" ($ANABRANCH_BED names {chosen}, which is no program)" if chosen else ""
    raise Unavailable(f"--engine kernel needs {PROGRAM}; build it with: make bed{what}")


def run_on_kernel(
    order: Order, seeds: Sequence[int], duration_s: float, progress: Callable[[float], None] | None
) -> list[Run]:
    """Run a scenario on the kernel, one seed after the other.

    Parameters
    ----------
    order
        What is to be run.
    seeds
        The seeds.
    duration_s
        Duration of the scenario.
    progress
        Called with the time that all runs together have reached, in seconds; it goes back when a run has to
        be repeated.

    Returns
    -------
    list of Run
        The runs in the order of ``seeds``; some may not count, see :attr:`Run.invalid`.

    Raises
    ------
    ScenarioError
        If the kernel cannot do what the scenario asks for.
    Unavailable
        If the program is missing, or something that it needs.
    RunError
        If a run fails.
    Cancelled
        If a signal has ended the program, but not this process.
    """
    program = find()
    runs: dict[int, Run] = {}

    def reached(in_this_run_s: float) -> None:
        if progress is not None:
            progress(len(runs) * duration_s + in_this_run_s)

    for numbers in _in_one_go(seeds):
        asked = ["--seed", str(numbers[0])] if len(numbers) == 1 else ["--seeds", str(len(numbers))]
        command = [str(program), "run", str(order.path), *asked, "--out", str(order.out), "--json"]
        for key, value in order.overrides:
            command += ["--set", f"{key}={value}"]
        command += ["--force"] * order.force + ["--capture"] * order.capture + order.options.arguments()
        with _started(command) as running:
            for line in running.lines:
                event = _event(line)
                if event["event"] == "run":
                    run = Run(event["path"], reused=event["reused"], damaged=event["damaged"])
                    runs[event["seed"]] = run
                    reached(0.0)
                elif event["event"] == "progress":
                    reached(event["reached_s"])
            code, messages = running.result()
        # Runs that do not count make the program fail, too; they say so themselves.
        told = all(seed in runs for seed in numbers) and any(runs[seed].invalid for seed in numbers)
        if not (code == 0 or (code == 1 and told)):
            raise _failure(code, messages)
        if missing := [seed for seed in numbers if seed not in runs]:
            raise RunError(f"{PROGRAM} has ended without a run of seed {missing[0]}")
    return [runs[seed] for seed in seeds]


def _in_one_go(seeds: Sequence[int]) -> Iterator[list[int]]:
    """Divide seeds into what one call of the program can run: 1 to N, or a single one."""
    unique = list(dict.fromkeys(seeds))
    if unique == list(range(1, len(unique) + 1)):
        yield unique
    else:
        yield from ([seed] for seed in unique)


def _event(line: str) -> dict[str, Any]:
    """Read a line; raise if it is not what the program of this version prints."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if isinstance(event, dict) and isinstance(event.get("event"), str):
        fields = _FIELDS.get(event["event"], {})
        if all(isinstance(event.get(name, ...), types) for name, types in fields.items()):
            return event
    shown = line.strip()[:SHOWN_CHARACTERS]
    raise RunError(f"{PROGRAM} has printed what is not understood: {shown!r}; build it anew with: make bed")


def _failure(code: int, messages: str) -> AnabranchError:
    """Return what went wrong as an exception, from the exit code and what was written to standard error."""
    kinds: dict[int, tuple[type[AnabranchError], str]] = {
        1: (RunError, "error: "),
        2: (ScenarioError, "error: "),
        4: (Unavailable, "skipped: "),
    }
    if code in (130, 143):
        return Cancelled(f"{PROGRAM} was interrupted")
    kind, mark = kinds.get(code, (RunError, ""))
    _, found, message = f"\n{messages}".partition(f"\n{mark}")
    if mark and found:
        return kind(message.strip())
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    last = messages.strip().rpartition("\n")[2][:SHOWN_CHARACTERS]
    return kind(f"{PROGRAM} has ended with {how}" + (f": {last}" if last else ""))


class _Running(NamedTuple):
    """The program, and the file that its standard error goes to."""

    process: subprocess.Popen[str]
    errors: IO[bytes]

    @property
    def lines(self) -> IO[str]:
        """What it prints."""
        assert self.process.stdout is not None
        return self.process.stdout

    def result(self) -> tuple[int, str]:
        """Wait for its end; return its exit code (negative: a signal) and what it wrote to standard error."""
        code = self.process.wait()
        self.errors.seek(0)
        return code, self.errors.read().decode("utf-8", errors="replace")

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end; further signals to this process change nothing about that."""
        self.process.send_signal(number)
        deadline = time.monotonic() + WIND_UP_S
        while self.process.returncode is None:
            try:
                # What it still prints is read, or else it might wait for that.
                self.process.communicate(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            except (KeyboardInterrupt, SystemExit):
                continue


@contextmanager
def _started(command: Sequence[str]) -> Iterator[_Running]:
    """Start the program. It has ended afterwards: if need be by SIGINT or SIGTERM, as this process was."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise Unavailable(f"{command[0]}: cannot be started: {error.strerror}") from error
        running = _Running(process, errors)
        with running.lines:
            try:
                yield running
            except BaseException as error:
                running.end(signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
                raise
