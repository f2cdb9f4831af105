"""Documents with a generated part, which begins at a marker."""

from __future__ import annotations

from pathlib import Path

from anabranch.cli.outcome import BadUsage


def read_marked(path: Path, marker: str) -> str:
    """Read the document of ``--write`` before anything is run.

    Raises
    ------
    BadUsage
        If it cannot be read, or has no line with the marker.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadUsage(f"--write {path}: {error.strerror}") from error
    if marker not in text:
        raise BadUsage(f"--write {path}: expected a line {marker}")
    return text
