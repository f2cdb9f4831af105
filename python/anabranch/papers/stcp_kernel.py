"""STCP on the kernel: the five algorithms as BPF beside one CBR and one VBR background."""

from __future__ import annotations

from anabranch.papers.kernel import Impossible, OnKernel
from anabranch.papers.model import Cell, Planned
from anabranch.papers.stcp import CONGESTIONS, MIDDLE_KBPS, STCP, background, dumbbell

#: Repetitions of every cell.
SEEDS, QUICK_SEEDS = 3, 2

#: A run on the kernel takes as long as it lasts: 160 round trips of the 150 s, 620, that the paper has.
DURATION = "40 s"


def _plan(quick: bool) -> list[Planned]:
    planned: list[Planned] = []
    for kind in ("cbr", "vbr"):
        for name in ("stcp", "newreno") if quick else CONGESTIONS:
            overrides = {**background(kind, MIDDLE_KBPS), "duration": DURATION}
            cell: Cell = (kind, name, f"{MIDDLE_KBPS} kbit/s")
            experiment = dumbbell(CONGESTIONS[name], overrides)
            planned.append(Planned(cell, experiment, QUICK_SEEDS if quick else SEEDS))
    return planned


def _beside(*names: str) -> tuple[Cell, ...]:
    return tuple((kind, name) for kind in ("cbr", "vbr") for name in names)


ON_KERNEL = OnKernel(
    paper=STCP,
    plan=_plan,
    needs={
        "S1-C1": _beside("stcp", "newreno"),
        "S1-C2": _beside("stcp", "compound"),
        "S1-C3": _beside("stcp", "cubic"),
        "S1-C4": _beside("stcp", "htcp"),
        "S1-C5": _beside(*CONGESTIONS),
        "S1-C6": _beside(*CONGESTIONS),
    },
    untested={
        "S1-C7": "ten cells at delays of 20 to 500 ms; an hour of real time, and not run here",
    },
    shown=("goodput_bps", "loss_rate", "retransmits"),
    impossible=(
        Impossible(
            "recovery of ns-2",
            "Linux has PRR and undo beside NewReno, and its own rule of the timeout",
        ),
        Impossible(
            "CUBIC of ns-2",
            "the BPF CUBIC has the same parameters (0.8 of the window kept, no HyStart) in both engines; the "
            "kernel's own, which keeps 0.7 and has HyStart, is not what the paper compares",
        ),
    ),
)
