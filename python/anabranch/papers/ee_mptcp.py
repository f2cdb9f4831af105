"""EE-MPTCP (S2): what is run, and which figures of a run count.

``testbed`` is section 3.2, ``short``, ``medium`` and ``long`` are the sizes of section 5 by number of flows,
and ``wlans`` is its last experiment. ``buffer``, ``reading`` and ``testbeds`` vary what is left open.

``roundrobin-waits`` is a round-robin that waits for a full path instead of skipping it. ``emptcp`` is eMPTCP
as this paper describes it: WLAN first, LTE only where it takes no more energy per bit than WLAN does at its
full rate; ``emptcp-uncapped`` takes LTE whenever WLAN is full. ``emptcp-regions`` is the scheduler of that
name here, after Lim et al. 2015; ``energy-late`` is minRTT under the path manager ``energy``, which opens LTE
after a megabyte or three seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch.experiment import Experiment
from anabranch.papers.ee_mptcp_figures import PLOTS, TABLES
from anabranch.papers.ee_mptcp_rules import CAPPED, RULES
from anabranch.papers.model import Cell, Paper, Planned
from anabranch.papers.reproduction import scenario_file
from anabranch.results import Run, Subject

#: Subflows in the order of the scenario, the next one when the ones before are full.
WLAN_FIRST = '{ name = "emtcp", order = "listed" }'

#: By the word in a cell, the value of ``scheduler``.
SCHEDULERS = {
    "roundrobin": "roundrobin",
    "roundrobin-waits": '{ name = "roundrobin", cwnd_limited = false }',
    "emptcp": '{ name = "emtcp", order = "listed", cap = 155 }',
    "dmptcp": "dmptcp",
    "ee-mptcp": "ee-mptcp",
    "minrtt": "minrtt",
    "blest": "blest",
    "ecf": "ecf",
    "emptcp-uncapped": WLAN_FIRST,
    "emptcp-regions": "emptcp",
    "energy-late": "minrtt",
}

#: minRTT under the path manager that opens LTE late, as eMPTCP does.
LATE = '{ name = "energy", late_bytes = "1 MB" }'

#: The four that the paper compares.
COMPARED = ("roundrobin", "emptcp", "dmptcp", "ee-mptcp")

#: By sub-experiment, the size of a flow.
SIZES = {
    "short": '{ distribution = "pareto", mean = "57 kB", shape = 1.5 }',
    "medium": "1 MB",
    "long": "10 MB",
}

FLOWS = (1, 5, 10, 20, 30)
BUFFERS_KB = (64, 128, 256, 512, 1024, 4096)
#: Those whose receive buffer is varied.
BUFFERED = ("roundrobin", "roundrobin-waits", "ee-mptcp", "minrtt")

FILES_KB = (100, 200, 400, 600, 800, 900, 1000)

#: Durations of the scenarios: what has not ended by then counts as if it had then.
TESTBED_S = 60.0
SIMULATION_S = 1200.0

_LOSS = "link.0.loss"

#: The two of the headline.
PAIR = ("roundrobin", "ee-mptcp")

#: What the paper leaves open: by name, the keys that differ, and the schedulers that they mean something to.
READINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "no loss": ({_LOSS: "0 %"}, PAIR),
    "1 % of loss": ({_LOSS: "1 %"}, PAIR),
    "slowest of table 2": (
        {
            "link.0.rate": "5 Mbit/s",
            "link.0.delay": "30 ms",
            _LOSS: "1 %",
            "link.1.rate": "15 Mbit/s",
            "link.1.delay": "100 ms",
        },
        PAIR,
    ),
    "fastest of table 2": (
        {
            "link.0.rate": "10 Mbit/s",
            "link.0.delay": "20 ms",
            _LOSS: "0 %",
            "link.1.rate": "20 Mbit/s",
            "link.1.delay": "50 ms",
        },
        PAIR,
    ),
    "queues of 50 packets": ({"link.0.queue": "50 packets", "link.1.queue": "50 packets"}, PAIR),
    "initial window of 1": ({"transport.initial_window": "1 packet"}, PAIR),
    "Linux": ({"transport.profile": "linux"}, PAIR),
    "EE-MPTCP maximises bits per power": (
        {"connection.uploads.scheduler": '{ name = "ee-mptcp", objective = "per-power" }'},
        ("ee-mptcp",),
    ),
    "the path manager energy makes EE-MPTCP's choice, minRTT inside": (
        {"connection.uploads.scheduler": "minrtt", "connection.uploads.path_manager": "energy"},
        ("ee-mptcp",),
    ),
    "EE-MPTCP reckons with uplink slopes": (
        {"interface.0.power": "{ b = '283.17 nJ/bit' }", "interface.1.power": "{ b = '438.39 nJ/bit' }"},
        ("ee-mptcp",),
    ),
}


#: What section 3.2 leaves open, or says in a way that may be meant otherwise.
TESTBEDS: dict[str, dict[str, str]] = {
    "loss of 2 %": {"link.wlan.loss": "2 %"},
    "loss of 5 %": {"link.wlan.loss": "5 %"},
    "loss of 10 %": {"link.wlan.loss": "10 %"},
    "25 ms and 65 ms one way": {"link.wlan.delay": "25 ms", "link.3g.delay": "65 ms"},
    "the same, loss of 5 %": {
        "link.wlan.delay": "25 ms",
        "link.3g.delay": "65 ms",
        "link.wlan.loss": "5 %",
    },
    "buffer of 64 kB": {"transport.receive_buffer": "64 kB"},
}


def plan(quick: bool) -> list[Planned]:
    """Return what is run."""
    planned: list[Planned] = []
    seeds = 8 if quick else 20

    def add(cell: Cell, file: str, overrides: dict[str, str]) -> None:
        experiment = Experiment(scenario_file(f"ee-mptcp/{file}.toml"), list(overrides.items()))
        planned.append(Planned(cell, experiment, seeds))

    def uploads(scheduler: str, size: str, flows: int) -> dict[str, str]:
        overrides = {
            "connection.uploads.scheduler": SCHEDULERS[scheduler],
            "connection.uploads.traffic.size": SIZES[size],
            "connection.uploads.traffic.count": str(flows),
        }
        return overrides | ({"connection.uploads.path_manager": LATE} if scheduler == "energy-late" else {})

    for scheduler in ("minrtt", "emtcp"):
        key = "connection.upload.scheduler"
        for kilobytes in (800, 900) if quick else FILES_KB:
            overrides = {key: scheduler, "connection.upload.traffic.size": f"{kilobytes} kB"}
            add(("testbed", scheduler, f"{kilobytes} kB"), "testbed", overrides)
        for assumed, changed in {} if quick else TESTBEDS.items():
            add(("testbeds", scheduler, assumed), "testbed", {key: scheduler} | changed)
    if not quick:
        add(("testbeds", "emtcp", CAPPED), "testbed", {key: '{ name = "emtcp", cap = 200 }'})
    for size in SIZES:
        for scheduler in COMPARED if quick else SCHEDULERS:
            for flows in (10, 30) if quick else FLOWS:
                cell = (size, scheduler, f"{flows} flows")
                add(cell, "simulation", uploads(scheduler, size, flows))
    for scheduler in COMPARED if quick else SCHEDULERS:
        for wlans in (1, 2, 3):
            paths = [f'{{ name = "wlan{i}", via = ["ap{i}"] }}' for i in range(wlans)]
            paths.append('{ name = "lte", via = ["tower"] }')
            overrides = uploads(scheduler, "medium", 20)
            if scheduler == "emptcp":
                # Its cap would hold for further WLANs too. With 20 flows LTE never meets it.
                paths[-1] = paths[-1].replace("}", ", backup = true }")
                overrides["connection.uploads.scheduler"] = WLAN_FIRST
            overrides["connection.uploads.subflow"] = f"[{', '.join(paths)}]"
            add(("wlans", scheduler, f"{wlans} WLAN"), "simulation", overrides)
    for scheduler in ("roundrobin", "ee-mptcp") if quick else BUFFERED:
        for kilobytes in (64, 512) if quick else BUFFERS_KB:
            overrides = uploads(scheduler, "long", 30) | {"transport.receive_buffer": f"{kilobytes} kB"}
            add(("buffer", scheduler, f"{kilobytes} kB"), "simulation", overrides)
    if not quick:
        for reading, (changed, schedulers) in READINGS.items():
            for scheduler in schedulers:
                add(("reading", scheduler, reading), "simulation", uploads(scheduler, "long", 30) | changed)
    return planned


class Radio(NamedTuple):
    """What a radio of the paper takes: slopes in nJ/bit, base power in mW."""

    down: float
    up: float
    base: float


#: The paper's constants, with the uplink slopes of Huang et al. 2012 beside them.
RADIOS = {
    "wlan": Radio(137.0, 283.17, 132.9),
    "lte": Radio(52.0, 438.39, 1288.0),
    "3g": Radio(122.12, 868.98, 817.88),
}


def extract(cell: Cell, run: Run) -> dict[str, float]:
    """Return the figures of one run."""
    figures = {(figure.subject, figure.metric): figure.value for figure in run.figures}
    found = _file(figures) if cell[0].startswith("testbed") else _flows(figures)
    return found | _energy(figures, found["last_s"])


_Figures = dict[tuple[Subject, str], float]


def _file(figures: _Figures) -> dict[str, float]:
    """Return the times and the throughput of one file; one that has not arrived took all of the run."""
    completion_s = figures.get((Subject("upload"), "completion_s"), TESTBED_S)
    delivered = figures[Subject("upload"), "bytes_delivered"]
    rates = [figures[Subject("upload", subflow), "throughput_bps"] for subflow in ("wlan", "3g")]
    share = rates[0] / sum(rates)
    return {
        "completion_s": completion_s,
        "last_s": completion_s,
        "wlan_share": share,
        "wlan_bps": share * delivered * 8 / completion_s,
    }


def _flows(figures: _Figures) -> dict[str, float]:
    """Return the times of many flows; those that have not ended took all of the run."""

    def of(metric: str, missing: float) -> float:
        return figures.get((Subject("uploads"), metric), missing)

    started, completed = of("flows_started", 0.0), of("flows_completed", 0.0)
    unfinished = started - completed
    whole = unfinished == 0.0
    mean = of("completion_mean_s", 0.0) * completed + unfinished * SIMULATION_S
    p50 = of("completion_p50_s", SIMULATION_S)
    p95 = of("completion_p95_s", SIMULATION_S) if whole else SIMULATION_S
    return {
        "completion_s": mean / started,
        "completion_p50_s": p50,
        "completion_p95_s": p95,
        "last_s": of("completion_max_s", SIMULATION_S) if whole else SIMULATION_S,
        "tail": p95 / p50,
        "unfinished": unfinished,
    }


def _energy(figures: _Figures, last_s: float) -> dict[str, float]:
    """Return the energy of the robot's radios in J, by several models.

    ``energy_j``: the paper's linear model over the time in which a radio carries anything; ``_up``: with
    uplink slopes for what is sent; ``_whole``: the base power of a radio in use until the last flow ends, as
    the paper multiplies by the completion time; ``_active``: Huang's model without its tail; ``_tail``: with
    the whole tail.
    """
    found = dict.fromkeys(
        ("energy_j", "energy_up_j", "energy_whole_j", "energy_active_j", "energy_tail_j"), 0.0
    )
    for subject in {subject for subject, metric in figures if metric == "active_s"}:
        radio = RADIOS[(subject.link or "").rstrip("012")]
        up, down, active_s = (figures[subject, name] for name in ("bytes_up", "bytes_down", "active_s"))
        states = [figures[subject, f"energy_huang_{state}_j"] for state in ("promotion", "active")]
        # nJ per bit and byte: 8e-9 J. mW: 1e-3 W.
        found["energy_j"] += radio.down * (up + down) * 8e-9 + radio.base * active_s * 1e-3
        found["energy_up_j"] += (radio.up * up + radio.down * down) * 8e-9 + radio.base * active_s * 1e-3
        used_s = last_s if up > 0.0 else 0.0
        found["energy_whole_j"] += radio.down * (up + down) * 8e-9 + radio.base * used_s * 1e-3
        found["energy_active_j"] += sum(states)
        tails = (figures[subject, name] for name in ("energy_huang_tail_j", "energy_huang_tail_left_j"))
        found["energy_tail_j"] += sum(states) + sum(tails)
    return found


#: The paper.
EE_MPTCP = Paper(
    id="S2",
    name="ee-mptcp",
    title="EE-MPTCP: An Energy-Efficient Multipath TCP Scheduler for IoT-Based Power Grid Monitoring Systems",
    plan=plan,
    extract=extract,
    rules=RULES,
    plots=PLOTS,
    tables=TABLES,
)
