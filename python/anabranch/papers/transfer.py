"""The commands ``anabranchd send`` and ``receive`` measured on the kernel, beside MPTCP and TCP.

Figures 4 to 8 of MPTCP-IoT (:mod:`anabranch.papers.mptcp_iot`), whose scheme the commands are, from the
device to the gateway itself: the commands keep files, they pass none on. In cells ``mptcp-iot`` stands for
the commands on the kernel, and for the scheme with its chunks in the simulator. Limits of buffers are
``tcp_rmem`` and ``tcp_wmem``, as in the paper, for everybody alike: they count the kernel's overhead, about
as much as the payload. What sockets hold is read from the kernel every 20 ms, for everybody alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.bed import KernelOptions
from anabranch.experiment import Experiment, Progress
from anabranch.papers import kernel
from anabranch.papers.claims import Claim, claims
from anabranch.papers.judging import above, because, below, combined, not_testable
from anabranch.papers.kernel import Lost, OnBoth, figures
from anabranch.papers.model import Cell, Measured, Outcome, Paper, Planned, Rule, Verdict
from anabranch.papers.mptcp_iot import MPTCP_IOT, extract
from anabranch.papers.mptcp_iot_kernel import OTHER_DELAYS
from anabranch.papers.mptcp_iot_needs import DELAY, GOODPUT, LARGE, SAME, buffer_bytes
from anabranch.papers.mptcp_iot_rules import KILOBYTES
from anabranch.papers.reproduction import measure, scenario_file
from anabranch.results import Run
from anabranch.stats import Estimate

#: Repetitions of every cell.
SEEDS = 3

#: The contenders: their file, and what changes in it.
VARIANTS: Mapping[str, tuple[str, dict[str, object]]] = {
    "mptcp": (
        "down-mptcp",
        {"transport.opportunistic_retransmission": False, "transport.penalisation": False},
    ),
    "mptcp-iot": ("down-iot", {}),
    "tcp-wifi": ("down-tcp", {}),
}

#: How they run on the kernel: the commands, or the test bed itself. TCP is the kernel's own, CUBIC as
#: everybody has it; LIA it has not.
OPTIONS: Mapping[str, KernelOptions] = {
    "mptcp": KernelOptions(),
    "mptcp-iot": KernelOptions(application="anabranchd"),
    "tcp-wifi": KernelOptions(native_congestion=True),
}

#: Sizes of buffers at the test bed's delay: each is half of the next, so that equal memory can be compared.
BUFFERS: Mapping[str, tuple[str, ...]] = {
    "mptcp": ("150 kB", "300 kB", "600 kB", "1200 kB", LARGE),
    "mptcp-iot": ("75 kB", "150 kB", "300 kB", "600 kB", LARGE),
    "tcp-wifi": ("150 kB", "300 kB", "600 kB", "1200 kB", LARGE),
}

#: Those at another delay of the 3G path, about what is needed there.
BUFFERS_AT: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("20 ms", "mptcp"): ("300 kB", "600 kB", "1200 kB", LARGE),
    ("20 ms", "mptcp-iot"): ("75 kB", "150 kB", "300 kB", LARGE),
    ("200 ms", "mptcp"): ("600 kB", "1200 kB", "3000 kB", LARGE),
    ("200 ms", "mptcp-iot"): ("150 kB", "300 kB", "600 kB", LARGE),
}

#: Delays of the 3G path, in order.
DELAYS = ("20 ms", DELAY, "200 ms")

#: Those of Figure 8.
REAL_BUFFERS: Mapping[str, tuple[str, ...]] = {
    "mptcp": ("150 kB", "300 kB", "600 kB", LARGE),
    "mptcp-iot": ("150 kB", "300 kB", "600 kB", LARGE),
}

#: A size that is run of the commands, and one of MPTCP with as much memory in all, or with twice as much.
EQUAL = (("75 kB", "150 kB"), ("150 kB", "300 kB"), ("300 kB", "600 kB"), ("600 kB", "1200 kB"))
HALF = (("75 kB", "300 kB"), ("150 kB", "600 kB"), ("300 kB", "1200 kB"))

#: How often sockets are looked at.
INTERVAL = "20 ms"


def _duration(variant: str, delay: str) -> str:
    """Return a time in which most arrive; of a file that has not, what has counts over this time."""
    if variant == "tcp-wifi":
        return "5 s"
    return "8 s" if delay == "200 ms" else "6 s"


def _experiment(variant: str, delay: str, **changes: object) -> Experiment:
    file, own = VARIANTS[variant]
    traffic = "transfer.file" if variant == "mptcp-iot" else "connection.file.traffic"
    fixed: dict[str, object] = {
        f"{traffic}.direction": "upload",
        "link.cell.delay": delay,
        "measure.interval": INTERVAL,
        "duration": _duration(variant, delay),
    }
    return Experiment(scenario_file(f"mptcp-iot/{file}.toml")).with_(**{**own, **fixed, **changes})


def _cells(quick: bool) -> Iterator[tuple[Cell, Experiment]]:
    def over(
        kind: str, variant: str, delay: str, buffers: Sequence[str]
    ) -> Iterator[tuple[Cell, Experiment]]:
        for buffer in buffers:
            # Without a limit all kinds are one scenario, which is run once.
            limit = {} if buffer == LARGE else {f"transport.{kind}_buffer": buffer}
            yield (kind, variant, delay, buffer), _experiment(variant, delay, **limit)

    if quick:
        for variant in ("mptcp", "mptcp-iot"):
            yield from over("receive", variant, DELAY, ("600 kB",))
        return
    for kind in ("receive", "send"):
        for variant, buffers in BUFFERS.items():
            # No claim is about send buffers of TCP over Wi-Fi alone.
            is_asked = kind == "receive" or variant != "tcp-wifi"
            yield from over(kind, variant, DELAY, buffers if is_asked else (LARGE,))
    for variant, buffers in REAL_BUFFERS.items():
        traffic = "transfer.file" if variant == "mptcp-iot" else "connection.file.traffic"
        for buffer in buffers:
            changed: dict[str, object] = {
                f"{traffic}.direction": "download",
                "link.wifi.rate": "30 Mbit/s",
                "link.cell.rate": "10 Mbit/s",
                "transport.receive_buffer": buffer,
            }
            yield ("real", variant, buffer), _experiment(variant, DELAY, **changed)
    for (delay, variant), buffers in BUFFERS_AT.items():
        for kind in ("receive", "send"):
            yield from over(kind, variant, delay, buffers)


def plan(quick: bool) -> list[Planned]:
    """Return what is run, or two cells of it: at the test bed's delay, at other rates, at other delays."""
    return [Planned(cell, experiment, 2 if quick else SEEDS) for cell, experiment in _cells(quick)]


def read(cell: Cell, run: Run) -> dict[str, float]:
    """Return the figures of a run: those of the paper, what a socket and what the commands held at most."""
    found = extract(cell, run)
    for metric in ("send", "receive"):
        of_sockets = [
            figure.value
            for figure in run.figures
            if figure.metric == f"{metric}_memory_peak_bytes"
            and figure.subject.connection is not None
            and figure.subject.subflow is None
        ]
        found[f"{metric}_memory_per_socket"] = max(of_sockets)
    if run.engine == "kernel" and cell[1] == "mptcp-iot":
        facts = run.environment.get("facts", {})
        for end in ("sender", "receiver"):
            # A receiver that had to be ended has not said it.
            found[f"{end}_resident"] = float(facts.get(f"{end}_resident_peak_bytes", math.nan))
    return found


def enough(measured: Measured, kind: str, variant: str, share_of: float) -> Cell | None:
    """Return the cell at 60 ms with the smallest buffer that has 95 % of a goodput, if one has."""
    cells = sorted(measured.cells(kind, variant, DELAY), key=buffer_bytes)
    return next((cell for cell in cells if measured.mean(cell, GOODPUT).mean >= SAME * share_of), None)


def _held(measured: Measured) -> Outcome:
    parts, remarks = [], []
    for kind in ("receive", "send"):
        unlimited = (kind, "mptcp", DELAY, LARGE)
        if unlimited not in measured.cells(kind):
            return not_testable("the cells with 16 MB are missing")
        best = measured.mean(unlimited, GOODPUT).mean
        theirs = enough(measured, kind, "mptcp", best) or unlimited
        metric = f"{kind}_memory"
        shown = f"MPTCP ({theirs[-1]}) {KILOBYTES.estimate(measured.mean(theirs, metric))}"
        ours = enough(measured, kind, "mptcp-iot", best)
        if ours is None:
            why = f"with no {kind} buffer the commands have 95 % of the goodput of MPTCP with 16 MB"
            parts.append(Outcome("-", None, None, Verdict.NOT_REPRODUCED, why))
        else:
            what = f"held at most for {kind} buffers by the commands ({ours[-1]}) over MPTCP ({theirs[-1]})"
            parts.append(below(measured.ratio(ours, theirs, metric), 0.5, what))
            shown = f"the commands {KILOBYTES.estimate(measured.mean(ours, metric))}, {shown}"
        remarks.append(f"{kind}: {shown}")
    outcome = combined(*parts, ours=", ".join(part.ours for part in parts))
    return because(outcome, "; ".join(remarks))


def _at_sizes(measured: Measured, pairs: Sequence[tuple[str, str]]) -> Outcome:
    """Judge whether the commands are as fast as MPTCP at every pair of sizes, receive and send."""
    parts, shown = [], []
    for kind in ("receive", "send"):
        for ours, theirs in pairs:
            cells = [(kind, "mptcp-iot", DELAY, ours), (kind, "mptcp", DELAY, theirs)]
            if any(cell not in measured.cells(kind) for cell in cells):
                return not_testable(f"not run: {kind} buffers of {ours} and {theirs}")
            found = measured.ratio(cells[0], cells[1], GOODPUT)
            what = f"goodput with two {kind} buffers of {ours} over MPTCP with one of {theirs}"
            parts.append(above(found, SAME, what))
            shown.append(found)
    return combined(*parts, ours=_range(shown))


def _range(found: Sequence[Estimate]) -> str:
    means = [one.mean for one in found]
    return f"{min(means):.2f} to {max(means):.2f} times"


#: What the issue is about, in three readings of memory: the paper's claim is about limits of buffers.
OWN_CLAIMS = (
    Claim(
        "M1",
        "With half the buffer memory in all, the commands are as fast as MPTCP",
        "1/2 or less",
        "abstract",
    ),
    Claim(
        "M2",
        "With the same buffer memory in all, the commands are as fast as MPTCP",
        "faster",
        "figures 4 and 5",
    ),
    Claim(
        "M3",
        "What sockets hold, not what they may hold, is half of MPTCP's or less",
        "no figure",
        "abstract",
    ),
)

OWN_RULES = (
    Rule(
        "M1",
        "Goodput with two buffers of 75, 150 and 300 kB over that of MPTCP with one of 300, 600 and 1200 kB, "
        "receive and send: above 0.95 for all six. Partly if for some.",
        "None is above.",
        lambda measured: _at_sizes(measured, HALF),
    ),
    Rule(
        "M2",
        "Goodput with two buffers of 75, 150, 300 and 600 kB over that of MPTCP with one of twice the size, "
        "receive and send: above 0.95 for all eight. Partly if for some.",
        "None is above.",
        lambda measured: _at_sizes(measured, EQUAL),
    ),
    Rule(
        "M3",
        "Memory that the sockets of the receiver (of the sender) held at most, both sockets of the commands "
        "over MPTCP, each with the smallest receive (send) buffer run that has 95 % of the goodput of MPTCP "
        "with 16 MB: below 0.5 for both. Partly if for one.",
        "Neither is below, or the commands have that goodput with no buffer.",
        _held,
    ),
)

#: The paper's claims that are judged here, and the beginnings of the cells that their rules read.
NEEDS: Mapping[str, tuple[Cell, ...]] = {
    "S3-C1": (("receive", "mptcp", DELAY),),
    "S3-C2": (("receive", "mptcp", DELAY), ("receive", "tcp-wifi", DELAY)),
    "S3-C3": (("send", "mptcp", DELAY),),
    "S3-C5": tuple(
        ("receive", variant, delay) for variant in ("mptcp", "mptcp-iot") for delay in OTHER_DELAYS
    ),
    "S3-C6": tuple(("send", variant, delay) for variant in ("mptcp", "mptcp-iot") for delay in OTHER_DELAYS),
    "S3-C7": tuple((kind, "mptcp", delay) for kind in ("send", "receive") for delay in OTHER_DELAYS),
    "S3-C8": (("send", "mptcp", DELAY), ("send", "mptcp-iot", DELAY), ("receive", "mptcp", DELAY)),
    "S3-C9": (("real", "mptcp"), ("real", "mptcp-iot")),
}

#: Why the others are not.
UNTESTED: Mapping[str, str] = {
    "S3-C4": "TCP over 3G takes 17 s a run; not run here",
    "S3-C10": "the same buffers in both directions; not run here",
    "S3-C11": "it is about penalisation and opportunistic retransmission; Linux's own MPTCP has neither",
}

#: As a paper, for what reads cells: its rules are not all that are judged.
CONTENT = Paper("S3", MPTCP_IOT.name, MPTCP_IOT.title, plan, read, MPTCP_IOT.rules, (), ())


@dataclass(frozen=True)
class Result:
    """What came of the campaign; see :class:`anabranch.papers.kernel.Result` for the fields of that name.

    ``seeds`` are by the :func:`parts` of the plan.
    """

    plan: tuple[Planned, ...]
    sim: Measured
    kernel: Measured
    seeds: Mapping[str, tuple[int, ...]]
    lost: tuple[Lost, ...]
    left_out: tuple[Cell, ...]
    runs: tuple[Run, ...]
    claims: tuple[OnBoth, ...]


def real_time_s(quick: bool) -> float:
    """Return how long all runs take on the kernel, in seconds, without repetitions and set-up."""
    return kernel.real_time_s(plan(quick))


def campaign(
    out: Path, *, quick: bool = False, jobs: int | None = None, progress: Progress | None = None
) -> Result:
    """Run the plan on both engines and judge the claims on each. Complete runs are reused.

    Parameters
    ----------
    out
        Where runs are kept.
    quick
        Whether to run two cells alone.
    jobs
        Runs at a time in the simulator; on the kernel they are made one after the other.
    progress
        Called with the time that all runs on the kernel have reached, in seconds.

    Returns
    -------
    Result
        Figures and verdicts.

    Raises
    ------
    OutputError
        If ``out`` cannot be written to.
    RunError
        If a run fails.
    ScenarioError
        If a scenario is not there.
    Unavailable
        If this machine lacks what the kernel engine or the commands need.
    """
    planned = tuple(plan(quick))
    sim = measure(CONTENT, planned, out, jobs=jobs)
    options = {one.experiment.scenario.key: OPTIONS[one.cell[1]] for one in planned}
    runs = kernel.run_all(planned, out, progress, options)
    measured = Measured({})
    seeds: dict[str, tuple[int, ...]] = {}
    lost: list[Lost] = []
    left_out: list[Cell] = []
    for part, of_part in parts(planned).items():
        found, seeds[part], lost_here, left_out_here = figures(CONTENT, of_part, runs)
        measured = measured.joined(found)
        lost += lost_here
        left_out += left_out_here
    made = tuple(run for of_one in runs.values() for run in of_one)
    judged = tuple(judge(sim, measured, left_out))
    return Result(planned, sim, measured, seeds, tuple(lost), tuple(left_out), made, judged)


def parts(planned: Sequence[Planned]) -> dict[str, list[Planned]]:
    """Divide a plan into what is judged by itself: no rule compares cells of two delays."""
    found: dict[str, list[Planned]] = {}
    for one in planned:
        delay = DELAY if one.cell[0] == "real" else one.cell[2]
        found.setdefault(f"3G delay of {delay}", []).append(one)
    return found


def judge(sim: Measured, kernel: Measured, left_out: Sequence[Cell] = ()) -> Iterator[OnBoth]:
    """Judge our claims and the paper's, on each engine, without those that need a cell that is left out."""
    for claim, rule in zip(OWN_CLAIMS, OWN_RULES, strict=True):
        yield OnBoth(claim, rule, rule.judge(sim), rule.judge(kernel))
    rules = {rule.claim: rule for rule in MPTCP_IOT.rules}
    for claim in claims(MPTCP_IOT.name):
        outcomes = [_by_rule(rules[claim.id], measured, left_out) for measured in (sim, kernel)]
        yield OnBoth(claim, rules[claim.id], *outcomes)


def _by_rule(rule: Rule, measured: Measured, left_out: Sequence[Cell]) -> Outcome:
    if rule.claim in UNTESTED:
        return not_testable(UNTESTED[rule.claim])
    needed = NEEDS[rule.claim]
    missing = [cell for cell in left_out if any(cell[: len(words)] == words for words in needed)]
    if missing:
        return not_testable(f"too few runs on the kernel count: {', '.join(missing[0])}")
    absent = [words for words in needed if not measured.cells(*words)]
    if absent:
        return not_testable(f"not in the shorter plan: {', '.join(absent[0])}")
    return rule.judge(measured)


def sane(measured: Measured) -> list[str]:
    """Return what of the quick plan is far off: what must hold whatever the claims' verdicts are.

    Both links together carry 25 Mbit/s less headers, the slow one 5; what their sender's sockets hold is
    read, and bounded by 16 MB each.
    """
    wrong = []
    for cell in measured.cells():
        goodput = measured.mean(cell, GOODPUT).mean
        if not 3e6 < goodput < 25e6:
            wrong.append(f"{', '.join(cell)}: {goodput / 1e6:.1f} Mbit/s, expected 3 to 25")
        held = measured.mean(cell, "send_memory").mean
        if not 20e3 < held < 32e6:
            wrong.append(f"{', '.join(cell)}: the sender's sockets held {held / 1e3:.0f} kB")
    return wrong
