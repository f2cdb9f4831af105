"""Where congestion controls settle: closed forms, and runs of the simulator beside them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from anabranch.experiment import Experiment
from anabranch.results import Run, Subject
from anabranch.stats import estimate

#: Of `scenarios/validation/equilibrium.toml`: loss per packet and seconds of a round trip.
LOSS = 1e-3
RTT_S = 0.02

#: Segments in the pipe of `scenarios/validation/single-flow.toml`: 10 Mbit/s, 40 ms, 1040 bytes.
PIPE_PACKETS = 10e6 * 0.04 / 8 / 1040

ALONE = "validation/single-flow.toml"
ONE_PATH = "validation/equilibrium.toml"
TWO_PATHS = "validation/equilibrium-multipath.toml"


@dataclass(frozen=True)
class Relation:
    """A closed form of the equilibrium.

    Attributes
    ----------
    text, source
        What it says, and where it is from.
    expected
        Its value.
    unit
        Unit of the value.
    file
        The scenario under ``scenarios/``.
    measured
        The value of a run.
    tolerance
        Part of the expected value by which the measured one may differ: at most 10 %, less where a wrong
        constant would hide in it.
    overrides
        Further keys of the scenario.
    finding
        Why it does not hold, if it does not; it is reported, and nothing is tuned to it.
    """

    text: str
    source: str
    expected: float
    unit: str
    file: str
    measured: Callable[[Run], float]
    tolerance: float = 0.1
    overrides: Mapping[str, str] = field(default_factory=dict)
    finding: str = ""


class Checked(NamedTuple):
    """A relation and what was measured."""

    expected: float
    measured: float
    holds: bool


def checked(congestion: str, relation: Relation, scenarios: Path, seeds: int = 5) -> Checked:
    """Run the relation's scenario and compare the mean of the seeds with the closed form.

    Parameters
    ----------
    congestion
        A congestion control as a scenario names it, with parameters or without.
    relation
        The closed form.
    scenarios
        The folder of scenario files.
    seeds
        Number of runs.
    """
    overrides = {"connection.flow.congestion": congestion, **relation.overrides}
    experiment = Experiment(scenarios / relation.file, tuple(overrides.items()))
    with tempfile.TemporaryDirectory() as folder:
        runs = experiment.run(seeds=range(1, seeds + 1), out=folder)
        measured = estimate([relation.measured(run) for run in runs]).mean
    holds = abs(measured - relation.expected) <= relation.tolerance * relation.expected
    return Checked(relation.expected, measured, holds)


def _figure(run: Run, subject: Subject, metric: str) -> float:
    found = [one.value for one in run.figures if one.subject == subject and one.metric == metric]
    if len(found) != 1:
        raise KeyError(f"{metric} of {subject} in {run.path}")
    return found[0]


def _window(run: Run) -> float:
    return _figure(run, Subject("flow", "0"), "mean_cwnd_packets")


def _total_window(run: Run) -> float:
    return sum(_figure(run, Subject("flow", subflow), "mean_cwnd_packets") for subflow in ("a", "b"))


def _queue(run: Run) -> float:
    return _figure(run, Subject(link="bottleneck"), "mean_queue_packets")


def _random_loss(text: str, source: str, expected: float, **more: object) -> Relation:
    return Relation(text, source, expected, "packets", ONE_PATH, _window, **more)  # type: ignore[arg-type]


def _two_paths(text: str, source: str, expected: float, **more: object) -> Relation:
    return Relation(text, source, expected, "packets", TWO_PATHS, _total_window, **more)  # type: ignore[arg-type]


#: Mean window of Reno's rules under independent losses; 1.22 under periodic ones, sqrt(2) in the fluid limit.
_RENO_PACKETS = 1.31 / math.sqrt(LOSS)

#: By the algorithm's name.
RELATIONS: dict[str, Relation] = {
    "reno": _random_loss(
        "mean window 1.31 / sqrt(p)", "Ott, Kemperman, Mathis 1996", _RENO_PACKETS, tolerance=0.05
    ),
    "lia": _two_paths("total window over two equal paths that of one Reno", "RFC 6356", _RENO_PACKETS),
}
