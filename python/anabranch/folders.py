"""Run folders that come from elsewhere as bytes: looked for, verified, put in their place.

``crates/record/src/folder.rs`` does the same for runs that this machine makes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from anabranch import _engine
from anabranch._engine import OutputError, RunError, RunFolderError, Scenario
from anabranch.results import Run

#: Number of hexadecimal digits of the key that name the folder.
_FOLDER_DIGITS = 12


class Place:
    """A folder in which runs are kept.

    Parameters
    ----------
    out
        The folder.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._numbers = itertools.count()
        self._missing = [path for path in (out, *out.parents) if not path.exists()]

    def find(self, scenario: Scenario, seed: int) -> Run | str | None:
        """Return the run if it is there and complete, why it cannot be used if it is damaged, else None."""
        path = self._path(scenario, seed)
        if not os.path.lexists(path):
            return None
        try:
            _verified(path, scenario, seed)
        except RunFolderError as error:
            return str(error)
        return Run(path, reused=True, is_verified=True)

    def make_sure_it_is_writable(self) -> None:
        """Raise OutputError if runs cannot be written here; leave nothing."""
        try:
            self._out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".tmp-", dir=self._out):
                pass
        except OSError as error:
            raise OutputError(
                f"{self._out}: cannot write runs here: {error.strerror}; choose another place with --out"
            ) from error
        finally:
            for path in self._missing:
                _remove_if_empty(path)

    def put(self, files: Mapping[str, bytes], scenario: Scenario, seed: int) -> Path:
        """Write a run aside, verify it and rename it to its place.

        Parameters
        ----------
        files
            The files of the run folder, by name.
        scenario
            The scenario whose run it must be.
        seed
            The seed that it must have.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        RunError
            If it cannot be written, or is not what was asked for.
        """
        target = self._path(scenario, seed)
        aside = target.with_name(f".tmp-{target.name}-{os.getpid()}-put{next(self._numbers)}")
        try:
            aside.mkdir(parents=True)
            for name, content in files.items():
                (aside / Path(name).name).write_bytes(content)
            _verified(aside, scenario, seed)
            if os.path.lexists(target):
                old = aside.with_suffix(".old")
                target.rename(old)
                aside.rename(target)
                _remove(old)
            else:
                aside.rename(target)
        except OSError as error:
            raise RunError(f"{target}: cannot be written: {error.strerror}") from error
        except RunFolderError as error:
            raise RunError(f"what a worker has sent is no run: {error}") from error
        finally:
            if aside.exists():
                shutil.rmtree(aside, ignore_errors=True)
                for path in (target.parent, target.parent.parent, *self._missing):
                    _remove_if_empty(path)
        return target

    def _path(self, scenario: Scenario, seed: int) -> Path:
        return self._out / scenario.name / scenario.key[:_FOLDER_DIGITS] / f"seed-{seed}"


def _verified(path: Path, scenario: Scenario, seed: int) -> None:
    manifest = json.loads(_engine.open_run(path))
    if (manifest["key"], manifest["seed"]) != (scenario.key, seed):
        raise RunFolderError(f"{path}: damaged: it holds another run")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _remove_if_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir()
