"""Threads that make runs, and stop at once when the main thread is interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from anabranch._engine import Control
from anabranch.results import Run

#: How often, in seconds, a caller hears about progress.
PROGRESS_INTERVAL_S = 0.1

#: Called with the simulated time that all runs together have reached, in seconds.
Progress = Callable[[float], None]

T = TypeVar("T")


class Workers(Generic[T]):
    """Makes one run for each of some tasks, on some threads.

    ``concurrent.futures`` is not used, because Ctrl-C within its ``wait`` can leave locks behind that keep
    the pool from ending. Here the main thread waits for nothing but a queue.

    Parameters
    ----------
    run_one
        Makes the run of one task; the engine releases the interpreter while it does.
    tasks
        The tasks.
    jobs
        Number of threads, at least 1.
    """

    def __init__(self, run_one: Callable[[T, Control], Run], tasks: Sequence[T], jobs: int) -> None:
        if jobs < 1:
            raise ValueError(f"jobs is {jobs}; expected at least 1")
        self._run_one = run_one
        self._tasks = tasks
        self._waiting: SimpleQueue[int] = SimpleQueue()
        for index in range(len(tasks)):
            self._waiting.put(index)
        self._finished: SimpleQueue[tuple[int, Run | BaseException]] = SimpleQueue()
        self._controls: dict[int, Control] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"run-{number}")
            for number in range(min(jobs, len(tasks)))
        ]

    def make_all(self, duration_s: Callable[[T], float], progress: Progress | None) -> list[Run]:
        """Make every run, and return them in the order of the tasks.

        Parameters
        ----------
        duration_s
            The simulated time that the run of a task takes, in seconds.
        progress
            Called from this thread, not more often than every :data:`PROGRESS_INTERVAL_S`, and at the end.

        Returns
        -------
        list of Run
            The runs.
        """
        runs: dict[int, Run] = {}
        finished_s, due_s = 0.0, 0.0
        try:
            for thread in self._threads:
                thread.start()
            while len(runs) < len(self._tasks):
                if (one := self._next_finished()) is not None:
                    index, runs[index] = one
                    finished_s += duration_s(self._tasks[index])
                now_s = time.monotonic()
                if progress is not None and (now_s >= due_s or len(runs) == len(self._tasks)):
                    progress(finished_s + sum(control.reached_s for control in self._under_way()))
                    due_s = now_s + PROGRESS_INTERVAL_S
        finally:
            self._end()
        return [runs[index] for index in range(len(self._tasks))]

    def _next_finished(self) -> tuple[int, Run] | None:
        """Wait a little for a run to finish; raise what a run has raised."""
        try:
            index, result = self._finished.get(timeout=PROGRESS_INTERVAL_S)
        except Empty:
            return None
        del self._controls[index]
        if isinstance(result, BaseException):
            raise result
        return index, result

    def _under_way(self) -> list[Control]:
        """Return the controls of the runs whose end has not been waited for."""
        return list(self._controls.values())

    def _end(self) -> None:
        """Cancel what is under way and wait for the threads."""
        self._stop.set()
        for control in self._under_way():
            control.cancel()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                index = self._waiting.get_nowait()
            except Empty:
                return
            control = self._controls[index] = Control()
            if self._stop.is_set():
                control.cancel()
            result: Run | BaseException
            try:
                result = self._run_one(self._tasks[index], control)
            except BaseException as error:  # handed over to the main thread
                result = error
            self._finished.put((index, result))
