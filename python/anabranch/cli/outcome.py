"""Exit codes, and the one place where errors become messages."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Never

import typer

from anabranch._engine import AnabranchError, Cancelled, OutputError, RunError, RunFolderError, ScenarioError
from anabranch.bed import Unavailable
from anabranch.grid import GridError

FAILED = 1
BAD_INPUT = 2
SKIPPED = 4
INTERRUPTED = 130
TERMINATED = 143

#: What the user gave is at fault.
_INPUT_ERRORS = (ScenarioError, OutputError, RunFolderError, GridError)


class BadUsage(Exception):
    """The command line is at fault; the message says how."""


@contextmanager
def reported() -> Iterator[None]:
    """Turn what a user can meet into one message and an exit code, never into a traceback."""
    try:
        yield
    except (*_INPUT_ERRORS, BadUsage) as error:
        _fail(f"error: {error}", BAD_INPUT)
    except Unavailable as error:
        _fail(f"skipped: {error}", SKIPPED)
    except (KeyboardInterrupt, Cancelled):
        _fail("interrupted: finished runs are kept", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except (RunError, AnabranchError, OSError) as error:
        _fail(f"error: {error}", FAILED)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that what is unfinished is removed."""
    previous = signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminated(_number: int, _frame: FrameType | None) -> Never:
    raise SystemExit(TERMINATED)


def _fail(message: str, code: int) -> Never:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None
