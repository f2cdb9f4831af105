"""EE-MPTCP (S2): how its claims are judged. Written before anything was run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from anabranch.papers.judging import (
    SHARE,
    Unit,
    above,
    because,
    below,
    combined,
    interval,
    is_above,
    is_below,
    rising,
    sized,
)
from anabranch.papers.model import Cell, Measured, Outcome, Rule, Verdict
from anabranch.stats import Estimate

#: The four that the paper compares, the proposed one first.
COMPARED = ("ee-mptcp", "roundrobin", "emptcp", "dmptcp")

#: A round-robin that waits for full paths.
WAITS = "roundrobin-waits"

#: How far from the paper's figures ours may be: reductions by a tenth of the whole, times and throughputs by
#: a fifth of the figure, the share of WLAN by 5 percentage points.
REDUCTION_TOLERANCE = 0.1
RELATIVE_TOLERANCE = 0.2
SHARE_TOLERANCE = 0.05

#: "Not remarkable": within a quarter.
SMALL = 0.25

#: "Several times".
SEVERAL = 2.0

#: The assumption under which eMTCP leaves 3G, 286 nJ/bit at its full rate, idle.
CAPPED = "eMTCP has a cap of 200 nJ/bit"

SECONDS = Unit("s")
JOULE = Unit("J")
MBPS = Unit("Mbit/s", 1e-6)


def leading(word: str) -> int:
    """Return the number that a word such as ``30 flows`` begins with."""
    return int(word.split()[0])


def levels(measured: Measured, kind: str) -> list[str]:
    """Return the third words of the cells of a sub-experiment, in the order of the plan."""
    return list(dict.fromkeys(cell[2] for cell in measured.cells(kind)))


def reduction(measured: Measured, cell: Cell, base: Cell, metric: str) -> Estimate:
    """Return by which share a figure is lower than in another cell."""
    ratio = measured.ratio(cell, base, metric)
    # Without losses all seeds are one run; what is left then is the rounding of a mean.
    is_one = len(set(measured.of(cell, metric))) == len(set(measured.of(base, metric))) == 1
    return ratio._replace(mean=1.0 - ratio.mean, half_width=0.0 if is_one else ratio.half_width)


def against_round_robin(measured: Measured, metric: str) -> dict[str, Estimate]:
    """Return EE-MPTCP's reduction against round-robin, 30 long flows, under each assumption."""
    return {
        name: reduction(measured, cell, base, metric)
        for name, cell, base in _assumptions(measured)
        if measured.cells(*cell) and measured.cells(*base)
    }


def _assumptions(measured: Measured) -> Iterator[tuple[str, Cell, Cell]]:
    for word in levels(measured, "buffer"):
        cell = ("buffer", "ee-mptcp", word)
        yield f"buffer of {word}", cell, ("buffer", "roundrobin", word)
        waits = f"buffer of {word}, round-robin waits for full paths"
        yield waits, cell, ("buffer", WAITS, word)
    for word in levels(measured, "reading"):
        base = ("reading", "roundrobin", word)
        alone = ("long", "roundrobin", "30 flows")
        yield word, ("reading", "ee-mptcp", word), base if measured.cells(*base) else alone


def _reduced(measured: Measured, metric: str, claimed: float, what: str) -> Outcome:
    cell, base = (("long", scheduler, "30 flows") for scheduler in ("ee-mptcp", "roundrobin"))
    found = reduction(measured, cell, base, metric)
    outcome = sized(found, claimed, REDUCTION_TOLERANCE, what, SHARE, neutral=0.0)
    varied = against_round_robin(measured, metric)
    if outcome.verdict is Verdict.REPRODUCED or not varied:
        return outcome
    most = max(varied, key=lambda name: varied[name].mean)
    remark = f'of {len(varied)} other assumptions "{most}" gives most, {SHARE.estimate(varied[most])}'
    waits = "buffer of 512 kB, round-robin waits for full paths"
    if waits in varied:
        remark += f'; with "{waits}" it is {SHARE.estimate(varied[waits])}'
    return because(outcome, remark)


def _completion(measured: Measured) -> Outcome:
    return _reduced(measured, "completion_s", 0.799, "the reduction of the mean completion time")


def _energy(measured: Measured) -> Outcome:
    return _reduced(measured, "energy_j", 0.792, "the reduction of the energy")


def _testbed(measured: Measured, metric: str, figures: tuple[float, float], unit: Unit) -> list[Outcome]:
    """Judge the figures of eMTCP and of the default scheduler at 800 kB."""
    is_share = metric == "wlan_share"
    return [
        sized(
            measured.mean(("testbed", scheduler, "800 kB"), metric),
            figure,
            SHARE_TOLERANCE if is_share else RELATIVE_TOLERANCE * figure,
            name,
            unit,
        )
        for scheduler, name, figure in zip(
            ("emtcp", "minrtt"), ("that of eMTCP", "that of the default"), figures, strict=True
        )
    ]


def _emtcp_over_default(measured: Measured, metric: str, size: str) -> Estimate:
    return measured.ratio(("testbed", "emtcp", size), ("testbed", "minrtt", size), metric)


def _if_capped(outcome: Outcome, measured: Measured, metric: str, unit: Unit) -> Outcome:
    """Say why both schedulers do alike, and what eMTCP does if it leaves 3G idle."""
    remark = "WLAN is the radio with less energy per bit and the faster one, so both schedulers fill it first"
    for cell in measured.cells("testbeds", "emtcp", CAPPED):
        remark += f"; if eMTCP leaves 3G idle ({CAPPED}), it is {unit.estimate(measured.mean(cell, metric))}"
    return because(outcome, remark)


def _times(measured: Measured) -> Outcome:
    order = above(
        _emtcp_over_default(measured, "completion_s", "800 kB"), 1.0, "completion with eMTCP over the default"
    )
    outcome = combined(order, *_testbed(measured, "completion_s", (4.98, 3.91), SECONDS))
    return _if_capped(outcome, measured, "completion_s", SECONDS)


def _shares(measured: Measured) -> Outcome:
    found = _emtcp_over_default(measured, "wlan_share", "800 kB")
    order = above(found, 1.0, "WLAN's share with eMTCP over the default")
    outcome = combined(order, *_testbed(measured, "wlan_share", (0.6028, 0.5870), SHARE))
    return _if_capped(outcome, measured, "wlan_share", SHARE)


def _throughputs(measured: Measured) -> Outcome:
    found = _emtcp_over_default(measured, "wlan_bps", "800 kB")
    order = below(found, 1.0, "WLAN's throughput with eMTCP over the default")
    outcome = combined(order, *_testbed(measured, "wlan_bps", (1.36e6, 1.75e6), MBPS))
    return _if_capped(outcome, measured, "wlan_bps", MBPS)


def _testbed_energy(measured: Measured) -> Outcome:
    outcomes = [
        above(
            _emtcp_over_default(measured, "energy_j", size), 1.0, f"energy of eMTCP over the default, {size}"
        )
        for size in ("800 kB", "900 kB")
    ]
    remark = "the paper measured a processor, this is the linear model of the radios"
    return _if_capped(because(combined(*outcomes), remark), measured, "energy_j", JOULE)


def best(measured: Measured, kind: str, metric: str, what: str) -> Outcome:
    """Judge the claim that EE-MPTCP has the lowest figure of the four at every level.

    Reproduced if it is below each other somewhere and above none; partly if it is more often below than
    above.
    """
    ratios = {
        (scheduler, word): measured.ratio((kind, "ee-mptcp", word), (kind, scheduler, word), metric)
        for scheduler in COMPARED[1:]
        for word in levels(measured, kind)
    }
    lower = [key for key, ratio in ratios.items() if is_below(ratio, 1.0)]
    higher = [key for key, ratio in ratios.items() if is_above(ratio, 1.0)]
    if not higher and {scheduler for scheduler, _ in lower} == set(COMPARED[1:]):
        verdict = Verdict.REPRODUCED
    else:
        verdict = Verdict.PARTLY if len(lower) > len(higher) else Verdict.NOT_REPRODUCED
    worst = max(ratios, key=lambda key: ratios[key].mean)
    counts = f"lower in {len(lower)} and higher in {len(higher)} of {len(ratios)} comparisons"
    why = (
        f"{what} of EE-MPTCP is {counts}; the worst is {Unit().estimate(ratios[worst])} times that of "
        f"{worst[0]} at {worst[1]}"
    )
    return Outcome(counts, *interval(ratios[worst]), verdict, why)


def _is_small(measured: Measured) -> Outcome:
    ratios = [
        measured.ratio(("short", "ee-mptcp", word), ("short", scheduler, word), metric).mean
        for metric in ("completion_s", "energy_j")
        for scheduler in COMPARED[1:]
        for word in levels(measured, "short")
    ]
    low, high = min(ratios) - 1.0, max(ratios) - 1.0
    small = low >= -SMALL and high <= SMALL
    shown = f"{100 * low:+.3g} to {100 * high:+.3g} %"
    why = f"the differences are from {shown}, {'within' if small else 'not within'} {100 * SMALL:g} %"
    return Outcome(shown, low, high, Verdict.REPRODUCED if small else Verdict.NOT_REPRODUCED, why)


def _short(measured: Measured) -> Outcome:
    times = best(measured, "short", "completion_s", "the mean completion time")
    energy = best(measured, "short", "energy_j", "the energy")
    return combined(times, energy, _is_small(measured))


def _longest(measured: Measured, scheduler: str) -> Outcome:
    cases = [(kind, word) for kind in ("short", "medium", "long") for word in levels(measured, kind)]
    lasts = [
        max(COMPARED, key=lambda one: measured.mean((kind, one, word), "completion_s").mean) == scheduler
        for kind, word in cases
    ]
    shown = f"longest in {sum(lasts)} of {len(cases)}"
    verdict = Verdict.REPRODUCED if 2 * sum(lasts) > len(cases) else Verdict.NOT_REPRODUCED
    return Outcome(shown, None, None, verdict, f"its mean completion time is the {shown} cases")


def _emptcp(measured: Measured) -> Outcome:
    cell, base = (("long", scheduler, "30 flows") for scheduler in ("emptcp", "roundrobin"))
    ratio = measured.ratio(cell, base, "completion_s")
    shorter = below(ratio, 1.0, "its completion time over round-robin's, 30 long flows,")
    outcome = combined(shorter, _longest(measured, "emptcp"))
    for waits in measured.cells("long", WAITS, "30 flows"):
        ratio = measured.ratio(cell, waits, "completion_s")
        outcome = because(
            outcome, f"over that of a round-robin that waits for full paths it is {Unit().estimate(ratio)}"
        )
    return outcome


def _falls(measured: Measured, scheduler: str, metric: str, what: str) -> Outcome:
    cells: list[Cell] = [("wlans", scheduler, word) for word in levels(measured, "wlans")]
    steps = [measured.difference(cell, before, metric) for before, cell in pairwise(cells)]
    whole = measured.difference(cells[-1], cells[0], metric)
    unit = SECONDS if metric == "completion_s" else JOULE
    return rising(steps, whole, f"the {what} of {scheduler}", unit, up=False)


def _wlans(measured: Measured) -> Outcome:
    times = best(measured, "wlans", "completion_s", "the mean completion time")
    energy = best(measured, "wlans", "energy_j", "the energy")
    falls = [
        _falls(measured, scheduler, metric, what)
        for metric, what in (("completion_s", "completion time"), ("energy_j", "energy"))
        for scheduler in COMPARED
    ]
    whole = [_falls(measured, scheduler, "energy_whole_j", "energy") for scheduler in COMPARED]
    falling = sum(outcome.verdict is Verdict.REPRODUCED for outcome in falls)
    shown = f"{falling} of {len(falls)} fall; time {times.ours}, energy {energy.ours}"
    alike = sum(outcome.verdict is Verdict.REPRODUCED for outcome in whole)
    remark = f"with the base power of a radio until the last flow ends, the energy of {alike} of 4 falls"
    others = [outcome.why for outcome in falls if outcome.verdict is not Verdict.REPRODUCED]
    why = "; ".join(
        [times.why, energy.why, f"{falling} of {len(falls)} fall from 1 WLAN to 3", *others, remark]
    )
    return replace(combined(times, energy, *falls, ours=shown), why=why)


def _stragglers(measured: Measured) -> Outcome:
    found = measured.mean(("long", "roundrobin", "30 flows"), "tail")
    outcome = above(found, SEVERAL, "the 95th percentile of round-robin's completion times over the median")
    others = {"ee-mptcp": "EE-MPTCP", WAITS: "a round-robin that waits for full paths"}
    for scheduler, name in others.items():
        for cell in measured.cells("long", scheduler, "30 flows"):
            outcome = because(outcome, f"that of {name} is {Unit().estimate(measured.mean(cell, 'tail'))}")
    return outcome


def arrivals(*, halved: bool, lost: int | None) -> list[int]:
    """Return the order in which the packets of the paper's example are there.

    Each path sends a window of 5 packets, one more with every round trip: 1 to 11 over the path of 30 ms, 12
    to 16 over that of 60 ms. A lost packet is sent again at the beginning of the next round.

    Parameters
    ----------
    halved
        Whether a packet is there after half a round trip, as on the wire, and not when its round ends, as the
        paper counts.
    lost
        The packet whose first transmission is lost.

    Returns
    -------
    list of int
        Packets by time of arrival, then by number.
    """
    times: dict[int, int] = {}
    for packets, rtt_ms in ((list(range(1, 12)), 30), (list(range(12, 17)), 60)):
        begin_ms, window = 0, 5
        while packets:
            sent, packets = packets[:window], packets[window:]
            again = [packet for packet in sent if packet == lost and begin_ms == 0]
            arrived = begin_ms + (rtt_ms // 2 if halved else rtt_ms)
            times |= {packet: arrived for packet in sent if packet not in again}
            packets = again + packets
            begin_ms, window = begin_ms + rtt_ms, window + 1
    return sorted(times, key=lambda packet: (times[packet], packet))


def _example(_: Measured) -> Outcome:
    def is_in_order(*, halved: bool, lost: int | None) -> bool:
        order = arrivals(halved=halved, lost=lost)
        return order == sorted(order)

    by_rounds = is_in_order(halved=False, lost=None) and not is_in_order(halved=False, lost=1)
    on_the_wire = is_in_order(halved=True, lost=None) and not is_in_order(halved=True, lost=1)
    verdict = {2: Verdict.REPRODUCED, 1: Verdict.PARTLY, 0: Verdict.NOT_REPRODUCED}[by_rounds + on_the_wire]
    first = arrivals(halved=True, lost=None)
    why = (
        f"counted by the ends of rounds it {'holds' if by_rounds else 'does not hold'}; on the wire, "
        "after half a "
        f"round trip, it {'holds' if on_the_wire else 'does not'}: the order is {first[0]} to {first[4]}, "
        f"{first[5]} to {first[9]}, {first[10]} to {first[15]}"
    )
    shown = f"by rounds {'yes' if by_rounds else 'no'}, on the wire {'yes' if on_the_wire else 'no'}"
    return Outcome(shown, None, None, verdict, why)


RULES = (
    Rule(
        "S2-C1",
        "mean completion time of 30 flows of 10 MB with EE-MPTCP over that with round-robin, paired by "
        "seed: reduction within 10 percentage points of 79.9 %; partly if it is only a reduction",
        "no reduction",
        _completion,
    ),
    Rule(
        "S2-C2",
        "energy of the same by the paper's linear model while a radio carries anything: reduction within "
        "10 percentage points of 79.2 %; partly if it is only a reduction",
        "no reduction",
        _energy,
    ),
    Rule(
        "S2-C3",
        "completion time of 800 kB: eMTCP's above the default's; both within 20 % of the paper's",
        "eMTCP not longer, and neither time within 20 %",
        _times,
    ),
    Rule(
        "S2-C4",
        "share of acknowledged bytes over WLAN, 800 kB: eMTCP's above the default's; both within 5 points",
        "eMTCP's not larger, and neither share within 5 points",
        _shares,
    ),
    Rule(
        "S2-C5",
        "bytes over WLAN per completion time, 800 kB: eMTCP's below the default's; both within 20 %",
        "eMTCP's not lower, and neither within 20 %",
        _throughputs,
    ),
    Rule(
        "S2-C6",
        "energy of both radios by the linear model: eMTCP's above the default's at 800 kB and at 900 kB",
        "not more at either size",
        _testbed_energy,
    ),
    Rule(
        "S2-C7",
        "mean completion time and energy against each of the other three, at every number of short flows: "
        "below each somewhere and above none; all differences within 25 %",
        "more often above than below in both, and larger differences",
        _short,
    ),
    Rule(
        "S2-C8",
        "mean completion time: that of eMPTCP (WLAN first) is the longest of four in more than half of "
        "all sizes and numbers of flows; below round-robin's for 30 long flows",
        "neither",
        _emptcp,
    ),
    Rule(
        "S2-C9",
        "20 flows of 1 MB: mean completion time and energy of each of the four fall with the WLANs, and "
        "EE-MPTCP's are below each other's somewhere and above none",
        "none falls, and EE-MPTCP more often above than below",
        _wlans,
    ),
    Rule(
        "S2-C10",
        "95th percentile over median of the completion times of round-robin's 30 long flows: above 2",
        "2 or less",
        _stragglers,
    ),
    Rule(
        "S2-C11",
        "the example reckoned: order of arrival if packets count at the end of their round, as in the "
        "paper, and if they count after half a round trip",
        "out of order without loss, or in order with, by both",
        _example,
    ),
)
