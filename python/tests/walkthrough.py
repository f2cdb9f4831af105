"""Follows a tutorial as its reader would: writes its files, enters its commands, compares what they print.

Fenced blocks of a page mean, by their language:

- ``console``: lines after ``$`` are commands, the others what they print; exit codes are 0. A command that
  ends in a backslash goes on in the next line. ``dask`` commands run in the background until the page ends.
- ``toml`` or ``python`` with a file name in a comment in the first line: the reader writes this file; with
  ``, continued`` after the name, appends to it.
- other ``python``: code that is entered after the page's earlier code; a block without a language after it is
  what it prints.
- ``sh``: not followed, for what a test cannot do, such as what needs root.

In what is printed a line ``...`` stands for any number of lines. The keys of run folders, which change with
the sources of the engine, and spaces at the ends of lines do not count.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

from support import LIMIT_S, REPOSITORY

#: The port in the text; the test takes a free one.
PORT = "8786"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# ([\w.-]+\.(?:toml|py))(, continued)?")
_KEY = re.compile(r"\b[0-9a-f]{12}\b")


class Block(NamedTuple):
    """A fenced block, and where its content lies in the page."""

    language: str
    text: str
    start: int
    end: int


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(found[1], found[2], *found.span(2)) for found in _BLOCK.finditer(page)]


def matches(expected: str, printed: str) -> bool:
    """Say whether a text is the one that is expected, in which ``...`` stands for any lines."""
    lines = [re.escape(_plain(line)) for line in _lines(expected)]
    pattern = "".join(r"(?:.*\n)*?" if line == r"\.\.\." else line + r"\n" for line in lines)
    return re.fullmatch(pattern, "".join(_plain(line) + "\n" for line in _lines(printed))) is not None


def _plain(line: str) -> str:
    return _KEY.sub("<key>", line.rstrip())


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines() if text.strip() else []


class Reader:
    """Follows a page in a folder of its own, in which ``scenarios`` is the repository's.

    Parameters
    ----------
    folder
        An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "here"
        self._folder.mkdir()
        (self._folder / "scenarios").symlink_to(REPOSITORY / "scenarios")
        self._names: dict[str, object] = {"__name__": "__main__"}
        self._printed: str | None = None
        self._background = ExitStack()
        self._workers: list[Path] = []
        self._logs = folder
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self._port = str(unused.getsockname()[1])
        programs = folder / "bin"
        programs.mkdir()
        for name in ("anabranch", "dask"):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "DASK_TEMPORARY_DIRECTORY": str(folder),
        }

    def follow(self, page: str) -> str:
        """Follow a page.

        Parameters
        ----------
        page
            Its text.

        Returns
        -------
        str
            The page with what was really printed, which is the same text if nothing differs.
        """
        pieces, end = [], 0
        with self._background:
            for block in blocks(page):
                pieces += [page[end : block.start], self._step(block)]
                end = block.end
        return "".join(pieces) + page[end:]

    def _step(self, block: Block) -> str:
        printed, self._printed = self._printed, None
        if block.language == "console":
            return "".join(self._command(*one) for one in _commands(block.text))
        if block.language == "":
            assert printed is not None, f"no code is before what is printed:\n{block.text}"
            return _kept(block.text, printed)
        if block.language != "sh":
            self._write_or_enter(block.text)
        return block.text

    def _write_or_enter(self, text: str) -> None:
        first, _, _ = text.partition("\n")
        if named := _FILE.fullmatch(first):
            with (self._folder / named[1]).open("a" if named[2] else "w", encoding="utf-8") as file:
                file.write(text)
            return
        with redirect_stdout(io.StringIO()) as out, _working_in(self._folder):
            exec(compile(text, "the page", "exec"), self._names)
        self._printed = out.getvalue()

    def _command(self, shown: str, expected: str) -> str:
        command = shown.removeprefix("$ ").replace(PORT, self._port)
        if command.startswith("dask "):
            self._start(command)
            return shown + expected
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}: exit code {done.returncode}: {done.stdout}"
        return shown + _kept(expected, done.stdout.replace(f":{self._port}", f":{PORT}"))

    def _start(self, command: str) -> None:
        """Start a program of Dask; wait until a worker is registered."""
        log = self._logs / f"dask{len(self._workers)}.log"
        self._workers.append(log)
        with log.open("wb") as file:
            process = subprocess.Popen(
                shlex.split(command),
                cwd=self._folder,
                env=self._environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._background.callback(_end, process)
        sign = b"Scheduler at:" if "scheduler" in command else b"Registered to:"
        end_s = time.monotonic() + LIMIT_S
        while sign not in log.read_bytes():
            assert time.monotonic() < end_s, f"{command} has not come up: {log.read_text(encoding='utf-8')}"
            time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and the processes that it has started.

    A worker of a cluster ends its own, and gives their semaphores back, if it is asked to.
    """
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command as it is shown, and what it is to print."""
    found = re.split(r"^(?=\$ )", text, flags=re.MULTILINE)
    assert found[0] == "", f"a block of commands begins with '$ ':\n{text}"
    for one in found[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", one)
        assert command is not None
        yield command[0], one[command.end() :]


def _kept(expected: str, printed: str) -> str:
    """Return what is expected if it is what was printed, else the latter."""
    if matches(expected, printed):
        return expected
    return "".join(line.rstrip() + "\n" for line in _lines(printed))


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    previous = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(previous)
