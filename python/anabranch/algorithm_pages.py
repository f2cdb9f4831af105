"""The generated parts of docs/algorithms/: parameters, measurements and plots of every congestion control.

What a person writes on a page stays; between the two lines of :data:`BEGIN` and :data:`END` is what
``make pages`` measures: a congestion control alone, beside Reno, beside itself, with two round-trip times and
as Multipath TCP, and its equilibrium relation where there is one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from anabranch import _engine
from anabranch.equilibrium import RELATIONS, Relation, checked, figure
from anabranch.experiment import Experiment, available_cores
from anabranch.results import Run, Subject
from anabranch.stats import Estimate, estimate

BEGIN = "<!-- measured: make pages -->"
END = "<!-- end of what is measured -->"

#: Seeds of every measurement.
SEEDS = range(1, 6)


class Column(NamedTuple):
    """A column of a table: its title with the unit, the decimals, and the value of a run."""

    title: str
    decimals: int
    value: Callable[[Run], float]


class Standard(NamedTuple):
    """A standard scenario: what it is, its file, the key that names the algorithm, and its columns."""

    title: str
    file: str
    key: str
    columns: tuple[Column, ...]


def _of(subject: Subject, metric: str, scale: float = 1.0) -> Callable[[Run], float]:
    def value(run: Run) -> float:
        return figure(run, subject, metric) / scale

    return value


def _goodput(connection: str) -> Callable[[Run], float]:
    return _of(Subject(connection), "goodput_bps", 1e6)


def _over(first: Callable[[Run], float], second: Callable[[Run], float]) -> Callable[[Run], float]:
    def value(run: Run) -> float:
        return first(run) / second(run)

    return value


_QUEUE = Column("mean queue, packets", 1, _of(Subject(link="bottleneck"), "mean_queue_packets"))
_DROPS = Column("drops", 0, _of(Subject(link="bottleneck"), "drops"))
_JAIN = Column("Jain's index", 3, _of(Subject(), "jain_index"))
_ON_B = tuple(_goodput(f"on-b{index}") for index in range(4))

STANDARDS = (
    Standard(
        "alone: 10 Mbit/s, 40 ms, queue of 50 packets",
        "validation/single-flow.toml",
        "connection.flow.congestion",
        (
            Column("goodput, Mbit/s", 2, _goodput("flow")),
            Column("mean window, packets", 1, _of(Subject("flow", "0"), "mean_cwnd_packets")),
            _QUEUE,
            _DROPS,
        ),
    ),
    Standard(
        "beside Reno: 20 Mbit/s, 40 ms, queue of 67 packets",
        "regress/evaluation/friendliness.toml",
        "connection.subject.congestion",
        (
            Column("goodput, Mbit/s", 2, _goodput("subject")),
            Column("of Reno", 2, _goodput("standard")),
            _QUEUE,
            _JAIN,
        ),
    ),
    Standard(
        "beside itself, same link",
        "regress/evaluation/friendliness.toml",
        "connection.*.congestion",
        (
            Column("goodput, Mbit/s", 2, _goodput("subject")),
            Column("of the other", 2, _goodput("standard")),
            _QUEUE,
            _JAIN,
        ),
    ),
    Standard(
        "two round-trip times: 20 and 100 ms, 20 Mbit/s, queue of 67 packets",
        "regress/evaluation/rtt-unfairness.toml",
        "connection.*.congestion",
        (
            Column("goodput at 20 ms, Mbit/s", 2, _goodput("near")),
            Column("at 100 ms", 2, _goodput("far")),
            _QUEUE,
            _JAIN,
        ),
    ),
    Standard(
        "as Multipath TCP, both subflows through the bottleneck of one Reno TCP",
        "regress/evaluation/friendliness-multipath.toml",
        "connection.subject.congestion",
        (
            Column("goodput, Mbit/s", 2, _goodput("subject")),
            Column("of the TCP", 2, _goodput("standard")),
            Column("ratio", 2, _over(_goodput("subject"), _goodput("standard"))),
            _QUEUE,
        ),
    ),
    Standard(
        "as Multipath TCP over two links of 20 Mbit/s, one Reno TCP on the first and four on the second",
        "regress/evaluation/two-bottlenecks.toml",
        "connection.subject.congestion",
        (
            Column("goodput, Mbit/s", 2, _goodput("subject")),
            Column("on the first link", 2, _of(Subject("subject", "a"), "throughput_bps", 1e6)),
            Column("of the TCP there", 2, _goodput("on-a")),
            Column("of a TCP on the second", 2, lambda run: sum(one(run) for one in _ON_B) / len(_ON_B)),
        ),
    ),
)


def names() -> list[str]:
    """Return the congestion controls of the registry: not those in Python, nor names for a recovery."""
    algorithms = _engine.list_algorithms()
    return [one["name"] for one in algorithms if one["tag"] != "-" and one["recovery"] is None]


def measured(name: str, scenarios: Path, seeds: Iterable[int] = SEEDS) -> str:
    """Return the generated part of a page, without the lines that enclose it.

    Parameters
    ----------
    name
        The congestion control.
    scenarios
        The folder of scenario files.
    seeds
        At least two seeds.

    Returns
    -------
    str
        Markdown.
    """
    numbers = list(seeds)
    parts = [f"Means of seeds {numbers[0]} to {numbers[-1]} with 95 % intervals, in the simulator."]
    with tempfile.TemporaryDirectory() as folder:
        for standard in STANDARDS:
            runs = run_standard(standard, name, scenarios, numbers, Path(folder))
            parts.append(f"**{standard.title}**\n\n{_table(standard.columns, runs)}")
    parts.append(
        f"![Goodput over time, beside Reno, itself and a longer path](../figures/algorithms/{name}.svg)"
    )
    if (relation := RELATIONS.get(name)) is not None:
        parts.append(_relation(name, relation, scenarios))
    return "\n\n".join(parts)


def document(text: str, name: str, part: str, heading: str = "Measured") -> str:
    """Return a page with its generated part replaced, or added at the end under a heading.

    Raises
    ------
    ValueError
        If the page has one of the two lines only.
    """
    whole = f"{BEGIN}\n\n{part}\n\n{END}\n"
    if BEGIN not in text and END not in text:
        return f"{text.rstrip()}\n\n## {heading}\n\n{whole}"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{name}.md: expected the lines {BEGIN} and {END}")
    return f"{before}{whole}{after.lstrip(chr(10))}"


def generated_part(text: str) -> str | None:
    """Return what a page has between the two lines, None if it has them not."""
    _, begin, rest = text.partition(BEGIN)
    part, end, _ = rest.partition(END)
    return part.strip("\n") if begin and end else None


def run_standard(
    standard: Standard, name: str, scenarios: Path, seeds: Sequence[int], out: Path
) -> Sequence[Run]:
    """Run a standard scenario with a congestion control."""
    experiment = Experiment(scenarios / standard.file, ((standard.key, name),))
    return experiment.run(seeds=seeds, out=out, jobs=available_cores())


def _table(columns: Sequence[Column], runs: Sequence[Run]) -> str:
    cells = [_cell(estimate([column.value(run) for run in runs]), column.decimals) for column in columns]
    lines = [[column.title for column in columns], ["---"] * len(columns), cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Estimate, decimals: int) -> str:
    text = f"{value.mean:.{decimals}f}"
    return text if not value.half_width else f"{text} ± {value.half_width:.{decimals}f}"


def _relation(name: str, relation: Relation, scenarios: Path) -> str:
    found = checked(relation.congestion(name), relation, scenarios)
    verdict = "as it is to be" if found.holds else "**not as it is to be**"
    finding = f" {relation.finding}" if relation.finding else ""
    return (
        f"**Equilibrium**: {relation.text} ({relation.source}). Expected {relation.least:.1f} to "
        f"{relation.largest:.1f} packets, measured {found.measured:.1f}: {verdict}.{finding}"
    )
