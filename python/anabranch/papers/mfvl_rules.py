"""How the claims of MFVL HCCA are judged."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from anabranch.papers.judging import (
    GAIN,
    SHARE,
    Unit,
    above,
    because,
    below,
    between,
    combined,
    not_testable,
    rising,
    sized,
)
from anabranch.papers.model import Cell, Measured, Outcome, Rule, Verdict
from anabranch.stats import Estimate, estimate

#: Change of a loss rate, as percent of the packets sent.
_LOSS = Unit("% of packets", 100.0, signed=True)
_PACKETS = Unit("packets")
_SECONDS = Unit("s")

#: The paper's "up to 30 %", and how far ours may be from it.
CLAIMED_GAIN, GAIN_TOLERANCE = 1.30, 0.05

#: The paper's "up to 50 %" less, and how far ours may be from it.
CLAIMED_LOSS, LOSS_TOLERANCE = 0.50, 0.10

#: A window of this many packets or less is "almost zero": a twentieth of the cap.
ALMOST_ZERO_PACKETS = 5.0

#: Least share of its goodput beside its own kind that a TCP which is not harmed keeps.
UNHARMED = 0.9

#: A reliable detector couples in more of the shared cases than this, in fewer of the others than the rest.
RELIABLE = 0.8

#: The detector of the paper, in a connection that begins with MFast on its first path, not MVegas on both.
ROLES_CHOSEN = "retransmissions, roles chosen"


def _goodput(measured: Measured, cell: Cell, base: Cell, what: str) -> Outcome:
    return above(measured.ratio(cell, base, "goodput_bps"), 1.0, f"goodput of {what}", GAIN)


def _loss(measured: Measured, cell: Cell, base: Cell) -> Estimate:
    return measured.difference(cell, base, "loss_rate")


def _or_elsewhere(judge: Callable[[Measured], Outcome]) -> Callable[[Measured], Outcome]:
    """Judge; if the claim does not hold, add under which of the other assumptions it does."""

    def judged(measured: Measured) -> Outcome:
        outcome = judge(measured)
        names = list(dict.fromkeys(cell[1] for cell in measured.cells("elsewhere")))
        if not names or outcome.verdict is Verdict.REPRODUCED:
            return outcome
        others = {name: judge(measured.under("elsewhere", name)) for name in names}
        fit = [
            f"{name} ({other.ours})" for name, other in others.items() if other.verdict is Verdict.REPRODUCED
        ]
        if fit:
            return because(outcome, f"it would hold with {', or '.join(fit)}")
        return because(outcome, f"it does not hold with {', '.join(names)} either")

    return judged


def _largest_gain(measured: Measured) -> Outcome:
    gains = {
        cell[2]: measured.ratio(cell, ("cbr", "lia", cell[2]), "goodput_bps")
        for cell in measured.cells("cbr", "mfvl")
    }
    rate = max(gains, key=lambda rate: gains[rate].mean)
    what = f"the largest gain in goodput over LIA, at {rate},"
    outcome = sized(gains[rate], CLAIMED_GAIN, GAIN_TOLERANCE, what, GAIN, neutral=1.0)
    return _elsewhere(measured, outcome, "goodput_bps", CLAIMED_GAIN, GAIN_TOLERANCE)


def _elsewhere(
    measured: Measured, outcome: Outcome, metric: str, claimed: float, tolerance: float
) -> Outcome:
    """Add under which other assumption the ratio to LIA is the claimed one, or comes nearest to it."""
    found = {
        f"802.11 at {cell[2]}" if name == "radio" else cell[2]: measured.ratio(
            cell, (name, "lia", cell[2]), metric
        )
        for name in ("radio", "sweep", "reading")
        for cell in measured.cells(name, "mfvl")
        if metric in measured.metrics(cell)
    }
    if not found or outcome.verdict is Verdict.REPRODUCED:
        return outcome
    fit = [
        f"{choice} ({GAIN.estimate(gain)})"
        for choice, gain in found.items()
        if sized(gain, claimed, tolerance, "").verdict is Verdict.REPRODUCED
    ]
    if fit:
        return because(outcome, f"it would hold with {', or '.join(fit)}")
    nearest = min(found, key=lambda choice: abs(found[choice].mean - claimed))
    return because(outcome, f"nearest to it is {GAIN.estimate(found[nearest])}, with {nearest}")


def _largest_reduction(measured: Measured) -> Outcome:
    ratios = {
        cell[2]: measured.ratio(cell, ("cbr", "lia", cell[2]), "loss_rate")
        for cell in measured.cells("cbr", "mfvl")
    }
    told = {rate: ratio for rate, ratio in ratios.items() if ratio.half_width is not None}
    if not told:
        return not_testable("LIA loses no packet at any rate of the background")
    rate = min(told, key=lambda rate: told[rate].mean)
    what = f"the largest change of the loss rate against LIA, at {rate},"
    outcome = sized(told[rate], CLAIMED_LOSS, LOSS_TOLERANCE, what, GAIN, neutral=1.0)
    least = max(told, key=lambda rate: told[rate].mean)
    smallest = because(outcome, f"the smallest is {GAIN.estimate(told[least])}, at {least}")
    return _elsewhere(measured, smallest, "loss_rate", CLAIMED_LOSS, LOSS_TOLERANCE)


def _setup1_goodput(measured: Measured) -> Outcome:
    mfast = ("setup 1", "mfast")
    return combined(
        _goodput(measured, mfast, ("setup 1", "mvegas"), "MFast over MVegas"),
        _goodput(measured, mfast, ("setup 1", "lia"), "MFast over LIA"),
    )


def _setup1_loss(measured: Measured) -> Outcome:
    mfast = ("setup 1", "mfast")
    return combined(
        above(_loss(measured, mfast, ("setup 1", "mvegas")), 0.0, "loss rate of MFast less MVegas", _LOSS),
        above(_loss(measured, mfast, ("setup 1", "lia")), 0.0, "loss rate of MFast less LIA", _LOSS),
    )


def _setup1_windows(measured: Measured) -> Outcome:
    mfast, mvegas = ("setup 1", "mfast"), ("setup 1", "mvegas")
    judged = combined(
        above(
            measured.ratio(mfast, mvegas, "cwnd2_at_5s"),
            2.0,
            "the window of MFast over that of MVegas at 5 s",
        ),
        below(
            measured.mean(mfast, "smallest_cwnd2_at_7s"),
            ALMOST_ZERO_PACKETS,
            "the smallest window of MFast from 6.5 to 7.5 s",
            _PACKETS,
        ),
    )
    later = _PACKETS.estimate(measured.mean(mfast, "smallest_cwnd2_from_5s"))
    return because(judged, f"it falls to {later} later")


def _setup2(measured: Measured) -> Outcome:
    mfvl, lia = ("setup 2", "mfvl"), ("setup 2", "lia")
    return combined(
        _goodput(measured, mfvl, lia, "the hybrid over LIA"),
        above(_loss(measured, mfvl, lia), 0.0, "its loss rate less that of LIA", _LOSS),
    )


def _better_than_lia(measured: Measured, setup: str) -> Outcome:
    mfvl, lia = (setup, "mfvl"), (setup, "lia")
    return combined(
        _goodput(measured, mfvl, lia, "MFVL over LIA"),
        below(_loss(measured, mfvl, lia), 0.0, "its loss rate less that of LIA", _LOSS),
    )


def _windows_on_path1(measured: Measured) -> Outcome:
    lia, mfvl = ("setup 3", "lia"), ("setup 3", "mfvl")
    return combined(
        sized(measured.mean(lia, "largest_cwnd1"), 100.0, 2.0, "the largest window of LIA", _PACKETS),
        sized(
            measured.mean(mfvl, "largest_cwnd1_before_5s"),
            80.0,
            5.0,
            "the largest of MFVL before 5 s",
            _PACKETS,
            neutral=100.0,
        ),
        sized(
            measured.mean(mfvl, "largest_cwnd1_from_5s"),
            75.0,
            5.0,
            "the largest of MFVL from 5 s on",
            _PACKETS,
            neutral=100.0,
        ),
    )


def _first_drops(measured: Measured) -> Outcome:
    return combined(
        *(
            between(
                measured.mean(("setup 1", name), "first_drop_s"),
                5.0,
                15.0,
                f"the first drop of {title}",
                _SECONDS,
            )
            for name, title in (("lia", "LIA"), ("mvegas", "MVegas"), ("mfast", "MFast"))
        )
    )


def _sweep(measured: Measured, name: str, metric: str, what: str, unit: Unit, *, up: bool = True) -> Outcome:
    cells = measured.cells(name)
    steps = [measured.difference(cell, before, metric) for before, cell in pairwise(cells)]
    whole = measured.difference(cells[-1], cells[0], metric)
    return rising(steps, whole, what, unit, up=up)


def _sigma(measured: Measured) -> Outcome:
    rate, jain = Unit("Mbit/s", 1e-6, signed=True), Unit("", signed=True)
    return combined(
        _sweep(measured, "sigma", "goodput_bps", "goodput", rate),
        _sweep(measured, "sigma beside TCP", "jain1", "Jain's index beside a TCP", jain, up=False),
        _sweep(measured, "sigma", "loss_rate", "the loss rate", _LOSS),
    )


def _k(measured: Measured) -> Outcome:
    chosen, above_it = ("k", "2"), [cell for cell in measured.cells("k") if int(cell[1]) > 2]
    parts = [
        above(
            measured.difference(cell, chosen, "drops"),
            0.0,
            f"drops with k = {cell[1]} less those with k = 2",
            Unit("packets", signed=True),
        )
        for cell in above_it
    ]
    parts.append(
        below(
            measured.ratio(("k", "1"), chosen, "throughput2_bps"),
            1.0,
            "throughput of path 2 with k = 1 over that with k = 2",
            GAIN,
        )
    )
    return because(combined(*parts), "k is a whole number here, so 1 stands for the values below it")


def _harm(measured: Measured) -> Outcome:
    parts = []
    for tcp in ("reno", "cubic"):
        for number, ours in ((1, "MFast"), (2, "MVegas")):
            kept = measured.ratio(
                ("beside TCP", "mfvl", tcp), ("beside TCP", "own kind", tcp), f"tcp{number}_bps"
            )
            what = f"what {'NewReno' if tcp == 'reno' else 'CUBIC'} keeps beside {ours}"
            parts.append(above(kept, UNHARMED, what, SHARE))
    own = measured.ratio(("beside TCP", "mfvl", "reno"), ("beside TCP", "own kind", "reno"), "goodput_bps")
    remark = f"MFVL itself has {SHARE.estimate(own)} of the goodput of two NewReno in its place"
    return because(combined(*parts), remark)


def _smallest_windows(measured: Measured) -> Outcome:
    metric = "smallest_cwnd2_from_5s"
    judged = combined(
        below(
            measured.mean(("setup 3", "lia"), metric),
            ALMOST_ZERO_PACKETS,
            "the smallest window of LIA from 5 s on",
            _PACKETS,
        ),
        above(
            measured.mean(("setup 3", "mfvl"), metric),
            ALMOST_ZERO_PACKETS,
            "that of MFVL",
            _PACKETS,
        ),
    )
    apart = measured.difference(("setup 3", "mfvl"), ("setup 3", "lia"), metric)
    return because(judged, f"MFVL less LIA is {_PACKETS.estimate(apart)}")


def _energy(measured: Measured) -> Outcome:
    mfvl, lia = ("energy", "mfvl"), ("energy", "lia")
    return combined(
        below(measured.ratio(mfvl, lia, "energy_per_bit_j"), 1.0, "energy per bit of MFVL over LIA", GAIN),
        below(
            measured.difference(mfvl, lia, "retransmits"),
            0.0,
            "its retransmissions less those of LIA",
            Unit("packets", signed=True),
        ),
    )


def coupled(measured: Measured, detector: str, topology: str, difference: str) -> Estimate:
    """Return the share of runs in which the one decision coupled the subflows."""
    decides = ("detector", detector, topology, difference)
    never = ("never coupled", detector, topology, difference)
    sent = [
        zip(measured.of(decides, m), measured.of(never, m), strict=True) for m in measured.metrics(decides)
    ]
    return estimate([float(any(one != other for one, other in pairs)) for pairs in zip(*sent, strict=True)])


def _detector(measured: Measured) -> Outcome:
    hits, alarms = (
        [coupled(measured, "retransmissions", topology, difference) for difference in ("0 ms", "200 ms")]
        for topology in ("shared", "disjoint")
    )
    equal = combined(
        above(hits[0], RELIABLE, "of equal delay, shared bottlenecks found", SHARE),
        below(alarms[0], 1.0 - RELIABLE, "disjoint ones taken for shared", SHARE),
    )
    missed = below(hits[1], RELIABLE, "with 200 ms between them, shared bottlenecks found", SHARE)
    false = above(alarms[1], 1.0 - RELIABLE, "disjoint ones taken for shared", SHARE)
    # Either of the two makes a detector unreliable.
    unequal = false if false.verdict is Verdict.REPRODUCED else missed
    judged = combined(equal, unequal)
    if not measured.cells("detector", ROLES_CHOSEN):
        return judged
    shares = [
        SHARE.estimate(coupled(measured, ROLES_CHOSEN, topology, "0 ms"))
        for topology in ("shared", "disjoint")
    ]
    remark = f"once MFast runs on one path, {shares[0]} of shared ones are found, {shares[1]} false alarms"
    return because(judged, remark)


RULES = (
    Rule(
        "S0-C1",
        "largest ratio of goodput MFVL/LIA over the rates of the background, paired; +30 ± 5 %",
        "no rate at which the whole interval is above 0; partly: another size",
        _largest_gain,
    ),
    Rule(
        "S0-C2",
        "smallest ratio of loss rate (drops per packet sent) MFVL/LIA over the rates; -50 ± 10 %",
        "no rate at which the whole interval is below 0; partly: another size",
        _largest_reduction,
    ),
    Rule(
        "S0-C3",
        "ratios of goodput MFast/MVegas and MFast/LIA, both above 1",
        "both intervals reach 1; partly: one does",
        _setup1_goodput,
    ),
    Rule(
        "S0-C4",
        "differences of loss rate MFast - MVegas and MFast - LIA, both above 0",
        "both intervals reach 0; partly: one does",
        _setup1_loss,
    ),
    Rule(
        "S0-C5",
        "windows on path 2: MFast over MVegas at 5 s above 2; smallest of MFast at 6.5-7.5 s below 5 packets",
        "neither; partly: one of the two",
        _or_elsewhere(_setup1_windows),
    ),
    Rule(
        "S0-C6",
        "ratio of goodput above 1 and difference of loss rate above 0, against LIA",
        "neither; partly: one of the two",
        _or_elsewhere(_setup2),
    ),
    Rule(
        "S0-C7",
        "ratio of goodput above 1 and difference of loss rate below 0, against LIA",
        "neither; partly: one of the two",
        lambda measured: _better_than_lia(measured, "setup 3"),
    ),
    Rule(
        "S0-C8",
        "largest windows on path 1: LIA 100 ± 2, MFVL before 5 s 80 ± 5, from 5 s on 75 ± 5 packets",
        "none of the three; partly: some, or below the cap but of another size",
        _windows_on_path1,
    ),
    Rule(
        "S0-C9",
        "time of the first drop of LIA, MVegas and MFast, each within the first background, 5 to 15 s",
        "none of the three; partly: some",
        _first_drops,
    ),
    Rule(
        "S0-C10",
        "as S0-C7, with background of 2 Mbit/s",
        "neither; partly: one of the two",
        lambda measured: _better_than_lia(measured, "setup 4"),
    ),
    Rule(
        "S0-C11",
        "along sigma, MFast on both paths: goodput and loss rate rise, Jain's index beside a NewReno falls",
        "none of the three; partly: some, or with steps the other way",
        _sigma,
    ),
    Rule(
        "S0-C12",
        "MVegas on both paths: more drops with every k above 2; less throughput of path 2 with k = 1",
        "none of these; partly: some",
        _k,
    ),
    Rule(
        "S0-C13",
        "goodput of a NewReno and a CUBIC in each bottleneck over theirs beside their own kind: above 0.9",
        "none of the four; partly: some",
        _harm,
    ),
    Rule(
        "S0-C14",
        "smallest window on path 2 from 5 s on: LIA below, MFVL above 5 packets (a twentieth of the cap)",
        "neither; partly: one of the two",
        _or_elsewhere(_smallest_windows),
    ),
    Rule(
        "S0-C15",
        "energy per bit of the meter's radios below that of LIA, with fewer retransmissions",
        "neither; partly: one of the two",
        _energy,
    ),
    Rule(
        "S0-C16",
        "one decision per run: at equal delays more than 80 % of shared found, less than 20 % false alarms; "
        "with 200 ms between them not so",
        "unreliable at equal delays, reliable at unequal ones; partly: some of this",
        _detector,
    ),
)
