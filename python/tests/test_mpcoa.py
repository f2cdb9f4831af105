"""The rules for MPCOA on made-up campaigns: verdicts follow the numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anabranch.papers.model import Cell, Measured, Outcome, Planned, Verdict
from anabranch.papers.mpcoa import MPCOA
from anabranch.papers.mpcoa_cells import (
    CONGESTIONS,
    NONE,
    QUICK_BUFFERS_MIB,
    THROUGHPUT,
    cell_of,
    chosen,
    impacts,
    plan,
    samples,
    then,
)
from anabranch.papers.mpcoa_printed import PATH_MANAGERS, SITES, curves, printed, traditional_mib
from anabranch.papers.mpcoa_sample import Sample, planned
from anabranch.papers.reproduction import measure
from anabranch.tuning.curves import value

SEEDS = 3

Throughput = Callable[[str, str, str, float], float]


def of_the_paper(site: str, manager: str, congestion: str, buffer_mib: float) -> float:
    """Return what the paper's own parabolas say."""
    return value(curves(site)[manager, congestion], min(buffer_mib, 30.0))


def of_figure_6(site: str, manager: str, congestion: str, buffer_mib: float) -> float:
    """Return the same, but with 30 MiB what the text says of figure 6."""
    if site == "srl-hu" and buffer_mib >= 30:
        return float(printed()[site]["at_30_mib"][manager][CONGESTIONS.index(congestion)])
    return of_the_paper(site, manager, congestion, buffer_mib)


def campaign(throughput: Throughput, buffers: tuple[float, ...] = QUICK_BUFFERS_MIB) -> Measured:
    """Make a campaign up: throughputs, impact factors of the paper, and a busy hour that turns P-C's."""
    rng = np.random.default_rng(1)

    def seeds(mean: float) -> dict[str, tuple[float, ...]]:
        return {THROUGHPUT: tuple(mean * (1 + rng.normal(0, 1e-4, SEEDS)))}

    values: dict[Cell, dict[str, tuple[float, ...]]] = {}
    for site in SITES:
        for at, congestion in enumerate(CONGESTIONS):
            for manager in PATH_MANAGERS:
                for buffer in buffers:
                    cell = cell_of(site, manager, congestion, buffer)
                    values[cell] = seeds(throughput(site, manager, congestion, buffer))
            half = throughput(site, "fullmesh", congestion, traditional_mib(site) / 2)
            values["half", site, congestion] = seeds(half)
            values["impact", site, congestion, NONE] = seeds(100.0)
            for name, factors in printed()[site]["impact"].items():
                values["impact", site, congestion, name] = seeds(100 * (1 - factors[at]))
    for congestion in CONGESTIONS:
        for window, factor in (("calm", 0.2), ("busy", -0.2)):
            values["changing", window, congestion, NONE] = seeds(100.0)
            values["changing", window, congestion, "P-C"] = seeds(100 * (1 - factor))
            values["changing", window, congestion, "U-C"] = seeds(70.0)
        values["chosen", "calm", congestion] = seeds(100.0)
        values["chosen", "busy", congestion] = seeds(120.0)
        for silent in (NONE, "P-C", "U-C"):
            values["variant", "no random loss", congestion, silent] = seeds(80.0)
        values["variant-18", "no random loss", congestion] = seeds(90.0)
        values["variant-pcdc", "no random loss", congestion] = seeds(100.0)
    return Measured(values)


def judged(measured: Measured) -> dict[str, Outcome]:
    return {rule.claim: rule.judge(measured) for rule in MPCOA.rules}


def test_the_papers_own_numbers_reproduce_the_paper() -> None:
    found = judged(campaign(of_figure_6))
    for claim in ("S4-C1", "S4-C2", "S4-C9"):
        assert found[claim].verdict is Verdict.REPRODUCED, found[claim]
    assert found["S4-C1"].low == pytest.approx(71.9 / 41.7, abs=2e-3)
    found = judged(campaign(of_the_paper))
    for claim in ("S4-C4", "S4-C6"):
        assert found[claim].verdict is Verdict.REPRODUCED, found[claim]
    # Six buffers give the parabolas exactly, for that is what made the numbers.
    assert found["S4-C3"].verdict is Verdict.REPRODUCED, found["S4-C3"]


def test_by_its_own_model_the_papers_best_pair_of_unis_hin_is_not_the_best_with_30_mib() -> None:
    found = judged(campaign(of_the_paper))["S4-C5"]
    assert found.verdict is Verdict.PARTLY
    assert re.search(r"unis-hin: throughput of pcdc with cubic over the best other pair, .* is -5", found.why)
    assert "srl-hu: throughput of pcdc with hybla over the best other pair, pcdc with olia is +2" in found.why


def test_exchanging_the_path_managers_turns_the_claims_about_them() -> None:
    measured = campaign(of_figure_6)
    swapped = judged(measured.swapped("fullmesh", "pcdc"))
    assert swapped["S4-C1"].verdict is Verdict.NOT_REPRODUCED
    assert swapped["S4-C2"].verdict is Verdict.NOT_REPRODUCED
    assert swapped["S4-C7"].verdict is not Verdict.REPRODUCED


def test_exchanging_two_congestion_controls_turns_the_claim_about_the_best_one() -> None:
    found = judged(campaign(of_figure_6).swapped("hybla", "vegas"))["S4-C5"]
    assert (
        "srl-hu: throughput of pcdc with hybla over the best other pair, pcdc with vegas is -5" in found.why
    )


def test_exchanging_what_was_chosen_when_turns_the_claim_about_time() -> None:
    found = judged(campaign(of_figure_6).swapped("calm", "busy"))["S4-C9"]
    assert found.verdict is Verdict.PARTLY, "the factors still turn, but the newer choice is the worse one"


def test_a_throughput_that_saturates_does_not_decline() -> None:
    def saturating(site: str, manager: str, congestion: str, buffer_mib: float) -> float:
        return 50 * (1 - float(np.exp(-buffer_mib / 4))) + (10 if manager == "pcdc" else 0)

    found = judged(campaign(saturating))
    assert found["S4-C6"].verdict is Verdict.NOT_REPRODUCED
    assert found["S4-C8"].verdict is not Verdict.NOT_REPRODUCED


def test_equal_runs_of_both_path_managers_are_no_other_pair() -> None:
    values = campaign(of_the_paper)
    same = {
        cell: {
            THROUGHPUT: values.of(tuple("fullmesh" if word == "pcdc" else word for word in cell), THROUGHPUT)
        }
        for cell in values.cells()
        if cell[:2] == ("buffer", "uit-haw")
    }
    found = judged(values.joined(Measured(same)))["S4-C5"]
    assert (
        "uit-haw: throughput of fullmesh with scalable over the best other pair, fullmesh with hybla"
        in found.why
    )


def test_the_second_stage_silences_what_the_first_one_found_to_harm() -> None:
    measured = campaign(of_the_paper)
    assert "P-C" not in [
        name for name, one in impacts(measured, ("impact", "srl-hu", "hybla")).items() if one.mean > 0
    ]
    by_cell: dict[Cell, Planned] = {planned.cell: planned for planned in then(True, measured)}
    planned = by_cell[cell_of("srl-hu", "pcdc", "hybla", 12.0)]
    assert planned.experiment.scenario.canonical.count('"backup":true') == 4
    assert len([cell for cell in by_cell if cell[0] == "buffer"]) == 3 * 6 * len(QUICK_BUFFERS_MIB)


def test_the_whole_campaign_is_that_of_the_paper() -> None:
    cells = [planned for planned in plan(False) if planned.cell[0] == "buffer"]
    assert 2 * sum(planned.seeds for planned in cells) == 19440
    assert all(planned.experiment.scenario.duration_s == 30 for planned in cells)


def test_plots_and_tables_are_made_of_any_campaign() -> None:
    measured = campaign(of_figure_6)
    for plot in MPCOA.plots:
        assert plot.draw(measured).axes
    for table in MPCOA.tables:
        heads, *rows = table.rows(measured)
        assert rows
        assert all(len(row) == len(heads) for row in rows)
    (gains,) = [table.rows(measured) for table in MPCOA.tables if "other assumptions" in table.title]
    assert gains[-1][:2] == ["SRL-HU", "no random loss"]
    assert float(gains[-1][-1].split()[0]) == pytest.approx(25.0, abs=0.1)
    assert samples(measured, "srl-hu").mbit_per_s.shape == (2, 6, len(QUICK_BUFFERS_MIB), SEEDS)


def test_a_claim_that_does_not_hold_comes_with_what_would_become_of_it_elsewhere() -> None:
    swapped = judged(campaign(of_figure_6).swapped("fullmesh", "pcdc"))
    assert "most often with no random loss, for 6 of 6" in swapped["S4-C2"].why
    assert re.search(r"another assumption \(no random loss\) \+2(4\.9|5\.0)", swapped["S4-C1"].why)
    found = judged(campaign(lambda site, manager, congestion, buffer_mib: buffer_mib))
    assert "from 18 to 30 MiB most often with no random loss, 6 of 6 with full mesh" in found["S4-C6"].why
    assert re.search(r"best under other assumptions: pcdc with \w+ \(no random loss\)", found["S4-C5"].why)


@pytest.mark.parametrize("congestion", ["cubic", "vegas"])
def test_impact_factors_of_uit_haw_are_the_shares_of_the_uplinks(congestion: str, tmp_path: Path) -> None:
    prefix = ("impact", "uit-haw", congestion)
    cells = [replace(one, seeds=2) for one in plan(True) if one.cell[:3] == prefix]
    factors = impacts(measure(MPCOA, cells, tmp_path), prefix)
    # Each uplink is full from the first second on, whatever the other one does, but for the slow start, which
    # takes one of 30 s at most.
    assert factors["P-D"].mean == pytest.approx(512 / 896, abs=0.034)
    assert factors["T-D"].mean == pytest.approx(384 / 896, abs=0.034)
    assert chosen(factors) == ("P-D", "T-D")


def test_the_sample_is_a_twentieth_of_the_campaign() -> None:
    tasks = planned()
    assert 20 * len(tasks) == 19_440
    assert {task.duration_s for task in tasks} == {30.0}
    assert len({(task.experiment.scenario.key, task.seed) for task in tasks}) == 783


def test_the_sample_says_what_it_has_taken() -> None:
    assert str(Sample(972, 783, 23_490.0, 30.0, 57.0, 2)) == (
        "MPCOA, 1/20 of the campaign: 972 runs, 783 of them different, in 30.0 s on 2 cores (57.0 s of "
        "processor time; goal on two: 60 s), 26.1 runs per second, 783 times faster than real time"
    )
