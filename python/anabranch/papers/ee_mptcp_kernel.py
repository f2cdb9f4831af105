"""EE-MPTCP on the kernel: the test bed of section 3.2, with the default scheduler and with subsets of paths.

No claim of the paper can be judged, for each is about packet schedulers that a stock kernel does not have.
What it does have is the choice of a subset: a subflow that is a backup (MP_PRIO, or from the start) carries
nothing while another one works. What that saves, and costs, is measured here.
"""

from __future__ import annotations

from anabranch.experiment import Experiment
from anabranch.papers.ee_mptcp import EE_MPTCP
from anabranch.papers.kernel import Impossible, OnKernel
from anabranch.papers.model import Cell, Planned
from anabranch.papers.reproduction import scenario_file

#: Repetitions of every cell: WLAN loses packets at random.
SEEDS, QUICK_SEEDS = 5, 2

#: First words of the cells that only the kernel's plan has.
SUBSET, PRIORITY = "testbed, subset", "testbed, MP_PRIO"

_SUBFLOWS = "connection.upload.subflow"
_SIZE = "connection.upload.traffic.size"

#: By the word in a cell, which subflow is a backup from the start.
SUBSETS = {
    "WLAN": '[{ name = "wlan", via = ["ap"] }, { name = "3g", via = ["tower"], backup = true }]',
    "3G": '[{ name = "wlan", via = ["ap"], backup = true }, { name = "3g", via = ["tower"] }]',
}

#: A longer file, of which the subset changes a second after the start.
LONGER = "4 MB"
PRIORITIES = {
    "both paths": "[]",
    "3G a backup from 1 s": '[{ at = "1 s", connection = "upload", subflow = "3g", action = "backup" }]',
}


def _plan(quick: bool) -> list[Planned]:
    testbed = Experiment(scenario_file("ee-mptcp/testbed.toml"))
    seeds = QUICK_SEEDS if quick else SEEDS
    planned: list[Planned] = []

    def add(cell: Cell, duration: str, **overrides: str) -> None:
        planned.append(Planned(cell, testbed.with_(duration=duration, **overrides), seeds))

    for size in ("800 kB",) if quick else ("800 kB", "900 kB"):
        add(("testbed", "minrtt", size), "6 s", **{_SIZE: size})
    for name in ("WLAN",) if quick else SUBSETS:
        add((SUBSET, name, "800 kB"), "6 s", **{_SUBFLOWS: SUBSETS[name]})
    for name in () if quick else PRIORITIES:
        add((PRIORITY, name, LONGER), "15 s", **{_SIZE: LONGER, "event": PRIORITIES[name]})
    return planned


_SCHEDULERS = "it compares packet schedulers; a stock kernel has one, `default`, and takes no other"

ON_KERNEL = OnKernel(
    paper=EE_MPTCP,
    plan=_plan,
    needs={},
    untested={
        **{f"S2-C{number}": _SCHEDULERS for number in range(1, 11)},
        "S2-C11": "an example that is reckoned; nothing is measured for it",
    },
    shown=("completion_s", "wlan_share", "wlan_bps", "energy_j"),
    impossible=(
        Impossible(
            "round-robin",
            "the scheduler `default` takes the subflow whose queue drains first; it cannot be told to "
            "alternate, nor to wait for a full path",
        ),
        Impossible(
            "eMTCP, DMPTCP",
            "both decide for each segment by energy or delay; the kernel's choice can be changed by MP_PRIO "
            "alone, for a subflow as a whole",
        ),
        Impossible(
            "EE-MPTCP",
            "its choice of a subset can be had by MP_PRIO, as here; its distribution of segments over the "
            "subset in advance cannot",
        ),
        Impossible(
            "a pacing-rate hint from BPF",
            "it leads the choice while there is one, see *A hint in the pacing rate*; a window control's own "
            "rate does not last, because the kernel reckons it anew after each call",
        ),
    ),
    own_kinds=(SUBSET, PRIORITY),
)
