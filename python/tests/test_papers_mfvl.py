"""The rules of MFVL HCCA follow the data: they hold for numbers as the paper has them, and turn with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.papers.mfvl import MFVL
from anabranch.papers.mfvl_rules import coupled
from anabranch.papers.model import Cell, Measured, Verdict
from anabranch.papers.reproduction import draw, judge, measure

#: Of three seeds, around one.
SPREAD = (0.999, 1.0, 1.001)


Values = dict[Cell, dict[str, tuple[float, ...]]]


def _cell(**figures: float) -> dict[str, tuple[float, ...]]:
    return {name: tuple(value * one for one in SPREAD) for name, value in figures.items()}


def _detector(shared_at_once: int, alarms_at_once: int, shared_far: int) -> Values:
    """Of three runs each, how many coupled."""
    values: Values = {}
    for topology, difference, hits in (
        ("shared", "0 ms", shared_at_once),
        ("disjoint", "0 ms", alarms_at_once),
        ("shared", "200 ms", shared_far),
        ("disjoint", "200 ms", 0),
    ):
        never = (100.0, 100.0, 100.0)
        sent = tuple(101.0 if run < hits else 100.0 for run in range(3))
        values["detector", "retransmissions", topology, difference] = {"packets_a": never, "packets_b": sent}
        values["never coupled", "retransmissions", topology, difference] = {
            "packets_a": never,
            "packets_b": never,
        }
    return values


def _as_claimed() -> Measured:
    """Numbers by which every claim of the paper holds."""
    lia = {
        "goodput_bps": 1e6,
        "loss_rate": 0.02,
        "largest_cwnd1": 100,
        "smallest_cwnd2_from_5s": 1,
        "first_drop_s": 6,
    }
    mfvl = {"largest_cwnd1_before_5s": 80, "largest_cwnd1_from_5s": 75, "smallest_cwnd2_from_5s": 9}
    values: Values = {
        ("setup 1", "lia"): _cell(**lia),
        ("setup 1", "mvegas"): _cell(goodput_bps=1.5e6, loss_rate=0.03, cwnd2_at_5s=20, first_drop_s=7),
        ("setup 1", "mfast"): _cell(
            goodput_bps=2e6,
            loss_rate=0.05,
            cwnd2_at_5s=60,
            smallest_cwnd2_at_7s=2,
            smallest_cwnd2_from_5s=2,
            first_drop_s=8,
        ),
        ("setup 2", "mfvl"): _cell(goodput_bps=1.5e6, loss_rate=0.04),
        ("setup 2", "lia"): _cell(**lia),
        ("setup 3", "mfvl"): _cell(goodput_bps=1.3e6, loss_rate=0.01, **mfvl),
        ("setup 3", "lia"): _cell(**lia),
        ("setup 4", "mfvl"): _cell(goodput_bps=1.3e6, loss_rate=0.01),
        ("setup 4", "lia"): _cell(**lia),
        ("energy", "mfvl"): _cell(energy_per_bit_j=1e-7, retransmits=10),
        ("energy", "lia"): _cell(energy_per_bit_j=2e-7, retransmits=30),
    }
    for rate, gain in (("0.1 Mbit/s", 1.1), ("1 Mbit/s", 1.3), ("2 Mbit/s", 1.2)):
        values["cbr", "mfvl", rate] = _cell(goodput_bps=1e6 * gain, loss_rate=0.02 / gain**2.6)
        values["cbr", "lia", rate] = _cell(goodput_bps=1e6, loss_rate=0.02)
    for sigma, rise in (("0.2", 1.0), ("0.6", 1.2), ("1.0", 1.4)):
        values["sigma", sigma] = _cell(goodput_bps=1e6 * rise, loss_rate=0.02 * rise)
        values["sigma beside TCP", sigma] = _cell(jain1=1 / rise)
    for k, drops in (("1", 5), ("2", 10), ("4", 20)):
        values["k", k] = _cell(drops=drops, throughput2_bps=0.2e6 if k == "1" else 0.4e6)
    for tcp in ("reno", "cubic"):
        values["beside TCP", "mfvl", tcp] = _cell(tcp1_bps=1.4e6, tcp2_bps=0.5e6, goodput_bps=1e6)
        values["beside TCP", "own kind", tcp] = _cell(tcp1_bps=1.5e6, tcp2_bps=0.5e6, goodput_bps=1e6)
    return Measured({**values, **_detector(3, 0, 0)})


def _verdicts(measured: Measured) -> dict[str, Verdict]:
    return {one.claim.id: one.outcome.verdict for one in judge(MFVL, measured)}


def test_every_claim_holds_for_numbers_as_the_paper_has_them() -> None:
    assert set(_verdicts(_as_claimed()).values()) == {Verdict.REPRODUCED}


@pytest.mark.parametrize(
    ("one", "other", "flipped"),
    [
        ("mfvl", "lia", ("S0-C1", "S0-C2", "S0-C6", "S0-C7", "S0-C10", "S0-C15")),
        ("mfast", "lia", ("S0-C3", "S0-C4")),
    ],
)
def test_swapping_two_refutes_the_claims_about_their_order(
    one: str, other: str, flipped: tuple[str, ...]
) -> None:
    swapped = _as_claimed().swapped(one, other)
    verdicts = {rule.claim: rule.judge(swapped).verdict for rule in MFVL.rules if rule.claim in flipped}
    assert verdicts == dict.fromkeys(flipped, Verdict.NOT_REPRODUCED)


@pytest.mark.parametrize("found", [(1, 0, 0), (3, 2, 0)], ids=["misses", "false alarms"])
def test_a_detector_that_fails_at_equal_delays_is_not_reliable(found: tuple[int, int, int]) -> None:
    (rule,) = (rule for rule in MFVL.rules if rule.claim == "S0-C16")
    assert rule.judge(Measured(_detector(3, 0, 0))).verdict is Verdict.REPRODUCED
    assert rule.judge(Measured(_detector(*found))).verdict is Verdict.PARTLY
    assert rule.judge(Measured(_detector(3, 0, 3))).verdict is Verdict.PARTLY, "reliable at unequal delays"


def test_a_gain_of_another_size_is_partly_reproduced() -> None:
    measured = _as_claimed()
    values = {
        one: {name: measured.of(one, name) for name in measured.metrics(one)} for one in measured.cells()
    }
    for rate in ("0.1 Mbit/s", "1 Mbit/s", "2 Mbit/s"):
        values["cbr", "mfvl", rate] = _cell(goodput_bps=1.1e6, loss_rate=0.001)
    verdicts = _verdicts(Measured(values))
    assert verdicts["S0-C1"] is verdicts["S0-C2"] is Verdict.PARTLY


def test_a_decision_is_seen_where_a_run_differs_from_the_one_that_never_couples() -> None:
    measured = Measured(_detector(2, 1, 0))
    assert coupled(measured, "retransmissions", "shared", "0 ms").mean == pytest.approx(2 / 3)
    assert coupled(measured, "retransmissions", "disjoint", "0 ms").mean == pytest.approx(1 / 3)
    assert coupled(measured, "retransmissions", "shared", "200 ms") == (0.0, 0.0, 3)


def test_the_quick_plan_gives_every_figure_that_rules_plots_and_tables_need(tmp_path: Path) -> None:
    plan = [
        replace(planned, experiment=planned.experiment.with_(duration="10 s"), seeds=2)
        for planned in MFVL.plan(True)
    ]
    measured = measure(MFVL, plan, tmp_path / "runs")
    assert len(judge(MFVL, measured)) == len(MFVL.rules)
    drawn = draw(MFVL, measured, tmp_path / "plots")
    assert len(drawn) == len(MFVL.plots)
    assert all(b"</svg>" in path.read_bytes() for path in drawn)
    for table in MFVL.tables:
        assert len({len(row) for row in table.rows(measured)}) == 1, table.title


def test_a_gain_that_is_not_the_claimed_one_is_said_to_hold_where_it_does() -> None:
    measured = _as_claimed()
    values = {
        one: {name: measured.of(one, name) for name in measured.metrics(one)} for one in measured.cells()
    }
    for rate in ("0.1 Mbit/s", "1 Mbit/s", "2 Mbit/s"):
        values["cbr", "mfvl", rate] = _cell(goodput_bps=1.1e6, loss_rate=0.01)
    for choice, gain in (("one", 1.2), ("other", 1.29)):
        values["sweep", "mfvl", choice] = _cell(goodput_bps=1e6 * gain)
        values["sweep", "lia", choice] = _cell(goodput_bps=1e6)
    (rule,) = (rule for rule in MFVL.rules if rule.claim == "S0-C1")
    assert rule.judge(Measured(values)).why.endswith("it would hold with other (+29 ± 0 %)")
    del values["sweep", "mfvl", "other"]
    assert rule.judge(Measured(values)).why.endswith("nearest to it is +20 ± 0 %, with one")


def test_a_claim_about_windows_is_said_to_hold_where_it_does() -> None:
    measured = _as_claimed()
    values = {
        one: {name: measured.of(one, name) for name in measured.metrics(one)} for one in measured.cells()
    }
    mfvl, lia = ("setup 3", "mfvl"), ("setup 3", "lia")
    for name, smallest in (("short queues", 2.0), ("long queues", 11.0)):
        values["elsewhere", name, *mfvl] = _cell(smallest_cwnd2_from_5s=smallest)
        values["elsewhere", name, *lia] = values[lia]
    (rule,) = (rule for rule in MFVL.rules if rule.claim == "S0-C14")
    assert "elsewhere" not in rule.judge(Measured(values)).why
    assert rule.judge(Measured(values)).why == rule.judge(measured).why
    values[mfvl] = _cell(smallest_cwnd2_from_5s=3.0)
    judged = rule.judge(Measured(values))
    assert judged.verdict is Verdict.PARTLY
    assert "; it would hold with long queues (" in judged.why
    del values["elsewhere", "long queues", *mfvl], values["elsewhere", "long queues", *lia]
    assert rule.judge(Measured(values)).why.endswith("it does not hold with short queues either")
