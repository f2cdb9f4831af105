"""STCP (JITM special issue 2022): its dumbbell, and what the paper leaves open about it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.equilibrium import figure
from anabranch.experiment import Experiment
from anabranch.papers.model import Cell, Paper, Planned, trace_metrics
from anabranch.papers.reproduction import scenario_file
from anabranch.papers.stcp_plots import PLOTS
from anabranch.papers.stcp_rules import PAYLOAD, RULES
from anabranch.papers.stcp_tables import TABLES
from anabranch.results import Run, Subject

#: Paired seeds of every cell.
SEEDS, QUICK_SEEDS = 20, 8

#: What is compared. The paper's ns-2 has the CUBIC of its time, which keeps 0.8 of the window and has no
#: HyStart. NewReno is Reno with the recovery of that name, which is that of the scenario.
CONGESTIONS = {
    "stcp": "stcp",
    "compound": "compound",
    "cubic": '{ name = "cubic", beta = 0.8, hystart = false }',
    "htcp": "htcp",
    "newreno": "reno",
}

#: Rates of the background, in kbit/s, and the one where others are swept.
RATES_KBPS = (100, 200, 300, 400, 500)
QUICK_RATES_KBPS = (100, 300, 500)
MIDDLE_KBPS = 300

#: One-way propagation delays; 250 ms and more are those of satellites. 120 ms is the paper's.
DELAYS_MS = (20, 60, 120, 250, 500)
QUICK_DELAYS_MS = (20, 120, 500)

#: What the printed algorithm leaves open: steps 6 to 8, and the capacity of step 5.
READINGS = {
    "as judged": "stcp",
    "Queue_max configured, 50": '{ name = "stcp", queue_max = "50 packets" }',
    "Bandwidth is throughput": '{ name = "stcp", bandwidth = "throughput" }',
    "both of these": '{ name = "stcp", bandwidth = "throughput", queue_max = "50 packets" }',
    "more than 1 packet per ACK": '{ name = "stcp", literal = true }',
    "capacity is the median": '{ name = "stcp", capacity = "median" }',
}

#: What the paper leaves open about the network.
CHOICES: dict[str, dict[str, str]] = {
    "as judged": {},
    "bottleneck of 2 Mbit/s": {"link.bottleneck.rate": "2 Mbit/s"},
    "5 Mbit/s": {"link.bottleneck.rate": "5 Mbit/s"},
    "round trip of 120 ms": {"link.bottleneck.delay": "50 ms"},
    "SACK recovery": {"transport.recovery": "sack"},
    "window cap of 20 (ns-2)": {"transport.window_cap": "20 packets"},
    "almost no background": {"datagram.background.rate": "1 kbit/s"},
}

FLOWS = (2, 5, 10)

_STEP_S = 1.0


def dumbbell(congestion: str, overrides: dict[str, str] | None = None, *, sparse: bool = True) -> Experiment:
    """Return the scenario; a sparse one has no series."""
    keys = {"connection.*.congestion": congestion, **(overrides or {})}
    if sparse:
        keys["measure.interval"] = "0 s"
    return Experiment(scenario_file("stcp/dumbbell.toml"), tuple(keys.items()))


def background(kind: str, kbps: int) -> dict[str, str]:
    """Return what makes the background one of constant (``cbr``) or varying rate, of this mean."""
    if kind == "cbr":
        return {"datagram.background.rate": f"{kbps} kbit/s"}
    return {
        "datagram.background.rate": f"{2 * kbps} kbit/s",
        "datagram.background.pattern": "exponential",
        "datagram.background.mean_on": "500 ms",
        "datagram.background.mean_off": "500 ms",
    }


Cells = Iterator[tuple[Cell, Experiment]]


def _plan(quick: bool) -> list[Planned]:
    seeds = QUICK_SEEDS if quick else SEEDS
    cells = [*_over_background(quick), *_readings(quick), *_delays(quick)]
    cells += [] if quick else [*_choices(), *_flows(), *_capacities()]
    return [Planned(cell, experiment, seeds) for cell, experiment in cells]


def _over_background(quick: bool) -> Cells:
    for kind in ("cbr", "vbr"):
        for kbps in QUICK_RATES_KBPS if quick else RATES_KBPS:
            for name, congestion in CONGESTIONS.items():
                yield (kind, name, f"{kbps} kbit/s"), dumbbell(congestion, background(kind, kbps))
                if not quick:
                    sack = {**background(kind, kbps), "transport.recovery": "sack"}
                    yield (f"{kind}, SACK", name, f"{kbps} kbit/s"), dumbbell(congestion, sack)
    for name, congestion in CONGESTIONS.items():
        yield ("window", name), dumbbell(congestion, sparse=False)


def _readings(quick: bool) -> Cells:
    for kbps in (MIDDLE_KBPS,) if quick else RATES_KBPS:
        for name, congestion in READINGS.items():
            yield (
                ("reading", name, f"{kbps} kbit/s"),
                dumbbell(congestion, background("cbr", kbps), sparse=False),
            )


def _delays(quick: bool) -> Cells:
    for delay_ms in QUICK_DELAYS_MS if quick else DELAYS_MS:
        # The access links have 10 ms of it.
        of_link = {"link.bottleneck.delay": f"{delay_ms - 10} ms"}
        for name, congestion in CONGESTIONS.items():
            yield ("delay", name, f"{delay_ms} ms"), dumbbell(congestion, of_link)


def _choices() -> Cells:
    for choice, overrides in CHOICES.items():
        for name, congestion in CONGESTIONS.items():
            yield ("choice", name, choice), dumbbell(congestion, overrides)


def _flows() -> Cells:
    for number in FLOWS:
        for name, congestion in CONGESTIONS.items():
            overrides = {"connection.0.count": str(number)}
            yield ("flows", name, f"{number}"), dumbbell(congestion, overrides)


def _capacities() -> Cells:
    """Run the start alone, with a point of the series every 10 ms.

    The tenth sample of the capacity raises the window.
    """
    start = {"duration": "6 s", "measure.interval": "10 ms"}
    cells = [("none", 0), *(("cbr", kbps) for kbps in RATES_KBPS), ("vbr", MIDDLE_KBPS)]
    for kind, kbps in cells:
        beside = background(kind, kbps) if kbps else {"datagram.background.rate": "1 kbit/s"}
        for rule in ("mean", "median"):
            congestion = f'{{ name = "stcp", capacity = "{rule}", initial_max = "1000 packets" }}'
            text = f"{kind} {kbps} kbit/s" if kbps else "none"
            yield ("capacity", rule, text), dumbbell(congestion, {**beside, **start}, sparse=False)


def _extract(cell: Cell, run: Run) -> dict[str, float]:
    if cell[0] == "capacity":
        return _capacity(run)
    if cell[0] == "flows":
        return {name: figure(run, Subject(), name) for name in ("goodput_bps", "jain_index")}
    flow = Subject("flow0")
    found = {name: figure(run, flow, name) for name in ("goodput_bps", "loss_rate", "drops", "retransmits")}
    if cell[0] == "window":
        cwnd = run.series.of("cwnd_packets")[Subject("flow0", "0")]
        step = round(_STEP_S / float(cwnd.times_s[1] - cwnd.times_s[0]))
        found |= trace_metrics("window", cwnd.times_s[step - 1 :: step], cwnd.values[step - 1 :: step])
    if cell[0] == "reading":
        found["rests"] = _rests(run)
    return found


def _rests(run: Run) -> float:
    """Return the share of the points of the series, from 10 s on, at which the window was held back.

    A point counts if packets were acknowledged since the last one; the window was held back if it has not
    moved meanwhile and nothing was retransmitted. Recovery can rest longer, so it is an upper bound.
    """
    subflow = Subject("flow0", "0")
    cwnd = run.series.of("cwnd_packets")[subflow]
    acked = run.series.of("throughput_bps")[subflow].values[1:] > 0
    still = np.diff(cwnd.values) == 0
    quiet = np.diff(run.series.of("retransmits")[subflow].values) == 0
    counted = acked & quiet & (cwnd.times_s[1:] > 10.0)
    return float((still & counted).sum() / max(counted.sum(), 1))


def _capacity(run: Run) -> dict[str, float]:
    """Read the estimate of the capacity from the window to which it raised: C = w L / rtt_min.

    The raise is the largest step of the window between two points.
    """
    subflow = Subject("flow0", "0")
    windows = run.series.of("cwnd_packets")[subflow].values
    steps = np.diff(windows)
    at = int(steps.argmax())
    capacity_bps = float(windows[at + 1]) * 8 * PAYLOAD / figure(run, subflow, "min_rtt_s")
    return {"raise_packets": float(steps[at]), "capacity_bps": capacity_bps}


STCP = Paper(
    id="S1",
    name="stcp",
    title="STCP for the Internet of Things (JITM 2022)",
    plan=_plan,
    extract=_extract,
    rules=RULES,
    plots=PLOTS,
    tables=TABLES,
)
