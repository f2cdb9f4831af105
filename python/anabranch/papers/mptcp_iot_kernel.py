"""MPTCP-IoT on the kernel: buffers of MPTCP, of one TCP and of two sockets with a distributor.

Figures 4 to 8. The bed runs what the simulator runs: the same chunks over two sockets, each with its own
subflow and the other path as a backup, which a path manager in user space opens. Buffers are ``tcp_rmem`` and
``tcp_wmem``, as in the paper: they count the kernel's overhead, and half of a receive buffer is window.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.experiment import Experiment
from anabranch.papers.kernel import Impossible, OnKernel
from anabranch.papers.model import Cell, Planned
from anabranch.papers.mptcp_iot import MPTCP_IOT, VARIANTS
from anabranch.papers.mptcp_iot_needs import DELAY, LARGE
from anabranch.papers.reproduction import scenario_file

#: Repetitions of every cell.
SEEDS = 2

#: Sizes of receive buffers at the test bed's delay; of others; and with the rates of the real networks.
BUFFERS = ("100 kB", "200 kB", "500 kB", "600 kB", "800 kB", "1200 kB", LARGE)
FEWER_BUFFERS = ("200 kB", "600 kB", "1200 kB", LARGE)
REAL_BUFFERS = ("200 kB", "600 kB", LARGE)

#: Those of TCP's send buffer, of which one claim speaks.
OF_TCP = ("500 kB", LARGE)

#: Delays of the 3G path beside that of the test bed: the shortest and the longest of the paper.
OTHER_DELAYS = ("20 ms", "200 ms")

#: Long enough for 10 MB over the paths of a variant with most buffers. A transfer that is cut off is reckoned
#: with what it has delivered by then.
DURATIONS = {"mptcp": "8 s", "mptcp-iot": "8 s", "tcp-wifi": "6 s", "tcp-3g": "10 s"}

#: What Linux has not, or has no need to be told.
_WITHOUT = {"transport.opportunistic_retransmission": False, "transport.penalisation": False}


def _buffers(
    kind: str, delay: str, variant: str, buffers: tuple[str, ...]
) -> Iterator[tuple[Cell, Experiment]]:
    file, own = VARIANTS[variant]
    without = _WITHOUT if variant == "mptcp" else {}
    fixed: dict[str, object] = {**own, **without, "duration": DURATIONS[variant], "link.cell.delay": delay}
    experiment = Experiment(scenario_file(f"mptcp-iot/{file}.toml")).with_(**fixed)
    for buffer in buffers:
        cell = (kind, variant, delay, buffer)
        yield cell, experiment.with_(**{f"transport.{kind}_buffer": buffer})


def _real(variant: str) -> Iterator[tuple[Cell, Experiment]]:
    name = {"mptcp": "down-mptcp", "mptcp-iot": "down-iot"}[variant]
    without = _WITHOUT if variant == "mptcp" else {}
    rates = {"link.wifi.rate": "30 Mbit/s", "link.cell.rate": "10 Mbit/s", "duration": "6 s"}
    experiment = Experiment(scenario_file(f"mptcp-iot/{name}.toml")).with_(**without, **rates)
    for buffer in REAL_BUFFERS:
        yield ("real", variant, buffer), experiment.with_(**{"transport.receive_buffer": buffer})


def _cells(quick: bool) -> Iterator[tuple[Cell, Experiment]]:
    for variant in ("mptcp", "mptcp-iot"):
        yield from _real(variant)
    if quick:
        return
    for variant in ("mptcp", "mptcp-iot"):
        yield from _buffers("receive", DELAY, variant, BUFFERS)
        yield from _buffers("send", DELAY, variant, FEWER_BUFFERS)
        for kind in ("receive", "send"):
            for delay in OTHER_DELAYS:
                yield from _buffers(kind, delay, variant, FEWER_BUFFERS)
    yield from _buffers("receive", DELAY, "tcp-wifi", BUFFERS)
    for variant in ("tcp-wifi", "tcp-3g"):
        yield from _buffers("send", DELAY, variant, OF_TCP)


def _plan(quick: bool) -> list[Planned]:
    return [Planned(cell, experiment, SEEDS) for cell, experiment in _cells(quick)]


ON_KERNEL = OnKernel(
    paper=MPTCP_IOT,
    plan=_plan,
    needs={
        "S3-C1": (("receive", "mptcp", DELAY, "100 kB"),),
        "S3-C2": (("receive", "mptcp", DELAY, "100 kB"), ("receive", "tcp-wifi")),
        "S3-C3": (("send", "mptcp"),),
        "S3-C4": (("send", "mptcp-iot"), ("send", "tcp-wifi"), ("send", "tcp-3g")),
        "S3-C5": (("receive", "mptcp", "200 ms"), ("receive", "mptcp-iot", "200 ms")),
        "S3-C6": (("send", "mptcp"), ("send", "mptcp-iot")),
        "S3-C7": (("send", "mptcp"), ("send", "mptcp-iot"), ("receive", "mptcp", "200 ms")),
        "S3-C8": (("send", "mptcp"), ("send", "mptcp-iot"), ("receive", "mptcp", DELAY)),
        "S3-C9": (("real", "mptcp"), ("real", "mptcp-iot")),
    },
    untested={
        "S3-C10": "thirty more cells, the same buffers in both directions; not run here",
        "S3-C11": "it is about penalisation and opportunistic retransmission; Linux's own MPTCP has neither",
    },
    shown=("goodput_bps", "seconds", "send_memory", "receive_memory"),
    impossible=(
        Impossible(
            "penalisation and opportunistic retransmission",
            "of the out-of-tree MPTCP that the paper used; MPTCP is without them here, on both engines",
        ),
        Impossible(
            "a scheduler `dedicated`",
            "not needed: the scheduler `default` uses a backup only where there is no other subflow",
        ),
    ),
)
