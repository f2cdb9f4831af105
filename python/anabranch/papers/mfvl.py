"""MFVL HCCA (Electronics 2021, 10:711): its four set-ups, and what the paper only argues about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.equilibrium import figure
from anabranch.experiment import Experiment
from anabranch.papers.mfvl_plots import PLOTS
from anabranch.papers.mfvl_rules import ROLES_CHOSEN, RULES
from anabranch.papers.mfvl_tables import TABLES
from anabranch.papers.model import Cell, Paper, Planned, trace_metrics
from anabranch.papers.reproduction import scenario_file
from anabranch.results import OneSeries, Run, Subject

#: Paired seeds of every cell.
SEEDS, QUICK_SEEDS = 20, 8

#: Rates of the background; the paper names the ends.
RATES = ("0.1", "0.25", "0.5", "0.75", "1", "1.25", "1.5", "1.75", "2")
QUICK_RATES = ("0.1", "1", "2")

SIGMAS = ("0.2", "0.4", "0.6", "0.8", "1.0")
QUICK_SIGMAS = ("0.2", "0.6", "1.0")

KS = ("1", "2", "3", "4", "8")
QUICK_KS = ("1", "2", "4")

#: Differences of round-trip times, in milliseconds, and the delay of the near path's first link.
DIFFERENCES_MS = (0, 50, 200)
NEAR_MS = {"shared": 1, "disjoint": 2}

#: Of 802.11, in Mbit/s; the paper gives none.
RADIO_RATES = ("1", "2", "5.5", "11", "54")

#: What the paper leaves open: overrides of both algorithms, and further ones of MFVL.
READINGS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "roles found by itself, T = 10 s": (
        {},
        {"connection.meter.congestion.initial_fast": "0", "connection.meter.congestion.period": "10 s"},
    ),
    "the same as printed (literal)": (
        {},
        {
            "connection.meter.congestion.initial_fast": "0",
            "connection.meter.congestion.period": "10 s",
            "connection.meter.congestion.literal": "true",
        },
    ),
    "equation (11) as a product": ({}, {"connection.meter.congestion.vegas_beta_dec": "mul"}),
    "sigma = 1 (FAST)": ({}, {"connection.meter.congestion.fast_sigma": "1.0"}),
    "SACK recovery": ({"transport.recovery": "sack"}, {}),
    "least timeout 1 s": ({"transport.min_rto": "1 s"}, {}),
    "delayed ACKs": ({"transport.profile": "rfc"}, {}),
    "no window cap": ({"transport.window_cap": "unlimited"}, {}),
}

#: Assumptions under which the sweep of figures 19 and 20 is repeated, at fewer rates.
SWEEPS = {
    "802.11 at 1 Mbit/s": {"medium.*.rate": "1 Mbit/s"},
    "802.11 at 2 Mbit/s": {"medium.*.rate": "2 Mbit/s"},
    "no window cap": {"transport.window_cap": "unlimited"},
}
SWEEP_RATES = ("0.5", "1", "1.5", "2")

#: Assumptions under which what is said about single set-ups is judged again.
ELSEWHERE = {
    **{
        f"queues of {packets} packets before the bottlenecks": {
            "link.R1-R2.queue": f"{packets} packets",
            "link.R3-R4.queue": f"{packets} packets",
        }
        for packets in (25, 50, 200)
    },
    "a window cap of 50 packets": {"transport.window_cap": "50 packets"},
    "no window cap": {"transport.window_cap": "unlimited"},
    "SACK recovery": {"transport.recovery": "sack"},
    "802.11 at 2 Mbit/s": {"medium.*.rate": "2 Mbit/s"},
    "delayed ACKs": {"transport.profile": "rfc"},
}

#: The set-ups that it is about.
ELSEWHERE_SETUPS = ("setup 1", "setup 2", "setup 3")

#: Distance of the points of a trace, in seconds; a series has one every 0.1 s.
_TRACE_STEP_S = 0.5

_CONGESTION = "connection.meter.congestion"


def _setup(number: int) -> Experiment:
    return Experiment(scenario_file(f"mfvl/setup{number}.toml"))


def _sparse(experiment: Experiment) -> Experiment:
    """Leave out the series, which nobody reads."""
    return experiment.with_(**{"measure.interval": "0 s"})


def _plan(quick: bool) -> list[Planned]:
    seeds = QUICK_SEEDS if quick else SEEDS
    cells = [*_setups(), *_background(quick), *_parameters(quick), *_beside_tcp(quick), *_detector(quick)]
    cells += [] if quick else _open_choices()
    return [Planned(cell, experiment, seeds) for cell, experiment in cells]


Cells = Iterator[tuple[Cell, Experiment]]


def _setups() -> Cells:
    lia = _setup(1).with_(**{_CONGESTION: "lia"})
    yield ("setup 1", "mvegas"), _setup(1)
    yield ("setup 1", "mfast"), _setup(1).with_(**{_CONGESTION: "mfast"})
    yield ("setup 1", "lia"), lia
    yield ("setup 2", "mfvl"), _setup(2)
    yield ("setup 2", "lia"), lia
    yield ("setup 3", "mfvl"), _setup(3)
    yield ("setup 3", "lia"), lia
    yield ("setup 4", "mfvl"), _setup(4)
    yield ("setup 4", "lia"), _setup(4).with_(**{_CONGESTION: "lia"})
    energy = _sparse(Experiment(scenario_file("mfvl/energy.toml")))
    yield ("energy", "mfvl"), energy
    yield ("energy", "lia"), energy.with_(**{_CONGESTION: "lia"})


def _background(quick: bool) -> Cells:
    for rate in QUICK_RATES if quick else RATES:
        mfvl = _sparse(_setup(4)).with_(**{"datagram.*.rate": f"{rate} Mbit/s"})
        yield ("cbr", "mfvl", f"{rate} Mbit/s"), mfvl
        yield ("cbr", "lia", f"{rate} Mbit/s"), mfvl.with_(**{_CONGESTION: "lia"})


def _parameters(quick: bool) -> Cells:
    beside = _sparse(Experiment(scenario_file("mfvl/friendliness.toml")))
    for sigma in QUICK_SIGMAS if quick else SIGMAS:
        mfast = {_CONGESTION: f'{{ name = "mfast", sigma = {sigma} }}'}
        yield ("sigma", sigma), _sparse(_setup(1)).with_(**mfast)
        yield ("sigma beside TCP", sigma), beside.with_(**mfast)
    for k in QUICK_KS if quick else KS:
        yield ("k", k), _sparse(_setup(1)).with_(**{_CONGESTION: f'{{ name = "mvegas", k = {k} }}'})


def _beside_tcp(quick: bool) -> Cells:
    for tcp in ("reno", "cubic"):
        beside = _sparse(Experiment(scenario_file("mfvl/friendliness.toml"))).with_(
            **{"connection.tcp1.congestion": tcp, "connection.tcp2.congestion": tcp}
        )
        yield ("beside TCP", "mfvl", tcp), beside
        yield ("beside TCP", "own kind", tcp), beside.with_(**{_CONGESTION: tcp})
        if not quick:
            yield ("beside TCP", "lia", tcp), beside.with_(**{_CONGESTION: "lia"})


def _detector(quick: bool) -> Cells:
    """Both detectors with the paper's period, and beside each the same runs in which none can couple.

    A run is determined by scenario and seed. The two differ in the threshold alone, one of which no share can
    exceed, so they differ in what they send if, and only if, the one decision of the run, at 50 s, coupled.
    """
    for topology, near_ms in NEAR_MS.items():
        file = scenario_file(f"../regress/shared-bottleneck/{topology}.toml")
        for difference_ms in DIFFERENCES_MS:
            for detector in ("retransmissions", "rfc8382"):
                if quick and (detector == "rfc8382" or difference_ms == 50):
                    continue
                decides = _sparse(Experiment(file)).with_(
                    **{
                        "duration": "60 s",
                        "link.far.delay": f"{near_ms + difference_ms // 2} ms",
                        "connection.subject.congestion.detector": detector,
                        "connection.subject.congestion.period": "50 s",
                    }
                )
                yield from _decision(decides, detector, topology, difference_ms)
                if not quick and detector == "retransmissions":
                    chosen = decides.with_(**{"connection.subject.congestion.initial_fast": "1"})
                    yield from _decision(chosen, ROLES_CHOSEN, topology, difference_ms)


def _decision(decides: Experiment, name: str, topology: str, difference_ms: int) -> Cells:
    never = decides.with_(**{"connection.subject.congestion.bn_thresh": "1.0"})
    yield ("detector", name, topology, f"{difference_ms} ms"), decides
    yield ("never coupled", name, topology, f"{difference_ms} ms"), never


def _open_choices() -> Cells:
    mfvl = _sparse(_setup(3))
    for rate in RADIO_RATES:
        one = mfvl.with_(**{"medium.*.rate": f"{rate} Mbit/s"})
        yield ("radio", "mfvl", f"{rate} Mbit/s"), one
        yield ("radio", "lia", f"{rate} Mbit/s"), one.with_(**{_CONGESTION: "lia"})
    for name, overrides in SWEEPS.items():
        for background in SWEEP_RATES:
            both = {**overrides, "datagram.*.rate": f"{background} Mbit/s"}
            yield ("sweep", "mfvl", f"{name}, background {background} Mbit/s"), mfvl.with_(**both)
            lia = mfvl.with_(**both, **{_CONGESTION: "lia"})
            yield ("sweep", "lia", f"{name}, background {background} Mbit/s"), lia
    for name, (of_both, of_mfvl) in READINGS.items():
        yield ("reading", "mfvl", name), mfvl.with_(**of_both, **of_mfvl)
        yield ("reading", "lia", name), _sparse(_setup(1)).with_(**{_CONGESTION: "lia"}, **of_both)
    for name, overrides in ELSEWHERE.items():
        for cell, experiment in _setups():
            if cell[0] in ELSEWHERE_SETUPS:
                yield ("elsewhere", name, *cell), experiment.with_(**overrides)


def _extract(cell: Cell, run: Run) -> dict[str, float]:
    if cell[0] in ("detector", "never coupled"):
        return {
            f"packets_{side}": figure(run, Subject("subject", side), "packets_sent") for side in ("a", "b")
        }
    found = _figures(run)
    if cell[0].startswith("setup"):
        found |= _over_time(run)
    if cell[0] == "elsewhere":
        found |= {name: value for name, value in _over_time(run).items() if "cwnd" in name}
    if cell[0] in ("beside TCP", "sigma beside TCP"):
        found |= _beside(run)
    if cell[0] == "energy":
        found["energy_per_bit_j"] = figure(run, Subject(), "energy_huang_per_bit_j")
    return found


def _figures(run: Run) -> dict[str, float]:
    meter = Subject("meter")
    found = {name: figure(run, meter, name) for name in ("goodput_bps", "loss_rate", "drops", "retransmits")}
    for number in (1, 2):
        path = Subject("meter", f"path{number}")
        found[f"throughput{number}_bps"] = figure(run, path, "throughput_bps")
        found[f"drops{number}"] = figure(run, path, "drops")
        bottleneck = Subject(link="R1-R2" if number == 1 else "R3-R4")
        found[f"queue_drops{number}"] = figure(run, bottleneck, "drops")
    return found


def _over_time(run: Run) -> dict[str, float]:
    windows = [_series(run, f"path{number}", "cwnd_packets") for number in (1, 2)]
    drops = [_series(run, f"path{number}", "drops") for number in (1, 2)]
    lost = _sum(*drops)
    has_lost = lost.values > 0
    # On the kernel the second subflow joins later, and so its series is shorter.
    (times_s, first), (times2_s, second) = ((one.times_s, one.values) for one in windows)
    later = times_s >= 5.0
    found = {
        "mean_cwnd1": float(first[times_s >= 1.5].mean()),
        "mean_cwnd2": float(second[times2_s >= 1.5].mean()),
        "largest_cwnd1": float(first.max()),
        "largest_cwnd1_before_5s": float(first[~later].max()),
        "largest_cwnd1_from_5s": float(first[later].max()),
        "cwnd2_at_5s": float(second[np.searchsorted(times2_s, 5.0)]),
        "smallest_cwnd2_at_7s": float(second[(times2_s >= 6.5) & (times2_s <= 7.5)].min()),
        "smallest_cwnd2_from_5s": float(second[times2_s >= 5.0].min()),
        # A run without a drop has its first at its end.
        "first_drop_s": float(lost.times_s[has_lost][0] if has_lost.any() else lost.times_s[-1]),
        "cbr1_bps": figure(run, Subject("cbr1"), "throughput_bps"),
        "cbr2_bps": figure(run, Subject("cbr2"), "throughput_bps"),
    }
    goodput = run.series.of("goodput_bps")[Subject("meter")]
    since_start_s = np.maximum(goodput.times_s - 1.5, 0.1)
    mean_bps = np.cumsum(goodput.values) * 0.1 / since_start_s
    found |= _trace("mean goodput", goodput._replace(values=mean_bps))
    found |= _trace("drops", lost)
    found |= _trace("window 1", windows[0])
    found |= _trace("window 2", windows[1])
    return found


def _series(run: Run, subflow: str, metric: str) -> OneSeries:
    return run.series.of(metric)[Subject("meter", subflow)]


def _sum(one: OneSeries, other: OneSeries) -> OneSeries:
    """Add two counts at the times of both; one that has not begun is zero."""
    times_s = np.union1d(one.times_s, other.times_s)
    values = np.zeros(len(times_s))
    for series in (one, other):
        last = np.searchsorted(series.times_s, times_s, side="right")
        values += np.concatenate([[0.0], series.values])[last]
    return one._replace(times_s=times_s, values=values)


def _trace(name: str, series: OneSeries) -> dict[str, float]:
    step = round(_TRACE_STEP_S / float(series.times_s[1] - series.times_s[0]))
    return trace_metrics(name, series.times_s[step - 1 :: step], series.values[step - 1 :: step])


def _beside(run: Run) -> dict[str, float]:
    found = {}
    for number in (1, 2):
        ours = figure(run, Subject("meter", f"path{number}"), "throughput_bps")
        theirs = figure(run, Subject(f"tcp{number}"), "goodput_bps")
        found[f"tcp{number}_bps"] = theirs
        # Jain's index of two: 1 if they are equal, a half if one has all.
        found[f"jain{number}"] = (ours + theirs) ** 2 / (2 * (ours**2 + theirs**2))
    return found


MFVL = Paper(
    id="S0",
    name="mfvl",
    title="MFVL HCCA for multihomed smart-gas meters (Electronics 2021)",
    plan=_plan,
    extract=_extract,
    rules=RULES,
    plots=PLOTS,
    tables=TABLES,
)
