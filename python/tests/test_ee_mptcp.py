"""EE-MPTCP: its rules on made-up figures, and its figures of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.papers.ee_mptcp import EE_MPTCP, SIMULATION_S, TESTBED_S, extract, plan
from anabranch.papers.ee_mptcp_rules import arrivals
from anabranch.papers.model import Cell, Measured, Verdict
from anabranch.papers.reproduction import judge

#: What the paper says of each scheduler, as a factor: times and energies with 30 long flows.
_LONG = {"ee-mptcp": 0.201, "roundrobin": 1.0, "emptcp": 0.9, "dmptcp": 0.5}
_OTHER = {"ee-mptcp": 1.0, "dmptcp": 1.05, "roundrobin": 1.1, "emptcp": 1.2}
_NOISE = (0.99, 1.0, 1.01)


def _figures(cell: Cell) -> dict[str, tuple[float, ...]]:
    """Figures as the paper has them."""
    kind, scheduler, word = cell
    if kind.startswith("testbed"):
        is_emtcp = scheduler == "emtcp"
        values = {
            "completion_s": 4.98 if is_emtcp else 3.91,
            "wlan_share": 0.6028 if is_emtcp else 0.587,
            "wlan_bps": 1.36e6 if is_emtcp else 1.75e6,
            "energy_j": 2.0 if is_emtcp else 1.5,
        }
        noise = (0.999, 1.0, 1.001)
    else:
        is_headline = (kind, word) == ("long", "30 flows")
        factor = (_LONG if is_headline else _OTHER).get(scheduler, 2.0)
        if kind == "wlans":
            factor /= int(word[0])
        metrics = ("completion_s", "completion_p50_s", "completion_p95_s", "energy_j", "energy_whole_j")
        values = dict.fromkeys((*metrics, "energy_up_j", "energy_active_j", "energy_tail_j"), factor)
        values["tail"] = 3.0 if scheduler == "roundrobin" else 1.1
        noise = _NOISE
    return {metric: tuple(value * one for one in noise) for metric, value in values.items()}


def _as_the_paper_says() -> Measured:
    return Measured({planned.cell: _figures(planned.cell) for planned in plan(quick=False)})


def _verdicts(measured: Measured) -> dict[str, Verdict]:
    return {one.claim.id: one.outcome.verdict for one in judge(EE_MPTCP, measured)}


def test_every_claim_but_the_example_is_reproduced_by_the_papers_own_figures() -> None:
    verdicts = _verdicts(_as_the_paper_says())
    assert verdicts.pop("S2-C11") is Verdict.PARTLY
    assert set(verdicts.values()) == {Verdict.REPRODUCED}, verdicts


@pytest.mark.parametrize(
    ("one", "other", "flipped"),
    [
        ("ee-mptcp", "roundrobin", {"S2-C1", "S2-C2", "S2-C7", "S2-C9", "S2-C10"}),
        ("emtcp", "minrtt", {"S2-C3", "S2-C4", "S2-C5", "S2-C6"}),
        ("emptcp", "roundrobin", {"S2-C8"}),
    ],
)
def test_verdicts_flip_when_two_schedulers_change_their_figures(
    one: str, other: str, flipped: set[str]
) -> None:
    verdicts = _verdicts(_as_the_paper_says().swapped(one, other))
    assert {claim for claim in flipped if verdicts[claim] is Verdict.REPRODUCED} == set()


def test_a_reduction_of_another_size_is_partly_reproduced_and_names_the_assumption_with_most() -> None:
    measured = Measured(
        {
            planned.cell: _figures(planned.cell)
            | (
                {"completion_s": (0.7, 0.71, 0.72)}
                if planned.cell == ("long", "ee-mptcp", "30 flows")
                else {}
            )
            for planned in plan(quick=False)
        }
    )
    outcome = next(one.outcome for one in judge(EE_MPTCP, measured) if one.claim.id == "S2-C1")
    assert outcome.verdict is Verdict.PARTLY
    assert "other assumptions" in outcome.why


def test_plots_and_tables_take_the_quick_plan_too() -> None:
    for quick in (False, True):
        measured = Measured({planned.cell: _figures(planned.cell) for planned in plan(quick)})
        assert all(len(table.rows(measured)) >= 2 for table in EE_MPTCP.tables)
        assert all(plot.draw(measured).axes for plot in EE_MPTCP.plots)


def test_what_has_not_ended_counts_as_the_duration_of_the_scenario() -> None:
    durations = {planned.cell[0]: planned.experiment.scenario.duration_s for planned in plan(quick=True)}
    assert durations.pop("testbed") == TESTBED_S
    assert set(durations.values()) == {SIMULATION_S}


def test_figure_1_is_in_order_by_rounds_and_not_after_half_a_round_trip() -> None:
    assert arrivals(halved=False, lost=None) == list(range(1, 17))
    assert arrivals(halved=False, lost=1)[:5] == [2, 3, 4, 5, 1]
    # 1 to 5 after 15 ms, 12 to 16 after 30, 6 to 11 after 45.
    assert arrivals(halved=True, lost=None) == [*range(1, 6), *range(12, 17), *range(6, 12)]


def test_the_papers_energy_is_that_of_the_linear_model_and_dearer_with_uplink_slopes_and_tails(
    tmp_path: Path,
) -> None:
    cells = {("short", "roundrobin", "1 flows"), ("testbed", "minrtt", "100 kB")}
    for planned in plan(quick=False):
        if planned.cell in cells:
            run = planned.experiment.run(seed=1, out=tmp_path)
            found = extract(planned.cell, run)
            linear = run.summary["run"]["energy_linear_j"]
            assert found["energy_j"] == pytest.approx(linear, rel=1e-9)
            assert found["energy_up_j"] > found["energy_j"]
            # A tail of LTE alone takes 12.3 J, one of 3G 7.0 J.
            assert found["energy_tail_j"] > found["energy_active_j"] + 7.0
            assert found["completion_s"] < 60.0
