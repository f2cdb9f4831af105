"""How the claims of STCP are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch import stats
from anabranch.papers.judging import GAIN, SHARE, Unit, above, because, below, combined, interval, sized
from anabranch.papers.model import Cell, Measured, Outcome, Rule, Verdict
from anabranch.stats import Estimate

#: Payload of a packet, in bytes, and its size on the wire.
PAYLOAD, ON_THE_WIRE = 1000, 1040

#: The bottleneck, and the background where others are swept, in bit/s.
BOTTLENECK_BPS, BACKGROUND_BPS = 1e6, 0.3e6

#: Names for people.
TITLES = {
    "stcp": "STCP",
    "compound": "Compound",
    "cubic": "CUBIC",
    "htcp": "H-TCP",
    "newreno": "NewReno",
}
OTHERS = ("compound", "cubic", "htcp", "newreno")

#: The claimed order, as pairs of the better and the worse.
ORDER = (
    ("stcp", "compound"),
    ("compound", "cubic"),
    ("compound", "htcp"),
    ("cubic", "newreno"),
    ("htcp", "newreno"),
)

#: How far a gain may be from the claimed one: half a percentage point.
TOLERANCE = 0.005

#: An algorithm that has adapted to a delay uses at least this share of what the background leaves.
ADAPTED = 0.9

#: What is averaged over, or looked at, in place of both kinds of background with NewReno's recovery.
ASSUMPTIONS = {
    "CBR alone": ("cbr",),
    "VBR alone": ("vbr",),
    "SACK recovery": ("cbr, SACK", "vbr, SACK"),
    "CBR alone with SACK": ("cbr, SACK",),
    "VBR alone with SACK": ("vbr, SACK",),
}

_LOSS = Unit("% of packets", 100.0, signed=True)
_COUNT = Unit("packets", signed=True)


def averaged(
    measured: Measured, name: str, metric: str, kinds: Sequence[str] = ("cbr", "vbr")
) -> list[float]:
    """Return the mean of a figure over the rates and kinds of the background, by seed."""
    cells = [cell for kind in kinds for cell in measured.cells(kind, name)]
    by_seed = zip(*(measured.of(cell, metric) for cell in cells), strict=True)
    return [sum(values) / len(cells) for values in by_seed]


def gain(measured: Measured, name: str, base: str, kinds: Sequence[str] = ("cbr", "vbr")) -> Estimate:
    """Return the goodput of ``name`` over that of ``base``, both averaged over the background."""
    pairs = zip(
        averaged(measured, base, "goodput_bps", kinds),
        averaged(measured, name, "goodput_bps", kinds),
        strict=True,
    )
    found = stats.ratio(list(pairs))
    assert found is not None, "something is delivered beside every background"
    return found


def _gain_over(claim: str, base: str, claimed: float) -> Rule:
    def judge(measured: Measured) -> Outcome:
        what = f"the gain of STCP over {TITLES[base]}, mean over the background,"
        outcome = sized(gain(measured, "stcp", base), claimed, TOLERANCE, what, GAIN, neutral=1.0)
        if outcome.verdict is Verdict.REPRODUCED:
            return outcome
        return because(outcome, _elsewhere(measured, base, claimed))

    return Rule(
        claim,
        f"ratio of goodput STCP/{TITLES[base]}, both averaged over 100 to 500 kbit/s of CBR and VBR: "
        f"{GAIN.text(claimed)}, within half a percentage point",
        "an interval that reaches 0; partly: another size",
        judge,
    )


def _elsewhere(measured: Measured, base: str, claimed: float) -> str:
    """Say what the gain is under other assumptions, and under which of them it is the claimed one."""
    shown = {f"{kind.upper()} alone": gain(measured, "stcp", base, [kind]) for kind in ("cbr", "vbr")}
    if measured.cells("cbr, SACK"):
        shown["SACK recovery"] = gain(measured, "stcp", base, ("cbr, SACK", "vbr, SACK"))
        shown["CBR alone with SACK"] = gain(measured, "stcp", base, ["cbr, SACK"])
    text = ", ".join(f"{name} {GAIN.estimate(one)}" for name, one in shown.items())
    choices = {
        f"CBR of 300 kbit/s, {cell[2]}": measured.ratio(cell, ("choice", base, cell[2]), "goodput_bps")
        for cell in measured.cells("choice", "stcp")
        if cell[2] not in ("as judged", "almost no background")
    }
    fit = [
        name
        for name, one in {**shown, **choices}.items()
        if sized(one, claimed, TOLERANCE, "").verdict is Verdict.REPRODUCED
    ]
    return f"{text}; it would hold with {', or '.join(fit)}" if fit else f"{text}; nothing looked at gives it"


def _pair(measured: Measured, better: str, worse: str, kinds: Sequence[str] = ("cbr", "vbr")) -> Outcome:
    """Judge one place of the order: the ratio is above 1 at every rate of every kind."""
    ratios = {
        f"{kind.upper()} {cell[2]}": measured.ratio(cell, (kind, worse, cell[2]), "goodput_bps")
        for kind in kinds
        for cell in measured.cells(kind, better)
    }
    holds = sum(1 for ratio in ratios.values() if _is_above_one(ratio))
    lowest = min(ratios, key=lambda at: ratios[at].mean)
    low, high = interval(ratios[lowest])
    verdict = Verdict.REPRODUCED if holds == len(ratios) else Verdict.NOT_REPRODUCED
    names = f"{TITLES[better]} over {TITLES[worse]}"
    ours = f"{names} {holds} of {len(ratios)}"
    why = (
        f"{names} at {holds} of {len(ratios)} backgrounds, least {GAIN.estimate(ratios[lowest])} at {lowest}"
    )
    return Outcome(ours, low, high, verdict, why)


def _is_above_one(ratio: Estimate) -> bool:
    low, _ = interval(ratio)
    return low is not None and low > 1.0


def _order(measured: Measured) -> Outcome:
    judged = combined(*(_pair(measured, better, worse) for better, worse in ORDER))

    def parts(kinds: Sequence[str]) -> list[Outcome]:
        return [_pair(measured, better, worse, kinds) for better, worse in ORDER]

    return _with_assumptions(measured, judged, parts, "pairs")


def _with_assumptions(
    measured: Measured, judged: Outcome, parts: Callable[[Sequence[str]], Sequence[Outcome]], what: str
) -> Outcome:
    """Add how many parts of a claim hold under other assumptions, and under which of them all do."""
    found = {
        name: parts(kinds)
        for name, kinds in ASSUMPTIONS.items()
        if all(measured.cells(kind) for kind in kinds)
    }
    if judged.verdict is Verdict.REPRODUCED:
        return judged
    holding = {
        name: sum(part.verdict is Verdict.REPRODUCED for part in of_name) for name, of_name in found.items()
    }
    shown = ", ".join(f"{count} of {len(found[name])} with {name}" for name, count in holding.items())
    fit = [name for name, count in holding.items() if count == len(found[name])]
    end = f"it would hold with {', or '.join(fit)}" if fit else "nothing looked at gives all of them"
    return because(judged, f"{what} that hold: {shown}; {end}")


def _difference(measured: Measured, base: str, metric: str, kinds: Sequence[str]) -> Estimate:
    pairs = zip(
        averaged(measured, "stcp", metric, kinds), averaged(measured, base, metric, kinds), strict=True
    )
    return stats.estimate([ours - theirs for ours, theirs in pairs])


def _drops_less(measured: Measured, kinds: Sequence[str]) -> list[Outcome]:
    parts = []
    for base in OTHERS:
        loss, again = (_difference(measured, base, metric, kinds) for metric in ("loss_rate", "retransmits"))
        parts.append(below(loss, 0.0, f"loss rate of STCP less {TITLES[base]}", _LOSS))
        parts.append(below(again, 0.0, "the same of retransmissions", _COUNT))
    return parts


def _drops(measured: Measured) -> Outcome:
    parts = _drops_less(measured, ("cbr", "vbr"))
    less, fewer = (sum(part.verdict is Verdict.REPRODUCED for part in parts[i::2]) for i in (0, 1))
    ours = f"lower loss rate than {less} of 4, fewer retransmissions than {fewer} of 4"
    drops = [stats.estimate(averaged(measured, "stcp", "drops", [kind])) for kind in ("cbr", "vbr")]
    shown = [Unit("packets").estimate(one) for one in drops]
    judged = because(
        combined(*parts, ours=ours), f"STCP drops {shown[0]} a run beside CBR, {shown[1]} beside VBR"
    )
    return _with_assumptions(measured, judged, lambda kinds: _drops_less(measured, kinds), "differences")


def used(measured: Measured, cell: Cell) -> Estimate:
    """Return the goodput as a share of what the background of 300 kbit/s leaves of the bottleneck."""
    left_bps = (BOTTLENECK_BPS - BACKGROUND_BPS) * PAYLOAD / ON_THE_WIRE
    return stats.estimate([goodput / left_bps for goodput in measured.of(cell, "goodput_bps")])


def _delays(measured: Measured) -> Outcome:
    shares = {cell[2]: used(measured, cell) for cell in measured.cells("delay", "stcp")}
    ratios = {
        cell[2]: measured.ratio(cell, ("delay", "newreno", cell[2]), "goodput_bps")
        for cell in measured.cells("delay", "stcp")
    }
    least = min(shares, key=lambda delay: shares[delay].mean)
    worst = min(ratios, key=lambda delay: ratios[delay].mean)
    return combined(
        above(shares[least], ADAPTED, f"the smallest share of the capacity left, at {least},", SHARE),
        above(ratios[worst], 1.0, f"the smallest gain over NewReno, at {worst},", GAIN),
    )


RULES = (
    _gain_over("S1-C1", "newreno", 1.026),
    _gain_over("S1-C2", "compound", 1.0094),
    _gain_over("S1-C3", "cubic", 1.0103),
    _gain_over("S1-C4", "htcp", 1.0121),
    Rule(
        "S1-C5",
        "for each of STCP/Compound, Compound/CUBIC, Compound/H-TCP, CUBIC/NewReno, H-TCP/NewReno: "
        "ratio of goodput above 1 at every rate of CBR and VBR",
        "no pair for which it is; partly: some pairs",
        _order,
    ),
    Rule(
        "S1-C6",
        "differences of loss rate and of retransmissions, STCP less each of the four, mean over the "
        "background: all below 0",
        "none of the eight; partly: some",
        _drops,
    ),
    Rule(
        "S1-C7",
        "over one-way delays of 20 to 500 ms: the smallest share of the capacity left above 90 %, the "
        "smallest ratio of goodput STCP/NewReno above 1",
        "neither; partly: one of the two",
        _delays,
    ),
)
