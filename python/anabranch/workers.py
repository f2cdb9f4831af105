"""Threads that make runs, and stop at once when the main thread is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from anabranch._engine import Control
from anabranch.results import Run


class Workers:
    """Runs seeds on some threads.

    ``concurrent.futures`` is not used, because Ctrl-C within its ``wait`` can leave locks behind that keep
    the pool from ending. Here the main thread waits for nothing but a queue.

    Parameters
    ----------
    run_one
        Makes the run of one seed; the engine releases the interpreter while it does.
    seeds
        The seeds.
    jobs
        Number of threads, at least 1.
    """

    def __init__(self, run_one: Callable[[int, Control], Run], seeds: list[int], jobs: int) -> None:
        if jobs < 1:
            raise ValueError(f"jobs is {jobs}; expected at least 1")
        self._run_one = run_one
        self._seeds = seeds
        self._tasks: SimpleQueue[int] = SimpleQueue()
        for index in range(len(seeds)):
            self._tasks.put(index)
        self._finished: SimpleQueue[tuple[int, Run | BaseException]] = SimpleQueue()
        self._controls: dict[int, Control] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"run-{number}")
            for number in range(min(jobs, len(seeds)))
        ]
        #: Finished runs, by position in ``seeds``.
        self.results: dict[int, Run] = {}

    def start(self) -> None:
        """Start the threads. Whoever calls this calls :meth:`stop`, whatever happens in between."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Cancel what is under way and wait for the threads."""
        self._stop.set()
        for control in self.under_way():
            control.cancel()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def is_done(self) -> bool:
        """Return whether every run has finished."""
        return len(self.results) == len(self._seeds)

    def under_way(self) -> list[Control]:
        """Return the controls of the runs whose end has not been waited for."""
        return list(self._controls.values())

    def wait(self, timeout_s: float) -> None:
        """Wait for a run to finish, or for the timeout; raise what a run has raised."""
        try:
            index, result = self._finished.get(timeout=timeout_s)
        except Empty:
            return
        del self._controls[index]
        if isinstance(result, BaseException):
            raise result
        self.results[index] = result

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                index = self._tasks.get_nowait()
            except Empty:
                return
            control = self._controls[index] = Control()
            if self._stop.is_set():
                control.cancel()
            result: Run | BaseException
            try:
                result = self._run_one(self._seeds[index], control)
            except BaseException as error:  # handed over to the main thread
                result = error
            self._finished.put((index, result))
