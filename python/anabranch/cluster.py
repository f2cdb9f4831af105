"""Runs on the workers of a Dask cluster.

Scenario files travel to the workers and run folders come back as bytes, so no file system is shared. The
client alone writes to the place where runs are kept. Dask itself gives the runs of a worker that is lost to
another one.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch._engine import VERSION, AnabranchError, RunError
from anabranch.bed import Unavailable
from anabranch.bundle import pack
from anabranch.cluster_worker import Batch, ClusterError, Item, make, stop
from anabranch.folders import Place
from anabranch.results import Run
from anabranch.workers import Progress

if TYPE_CHECKING:
    from distributed import Client, Future

    from anabranch.campaign import Task

#: How long, in seconds, the scheduler may take to answer.
CONNECT_S = 10

#: Batches that are at the cluster for each thread of the workers, so that none of them is ever idle.
AHEAD = 3

#: How much processor time, in seconds, a batch is to take: long against the 20 ms or so that scheduler,
#: worker and this process spend on it, short against what may be lost with a worker.
BATCH_S = 1.0

#: The most runs of a batch, which comes back as a whole.
BATCH_MAX = 64

#: How often, in seconds, the scheduler is asked how many threads its workers have.
THREADS_INTERVAL_S = 2.0

#: Scenarios whose files are kept at hand.
PACKED_MAX = 64


def run_on_cluster(
    tasks: Sequence[Task], out: Path, address: str, progress: Progress | None = None
) -> list[Run]:
    """Make many runs on the workers of a Dask cluster; as ``campaign.run_tasks``, to the byte.

    Parameters
    ----------
    tasks
        The runs to make.
    out
        Where runs are kept, on this machine.
    address
        The scheduler, such as ``tcp://192.0.2.1:8786``.
    progress
        Called from this thread with the simulated time of all finished runs together, in seconds.

    Returns
    -------
    list of Run
        The runs, in the order of ``tasks``.

    Raises
    ------
    Unavailable
        If the package ``distributed`` is not installed.
    ClusterError
        If the scheduler does not answer, or a worker has another version.
    OutputError
        If ``out`` cannot be written to.
    RunError
        If a run fails; the message names it, and the others are cancelled.
    """
    for task in tasks:
        if names := " and ".join(task.experiment.scenario.in_python):
            raise ValueError(f"{names}: written in Python, for runs on this machine")
    place = Place(out)
    runs: dict[int, Run] = {}
    damaged: dict[int, str | None] = {}
    finished_s = 0.0
    for index, task in enumerate(tasks):
        found = place.find(task.experiment.scenario, task.seed)
        if isinstance(found, Run):
            runs[index] = found
            finished_s += task.duration_s
        else:
            damaged[index] = found
    if not damaged:
        return [runs[index] for index in range(len(tasks))]
    place.make_sure_it_is_writable()
    if progress is not None:
        progress(finished_s)
    with _connected(address) as client, closing(_made(client, tasks, list(damaged))) as made:
        for index, files in made:
            task = tasks[index]
            path = place.put(files, task.experiment.scenario, task.seed)
            runs[index] = Run(path, reused=False, damaged=damaged[index], is_verified=True)
            finished_s += task.duration_s
            if progress is not None:
                progress(finished_s)
    return [runs[index] for index in range(len(tasks))]


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler whose workers all have this version."""
    try:
        import distributed
        from distributed.comm.addressing import get_address_host_port
    except ImportError as error:
        raise Unavailable(
            "--scheduler needs the package distributed; install it with: pip install 'anabranch[cluster]'"
        ) from error
    with _quiet():
        try:
            # What is no address is refused here: Dask's client, half made, would complain when it is removed.
            get_address_host_port(address)
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False, name="anabranch")
        except (OSError, ValueError) as error:
            raise ClusterError(f"{address}: no Dask scheduler answers here: {error}") from error
        try:
            _check_versions(client, address)
            yield client
        finally:
            client.close(timeout=CONNECT_S)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from writing about lost connections: what matters of them is raised."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _check_versions(client: Client, address: str) -> None:
    # A function within another travels as code, so it runs where this package is missing, too.
    def version() -> str | None:
        try:
            from anabranch import __version__
        except ImportError:
            return None
        return __version__

    versions: dict[str, str | None] = client.run(version)
    if not versions:
        raise ClusterError(f"{address}: the cluster has no workers; start one with: dask worker {address}")
    for worker, found in versions.items():
        if found is None:
            raise ClusterError(f"worker {worker}: anabranch is not installed there; expected {VERSION}")
        if found != VERSION:
            raise ClusterError(
                f"worker {worker}: has anabranch {found}, here is {VERSION}; expected the same"
            )


def _made(
    client: Client, tasks: Sequence[Task], wanted: Sequence[int]
) -> Generator[tuple[int, dict[str, bytes]]]:
    """Yield the files of the runs as they finish."""
    from distributed import as_completed

    campaign = uuid.uuid4().hex
    waiting = deque(wanted)
    under_way: dict[Future[Any], list[int]] = {}
    completed = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    packed = lru_cache(maxsize=PACKED_MAX)(pack)
    pace = _Pace(client)

    def submit_more() -> None:
        while waiting and len(under_way) < AHEAD * pace.threads():
            indices = [waiting.popleft() for _ in range(pace.batch(len(waiting)))]
            items = tuple(
                Item(packed(tasks[index].experiment), tasks[index].experiment.scenario.key, tasks[index].seed)
                for index in indices
            )
            batch = Batch(items, VERSION, campaign)
            future = client.submit(make, batch, key=f"anabranch-{campaign}-{indices[0]}", pure=False)
            under_way[future] = indices
            completed.add(future)

    try:
        submit_more()
        while under_way:
            for future, result in completed.next_batch():
                indices = under_way.pop(future)
                status = future.status
                future.release()
                if status != "finished":
                    raise _lost(status, result, [tasks[index] for index in indices])
                pace.learn(len(result.runs), result.took_s)
                for index, one in zip(indices, result.runs, strict=False):
                    if isinstance(one, Exception):
                        raise _failure(tasks[index], one)
                    yield index, one
            submit_more()
    except BaseException:
        if client.status == "running":
            client.cancel(list(under_way))
            client.run(stop, campaign, on_error="ignore")
        raise


class _Pace:
    """How many batches of how many runs the cluster is given."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._threads = 1
        self._due_s = 0.0
        self._runs = 0
        self._took_s = 0.0

    def threads(self) -> int:
        """Return how many threads the workers have; these come and go."""
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._due_s = now_s + THREADS_INTERVAL_S
        return self._threads

    def learn(self, runs: int, took_s: float) -> None:
        """Take into account how much processor time some runs have taken."""
        self._runs += runs
        self._took_s += took_s

    def batch(self, waiting: int) -> int:
        """Return the size of the next batch; small ones at the end, so that all threads end together."""
        if self._runs == 0:
            return 1
        fit = BATCH_S * self._runs / max(self._took_s, 1e-6)
        share = waiting / (2 * self.threads())
        return max(1, min(BATCH_MAX, int(fit), int(share), waiting))


def _failure(task: Task, error: Exception) -> Exception:
    """Return what a run has raised, with the run's name."""
    if isinstance(error, AnabranchError):
        return type(error)(f"{task}: {error}")
    error.add_note(f"in the run {task}")
    return error


def _lost(status: str, result: Any, tasks: Sequence[Task]) -> Exception:
    """Return why a batch has come to nothing as a whole."""
    if status != "error":
        return ClusterError("the connection to the scheduler is lost; finished runs are kept")
    error = result[1] if isinstance(result, tuple) else result
    if isinstance(error, AnabranchError):
        return error
    others = f" or one of the {len(tasks) - 1} after it" if len(tasks) > 1 else ""
    return RunError(f"{tasks[0]}{others}: {type(error).__name__}: {error}")
