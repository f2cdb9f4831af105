"""MFVL HCCA on the kernel: set-ups 3 and 4 and the sweep of the background, with MFVL, LIA and Reno as BPF.

Set-up 3 is run in the scenario that has the radios' energy as well, and its cells share runs with those of
other claims: they are the sweep's 1 Mbit/s, as those of set-up 4 are its 2 Mbit/s.
"""

from __future__ import annotations

from anabranch.experiment import Experiment
from anabranch.papers.kernel import Impossible, OnKernel
from anabranch.papers.mfvl import MFVL
from anabranch.papers.model import Cell, Planned
from anabranch.papers.reproduction import scenario_file

#: Repetitions of every cell.
SEEDS, QUICK_SEEDS = 3, 2

#: Rates of the background beside those of set-ups 3 and 4.
RATES = ("0.1 Mbit/s", "0.5 Mbit/s", "1.5 Mbit/s")

_CONGESTION = "connection.meter.congestion"

#: By the word in a cell, what is overridden. Reno is the uncoupled control.
ALGORITHMS: dict[str, dict[str, str]] = {
    "mfvl": {},
    "lia": {_CONGESTION: "lia"},
    "reno": {_CONGESTION: "reno"},
}


def _file(name: str) -> Experiment:
    return Experiment(scenario_file(f"mfvl/{name}.toml"))


def _plan(quick: bool) -> list[Planned]:
    planned: list[Planned] = []
    seeds = QUICK_SEEDS if quick else SEEDS

    def add(experiment: Experiment, *cells: Cell) -> None:
        planned.extend(Planned(cell, experiment, seeds) for cell in cells)

    network = _file("energy")
    for name in ("mfvl", "lia") if quick else ALGORITHMS:
        cells: list[Cell] = [("setup 3", name), ("energy", name)]
        cells += [] if quick else [("cbr", name, "1 Mbit/s")]
        add(network.with_(**ALGORITHMS[name]), *cells)
    for name in () if quick else ("mfvl", "lia"):
        double = _file("setup4").with_(**ALGORITHMS[name])
        add(double, ("setup 4", name), ("cbr", name, "2 Mbit/s"))
        for rate in RATES:
            add(double.with_(**{"datagram.*.rate": rate}), ("cbr", name, rate))
    return planned


ON_KERNEL = OnKernel(
    paper=MFVL,
    plan=_plan,
    needs={
        "S0-C1": (("cbr",),),
        "S0-C2": (("cbr",),),
        "S0-C7": (("setup 3",),),
        "S0-C8": (("setup 3",),),
        "S0-C10": (("setup 4",),),
        "S0-C14": (("setup 3",),),
        "S0-C15": (("energy",),),
    },
    untested={
        **dict.fromkeys(
            ("S0-C3", "S0-C4", "S0-C5", "S0-C6", "S0-C9"),
            "set-ups 1 and 2, with MVegas and MFast on both paths, are not run here",
        ),
        "S0-C11": "a sweep of a parameter over ten cells; not run here",
        "S0-C12": "a sweep of a parameter over five cells; not run here",
        "S0-C13": "six more cells, each beside two TCPs; not run here",
        "S0-C16": "the rule tells a decision by two runs that are equal until then, packet for packet, which "
        "runs on a kernel never are",
    },
    shown=("goodput_bps", "loss_rate", "throughput1_bps", "throughput2_bps"),
    impossible=(
        Impossible(
            "recovery of ns-2",
            "Linux has PRR and undo beside NewReno, its own rule of the timeout, and joins the second "
            "subflow a round trip after the first",
        ),
    ),
)
