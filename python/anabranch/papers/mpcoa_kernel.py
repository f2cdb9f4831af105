"""MPCOA on the kernel: SRL-HU with three congestion controls, two path managers and eight buffers.

Both path managers can be had of a stock kernel: full mesh is its own, and PCDC is full mesh whose other
subflows are backups. PCDC uses the subflows of the paper's Table 3, not those of a measurement, which would
take eight more cells for each congestion control. Left out beside that: two scenarios and three congestion
controls; runs last 5 s in place of 30 s, some thirty round trips, so that much of each is its beginning; and
opportunistic retransmission and penalisation, which Linux's own MPTCP has not, on both engines.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.papers.kernel import Impossible, OnKernel
from anabranch.papers.model import Planned
from anabranch.papers.mpcoa import MPCOA
from anabranch.papers.mpcoa_cells import THROUGHPUT, cell_of, target
from anabranch.papers.mpcoa_figures import CHOICES, MODELS
from anabranch.papers.mpcoa_printed import printed
from anabranch.tuning.measure import FULL_MESH, PCDC, Setting

#: The scenario: the one of the paper's three that most of its claims about one scenario are about.
SITE = "srl-hu"

#: Repetitions of every cell.
SEEDS, QUICK_SEEDS = 3, 2

#: The paper's best, its usual one and its coupled one.
CONGESTIONS, QUICK_CONGESTIONS = ("cubic", "olia", "hybla"), ("hybla",)

#: In MiB; two around the paper's optimum of 18 MiB, and two at the end of its grid.
BUFFERS_MIB, QUICK_BUFFERS_MIB = (0.5, 3.0, 6.0, 12.0, 18.0, 21.0, 27.0, 30.0), (6.0, 30.0)

_REDUCED = (
    ("duration", "5 s"),
    ("transport.opportunistic_retransmission", "false"),
    ("transport.penalisation", "false"),
)


def _cells(quick: bool) -> Iterator[Planned]:
    of = target(SITE, _REDUCED)
    for congestion in QUICK_CONGESTIONS if quick else CONGESTIONS:
        used = printed()[SITE]["subsets"][congestion]
        backups = tuple(name for name in of.regular if name not in used)
        for manager, silent in ((FULL_MESH, ()), (PCDC, backups)):
            for buffer in QUICK_BUFFERS_MIB if quick else BUFFERS_MIB:
                experiment = of.with_(Setting(FULL_MESH, congestion, buffer, silent))
                cell = cell_of(SITE, manager, congestion, buffer)
                yield Planned(cell, experiment, QUICK_SEEDS if quick else SEEDS)


def _plan(quick: bool) -> list[Planned]:
    return list(_cells(quick))


_ALL_SITES = "its rule reads three scenarios, of which one is run here"

ON_KERNEL = OnKernel(
    paper=MPCOA,
    plan=_plan,
    needs={
        "S4-C1": tuple(cell_of(SITE, manager, "hybla", 30.0) for manager in (FULL_MESH, PCDC)),
        "S4-C2": tuple(cell_of(SITE, PCDC, congestion, 30.0) for congestion in CONGESTIONS),
        "S4-C6": tuple(cell_of(SITE, PCDC, "hybla", buffer) for buffer in (18.0, 27.0)),
    },
    untested={
        **dict.fromkeys(("S4-C3", "S4-C4", "S4-C5", "S4-C7", "S4-C8"), _ALL_SITES),
        "S4-C9": "runs of a minute in which paths change, for each subflow that is silenced; not run here",
    },
    shown=(THROUGHPUT,),
    impossible=(
        Impossible(
            "`ndiffports`",
            "the kernel's path manager has none; none of the campaign's two is it",
        ),
        Impossible(
            "PCDC as a program",
            "its measurement and its choice are not made here; a subflow that it does not use is a backup",
        ),
        Impossible(
            "penalisation and opportunistic retransmission",
            "of the out-of-tree MPTCP that the paper used; left out here, on both engines",
        ),
    ),
    tables=(MODELS, CHOICES),
)
