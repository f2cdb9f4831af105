"""MPTCP-IoT (S3): the buffer memory that a file over two paths takes, with one connection or two.

Hwang and Yoo, A Memory-Efficient Transmission Scheme for Multi-Homed Internet-of-Things (IoT) Devices,
Sensors 2020, 20(5), 1436. 10 MB go from a device over Wi-Fi (20 Mbit/s, 5 ms) and 3G (5 Mbit/s, 60 ms) to a
gateway, which passes them on by TCP. Cells are ``(experiment, variant, level, buffer)``.

Assumed: queues of 100 packets (50 and 200 in a table), chunks of 64 KiB (8 to 512 KiB in a table), that
throughput counts until the server has the last byte, and that buffers have their size from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anabranch.experiment import Experiment
from anabranch.papers.model import Cell, Paper, Planned
from anabranch.papers.mptcp_iot_needs import DELAY, GOODPUT, LARGE, LONG
from anabranch.papers.mptcp_iot_rules import rules
from anabranch.papers.mptcp_iot_shown import PLOTS, TABLES
from anabranch.papers.reproduction import scenario_file
from anabranch.results import Run

#: Sizes of buffers that are run: close together where few packets count, then every 50 kB as in figure 4.
BUFFERS = (
    *(f"{size} kB" for size in (20, 30, 40, 50, 60, 70, 80, 100, 125, 150, 175, 200, 225, 250, 275, 300)),
    *(f"{size} kB" for size in range(350, 1001, 50)),
    *(f"{size} kB" for size in (1100, 1200, 1300, 1400, 2000, 3000, 4000, 6000, 8000)),
    LARGE,
)

#: Those at other delays than the test bed's, with other queues and with more interfaces.
FEWER_BUFFERS = (
    *(f"{size} kB" for size in (30, 50, 70, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500)),
    *(f"{size} kB" for size in (600, 700, 800, 1000, 1200, 1400, 2000, 3000, 4000, 6000, 8000)),
    LARGE,
)

#: Those of the shorter plan.
FEW_BUFFERS = ("50 kB", "100 kB", "200 kB", "300 kB", "500 kB", "600 kB", "1200 kB", LARGE)

DELAYS = ("20 ms", "40 ms", DELAY, "80 ms", "100 ms", "120 ms", "140 ms", "160 ms", "180 ms", "200 ms")

#: What a variant changes in its file; the first one is the file's own.
VARIANTS: Mapping[str, tuple[str, dict[str, object]]] = {
    "mptcp": ("mptcp", {}),
    "mptcp-iot": ("iot", {}),
    "tcp-wifi": ("tcp", {}),
    "tcp-3g": ("tcp", {"connection.up.subflow.0.via": '["base-station"]'}),
    "mptcp-none": (
        "mptcp",
        {"transport.opportunistic_retransmission": False, "transport.penalisation": False},
    ),
    "mptcp-penalisation": ("mptcp", {"transport.opportunistic_retransmission": False}),
    "mptcp-retransmission": ("mptcp", {"transport.penalisation": False}),
    "mptcp-uncoupled": ("mptcp", {"connection.up.congestion": "reno"}),
}

#: These differ only when a receive window is full.
OF_THE_RECEIVE_WINDOW = ("mptcp-none", "mptcp-penalisation", "mptcp-retransmission")

#: The conditions of the sub-experiment ``handover``.
HANDOVERS = {
    "no loss": "[]",
    "Wi-Fi lost for good": '[{ at = "1 s", link = "wifi", up = false }]',
    "Wi-Fi away for 3 s": (
        '[{ at = "1 s", link = "wifi", up = false }, { at = "4 s", link = "wifi", up = true }]'
    ),
}

#: What stands for it in the sub-experiment ``interfaces``, by their number.
INTERFACES = {"2": "down-{}", "3": "three-{}", "4": "four-{}"}


def plan(quick: bool) -> list[Planned]:
    """Return the plan, or the shorter one."""
    seeds = 2 if quick else 3
    files = {
        name: Experiment(scenario_file(f"mptcp-iot/{name}.toml"))
        for name in ("mptcp", "iot", "tcp", "down-mptcp", "down-iot", "down-tcp")
        + (() if quick else ("three-mptcp", "three-iot", "four-mptcp", "four-iot"))
    }
    buffers = FEW_BUFFERS if quick else BUFFERS
    cells = [
        *_buffers(files, buffers, (DELAYS[0], DELAY, DELAYS[-1]) if quick else DELAYS),
        *_downwards(files, buffers),
    ]
    if not quick:
        cells += [*_sensitivity(files), *_long(files), *_handover(files), *_interfaces(files)]
    # Where losses fall differs most between the directions, so they have more seeds.
    return [
        Planned(cell, experiment, 10 if cell[0] == "direction" and not quick else seeds)
        for cell, experiment in cells
    ]


Files = Mapping[str, Experiment]


def _variant(files: Files, variant: str, **overrides: object) -> Experiment:
    file, own = VARIANTS[variant]
    return files[file].with_(**own, **overrides)


def _buffers(
    files: Files, buffers: tuple[str, ...], delays: tuple[str, ...]
) -> Iterator[tuple[Cell, Experiment]]:
    """Figures 4 to 7: either buffer, at every delay of the 3G path; all variants at the test bed's delay."""
    for kind in ("receive", "send"):
        for variant in VARIANTS:
            is_swept = variant in ("mptcp", "mptcp-iot")
            if kind == "send" and variant not in (
                "mptcp",
                "mptcp-iot",
                "mptcp-uncoupled",
                "tcp-wifi",
                "tcp-3g",
            ):
                continue
            for delay in delays if is_swept else (DELAY,):
                for buffer in _buffers_at(delay, buffers):
                    limits: dict[str, object] = {f"transport.{kind}_buffer": buffer, "link.cell.delay": delay}
                    yield (kind, variant, delay, buffer), _variant(files, variant, **limits)


def _buffers_at(delay: str, buffers: tuple[str, ...]) -> tuple[str, ...]:
    return buffers if delay == DELAY or buffers is FEW_BUFFERS else FEWER_BUFFERS


def _turned(experiment: Experiment, variant: str, way: str) -> Experiment:
    """Return a scenario without the server, whose file goes this way."""
    traffic = "transfer.file" if variant == "mptcp-iot" else "connection.file.traffic"
    return experiment.with_(**{f"{traffic}.direction": {"down": "download", "up": "upload"}[way]})


def _downwards(files: Files, buffers: tuple[str, ...]) -> Iterator[tuple[Cell, Experiment]]:
    """Figure 8, and both directions over the paths of the test bed, without the server."""
    for variant in ("mptcp", "mptcp-iot", "tcp-wifi", "tcp-3g"):
        file = files["down-" + {"mptcp": "mptcp", "mptcp-iot": "iot"}.get(variant, "tcp")]
        if variant == "tcp-3g":
            file = file.with_(**{"connection.file.subflow.0.via": '["base-station"]'})
        for buffer in buffers:
            limited = file.with_(**{"transport.receive_buffer": buffer})
            rates = {"link.wifi.rate": "30 Mbit/s", "link.cell.rate": "10 Mbit/s"}
            yield ("real", variant, buffer), limited.with_(**rates)
            if variant in ("mptcp", "mptcp-iot"):
                for way in ("down", "up"):
                    yield ("direction", variant, way, buffer), _turned(limited, variant, way)


def _sensitivity(files: Files) -> Iterator[tuple[Cell, Experiment]]:
    """Vary what the paper leaves open: queues, chunks."""
    for queue in ("50 packets", "200 packets"):
        for kind in ("receive", "send"):
            for variant in ("mptcp", "mptcp-iot"):
                for buffer in FEWER_BUFFERS:
                    limits: dict[str, object] = {
                        f"transport.{kind}_buffer": buffer,
                        "link.wifi.queue": queue,
                        "link.cell.queue": queue,
                    }
                    yield (f"{kind} with queues", variant, queue, buffer), _variant(files, variant, **limits)
    for chunk in ("8 KiB", "64 KiB", "512 KiB"):
        for buffer in ("200 kB", LARGE):
            changed: dict[str, object] = {"transport.receive_buffer": buffer, "transfer.file.chunk": chunk}
            yield ("chunk", "mptcp-iot", chunk, buffer), _variant(files, "mptcp-iot", **changed)


def _long(files: Files) -> Iterator[tuple[Cell, Experiment]]:
    """Carry a file ten times as long, so that its beginning and its end count for less."""
    for kind in ("receive", "send"):
        for variant in ("mptcp", "mptcp-none", "mptcp-iot", "tcp-wifi"):
            size = "transfer.file.size" if variant == "mptcp-iot" else "connection.up.traffic.size"
            for delay in ("20 ms", DELAY, "200 ms") if variant in ("mptcp", "mptcp-iot") else (DELAY,):
                for buffer in FEWER_BUFFERS:
                    changed: dict[str, object] = {
                        size: "100 MB",
                        f"transport.{kind}_buffer": buffer,
                        "link.cell.delay": delay,
                    }
                    yield (LONG.format(kind), variant, delay, buffer), _variant(files, variant, **changed)

    for variant, file, size in (
        ("mptcp", files["down-mptcp"], "connection.file.traffic.size"),
        ("mptcp-iot", files["down-iot"], "transfer.file.size"),
    ):
        for buffer in ("200 kB", "600 kB", "1400 kB"):
            for way in ("down", "up"):
                turned = _turned(file, variant, way)
                limited = turned.with_(**{size: "100 MB", "transport.receive_buffer": buffer})
                yield (LONG.format("direction"), variant, way, buffer), limited


def _handover(files: Files) -> Iterator[tuple[Cell, Experiment]]:
    """Lose a path in the middle, with buffers of 600 kB."""
    for variant in ("mptcp", "mptcp-iot", "tcp-wifi"):
        for condition, changes in HANDOVERS.items():
            changed: dict[str, object] = {
                "transport.receive_buffer": "600 kB",
                "transport.send_buffer": "600 kB",
                "change": changes,
            }
            yield ("handover", variant, condition, "600 kB"), _variant(files, variant, **changed)


def _interfaces(files: Files) -> Iterator[tuple[Cell, Experiment]]:
    """Two to four interfaces, upwards, without the server."""
    for variant, name in (("mptcp", "mptcp"), ("mptcp-iot", "iot")):
        for number, file in INTERFACES.items():
            experiment = files[file.format(name)]
            if number == "2":
                experiment = _turned(experiment, variant, "up")
            for buffer in FEWER_BUFFERS:
                limited = experiment.with_(**{"transport.receive_buffer": buffer})
                yield ("interfaces", variant, number, buffer), limited


def extract(cell: Cell, run: Run) -> dict[str, float]:
    """Return the figures of a run: goodput, time, packets sent again, and what the two hosts held at most."""
    figures = {(figure.subject, figure.metric): figure.value for figure in run.figures}
    of_file = {
        metric: value
        for (subject, metric), value in figures.items()
        if subject.connection == "file" and subject.subflow is None
    }
    # A run that does not complete the file is reckoned with all of its time.
    seconds = of_file.get("completion_s", float(run.manifest["canonical"]["duration"].removesuffix(" s")))
    names = ("bytes_transferred", "bytes_relayed", "bytes_delivered")
    carried = next(of_file[name] for name in names if name in of_file)

    def sum_of(metric: str) -> float:
        return sum(
            value
            for (subject, name), value in figures.items()
            if name == metric and subject.connection is not None and subject.subflow is None
        )

    def held(node: str, metric: str) -> float:
        return next(
            value
            for (subject, name), value in figures.items()
            if name == metric and subject.node == node and subject.link is None
        )

    is_down = cell[0] == "real" or cell[2] == "down"
    sender, receiver = ("gateway", "device") if is_down else ("device", "gateway")
    return {
        GOODPUT: carried * 8 / seconds,
        "seconds": seconds,
        "retransmits": sum_of("retransmits"),
        "reinjections": sum_of("reinjections"),
        "sent_again": sum_of("opportunistic_retransmissions"),
        "penalisations": sum_of("penalisations"),
        "send_memory": held(sender, "send_memory_peak_bytes"),
        "receive_memory": held(receiver, "receive_memory_peak_bytes"),
    }


MPTCP_IOT = Paper(
    id="S3",
    name="mptcp-iot",
    title="A Memory-Efficient Transmission Scheme for Multi-Homed Internet-of-Things (IoT) Devices",
    plan=plan,
    extract=extract,
    rules=tuple(rules()),
    plots=PLOTS,
    tables=TABLES,
)
