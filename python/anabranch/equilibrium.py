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

#: Of `scenarios/validation/equilibrium.toml` and `equilibrium-multipath.toml`: loss per packet.
LOSS = 1e-3

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
    least, largest
        Between which the measured value is to be, in packets: 10 % around the closed form, less where a wrong
        constant would hide in that, or the band that the algorithm itself has.
    file
        The scenario under ``scenarios/``.
    measured
        The value of a run.
    parameters
        Of the congestion control, as a scenario writes them.
    overrides
        Further keys of the scenario.
    finding
        Why it does not hold, if it does not; it is reported, and nothing is tuned to it.
    """

    text: str
    source: str
    least: float
    largest: float
    file: str
    measured: Callable[[Run], float]
    parameters: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    finding: str = ""

    def congestion(self, name: str) -> str:
        """Return the congestion control with the relation's parameters, as a scenario writes it."""
        return f'{{ name = "{name}", {self.parameters} }}' if self.parameters else name


class Checked(NamedTuple):
    """What was measured, in packets, and whether it is as the relation has it."""

    measured: float
    holds: bool


def checked(congestion: str, relation: Relation, scenarios: Path, seeds: int = 5) -> Checked:
    """Run the relation's scenario and compare the mean of the seeds with the closed form.

    Parameters
    ----------
    congestion
        A congestion control as a scenario writes it, with parameters or without.
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
    return Checked(measured, relation.least <= measured <= relation.largest)


def figure(run: Run, subject: Subject, metric: str) -> float:
    """Return a figure of a run's summary.

    Raises
    ------
    KeyError
        If it has none of that name.
    """
    found = [one.value for one in run.figures if one.subject == subject and one.metric == metric]
    if len(found) != 1:
        raise KeyError(f"{metric} of {subject} in {run.path}")
    return found[0]


def _window(run: Run) -> float:
    return figure(run, Subject("flow", "0"), "mean_cwnd_packets")


def _total_window(run: Run) -> float:
    return sum(figure(run, Subject("flow", subflow), "mean_cwnd_packets") for subflow in ("a", "b"))


def _queue(run: Run) -> float:
    return figure(run, Subject(link="bottleneck"), "mean_queue_packets")


def _around(packets: float, share: float = 0.1) -> tuple[float, float]:
    return packets * (1 - share), packets * (1 + share)


def _losses(text: str, source: str, packets: float, share: float = 0.1, **more: str) -> Relation:
    """Make a relation of the mean window under independent losses."""
    return Relation(text, source, *_around(packets, share), ONE_PATH, _window, **more)  # type: ignore[arg-type]


def _two(text: str, source: str, packets: float, share: float = 0.1, **more: str) -> Relation:
    """Make a relation of the total window over two equal paths with independent losses."""
    return Relation(text, source, *_around(packets, share), TWO_PATHS, _total_window, **more)  # type: ignore[arg-type]


def _backlog(text: str, source: str, least: float, largest: float, parameters: str = "") -> Relation:
    """Make a relation of the mean queue of one flow that fills a link."""
    return Relation(text, source, least, largest, ALONE, _queue, parameters)


#: Mean window of Reno's rules under independent losses; 1.22 under periodic ones, sqrt(2) in the fluid limit.
_RENO = 1.31 / math.sqrt(LOSS)
_OTT = "Ott, Kemperman, Mathis 1996"
_NSDI = "Wischik et al., NSDI 2011"
_AS_ONE_RENO = "over two equal paths the total window is that of one Reno"

#: Total window of two equal subflows that add one packet per total window and halve, under independent
#: losses: a model of rounds (in the tests) gives 1.77, the fluid limit sqrt(2) times Reno's, 1.85. A subflow
#: grows in proportion to its share, which spreads the two windows.
_SEMICOUPLED = 1.77 / math.sqrt(LOSS)

#: Of the relation of CUBIC, which lies above Reno's where loss is rare and the round trip long. RFC 9438's
#: mean window is for periodic losses; under independent ones, with fast convergence, its window function
#: gives 1.14 times as much (integrated in the tests).
_CUBIC_LOSS, _CUBIC_RTT_S = 1e-4, 0.2
_CUBIC = 1.14 * 1.054 * (_CUBIC_RTT_S / _CUBIC_LOSS) ** 0.75

#: By the algorithm's name.
RELATIONS: dict[str, Relation] = {
    "reno": _losses("mean window 1.31 / sqrt(p)", _OTT, _RENO, share=0.05),
    "cubic": Relation(
        "mean window 1.054 (rtt / p)^(3/4), times 1.14 because losses are independent",
        "RFC 9438, section 5.1",
        *_around(_CUBIC),
        ONE_PATH,
        _window,
        overrides={"link.path.delay": "100 ms", "link.path.loss": "0.01 %", "duration": "2020 s"},
    ),
    "scalable": _losses("mean window 0.08 / p", "Kelly 2003", 0.08 / LOSS),
    "hybla": Relation(
        "at 100 ms the window of Reno times 100 ms / 25 ms",
        "Caini, Firrincieli 2004",
        *_around(4 * _RENO),
        ONE_PATH,
        _window,
        overrides={"link.path.delay": "50 ms"},
    ),
    "vegas": _backlog("1 to 3 packets queued (alpha to beta)", "Brakmo, Peterson 1995", 1.0, 3.05),
    "mvegas": _backlog("2 to 6 packets queued (its moving band)", "MFVL HCCA 2021, section 3.1", 2.0, 6.0),
    "fast": _backlog(
        "alpha packets queued; 20 here", "Jin, Wei, Low 2004", *_around(20), 'alpha = "20 packets"'
    ),
    "mfast": Relation(
        "window sigma (alpha + B) with B packets in the pipe",
        "MFVL HCCA 2021, equation 13",
        *_around(0.5 * (100 + PIPE_PACKETS), 0.05),
        ALONE,
        _window,
    ),
    "lia": _two(_AS_ONE_RENO, "RFC 6356", _RENO),
    "olia": _two(_AS_ONE_RENO, "Khalili et al. 2013", _RENO),
    "balia": _two(_AS_ONE_RENO, "Peng et al. 2016", _RENO),
    "coupled": _two("total window that of one Reno", _NSDI, _RENO),
    "semicoupled": _two("total window 1.77 / sqrt(p) for a = 1", _NSDI, _SEMICOUPLED),
    "ewtcp": _two(
        "each window sqrt(a) that of Reno, a = 1 / sqrt(2)", _NSDI, 2 * math.sqrt(math.sqrt(0.5)) * _RENO
    ),
    "ecmtcp": _two("with equal prices that of LIA", "house definition", _RENO),
    "emreno": _two("with equal prices that of SEMICOUPLED", "house definition", _SEMICOUPLED),
    "wvegas": Relation(
        "total_alpha packets queued, 10",
        "Cao, Xu, Fu 2012",
        *_around(10),
        ALONE,
        _queue,
        finding="The queue is drained as soon as its delay is twice the smallest seen since the last drain, "
        "which from an empty queue is two packets: the ten are reached where others keep it from emptying.",
    ),
    "mpfast": _backlog(
        "alpha_total packets queued; 20 here", "house definition", *_around(20), 'alpha_total = "20 packets"'
    ),
}
