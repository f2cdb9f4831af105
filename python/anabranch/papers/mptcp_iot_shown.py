"""The figures of MPTCP-IoT and our tables beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch.papers.drawing import finish, intervals, panels
from anabranch.papers.judging import PLAIN, RATE, Unit
from anabranch.papers.model import Measured, Plot, Table
from anabranch.papers.mptcp_iot_needs import (
    DELAY,
    GOODPUT,
    KERNEL,
    LARGE,
    LONG,
    buffer_bytes,
    levels,
    need,
    over_buffers,
    scaled,
)
from anabranch.stats import Estimate

KILOBYTES = Unit("kB", 1e-3)

LABELS = {
    "mptcp": "MPTCP",
    "mptcp-iot": "MPTCP-IoT",
    "tcp-wifi": "TCP, Wi-Fi",
    "tcp-3g": "TCP, 3G",
    "mptcp-none": "MPTCP, neither",
    "mptcp-penalisation": "MPTCP, penalisation alone",
    "mptcp-retransmission": "MPTCP, retransmission alone",
    "mptcp-uncoupled": "MPTCP, uncoupled",
}

#: The largest buffer that is drawn, as in the paper.
DRAWN = 1400e3


def _goodputs(
    axes: Axes, measured: Measured, begin: Sequence[str], variants: Mapping[str, str], end: Sequence[str]
) -> None:
    for label, variant in variants.items():
        cells = [cell for cell in measured.cells(*begin, variant, *end) if buffer_bytes(cell) <= DRAWN]
        cells.sort(key=buffer_bytes)
        found = [measured.mean(cell, GOODPUT) for cell in cells]
        intervals(
            axes,
            [buffer_bytes(cell) / 1e3 for cell in cells],
            [one.mean / 1e6 for one in found],
            [(one.half_width or 0.0) / 1e6 for one in found],
            label,
            list(LABELS).index(variant),
        )


def _over_buffer(begin: Sequence[str], kind: str, end: Sequence[str]) -> Callable[[Measured], Figure]:
    def draw(measured: Measured) -> Figure:
        figure, (axes,) = panels(height=3.2)
        variants = {LABELS[variant]: variant for variant in ("mptcp", "mptcp-iot", "tcp-wifi", "tcp-3g")}
        _goodputs(axes, measured, begin, variants, end)
        axes.set_xlabel(f"{kind} buffer of each socket (kB of payload)")
        return finish(figure, [axes], ["goodput (Mbit/s)"])

    return draw


#: Variants of MPTCP by what a full receive window leads to, and by their congestion control.
MECHANISMS = {
    "both": "mptcp",
    "neither": "mptcp-none",
    "penalisation": "mptcp-penalisation",
    "retransmission": "mptcp-retransmission",
    "TCP, Wi-Fi": "tcp-wifi",
}
COUPLING = {"both": "mptcp", "both, uncoupled": "mptcp-uncoupled", "TCP, Wi-Fi": "tcp-wifi"}


def _ablation(measured: Measured) -> Figure:
    figure, axes = panels(2, height=3.2)
    for one, variants in zip(axes, (MECHANISMS, COUPLING), strict=True):
        _goodputs(one, measured, ("receive",), variants, (DELAY,))
        one.set_xlabel("receive buffer (kB of payload)")
    return finish(figure, axes, ["goodput (Mbit/s)", ""])


#: Lines of the needs: the variant, and how many sockets count.
NEEDED = {
    "MPTCP": ("mptcp", 1.0),
    "MPTCP-IoT, each socket": ("mptcp-iot", 1.0),
    "MPTCP-IoT, both sockets": ("mptcp-iot", 2.0),
}


def _needed(kind: str) -> Callable[[Measured], Figure]:
    def draw(measured: Measured) -> Figure:
        figure, axes = panels(2, height=3.2)
        titles = ("95 % of the goodput at 16 MB", "95 % of the best goodput")
        for one, title, of_best in zip(axes, titles, (False, True), strict=True):
            for label, (variant, sockets) in NEEDED.items():
                delays = levels(measured, kind, variant)
                found = [
                    scaled(need(measured, kind, variant, delay, of_best=of_best), sockets / 1e3)
                    for delay in delays
                ]
                at = [float(delay.removesuffix(" ms")) for delay in delays]
                means, errors = [of.mean for of in found], [of.half_width or 0.0 for of in found]
                intervals(one, at, means, errors, label)
            one.set_title(title, loc="left")
            one.set_xlabel("one-way delay of the 3G path (ms)")
        return finish(figure, axes, [f"{kind} buffer needed (kB)", ""])

    return draw


PLOTS = (
    Plot(
        "receive",
        "Figure 4",
        "Goodput of 10 MB upwards over the receive buffer of each socket at the gateway; send buffers are "
        "no limit.",
        _over_buffer(("receive",), "receive", (DELAY,)),
    ),
    Plot(
        "send",
        "Figure 5",
        "The same over the send buffer of each socket of the device; receive buffers are no limit.",
        _over_buffer(("send",), "send", (DELAY,)),
    ),
    Plot(
        "receive-need",
        "Figure 6",
        "Receive buffer needed over the delay of the 3G path: as the claims count it, and in another "
        "reading.",
        _needed("receive"),
    ),
    Plot(
        "send-need",
        "Figure 7",
        "Send buffer needed over the delay of the 3G path: as the claims count it, and in another reading.",
        _needed("send"),
    ),
    Plot(
        "real",
        "Figure 8",
        "30 Mbit/s (Wi-Fi) and 10 Mbit/s (3G), downwards, over the receive buffer of each socket of the "
        "device.",
        _over_buffer(("real",), "receive", ()),
    ),
    Plot(
        "ablation",
        "Section 4.3",
        "MPTCP with both mechanisms, with either and with neither; and with both, coupled (LIA) and "
        "uncoupled (Reno).",
        _ablation,
    ),
)


def _size(one: Estimate) -> str:
    return KILOBYTES.estimate(one)


def _needs(measured: Measured) -> list[list[str]]:
    rows = [["buffer", "variant", "90 %", "95 %", "98 %", "95 % of all sockets", "in the kernel's bytes"]]
    for kind in ("receive", "send"):
        for variant in levels(measured, kind):
            sockets = 2.0 if variant == "mptcp-iot" else 1.0
            by_share = [need(measured, kind, variant, DELAY, share=share) for share in (0.9, 0.95, 0.98)]
            total = scaled(by_share[1], sockets)
            shown = [*map(_size, by_share), _size(total), _size(scaled(total, KERNEL))]
            rows.append([kind, LABELS[variant], *shown])
    return rows


def _readings(measured: Measured) -> list[list[str]]:
    rows = [["buffer", "3G delay", "MPTCP", "MPTCP-IoT, each socket", "quotient per socket", "of all memory"]]
    for kind in ("receive", "send"):
        for delay in levels(measured, kind, "mptcp-iot"):
            cells = [(kind, variant, delay) for variant in ("mptcp", "mptcp-iot")]
            found = [need(measured, *cell, of_best=True) for cell in cells]
            times = found[0].mean / found[1].mean
            rows.append([kind, delay, *map(_size, found), f"{times:.2f}", f"{times / 2:.2f}"])
    return rows


def _long(measured: Measured) -> list[list[str]]:
    rows = [["buffer", "variant", "3G delay", "goodput, 200 kB", "600 kB", "16 MB", "buffer needed"]]
    for kind in ("receive", "send"):
        name = LONG.format(kind)
        for variant in dict.fromkeys(cell[1] for cell in measured.cells(name)):
            for delay in levels(measured, name, variant):
                sizes = ("200 kB", "600 kB", LARGE)
                goodputs = [measured.mean((name, variant, delay, size), GOODPUT) for size in sizes]
                needed = _size(need(measured, name, variant, delay))
                rows.append([kind, LABELS[variant], delay, *map(RATE.estimate, goodputs), needed])
    return rows


def _held(measured: Measured) -> list[list[str]]:
    rows = [["limit", "variant", "goodput", "receiver holds at most", "sender holds at most"]]
    for kind in ("receive", "send"):
        for variant in ("mptcp", "mptcp-iot"):
            for buffer in ("200 kB", "600 kB", LARGE):
                cell = (kind, variant, DELAY, buffer)
                if cell not in measured.cells(kind, variant, DELAY):
                    continue
                rows.append(
                    [
                        f"{kind}, {buffer}",
                        LABELS[variant],
                        RATE.estimate(measured.mean(cell, GOODPUT)),
                        _size(measured.mean(cell, "receive_memory")),
                        _size(measured.mean(cell, "send_memory")),
                    ]
                )
    return rows


def _coupling(measured: Measured) -> list[list[str]]:
    rows = [
        [
            "receive buffers",
            "MPTCP uncoupled over MPTCP",
            "MPTCP-IoT over MPTCP",
            "MPTCP-IoT over MPTCP uncoupled",
        ]
    ]
    for least, most in ((50e3, 250e3), (300e3, 600e3), (650e3, 1400e3)):
        if not any(least <= buffer_bytes(cell) <= most for cell in measured.cells("receive", "mptcp", DELAY)):
            continue
        pairs = (("mptcp-uncoupled", "mptcp"), ("mptcp-iot", "mptcp"), ("mptcp-iot", "mptcp-uncoupled"))
        ratios = [
            over_buffers(measured, ("receive", one, DELAY), ("receive", other, DELAY), least, most)
            for one, other in pairs
        ]
        rows.append([f"{least / 1e3:.0f} to {most / 1e3:.0f} kB", *map(PLAIN.estimate, ratios)])
    return rows


def _queues(measured: Measured) -> list[list[str]]:
    rows = [["buffer", "queues", "MPTCP", "MPTCP-IoT, each socket", "quotient"]]
    for kind in ("receive", "send"):
        for queue in ("50 packets", "100 packets", "200 packets"):
            words = (f"{kind} with queues", queue) if queue != "100 packets" else (kind, DELAY)
            cells = [(words[0], variant, words[1]) for variant in ("mptcp", "mptcp-iot")]
            if not measured.cells(*cells[0]):
                continue
            found = [need(measured, *cell) for cell in cells]
            rows.append([kind, queue, *map(_size, found), f"{found[0].mean / found[1].mean:.2f}"])
    return rows


def _chunks(measured: Measured) -> list[list[str]]:
    rows = [["chunk", "goodput, receive buffers of 200 kB", "goodput, receive buffers of 16 MB"]]
    for chunk in levels(measured, "chunk", "mptcp-iot"):
        goodputs = [measured.mean(("chunk", "mptcp-iot", chunk, size), GOODPUT) for size in ("200 kB", LARGE)]
        rows.append([chunk, *map(RATE.estimate, goodputs)])
    return rows


def _handovers(measured: Measured) -> list[list[str]]:
    rows = [["condition", "variant", "time for 10 MB", "goodput"]]
    for cell in measured.cells("handover"):
        time = Unit("s").estimate(measured.mean(cell, "seconds"))
        rows.append([cell[2], LABELS[cell[1]], time, RATE.estimate(measured.mean(cell, GOODPUT))])
    return rows


def _interfaces(measured: Measured) -> list[list[str]]:
    rows = [["interfaces", "variant", "goodput, 16 MB", "receive buffer of each socket", "of all sockets"]]
    for number in levels(measured, "interfaces", "mptcp"):
        for variant in ("mptcp", "mptcp-iot"):
            found = need(measured, "interfaces", variant, number)
            sockets = float(number) if variant == "mptcp-iot" else 1.0
            goodput = measured.mean(("interfaces", variant, number, LARGE), GOODPUT)
            rows.append(
                [number, LABELS[variant], RATE.estimate(goodput), _size(found), _size(scaled(found, sockets))]
            )
    return rows


TABLES = (
    Table(
        "Buffers needed at 60 ms",
        "By the part of the goodput with 16 MB that counts as the same; the claims count 95 %.",
        _needs,
    ),
    Table(
        "Buffers needed for 95 % of the best goodput",
        "Another reading of the requirement: of the best goodput that the scheme has with any buffer. With "
        "a file of 10 MB and "
        "a large buffer the end of the file waits in the queue of the slow path, so that a smaller buffer "
        "may be faster.",
        _readings,
    ),
    Table(
        "A file of 100 MB",
        "The same with a longer file, whose beginning and end count for less.",
        _long,
    ),
    Table(
        "What the hosts held",
        "The peak of all looks, every 100 ms, of the payload that all sockets of a host held. A limit is "
        "not what is used.",
        _held,
    ),
    Table(
        "Is it the congestion control?",
        "With one subflow active in each socket LIA is Reno there, so MPTCP-IoT is not coupled; MPTCP with "
        "uncoupled Reno shows "
        "what that alone gives.",
        _coupling,
    ),
    Table(
        "Queues, which the paper does not give",
        "What is needed at 60 ms with other queues at the two slow links.",
        _queues,
    ),
    Table("Chunks, whose size the paper does not give", "Goodput of MPTCP-IoT.", _chunks),
    Table(
        "Handover",
        "Wi-Fi goes down 1 s after the beginning; receive and send buffers of 600 kB.",
        _handovers,
    ),
    Table(
        "Three interfaces and more",
        "Upwards without the server: Wi-Fi and 3G, with LTE (10 Mbit/s, 30 ms), with a second 3G path (5 "
        "Mbit/s, 100 ms). Each "
        "further socket has a receive buffer of its own.",
        _interfaces,
    ),
)
