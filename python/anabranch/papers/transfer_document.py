"""The part of docs/transfer.md that ``anabranch transfer-figures`` writes: verdicts, tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anabranch.kernel_runs import lateness
from anabranch.papers import document
from anabranch.papers.document import markdown
from anabranch.papers.drawing import finish, intervals, panels
from anabranch.papers.judging import PLAIN, RATE, Unit
from anabranch.papers.kernel import OnBoth
from anabranch.papers.model import Cell, Measured, Verdict
from anabranch.papers.mptcp_iot_needs import (
    DELAY,
    GOODPUT,
    LARGE,
    buffer_bytes,
    levels,
    need,
    quotient,
    scaled,
)
from anabranch.papers.mptcp_iot_rules import KILOBYTES
from anabranch.papers.transfer import DELAYS, Result, real_time_s
from anabranch.plots import STYLE
from anabranch.stats import Estimate
from anabranch.units import number

#: What the document is made by.
COMMAND = "make transfer-figures"

BEGIN = document.begin("transfer", COMMAND)
END = document.end("transfer")

LABELS = {"mptcp": "MPTCP", "mptcp-iot": "anabranchd", "tcp-wifi": "TCP, Wi-Fi"}

MEGABYTES = Unit("MB", 1e-6)


def replaced(text: str, result: Result, figures: str) -> str:
    """Return the document with its generated part replaced, and links to plots in ``figures``."""
    return document.between(text, BEGIN, END, section(result, figures))


def section(result: Result, figures: str) -> str:
    """Return the generated part as Markdown."""
    parts = [_score(result), _conditions(result), _claims(result.claims), _untested(result.claims)]
    if result.kernel.cells():
        parts += [
            f"![{one.caption}]({figures}/{one.name}.svg)\n\n*{one.paper}: {one.caption}*" for one in PLOTS
        ]
        parts += [_memory(result), _needs(result), _goodputs(result)]
    parts += [_rules(result.claims), _notes(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def score(result: Result) -> str:
    """Count the verdicts on the kernel: ``of 14 claims 11 judged on the kernel: 4 reproduced, 7 partly``."""
    judged = [one.kernel.verdict for one in result.claims if one.kernel.verdict is not Verdict.NOT_TESTABLE]
    counts = ", ".join(f"{judged.count(one)} {one}" for one in Verdict if one in judged)
    text = f"of {len(result.claims)} claims {len(judged)} judged on the kernel"
    return f"{text}: {counts}" if judged else text


def _score(result: Result) -> str:
    text = score(result)
    return f"{text[0].upper()}{text[1:]}."


def _conditions(result: Result) -> str:
    kernels = sorted({str(run.environment.get("kernel", "of unknown release")) for run in result.runs})
    attempts = [int(run.environment.get("attempts", 1)) for run in result.runs]
    invalid = sum(bool(run.invalid) for run in result.runs)
    versions = sorted({str(run.manifest["version"]) for run in result.runs})
    lines = [
        f"`anabranch transfer-figures`: {len(result.plan)} cells, {len(result.runs)} runs, "
        f"{real_time_s(False) / 60:.0f} min of real time besides setting up; the same in the simulator.",
        f"Linux {', '.join(f'`{one}`' for one in kernels)}, kernel engine "
        f"{', '.join(f'`{one}`' for one in versions)}.",
        f"{sum(attempts) - len(attempts)} attempts were repeated; of {len(attempts)} runs {invalid} do not "
        f"count. Judged are the repetitions that count in every cell: {_seeds(result)}.",
        lateness(result.runs),
    ]
    lost = [f"  - {', '.join(one.cell)}, seed {one.seed}: {'; '.join(one.why)}" for one in result.lost]
    left_out = [f"  - left out for that: {', '.join(cell)}" for cell in result.left_out]
    return "\n".join([*(f"- {line}" for line in lines), *lost, *left_out])


def _seeds(result: Result) -> str:
    shown = {part: ", ".join(map(str, seeds)) or "none" for part, seeds in result.seeds.items()}
    if len(set(shown.values())) == 1:
        return next(iter(shown.values()))
    return "; ".join(f"{seeds} at a {part}" for part, seeds in shown.items())


def _claims(claims: Sequence[OnBoth]) -> str:
    rows = [["id", "claim", "paper", "simulator", "", "kernel", "", "why, on the kernel"]]
    for one in claims:
        if one.kernel.verdict is Verdict.NOT_TESTABLE:
            continue
        verdicts = [f"**{outcome.verdict}**" for outcome in (one.sim, one.kernel)]
        figures = [one.sim.ours, verdicts[0], one.kernel.ours, verdicts[1]]
        rows.append([one.claim.id, one.claim.claim, one.claim.paper, *figures, one.kernel.why])
    return markdown(rows) if len(rows) > 1 else ""


def _untested(claims: Sequence[OnBoth]) -> str:
    rows = [["not testable here", "because"]]
    rows += [[one.claim.id, one.kernel.why] for one in claims if one.kernel.verdict is Verdict.NOT_TESTABLE]
    return markdown(rows) if len(rows) > 1 else ""


def _rules(claims: Sequence[OnBoth]) -> str:
    rows = [["id", "what counts", "refuted by"]]
    rows += [
        [one.claim.id, one.rule.metric, one.rule.refuted_by] for one in claims if one.claim.id.startswith("M")
    ]
    text = "**How M1 to M3 are judged**; the rules of the others are in [papers.md](papers.md)."
    return f"{text}\n\n{markdown(rows)}"


def _notes(result: Result) -> str:
    notes = sorted({note for run in result.runs for note in run.environment.get("notes", ())})
    if not notes:
        return ""
    return "\n".join(
        ["What the kernel does in another way than the scenarios say:", "", *(f"- {n}" for n in notes)]
    )


def _memory(result: Result) -> str:
    """Tell what was held, by whom, at every size that is run at 60 ms."""
    rows = [
        [
            "limit of each socket",
            "who",
            "goodput",
            "sender's sockets hold",
            "receiver's sockets hold",
            "both",
            "one socket, sending",
            "one socket, receiving",
            "program resident, sender and receiver",
        ]
    ]
    kernel = result.kernel
    for kind in ("receive", "send"):
        for variant in levels(kernel, kind):
            for cell in kernel.cells(kind, variant, DELAY):
                rows.append([f"{kind}, {cell[-1]}", LABELS[variant], *_held(kernel, cell)])
    text = (
        "Peaks of all looks, every 20 ms, of what the kernel charges to sockets, subflows included; means "
        "over the repetitions. What a connection of MPTCP holds for sending counts once, not again with "
        "its subflows, which refer to it. For TCP and MPTCP the test bed itself sends and receives."
    )
    return f"**Memory**\n\n{text}\n\n{markdown(rows)}"


def _held(measured: Measured, cell: Cell) -> list[str]:
    both = measured.mean(cell, "send_memory").mean + measured.mean(cell, "receive_memory").mean
    sockets = [measured.mean(cell, f"{end}_memory_per_socket") for end in ("send", "receive")]
    resident = "-"
    if "sender_resident" in measured.metrics(cell):
        ends = [measured.mean(cell, f"{end}_resident") for end in ("sender", "receiver")]
        resident = " and ".join(MEGABYTES.estimate(Estimate(one.mean, None, one.size)) for one in ends)
    return [
        RATE.estimate(measured.mean(cell, GOODPUT)),
        *(KILOBYTES.estimate(measured.mean(cell, f"{end}_memory")) for end in ("send", "receive")),
        f"{number(both / 1e3, None)} kB",
        *map(KILOBYTES.estimate, sockets),
        resident,
    ]


def _needs(result: Result) -> str:
    rows = [
        [
            "buffer",
            "3G delay",
            "MPTCP",
            "anabranchd, each socket",
            "in all",
            "quotient per socket",
            "of all memory",
            "the same, simulator",
        ]
    ]
    kernel, sim = result.kernel, result.sim
    for kind in ("receive", "send"):
        for delay in DELAYS:
            cells = [(kind, variant, delay) for variant in ("mptcp", "mptcp-iot")]
            if not all(kernel.cells(*cell) for cell in cells):
                continue
            needed = [need(kernel, *cell) for cell in cells]
            times = quotient(kernel, *cells)
            simulated = quotient(sim, *cells)
            rows.append(
                [
                    kind,
                    delay,
                    *map(KILOBYTES.estimate, needed),
                    KILOBYTES.estimate(scaled(needed[1], 2.0)),
                    PLAIN.estimate(times),
                    PLAIN.estimate(scaled(times, 0.5)),
                    f"{PLAIN.estimate(simulated)}, {PLAIN.estimate(scaled(simulated, 0.5))}",
                ]
            )
    text = (
        "The smallest buffer with 95 % of the goodput with 16 MB, on the line between two sizes that "
        "were run; where the smallest size is enough, that size. In the simulator limits hold payload."
    )
    return f"**Buffers needed**\n\n{text}\n\n{markdown(rows)}"


def _goodputs(result: Result) -> str:
    rows = [["cell", "simulator", "kernel"]]
    for cell in result.kernel.cells():
        if DELAY in cell:
            continue
        means = [RATE.estimate(measured.mean(cell, GOODPUT)) for measured in (result.sim, result.kernel)]
        rows.append([", ".join(LABELS.get(word, word) for word in cell), *means])
    return f"**Goodput in the other cells**\n\n{markdown(rows)}" if len(rows) > 1 else ""


def _lines(axes: Axes, measured: Measured, begin: Sequence[str], end: Sequence[str]) -> None:
    for number_, (variant, label) in enumerate(LABELS.items()):
        cells = [cell for cell in measured.cells(*begin, variant, *end) if cell[-1] != LARGE]
        if not cells:
            continue
        cells.sort(key=buffer_bytes)
        found = [measured.mean(cell, GOODPUT) for cell in cells]
        at = [buffer_bytes(cell) / 1e3 for cell in cells]
        intervals(
            axes,
            at,
            [one.mean / 1e6 for one in found],
            [(one.half_width or 0.0) / 1e6 for one in found],
            label,
            number_,
        )
        unlimited = measured.mean((*begin, variant, *end, LARGE), GOODPUT)
        axes.axhline(unlimited.mean / 1e6, color=axes.containers[-1][0].get_color(), lw=0.7, ls=":")
    axes.set_xscale("log", base=2)
    cells = [cell for variant in LABELS for cell in measured.cells(*begin, variant, *end)]
    sizes = sorted({buffer_bytes(cell) / 1e3 for cell in cells if cell[-1] != LARGE})
    axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
    axes.minorticks_off()


#: What both links carry together, and a little more, in Mbit/s: the top of panels, whatever the intervals.
TOP, TOP_OF_REAL = 26.0, 42.0


def _over_buffer(
    kind: str, begin: Sequence[str], end: Sequence[str], top: float
) -> Callable[[Result], Figure]:
    def draw(result: Result) -> Figure:
        figure, axes = panels(2, height=3.2)
        sides = (("kernel", result.kernel), ("simulator", result.sim))
        for one, (title, measured) in zip(axes, sides, strict=True):
            _lines(one, measured, begin, end)
            one.set_title(title, loc="left")
            one.set_xlabel(f"{kind} buffer of each socket (kB)")
        return _topped(finish(figure, axes, ["goodput (Mbit/s)", ""]), axes, top)

    return draw


def _topped(figure: Figure, axes: Sequence[Axes], top: float) -> Figure:
    for one in axes:
        one.set_ylim(0, top)
    return figure


def _needed(result: Result) -> Figure:
    figure, axes = panels(2, height=3.2)
    lines: Mapping[str, tuple[str, float]] = {
        "MPTCP": ("mptcp", 1.0),
        "anabranchd, each socket": ("mptcp-iot", 1.0),
        "anabranchd, both sockets": ("mptcp-iot", 2.0),
    }
    for one, kind in zip(axes, ("receive", "send"), strict=True):
        for label, (variant, sockets) in lines.items():
            delays = [delay for delay in DELAYS if result.kernel.cells(kind, variant, delay)]
            found = [scaled(need(result.kernel, kind, variant, delay), sockets / 1e3) for delay in delays]
            at = [float(delay.removesuffix(" ms")) for delay in delays]
            intervals(one, at, [of.mean for of in found], [of.half_width or 0.0 for of in found], label)
        one.set_title(f"{kind} buffer", loc="left")
        one.set_xlabel("one-way delay of the 3G path (ms)")
        one.set_yscale("log")
    return finish(figure, axes, ["buffer needed on the kernel (kB)", ""], from_zero=False)


def _held_plot(result: Result) -> Figure:
    figure, axes = panels(2, height=3.2)
    kernel = result.kernel
    for one, kind in zip(axes, ("receive", "send"), strict=True):
        for number_, (variant, label) in enumerate(LABELS.items()):
            cells = sorted(kernel.cells(kind, variant, DELAY), key=buffer_bytes)
            if not cells:
                continue
            held = [kernel.mean(cell, f"{kind}_memory").mean / 1e3 for cell in cells]
            rates = [kernel.mean(cell, GOODPUT) for cell in cells]
            means, errors = [of.mean / 1e6 for of in rates], [(of.half_width or 0.0) / 1e6 for of in rates]
            intervals(one, held, means, errors, label, number_)
        one.set_title("receiver" if kind == "receive" else "sender", loc="left")
        one.set_xlabel("memory that its sockets held at most, in all (kB)")
        one.set_xlim(left=0)
    return _topped(finish(figure, axes, ["goodput (Mbit/s)", ""]), axes, TOP)


@dataclass(frozen=True)
class Drawing:
    """A plot of both engines, and which figure of the paper it is the counterpart of."""

    name: str
    paper: str
    caption: str
    draw: Callable[[Result], Figure]


PLOTS = (
    Drawing(
        "receive",
        "Figure 4",
        "Goodput of 10 MB upwards over the receive buffer of each socket of the gateway; send buffers are no "
        "limit. Dotted: with 16 MB.",
        _over_buffer("receive", ("receive",), (DELAY,), TOP),
    ),
    Drawing(
        "send",
        "Figure 5",
        "The same over the send buffer of each socket of the device; receive buffers are no limit.",
        _over_buffer("send", ("send",), (DELAY,), TOP),
    ),
    Drawing(
        "needed",
        "Figures 6 and 7",
        "Buffers with which the goodput is 95 % of that with 16 MB, over the delay of the 3G path.",
        _needed,
    ),
    Drawing(
        "real",
        "Figure 8",
        "30 Mbit/s (Wi-Fi) and 10 Mbit/s (3G), downwards, over the receive buffer of each socket of the "
        "device.",
        _over_buffer("receive", ("real",), (), TOP_OF_REAL),
    ),
    Drawing(
        "held",
        "Beside figures 4 and 5",
        "Goodput over what the sockets held, not over what they might hold: a point is a size of the buffer.",
        _held_plot,
    ),
)


def draw(result: Result, folder: Path) -> list[Path]:
    """Draw every plot as ``<folder>/<plot>.svg``, equal to the byte for equal figures."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for one in PLOTS:
        paths.append(folder / f"{one.name}.svg")
        with matplotlib.rc_context({**STYLE, "svg.fonttype": "none"}):
            one.draw(result).savefig(paths[-1], metadata={"Date": None})
    return paths
