"""What the workers of a Dask cluster do: make runs, and stop when they are told to."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from anabranch._engine import VERSION, AnabranchError, Cancelled, Control, Scenario
from anabranch.bundle import Bundle, unpack

#: Scenarios that a worker keeps loaded.
LOADED_MAX = 64


class ClusterError(AnabranchError):
    """A cluster cannot be reached or cannot be used; the message says why."""


class Item(NamedTuple):
    """One run, as it travels."""

    bundle: Bundle
    key: str
    seed: int


class Batch(NamedTuple):
    """Runs that one worker makes one after the other; of which campaign, and for which version."""

    items: tuple[Item, ...]
    version: str
    campaign: str


class Made(NamedTuple):
    """The files of each run by name, up to the first that has failed, and the processor time of all.

    Not the time by the clock: a worker on a busy machine would get small batches, which cost it most.
    """

    runs: list[dict[str, bytes] | Exception]
    took_s: float


def make(batch: Batch) -> Made:
    """Make the runs of a batch.

    Parameters
    ----------
    batch
        The runs.

    Returns
    -------
    Made
        Their files.

    Raises
    ------
    ClusterError
        If this worker has another version than the client.
    """
    if batch.version != VERSION:
        raise ClusterError(f"a worker has anabranch {VERSION}, the client {batch.version}; expected the same")
    begun_s = time.thread_time()
    runs: list[dict[str, bytes] | Exception] = []
    with _scratch() as folder:
        for item in batch.items:
            try:
                runs.append(_files(item, batch.campaign, folder))
            except Exception as error:  # handed over to the client, with what has been made before
                runs.append(error)
                break
    return Made(runs, time.thread_time() - begun_s)


def stop(campaign: str) -> None:
    """Stop the runs of a campaign that are under way on this worker, and those that are still to come."""
    with _lock:
        _stopped.add(campaign)
        for control in _under_way.get(campaign, ()):
            control.cancel()


_lock = threading.Lock()
_under_way: dict[str, set[Control]] = {}
_stopped: set[str] = set()


def _files(item: Item, campaign: str, folder: Path) -> dict[str, bytes]:
    scenario = _loaded(item.bundle)
    if scenario.key != item.key:
        raise ClusterError("the scenario file or a trace has changed since it was loaded")
    with _watched(campaign) as control:
        run = scenario.run(item.seed, folder, False, [], control)["path"]
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    shutil.rmtree(run)  # the folders above it stay for the next run: a removed folder costs more than a file
    return files


@lru_cache(maxsize=LOADED_MAX)
def _loaded(bundle: Bundle) -> Scenario:
    with _scratch() as folder:
        return unpack(bundle, folder)


@contextmanager
def _watched(campaign: str) -> Iterator[Control]:
    """Let :func:`stop` reach a run."""
    control = Control()
    with _lock:
        if campaign in _stopped:
            raise Cancelled("the run was cancelled")
        _under_way.setdefault(campaign, set()).add(control)
    try:
        yield control
    finally:
        with _lock:
            _under_way[campaign].discard(control)
            if not _under_way[campaign]:
                del _under_way[campaign]


@contextmanager
def _scratch() -> Iterator[Path]:
    """Make a folder that is gone afterwards; if the worker is killed, Dask removes it with the worker's."""
    from distributed import get_worker

    with tempfile.TemporaryDirectory(prefix="anabranch-", dir=get_worker().local_directory) as folder:
        yield Path(folder)
