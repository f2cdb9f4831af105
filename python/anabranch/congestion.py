"""Congestion controls written in Python, for the simulator.

They follow the same contract as those in ``algorithms/``, through a callback for every event that they
handle: slower, and good for an idea. What has proved itself is written as a header (see
``examples/custom-algorithm/``), which the kernel runs too.

::

    class Aimd(anabranch.CongestionControl):
        name = "aimd"
        parameters = {"step": Parameter(1, 1, 100, "packets", doc="packets per round trip")}

        def ack(self, call):
            count = call.cwnd_cnt + call.acked * self.values["step"]
            call.set_cwnd(call.cwnd + count // call.cwnd)
            call.set_cwnd_cnt(count % call.cwnd)

        def loss(self, call):
            return max(call.cwnd // 2, 2)

    anabranch.load("scenario.toml").with_(congestion="aimd").run()
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar, Literal

from anabranch import _engine
from anabranch._engine import Call, ScenarioError, Subflow

__all__ = ["Call", "CongestionControl", "Parameter", "Subflow", "load_algorithms"]

#: How a scenario writes a parameter: a plain number, ``"3 packets"``, ``"5 ms"``, a real number stored times
#: 1024, 65536 or 1000, ``true`` or ``false``, or one of :attr:`Parameter.choices`.
Unit = Literal["count", "packets", "us", "q10", "q16", "permille", "bool", "choice"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a congestion control: an integer, which scenarios write in its unit.

    Parameters
    ----------
    default, min, max
        Values as stored: microseconds for ``us``, 1024 for 1.0 for ``q10``, the index for ``choice``.
    unit
        How a scenario writes it.
    doc
        What it is.
    choices
        Names of the values, for ``choice``.
    """

    default: int
    min: int
    max: int
    unit: Unit = "count"
    doc: str = ""
    choices: tuple[str, ...] = ()


class CongestionControl:
    """A congestion control. A subclass with a ``name`` can be named in scenarios from its definition on.

    Every subflow has an instance, made without arguments. Methods are called in the order that
    ``algorithms/include/anabranch/cc.h`` tells; one that is not overridden costs nothing. An exception ends
    the run and reaches the caller of :meth:`Experiment.run`. Results are only repeatable if the methods use
    no clock and no randomness of their own.

    Attributes
    ----------
    name
        Name in scenarios: 1 to 12 lower-case letters, digits and ``_``, a letter first.
    title
        One line about it; the class's docstring unless given.
    kind
        ``window``: :meth:`ack` is called outside of recovery; ``rate``: :meth:`rate` at every ACK.
    coupled
        Whether it looks at the other subflows of its connection: :attr:`Call.peers`, :meth:`Call.word`.
    parameters
        Declarations, by name.
    values
        Values of the parameters as stored, by name; set before :meth:`init`.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    kind: ClassVar[Literal["window", "rate"]] = "window"
    coupled: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    values: Mapping[str, int]

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Make a class with a name known to scenarios."""
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            _register(cls)

    def init(self, call: Call) -> None:
        """Begin, before the first data packet."""

    def rtt_sample(self, call: Call) -> None:
        """Take a valid round-trip sample, :attr:`Call.rtt_us`; in recovery too."""

    def ack(self, call: Call) -> None:
        """Let the window grow: ``call.acked`` packets were newly acknowledged (kind ``window``)."""

    def rate(self, call: Call) -> None:
        """Set window and pacing at an ACK (kind ``rate``)."""

    def loss(self, call: Call) -> int:
        """Begin a recovery and return ssthresh in packets; half of the window unless overridden."""
        return max(call.cwnd // 2, 2)

    def rto(self, call: Call) -> None:
        """Note a timeout; the host has set the window to 1."""

    def recovery_exit(self, call: Call) -> None:
        """Note the end of a recovery; the window is ssthresh."""

    def undo(self, call: Call) -> int:
        """Return the window to go back to after a spurious recovery."""
        return max(call.cwnd, call.prior_cwnd)

    def ecn(self, call: Call) -> None:
        """Note an echoed congestion mark; :meth:`loss` has been called before (kind ``window``)."""

    def idle_restart(self, call: Call) -> None:
        """Resume after ``call.idle_us`` of silence."""

    def peer_join(self, call: Call) -> None:
        """Note that another subflow has been established."""

    def peer_leave(self, call: Call) -> None:
        """Note that another subflow has gone."""

    def release(self, call: Call) -> None:
        """End."""


_EVENTS = tuple(name for name, value in vars(CongestionControl).items() if inspect.isfunction(value))


def load_algorithms(path: str | PathLike[str]) -> list[str]:
    """Run a Python file that defines congestion controls, and return their names.

    Raises
    ------
    ScenarioError
        If there is no such file, or it defines none.
    """
    file = Path(path).resolve()
    spec = importlib.util.spec_from_file_location(f"anabranch_algorithms_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise ScenarioError(f"{path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    classes = [value for value in vars(module).values() if _is_algorithm(value, spec.name)]
    if not classes:
        raise ScenarioError(f"{path}: defines no subclass of anabranch.CongestionControl with a name")
    return [value.name for value in classes]


def _is_algorithm(value: object, module: str) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, CongestionControl)
        and value.__module__ == module
        and "name" in value.__dict__
    )


def _register(cls: type[CongestionControl]) -> None:
    params: list[_engine.DeclaredParameter] = [
        {
            "name": name,
            "unit": one.unit,
            "default": one.default,
            "min": one.min,
            "max": one.max,
            "doc": one.doc,
            "choices": list(one.choices),
        }
        for name, one in cls.parameters.items()
    ]
    events = [event for event in _EVENTS if getattr(cls, event) is not getattr(CongestionControl, event)]
    title = cls.title or (inspect.getdoc(cls) or cls.name).partition("\n")[0]
    _engine.register_algorithm(cls, cls.name, title, cls.kind, cls.coupled, params, events, _text_of(cls))


def _text_of(cls: type[CongestionControl]) -> str:
    """Return a hash of the texts of a class and of those that it extends: files, or cells of a notebook.

    Without a text it is something unique, so that no run is reused.
    """
    hasher = hashlib.blake2b(digest_size=6)
    for base in cls.__mro__:
        if base in (CongestionControl, object):
            continue
        try:
            file = inspect.getsourcefile(base)
            text = Path(file).read_text() if file and Path(file).is_file() else inspect.getsource(base)
        except (OSError, TypeError):
            text = uuid.uuid4().hex
        hasher.update(text.encode())
    return hasher.hexdigest()
