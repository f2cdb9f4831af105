"""The frame of the reproductions: numbers, rules, and that claims and rules belong together."""

from __future__ import annotations

import math
import re

import pytest

from anabranch.papers import PAPERS
from anabranch.papers.claims import claims
from anabranch.papers.document import begin, end
from anabranch.papers.judging import (
    GAIN,
    RATE,
    above,
    because,
    below,
    combined,
    not_testable,
    rising,
    sized,
)
from anabranch.papers.model import Measured, Paper, Verdict, trace_metrics
from anabranch.stats import Estimate, estimate
from support import REPOSITORY

FAST = ("one", "fast", "1 Mbit/s")
SLOW = ("one", "slow", "1 Mbit/s")


def _measured() -> Measured:
    return Measured(
        {
            FAST: {"goodput": (2.0, 2.2, 2.1), "drops": (0.0, 0.0, 0.0)},
            SLOW: {"goodput": (1.0, 1.1, 1.05), "drops": (0.0, 3.0, 0.0)},
            ("two", "fast"): {"goodput": (5.0,)},
        }
    )


def test_cells_are_found_by_their_first_words() -> None:
    assert _measured().cells("one") == [FAST, SLOW]
    assert _measured().cells("one", "slow") == [SLOW]
    assert len(_measured().cells()) == 3


def test_a_ratio_is_paired_by_seed_so_that_what_the_seed_does_to_both_cancels_out() -> None:
    ratio = _measured().ratio(FAST, SLOW, "goodput")
    assert ratio.mean == pytest.approx(2.0)
    assert ratio.half_width == pytest.approx(0.0, abs=1e-12)


def test_a_ratio_to_a_base_of_zero_has_no_interval() -> None:
    measured = _measured()
    assert measured.ratio(SLOW, FAST, "drops") == (math.inf, None, 3)
    assert measured.ratio(FAST, FAST, "drops") == (1.0, None, 3)
    assert above(measured.ratio(SLOW, FAST, "drops"), 1.0, "drops").verdict is Verdict.NOT_TESTABLE


def test_a_difference_is_paired_by_seed() -> None:
    assert _measured().difference(SLOW, FAST, "drops") == estimate((0.0, 3.0, 0.0))


def test_swapping_two_words_exchanges_the_numbers_of_all_their_cells() -> None:
    swapped = _measured().swapped("fast", "slow")
    assert swapped.of(FAST, "goodput") == _measured().of(SLOW, "goodput")
    assert swapped.of(("two", "slow"), "goodput") == (5.0,)


def test_a_trace_is_the_mean_over_the_seeds_in_the_order_of_time() -> None:
    import numpy as np

    times_s = np.array([0.5, 2.0, 10.0])
    one = trace_metrics("window", times_s, np.array([1.0, 2.0, 3.0]))
    other = trace_metrics("window", times_s, np.array([3.0, 4.0, 5.0]))
    measured = Measured({("cell",): {metric: (one[metric], other[metric]) for metric in reversed(one)}})
    trace = measured.trace(("cell",), "window")
    assert trace.times_s.tolist() == [0.5, 2.0, 10.0]
    assert trace.values.tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (1.2, 0.1, Verdict.REPRODUCED),
        (0.8, 0.1, Verdict.NOT_REPRODUCED),
        (1.05, 0.1, Verdict.NOT_REPRODUCED),
        (1.2, None, Verdict.NOT_TESTABLE),
    ],
)
def test_above_needs_the_whole_interval(mean: float, half_width: float | None, verdict: Verdict) -> None:
    estimate = Estimate(mean, half_width, 3)
    assert above(estimate, 1.0, "it").verdict is verdict
    assert below(Estimate(2.0 - mean, half_width, 3), 1.0, "it").verdict is verdict


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (1.30, 0.04, Verdict.REPRODUCED),
        (1.33, 0.04, Verdict.PARTLY),
        (1.10, 0.04, Verdict.PARTLY),
        (1.02, 0.04, Verdict.NOT_REPRODUCED),
        (0.70, 0.04, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_size_needs_the_whole_interval_within_the_tolerance(
    mean: float, half_width: float, verdict: Verdict
) -> None:
    outcome = sized(Estimate(mean, half_width, 3), 1.30, 0.05, "the gain", GAIN, neutral=1.0)
    assert outcome.verdict is verdict


def test_a_size_without_a_direction_is_never_reproduced_partly() -> None:
    outcome = sized(Estimate(1.10, 0.04, 3), 1.30, 0.05, "the gain", GAIN)
    assert outcome.verdict is Verdict.NOT_REPRODUCED


def test_the_sentence_has_the_numbers_in_their_unit() -> None:
    outcome = above(Estimate(1.2e6, 0.1e6, 3), 1e6, "goodput", RATE)
    assert outcome.why == "goodput is 1.20 ± 0.10 Mbit/s, above 1 Mbit/s"
    assert sized(Estimate(1.02, 0.04, 3), 1.3, 0.05, "gain", GAIN, neutral=1.0).why == (
        "gain is +2.0 ± 4.0 %, which cannot be told from 0 %; the paper has +30 %"
    )
    assert because(outcome, "so it is").why.endswith("; so it is")


def test_a_claim_of_parts_is_partly_reproduced_if_some_of_them_are() -> None:
    holds, fails = above(Estimate(2, 0.1, 3), 1.0, "a"), above(Estimate(0, 0.1, 3), 1.0, "b")
    assert combined(holds, holds).verdict is Verdict.REPRODUCED
    assert combined(holds, fails).verdict is Verdict.PARTLY
    assert combined(fails, fails).verdict is Verdict.NOT_REPRODUCED
    assert combined(holds, not_testable("no data")).verdict is Verdict.NOT_TESTABLE
    assert combined(holds, fails).why == f"{holds.why}; {fails.why}"


def test_a_sweep_rises_if_its_ends_do_and_no_step_falls() -> None:
    up, flat, down = (Estimate(mean, 0.1, 3) for mean in (1.0, 0.0, -0.5))
    assert rising([up, flat], up, "it").verdict is Verdict.REPRODUCED
    assert rising([up, down], up, "it").verdict is Verdict.PARTLY
    assert rising([up, down], flat, "it").verdict is Verdict.NOT_REPRODUCED
    assert rising([down, flat], down, "it", up=False).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_claim_has_exactly_one_rule_and_every_rule_its_claim(paper: Paper) -> None:
    assert sorted(rule.claim for rule in paper.rules) == sorted(claim.id for claim in claims(paper.name))
    assert all(rule.metric and rule.refuted_by for rule in paper.rules)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_a_plan_names_every_cell_once_and_its_seeds_give_an_interval(paper: Paper) -> None:
    for quick in (True, False):
        cells = [planned.cell for planned in paper.plan(quick)]
        assert len(set(cells)) == len(cells)
        assert all(planned.seeds >= 2 for planned in paper.plan(quick))


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_the_document_has_a_part_for_every_paper_with_all_its_claims_and_plots(paper: Paper) -> None:
    text = (REPOSITORY / "docs/papers.md").read_text(encoding="utf-8")
    _, _, rest = text.partition(begin(paper.name))
    part, found, _ = rest.partition(end(paper.name))
    assert found, f"docs/papers.md has no lines {begin(paper.name)} and {end(paper.name)}"
    rows = re.findall(r"^\| (S\d-C\d+) \|.*\*\*", part, flags=re.MULTILINE)
    assert rows == [claim.id for claim in claims(paper.name)]
    links = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", part)
    assert links == [f"papers/{paper.name}-{plot.name}.svg" for plot in paper.plots]
    assert all((REPOSITORY / "docs" / link).is_file() for link in links)
