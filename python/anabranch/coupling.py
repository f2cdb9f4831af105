"""What coupling is for, measured: fairness in a shared bottleneck, and the sum of two that are not shared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.as_linux import as_linux
from anabranch.equilibrium import figure
from anabranch.experiment import Engine, Experiment, Progress
from anabranch.results import Run, Runs, Subject
from anabranch.stats import Estimate, estimate

#: What is after this line of the document is generated.
MARKER = "<!-- Generated from here on: make coupling -->"


@dataclass(frozen=True)
class Control:
    """A congestion control, as scenarios name it, and what it is to show in a shared bottleneck.

    ``least`` and ``largest`` bound the goodput of a multipath connection over that of the TCP beside it.
    Where shares differ widely from run to run, ``repeats`` times as many runs are made.
    """

    value: str
    least: float
    largest: float = float("inf")
    repeats: int = 1


#: The congestion controls by the names that they have in the tables. The last is OLIA for Linux's scheduler.
CONTROLS: dict[str, Control] = {
    "reno": Control("reno", 1.4),
    "lia": Control("lia", 0.8, 1.2),
    "olia": Control("olia", 0.8, 1.2, repeats=3),
    "balia": Control("balia", 0.8, 1.2),
    "olia, least_window 2": Control('{ name = "olia", least_window = "2 packets" }', 0.8, 1.2, repeats=3),
}


@dataclass(frozen=True)
class Host:
    """What carries the packets: an engine, or the simulator with Linux's scheduler and send buffer."""

    name: str
    engine: Engine
    as_linux: bool = False


#: The columns of the tables.
HOSTS = (Host("sim", "sim"), Host("sim as Linux", "sim", as_linux=True), Host("kernel", "kernel"))

#: Least part of the sum of two bottlenecks.
LEAST_OF_SUM = 0.9

#: Fewer repetitions that count give no interval.
MIN_RUNS = 2


@dataclass(frozen=True)
class Case:
    """One scenario with one of ``CONTROLS``, and settings that override those of its file."""

    congestion: str
    path: Path
    settings: tuple[tuple[str, str], ...] = ()

    def experiment(self, host: Host | None = None) -> Experiment:
        """Return the experiment as a host has it."""
        congestion = ("connection.multipath.congestion", CONTROLS[self.congestion].value)
        experiment = Experiment(self.path, (congestion, *self.settings))
        return as_linux(experiment) if host and host.as_linux else experiment

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.experiment().scenario.name

    @property
    def is_shared(self) -> bool:
        """Whether there is a TCP in the same bottleneck."""
        return self.name.startswith("shared-")

    @property
    def repeats(self) -> int:
        """How many times as many runs are made as of a control whose shares hardly differ."""
        return CONTROLS[self.congestion].repeats if self.is_shared else 1

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that are wanted."""
        if not self.is_shared:
            return LEAST_OF_SUM, float("inf")
        control = CONTROLS[self.congestion]
        return control.least, control.largest

    def value(self, run: Run) -> float:
        """Return goodput over that of the TCP, or the part of both links that is used."""
        if self.is_shared:
            multipath, single = (
                figure(run, Subject(name), "goodput_bps") for name in ("multipath", "single")
            )
            return multipath / single
        return _utilisation(run)

    @property
    def wanted(self) -> str:
        """What is wanted, in words."""
        least, largest = self.bounds
        return f"{least:g} to {largest:g}" if largest < float("inf") else f"at least {least:g}"


def _utilisation(run: Run) -> float:
    """Return which part of the capacity of both links was used."""
    links = [Subject(link=name) for name in ("path-a", "path-b")]
    carried = [figure(run, link, "throughput_bps") for link in links]
    capacities = [rate / figure(run, link, "utilization") for rate, link in zip(carried, links, strict=True)]
    return sum(carried) / sum(capacities)


def cases(folder: Path, congestions: Iterable[str] = CONTROLS) -> list[Case]:
    """Return every scenario of the folder with every congestion control."""
    return [Case(congestion, path) for path in sorted(folder.glob("*.toml")) for congestion in congestions]


@dataclass(frozen=True)
class Measured:
    """A case with its runs that count, by host."""

    case: Case
    runs: dict[Host, tuple[Run, ...]]
    invalid: int

    def value(self, host: Host) -> Estimate | None:
        """Return the mean over the runs; None if too few count."""
        runs = self.runs.get(host, ())
        return estimate([self.case.value(run) for run in runs]) if len(runs) >= MIN_RUNS else None

    def is_met(self, host: Host) -> bool:
        """Return whether the mean is within what is wanted."""
        value = self.value(host)
        least, largest = self.case.bounds
        return value is not None and least <= value.mean <= largest


def measure(
    case: Case, hosts: Sequence[Host], seeds: int, out: Path, progress: Progress | None = None
) -> Measured:
    """Run a case on some hosts, ``seeds`` times or a multiple of it; complete runs are reused."""
    seeds *= case.repeats
    runs: dict[Host, tuple[Run, ...]] = {}
    invalid = 0
    for host in hosts:
        of_host: Runs = case.experiment(host).run(
            engine=host.engine, seeds=range(1, seeds + 1), out=out, progress=progress
        )
        runs[host] = tuple(run for run in of_host if not run.invalid)
        invalid += len(of_host) - len(runs[host])
    return Measured(case, runs, invalid)


def report(measured: Sequence[Measured], hosts: Sequence[Host]) -> str:
    """Return the tables as Markdown."""
    parts = [_score(measured, hosts)]
    for title, shared in [
        ("Shared bottleneck: goodput over that of the TCP", True),
        ("Two bottlenecks: the part of their capacity that is used", False),
    ]:
        of_kind = [one for one in measured if one.case.is_shared is shared]
        lines = [f"| scenario | algorithm | wanted | {' | '.join(host.name for host in hosts)} |"]
        lines.append("|---" * (3 + len(hosts)) + "|")
        lines += [_row(one, hosts) for one in of_kind]
        parts.append(f"## {title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _score(measured: Sequence[Measured], hosts: Sequence[Host]) -> str:
    lines = ["## Result", ""]
    for host in hosts:
        met = sum(one.is_met(host) for one in measured)
        lines.append(f"- {host.name}: {met} of {len(measured)} as wanted.")
    on_kernel = [host for host in hosts if host.engine == "kernel"]
    environments = [
        run.environment for one in measured for host in on_kernel for run in one.runs.get(host, ())
    ]
    kernels = sorted({str(environment.get("kernel", "of unknown release")) for environment in environments})
    if kernels:
        runs = sum(one.invalid for one in measured)
        lines.append(f"- Linux {', '.join(kernels)}; {runs} runs do not count.")
    seeds = sorted({len(runs) for one in measured for runs in one.runs.values()})
    lines.append(f"- {' or '.join(map(str, seeds))} repetitions of each.")
    return "\n".join(lines)


def _row(one: Measured, hosts: Sequence[Host]) -> str:
    cells = []
    for host in hosts:
        value = one.value(host)
        if value is None:
            cells.append("too few runs")
        else:
            text = f"{value.mean:.2f} ± {value.half_width or 0.0:.2f}"
            cells.append(text if one.is_met(host) else f"**{text}**")
    case = one.case
    runs = f" ({max(map(len, one.runs.values()))} runs)" if case.repeats > 1 else ""
    return f"| `{case.name}` | {case.congestion}{runs} | {case.wanted} | {' | '.join(cells)} |"
