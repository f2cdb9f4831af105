"""How the claims of MPTCP-IoT are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch.papers.judging import (
    GAIN,
    PLAIN,
    SHARE,
    Unit,
    above,
    because,
    below,
    combined,
    interval,
    is_above,
    is_below,
    sized,
)
from anabranch.papers.model import Measured, Outcome, Rule, Verdict
from anabranch.papers.mptcp_iot_needs import (
    DELAY,
    GOODPUT,
    KERNEL,
    LARGE,
    LONG,
    crossover,
    levels,
    need,
    over_buffers,
    quotient,
    scaled,
)
from anabranch.stats import Estimate

KILOBYTES = Unit("kB", 1e-3)
TIMES = Unit("times")

#: Sizes of receive buffers that the paper calls small: those at which it has MPTCP below Wi-Fi alone.
SMALL = (100e3, 550e3)


def _or_in_kernel_bytes(outcome: Outcome, in_kernel: Outcome) -> Outcome:
    """Take the second reading of a size into account: partly, if only that gives what is claimed."""
    if outcome.verdict is Verdict.REPRODUCED:
        return outcome
    if in_kernel.verdict is Verdict.REPRODUCED:
        why = f"{outcome.why}; in the kernel's bytes, about twice as many, it is {in_kernel.ours}"
        return replace(outcome, verdict=Verdict.PARTLY, why=why)
    return because(outcome, f"in the kernel's bytes about {in_kernel.ours}")


def _with_long(outcome: Outcome, measured: Measured, kind: str, variant: str) -> Outcome:
    """Add what is needed for a longer file, if that has been run."""
    if not measured.cells(LONG.format(kind), variant, DELAY):
        return outcome
    found = need(measured, LONG.format(kind), variant, DELAY)
    return because(outcome, f"for a file of 100 MB it is {KILOBYTES.estimate(found)}")


def _receive_need(measured: Measured) -> Outcome:
    found = need(measured, "receive", "mptcp", DELAY)
    what = "the receive buffer that MPTCP needs"
    plain, kernel = (sized(scaled(found, factor), 800e3, 200e3, what, KILOBYTES) for factor in (1.0, KERNEL))
    return _with_long(_or_in_kernel_bytes(plain, kernel), measured, "receive", "mptcp")


def _behind_wifi(measured: Measured) -> Outcome:
    found = crossover(measured, ("receive", "mptcp", DELAY), ("receive", "tcp-wifi", DELAY))
    what = "the receive buffer below which MPTCP is behind TCP over Wi-Fi"
    plain, kernel = (
        sized(scaled(found, factor), 600e3, 150e3, what, KILOBYTES, neutral=0.0) for factor in (1.0, KERNEL)
    )
    return _or_in_kernel_bytes(plain, kernel)


def _send_need(measured: Measured) -> Outcome:
    found = need(measured, "send", "mptcp", DELAY)
    what = "the send buffer that MPTCP needs"
    plain, kernel = (above(scaled(found, factor), 1200e3, what, KILOBYTES) for factor in (1.0, KERNEL))
    part = measured.ratio(("send", "mptcp", DELAY, "1200 kB"), ("send", "mptcp", DELAY, LARGE), GOODPUT)
    outcome = because(
        _or_in_kernel_bytes(plain, kernel),
        f"with 1200 kB it has {SHARE.estimate(part)} of the goodput with 16 MB",
    )
    return _with_long(outcome, measured, "send", "mptcp")


def _send_need_of_iot(measured: Measured) -> Outcome:
    def at(variant: str, size: str) -> Estimate:
        return measured.ratio(("send", variant, DELAY, size), ("send", variant, DELAY, LARGE), GOODPUT)

    parts = [above(at("mptcp-iot", "600 kB"), 0.95, "goodput of MPTCP-IoT with 600 kB, over that with 16 MB")]
    parts += [
        below(at(f"tcp-{path}", "500 kB"), 0.98, f"that of TCP over {path} with 500 kB")
        for path in ("wifi", "3g")
    ]
    found = need(measured, "send", "mptcp-iot", DELAY)
    held = measured.mean(("send", "mptcp-iot", DELAY, LARGE), "send_memory")
    named = zip(("MPTCP-IoT", "TCP Wi-Fi", "TCP 3G"), parts, strict=True)
    return because(
        combined(*parts, ours=", ".join(f"{name} {part.ours}" for name, part in named)),
        f"MPTCP-IoT needs {KILOBYTES.estimate(found)} in each socket, and with 16 MB its two sockets hold "
        f"{KILOBYTES.estimate(held)} at most, for queues of 100 packets let no more be under way",
    )


def _of_long_files(measured: Measured, buffer: str) -> str:
    """Say what the reduction is with a longer file, if that has been run."""
    name = LONG.format(buffer)
    delays = levels(measured, name, "mptcp-iot")
    found = [quotient(measured, (name, "mptcp", delay), (name, "mptcp-iot", delay)).mean for delay in delays]
    if not found:
        return ""
    sockets, memory = (", ".join(f"{one / parts:.1f}" for one in found) for parts in (1, 2))
    at = ", ".join(delays)
    return (
        f"; for a file of 100 MB they are {sockets} at {at}, and {memory} if the memory "
        "of both sockets counts"
    )


def _reduction(measured: Measured, buffer: str, least: float, most: float) -> Outcome:
    delays = levels(measured, buffer, "mptcp-iot")
    found = {
        delay: quotient(measured, (buffer, "mptcp", delay), (buffer, "mptcp-iot", delay)) for delay in delays
    }
    smallest, largest = (pick(found.values(), key=lambda one: one.mean) for pick in (min, max))
    low, high = interval(smallest)[0], interval(largest)[1]
    ours = f"{smallest.mean:.2f} to {largest.mean:.2f} times less"
    delay_of = {id(one): delay for delay, one in found.items()}
    why = (
        f"over delays of {delays[0]} to {delays[-1]} the {buffer} buffer of each socket may be "
        f"{TIMES.estimate(smallest)} ({delay_of[id(smallest)]}) to {TIMES.estimate(largest)} "
        f"({delay_of[id(largest)]}) smaller; the paper has {least} to {most}"
    )
    readings = [
        quotient(measured, (buffer, "mptcp", delay), (buffer, "mptcp-iot", delay), of_best=True).mean
        for delay in delays
    ]
    remark = (
        "; of the best goodput with any buffer, in place of that with 16 MB, the quotients are "
        f"{', '.join(f'{one:.1f}' for one in readings)}{_of_long_files(measured, buffer)}"
    )
    if all(is_above(one, least * 0.85) and is_below(one, most * 1.15) for one in found.values()):
        return Outcome(ours, low, high, Verdict.REPRODUCED, why)
    if all(is_above(one, 1.0) for one in found.values()):
        return Outcome(ours, low, high, Verdict.PARTLY, why + remark)
    fails = [delay for delay, one in found.items() if not is_above(one, 1.0)]
    why = f"{why}; at {', '.join(fails)} it is not smaller{remark}"
    return Outcome(ours, low, high, Verdict.NOT_REPRODUCED, why)


def _send_over_receive(measured: Measured) -> Outcome:
    found = {
        (variant, delay): quotient(measured, ("send", variant, delay), ("receive", variant, delay))
        for variant in ("mptcp", "mptcp-iot")
        for delay in levels(measured, "send", "mptcp-iot")
    }
    (variant, delay), largest = max(found.items(), key=lambda item: item[1].mean)
    what = f"the largest send over receive buffer ({variant}, {delay})"
    return sized(largest, 1.7, 0.3, what, TIMES, neutral=1.0)


def _half(measured: Measured) -> Outcome:
    kinds = ("receive", "send")
    sockets = [quotient(measured, (kind, "mptcp-iot", DELAY), (kind, "mptcp", DELAY)) for kind in kinds]
    totals = [scaled(one, 2.0) for one in sockets]
    shown = ", ".join(
        f"{kind} {PLAIN.estimate(one)} per socket, {PLAIN.estimate(total)} in all"
        for kind, one, total in zip(kinds, sockets, totals, strict=True)
    )
    why = f"memory of MPTCP-IoT over that of MPTCP: {shown}"
    low, high = interval(totals[0])
    if all(is_below(one, 0.5) for one in totals):
        verdict = Verdict.REPRODUCED
    elif all(is_below(one, 0.5) for one in sockets):
        verdict = Verdict.PARTLY
        why += "; it is half or less only if the limit of one of the two sockets is compared"
    else:
        verdict = Verdict.NOT_REPRODUCED
    return Outcome(shown, low, high, verdict, why)


def _real(measured: Measured) -> Outcome:
    less = quotient(measured, ("real", "mptcp"), ("real", "mptcp-iot"))
    gain = over_buffers(measured, ("real", "mptcp-iot"), ("real", "mptcp"), *SMALL)
    return combined(
        above(less, 1.0, "the receive buffer of MPTCP over that of one socket of MPTCP-IoT", TIMES),
        above(gain, 1.0, "goodput of MPTCP-IoT over MPTCP with 100 to 550 kB", GAIN),
    )


def _both_directions(measured: Measured) -> Outcome:
    parts = []
    for variant in ("mptcp", "mptcp-iot"):
        ways = [("direction", variant, way) for way in ("down", "up")]
        found = over_buffers(measured, ways[0], ways[1], 0.0, 2e6)
        parts.append(sized(found, 1.0, 0.05, f"goodput of {variant} down over up", GAIN))
    name = LONG.format("direction")
    if not measured.cells(name):
        return combined(*parts)
    of_long = [
        GAIN.estimate(over_buffers(measured, (name, variant, "down"), (name, variant, "up"), 0.0, 2e6))
        for variant in ("mptcp", "mptcp-iot")
    ]
    return because(combined(*parts), f"for a file of 100 MB they are {' and '.join(of_long)}")


def _mechanisms(measured: Measured) -> Outcome:
    def over(variant: str, base: str) -> Estimate:
        return over_buffers(measured, ("receive", variant, DELAY), ("receive", base, DELAY), *SMALL)

    single = [
        f"{GAIN.estimate(over(f'mptcp-{one}', 'mptcp-none'))} by {one}"
        for one in ("penalisation", "retransmission")
    ]
    outcome = combined(
        below(
            over("mptcp", "tcp-wifi"), 1.0, "with 100 to 550 kB goodput of MPTCP over TCP over Wi-Fi", GAIN
        ),
        above(over("mptcp-none", "mptcp"), 1.0, "goodput without both mechanisms over that with both", GAIN),
    )
    return because(
        outcome,
        f"alone they change it by {' and '.join(single)}; without both MPTCP has "
        f"{GAIN.estimate(over('mptcp-none', 'tcp-wifi'))} over TCP over Wi-Fi",
    )


def rules() -> Sequence[Rule]:
    """Return the rules, one for each claim."""
    need_text = "the smallest buffer with 95 % of the goodput at 16 MB; interval over seeds"
    return (
        Rule(
            "S3-C1",
            f"Receive buffer of MPTCP (LIA, both mechanisms), {need_text}: 800 kB within 200 kB. Partly if "
            "that holds for twice the payload, which the kernel's bytes are about.",
            "An interval outside of 600 to 1000 kB in both readings.",
            _receive_need,
        ),
        Rule(
            "S3-C2",
            "The largest receive buffer at which the goodput of MPTCP is below that of TCP over Wi-Fi with "
            "the same "
            "buffer: 600 kB within 150 kB. Partly if that holds for twice the payload, or if there is such "
            "a buffer.",
            "MPTCP is at least as good with every buffer.",
            _behind_wifi,
        ),
        Rule(
            "S3-C3",
            f"Send buffer of MPTCP, {need_text}: above 1200 kB. Partly if that holds for twice the payload.",
            "An interval below in both readings.",
            _send_need,
        ),
        Rule(
            "S3-C4",
            "Goodput of MPTCP-IoT with a send buffer of 600 kB per socket: more than 95 % of that with 16 "
            "MB; of TCP "
            "over either path with 500 kB: less than 98 % of it. Partly if some of the three hold.",
            "MPTCP-IoT below 95 %, and neither TCP below 98 %.",
            _send_need_of_iot,
        ),
        Rule(
            "S3-C5",
            f"Receive buffer of MPTCP over that of one socket of MPTCP-IoT, each {need_text}, at every "
            f"delay: within "
            "2.0 to 2.7, less or more 15 %. Partly if it is above 1 at every delay.",
            "A delay at which it is not above 1.",
            lambda measured: _reduction(measured, "receive", 2.0, 2.7),
        ),
        Rule(
            "S3-C6",
            f"Send buffer of MPTCP over that of one socket of MPTCP-IoT, each {need_text}, at every delay: "
            "within 1.9 to 2.4, less or more 15 %. Partly if it is above 1 at every delay.",
            "A delay at which it is not above 1.",
            lambda measured: _reduction(measured, "send", 1.9, 2.4),
        ),
        Rule(
            "S3-C7",
            "Send over receive buffer, the largest of both schemes and all delays: 1.7 within 0.3. Partly "
            "if it is "
            "above 1.",
            "Nowhere is more send than receive buffer needed.",
            _send_over_receive,
        ),
        Rule(
            "S3-C8",
            "Memory needed by MPTCP-IoT, two sockets together, over that of MPTCP, receive and send buffer: "
            "at most "
            "1/2. Partly if the limit of one socket is at most half of MPTCP's.",
            "Even one socket needs more than half.",
            _half,
        ),
        Rule(
            "S3-C9",
            "30 and 10 Mbit/s, downwards: the receive buffer of MPTCP over that of one socket of MPTCP-IoT "
            "is above "
            "1, and with 100 to 550 kB the goodput of MPTCP-IoT is above MPTCP's.",
            "Neither holds.",
            _real,
        ),
        Rule(
            "S3-C10",
            "Goodput downwards over upwards with the same receive buffer, mean over buffers up to 2 MB, of "
            "MPTCP and "
            "of MPTCP-IoT: 1 within 5 %.",
            "Both intervals outside.",
            _both_directions,
        ),
        Rule(
            "S3-C11",
            "With receive buffers of 100 to 550 kB: MPTCP with both mechanisms has a lower goodput than TCP "
            "over Wi-Fi, "
            "and without both it has a higher one than with both. Partly if one of the two holds.",
            "MPTCP is not below TCP, and without the mechanisms not better.",
            _mechanisms,
        ),
    )
