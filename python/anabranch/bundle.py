"""A scenario file and the files that it names, as one value that travels to other machines."""

from __future__ import annotations

import os
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anabranch._engine import Scenario, ScenarioError
from anabranch.experiment import Experiment

#: Keys that name files: rate traces, and configurations of the device agent.
_KEYS = ("trace", "agent")
#: How the canonical form of a scenario names the content of such a file.
_NAMED = re.compile(r'"(?:trace|agent)":"blake3:')


class Bundle(NamedTuple):
    """Files by their paths from a common folder, compressed; which of them is the scenario; overrides."""

    files: tuple[tuple[str, bytes], ...]
    scenario: str
    overrides: tuple[tuple[str, str], ...]


def pack(experiment: Experiment) -> Bundle:
    """Read a scenario file and the files that it names: rate traces, configurations of agents.

    Parameters
    ----------
    experiment
        The scenario.

    Returns
    -------
    Bundle
        The files, in the places that they have to each other.

    Raises
    ------
    ScenarioError
        If one is named by its absolute path, or if the file can no longer be read.
    """
    path = Path(os.path.normpath(experiment.path.parent.resolve() / experiment.path.name))
    try:
        files = {path: path.read_bytes()}
        if _NAMED.search(experiment.scenario.canonical):
            for name in _files(files[path].decode(), experiment.overrides):
                if Path(name).is_absolute():
                    raise ScenarioError(
                        f"{experiment.path}: {name}: an absolute path cannot travel to a cluster; expected a "
                        "path from the scenario's folder"
                    )
                # Not resolved, so that it lies there where the scenario looks for it.
                files[Path(os.path.normpath(path.parent / name))] = (path.parent / name).read_bytes()
    except OSError as error:
        raise ScenarioError(f"{experiment.path}: {error.filename}: {error.strerror}") from error
    base = Path(os.path.commonpath([file.parent for file in files]))
    packed = tuple((str(file.relative_to(base)), zlib.compress(content)) for file, content in files.items())
    return Bundle(packed, str(path.relative_to(base)), tuple(experiment.overrides.items()))


def unpack(bundle: Bundle, folder: Path) -> Scenario:
    """Write the files into a folder and load the scenario; the folder is not needed afterwards.

    Parameters
    ----------
    bundle
        The files.
    folder
        An empty folder.

    Returns
    -------
    Scenario
        The scenario.
    """
    for name, content in bundle.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(content))
    return Scenario(folder / bundle.scenario, list(bundle.overrides))


def _files(text: str, overrides: Mapping[str, str]) -> set[str]:
    """Return the paths of all files that a scenario or the overrides name, used or not."""
    try:
        names = set(_named(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"the files that it names are not found: {error}; expected TOML 1.0") from error
    for key, value in overrides.items():
        try:
            read: Any = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            read = value
        names.update(_named({key.rpartition(".")[2]: read}))
    return names


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _KEYS and isinstance(item, str):
                yield item
            else:
                yield from _named(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item)
