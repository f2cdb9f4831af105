"""The rules of STCP follow the data: they hold for numbers as the paper has them, and turn with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.papers.model import Cell, Measured, Verdict
from anabranch.papers.reproduction import draw, judge, measure
from anabranch.papers.stcp import CONGESTIONS, STCP
from anabranch.papers.stcp_rules import gain, used

#: Of three seeds, around one.
SPREAD = (0.999, 1.0, 1.001)

#: Goodput in kbit/s with the gains that the paper has.
AS_CLAIMED = {"stcp": 700.0, "compound": 700 / 1.0094, "cubic": 700 / 1.0103, "htcp": 700 / 1.0121}
AS_CLAIMED["newreno"] = 700 / 1.026


def _cell(goodput_kbps: float, lost: float) -> dict[str, tuple[float, ...]]:
    figures = {
        "goodput_bps": 1e3 * goodput_kbps,
        "loss_rate": lost / 1000,
        "retransmits": lost,
        "drops": lost,
    }
    return {name: tuple(value * one for one in SPREAD) for name, value in figures.items()}


def _measured(goodput_kbps: dict[str, float]) -> Measured:
    values: dict[Cell, dict[str, tuple[float, ...]]] = {}
    for name in CONGESTIONS:
        lost = 5.0 if name == "stcp" else 100.0
        for kind in ("cbr", "vbr"):
            for rate in ("100 kbit/s", "500 kbit/s"):
                values[kind, name, rate] = _cell(goodput_kbps[name], lost)
        for delay in ("20 ms", "500 ms"):
            values["delay", name, delay] = _cell(goodput_kbps[name] * 0.93, lost)
    return Measured(values)


def _values(measured: Measured) -> dict[Cell, dict[str, tuple[float, ...]]]:
    return {
        cell: {name: measured.of(cell, name) for name in measured.metrics(cell)} for cell in measured.cells()
    }


def _verdicts(measured: Measured) -> dict[str, Verdict]:
    return {rule.claim: rule.judge(measured).verdict for rule in STCP.rules}


def test_every_claim_holds_for_numbers_as_the_paper_has_them() -> None:
    assert set(_verdicts(_measured(AS_CLAIMED)).values()) == {Verdict.REPRODUCED}


@pytest.mark.parametrize(
    ("other", "flipped"), [("newreno", "S1-C1"), ("compound", "S1-C2"), ("cubic", "S1-C3"), ("htcp", "S1-C4")]
)
def test_swapping_stcp_with_another_refutes_its_gain(other: str, flipped: str) -> None:
    verdicts = _verdicts(_measured(AS_CLAIMED).swapped("stcp", other))
    assert verdicts[flipped] is Verdict.NOT_REPRODUCED
    assert verdicts["S1-C5"] is not Verdict.REPRODUCED


def test_swapping_stcp_with_newreno_refutes_that_it_loses_less_and_gains_at_every_delay() -> None:
    verdicts = _verdicts(_measured(AS_CLAIMED).swapped("stcp", "newreno"))
    assert verdicts["S1-C6"] is not Verdict.REPRODUCED
    assert verdicts["S1-C7"] is not Verdict.REPRODUCED


def test_the_reverse_of_the_order_refutes_every_place_of_it() -> None:
    names = sorted(AS_CLAIMED, key=lambda name: AS_CLAIMED[name])
    reverse = dict(zip(names, sorted(AS_CLAIMED.values(), reverse=True), strict=True))
    assert _verdicts(_measured(reverse))["S1-C5"] is Verdict.NOT_REPRODUCED


def test_a_gain_of_another_size_is_partly_reproduced() -> None:
    verdicts = _verdicts(_measured({**AS_CLAIMED, "stcp": 800.0}))
    assert {verdicts[f"S1-C{number}"] for number in (1, 2, 3, 4)} == {Verdict.PARTLY}


def test_a_gain_is_that_of_the_sums_over_the_background() -> None:
    measured = _measured(AS_CLAIMED)
    assert gain(measured, "stcp", "newreno").mean == pytest.approx(1.026)
    assert gain(measured, "stcp", "newreno", ["vbr"]).half_width == pytest.approx(0.0, abs=1e-12)


def test_what_is_used_is_relative_to_what_the_background_leaves() -> None:
    # 0.7 Mbit/s less the headers: 1000 of 1040 bytes.
    cell: Cell = ("one",)
    measured = Measured({cell: {"goodput_bps": (0.7e6 * 1000 / 1040,)}})
    assert used(measured, cell).mean == pytest.approx(1.0)


def test_the_quick_plan_gives_every_figure_that_rules_plots_and_tables_need(tmp_path: Path) -> None:
    plan = [
        replace(planned, experiment=planned.experiment.with_(duration="15 s"), seeds=2)
        for planned in STCP.plan(True)
    ]
    measured = measure(STCP, plan, tmp_path / "runs")
    assert len(judge(STCP, measured)) == len(STCP.rules)
    drawn = draw(STCP, measured, tmp_path / "plots")
    assert len(drawn) == len(STCP.plots)
    assert all(b"</svg>" in path.read_bytes() for path in drawn)
    for table in STCP.tables:
        assert len({len(row) for row in table.rows(measured)}) == 1, table.title


def test_what_does_not_hold_is_said_to_hold_where_it_does() -> None:
    measured = _measured({**AS_CLAIMED, "stcp": 600.0})
    swapped = _measured(AS_CLAIMED).swapped("stcp", "newreno")
    values = _values(measured)
    for (kind, *rest), of_cell in _values(_measured(AS_CLAIMED)).items():
        if kind != "delay":
            values[f"{kind}, SACK", *rest] = of_cell
    (order,) = (rule for rule in STCP.rules if rule.claim == "S1-C5")
    judged = order.judge(Measured(values))
    assert judged.verdict is Verdict.PARTLY
    assert (
        "pairs that hold: 4 of 5 with CBR alone, 4 of 5 with VBR alone, 5 of 5 with SACK recovery"
        in judged.why
    )
    assert "; it would hold with SACK recovery, or CBR alone with SACK, or VBR alone with SACK" in judged.why
    (drops,) = (rule for rule in STCP.rules if rule.claim == "S1-C6")
    assert drops.judge(swapped).why.endswith("nothing looked at gives all of them")
