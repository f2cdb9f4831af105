"""The ``anabranch`` command.

Its commands, and with them the libraries, are imported by :func:`main`, so that Ctrl-C can end that quietly.
"""

from __future__ import annotations

import io
import signal
import sys


def main() -> None:
    """Run the command and leave with its exit code."""
    # KeyboardInterrupt would show as a traceback, from some libraries' imports even as "Exception ignored".
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from anabranch.cli.commands import app
    from anabranch.cli.outcome import INTERRUPTED

    try:
        signal.signal(signal.SIGINT, handler)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without "±" gets "?"
        sys.exit(app())
    except KeyboardInterrupt:  # outside of what the commands and typer catch
        sys.exit(INTERRUPTED)
