"""MPTCP-IoT: the buffer that is needed, and that the verdicts follow the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from anabranch.papers.claims import claims
from anabranch.papers.model import Cell, Measured, Outcome, Plot, Verdict
from anabranch.papers.mptcp_iot import MPTCP_IOT
from anabranch.papers.mptcp_iot_needs import crossover, need, needs, quotient
from anabranch.papers.mptcp_iot_shown import PLOTS, TABLES

BUFFERS = (50, 100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1400, 2000, 16000)
DELAYS = ("20 ms", "60 ms", "200 ms")
SEEDS = 3


def rising(needed_kb: float, most: float) -> Callable[[float], float]:
    """Return a goodput that grows with the buffer until it is full with what is needed."""
    return lambda size_kb: most * min(1.0, 0.95 * size_kb / needed_kb)


def cells(
    begin: Cell, end: Cell, goodput: Callable[[float], float]
) -> dict[Cell, dict[str, tuple[float, ...]]]:
    """Return the cells of all sizes; seeds differ by 0.1 %."""
    return {
        (*begin, *end, f"{size} kB"): {
            "goodput_bps": tuple(goodput(size) * (1 + seed / 1000) for seed in range(SEEDS)),
            "seconds": (4.0,) * SEEDS,
            "receive_memory": (1e5,) * SEEDS,
            "send_memory": (1e5,) * SEEDS,
        }
        for size in BUFFERS
    }


def as_claimed() -> Measured:
    """Return numbers as the paper has them."""
    values: dict[Cell, Mapping[str, tuple[float, ...]]] = {}
    for kind, of_mptcp in (("receive", 800), ("send", 1300)):
        for delay in DELAYS:
            values |= cells((kind, "mptcp"), (delay,), rising(of_mptcp, 24e6))
            values |= cells((kind, "mptcp-iot"), (delay,), rising(of_mptcp / 2.2, 24e6))
        values |= cells((kind, "tcp-3g"), ("60 ms",), rising(600, 5e6))
        values |= cells((kind, "mptcp-uncoupled"), ("60 ms",), rising(of_mptcp, 24e6))
    # With 600 kB MPTCP has what TCP over Wi-Fi has whatever its buffer.
    level = rising(800, 24e6)(600)
    values |= cells(("receive", "tcp-wifi"), ("60 ms",), lambda _: level)
    values |= cells(("send", "tcp-wifi"), ("60 ms",), rising(600, 19e6))
    for variant, needed in (("none", 200), ("penalisation", 700), ("retransmission", 700)):
        values |= cells(("receive", f"mptcp-{variant}"), ("60 ms",), rising(needed, 24e6))
    for variant, needed in (("mptcp", 900), ("mptcp-iot", 400), ("tcp-wifi", 100), ("tcp-3g", 100)):
        values |= cells(("real", variant), (), rising(needed, 38e6))
    for variant in ("mptcp", "mptcp-iot"):
        for way in ("down", "up"):
            values |= cells(("direction", variant), (way,), rising(800, 24e6))
    return Measured(values)


def judged(measured: Measured) -> dict[str, Outcome]:
    """Judge all claims."""
    return {rule.claim: rule.judge(measured) for rule in MPTCP_IOT.rules}


def test_the_need_is_where_the_goodput_crosses_95_percent_of_that_without_a_limit() -> None:
    measured = as_claimed()
    assert needs(measured, "receive", "mptcp", "60 ms") == pytest.approx([800e3] * SEEDS)
    # The line from 300 kB (0.7838 of the most) to 400 kB (all of it) is at 0.95 with 376.9 kB.
    of_both = (("receive", variant, "60 ms") for variant in ("mptcp", "mptcp-iot"))
    assert quotient(measured, *of_both).mean == pytest.approx(800 / 376.9, rel=1e-3)


def test_of_a_goodput_that_falls_with_large_buffers_the_first_size_that_is_enough_counts() -> None:
    measured = Measured(cells(("receive", "mptcp"), (), lambda size: 10.0 - size / 16000))
    assert need(measured, "receive", "mptcp").mean == 50e3


def test_the_crossover_is_that_of_two_straight_lines_and_nothing_for_one_that_always_leads() -> None:
    measured = as_claimed()
    ours, wifi = ("receive", "mptcp", "60 ms"), ("receive", "tcp-wifi", "60 ms")
    assert crossover(measured, ours, wifi).mean == pytest.approx(600e3)
    assert crossover(measured, ours, ours).mean == 0.0


def test_with_the_numbers_of_the_paper_all_is_reproduced_but_the_memory_of_both_sockets() -> None:
    outcomes = judged(as_claimed())
    verdicts = {claim: outcome.verdict for claim, outcome in outcomes.items()}
    assert verdicts.pop("S3-C8") is Verdict.PARTLY
    assert "only if the limit of one of the two sockets" in outcomes["S3-C8"].why
    assert set(verdicts.values()) == {Verdict.REPRODUCED}, outcomes


@pytest.mark.parametrize(
    ("one", "other", "flipped"),
    [
        ("mptcp", "mptcp-iot", ("S3-C1", "S3-C3", "S3-C5", "S3-C6", "S3-C8")),
        ("mptcp", "tcp-wifi", ("S3-C2",)),
        ("mptcp", "mptcp-none", ("S3-C11",)),
    ],
)
def test_swapping_two_variants_changes_the_verdicts_about_them(
    one: str, other: str, flipped: tuple[str, ...]
) -> None:
    before, after = judged(as_claimed()), judged(_swapped(one, other))
    for claim in flipped:
        assert after[claim].verdict is not before[claim].verdict, after[claim].why


def _swapped(one: str, other: str) -> Measured:
    """Exchange two variants at the delay at which both are there."""
    measured = as_claimed()
    swapped = measured.swapped(one, other)
    found = {
        cell: {metric: measured.of(cell, metric) for metric in measured.metrics(cell)}
        for cell in measured.cells()
    }
    for cell in found:
        if cell in swapped.cells():
            found[cell] = {metric: swapped.of(cell, metric) for metric in swapped.metrics(cell)}
    return Measured(found)


def test_a_need_half_as_large_is_the_paper_s_only_in_the_kernel_s_bytes() -> None:
    values = {
        (cell[0], cell[1], cell[2], f"{float(cell[3].removesuffix(' kB')) / 2:g} kB")
        if len(cell) == 4 and cell[3] != "16000 kB"
        else cell: {metric: as_claimed().of(cell, metric) for metric in as_claimed().metrics(cell)}
        for cell in as_claimed().cells("receive")
        if cell[1] in ("mptcp", "tcp-wifi")
    }
    outcome = next(rule for rule in MPTCP_IOT.rules if rule.claim == "S3-C1").judge(Measured(values))
    assert outcome.verdict is Verdict.PARTLY
    assert "in the kernel's bytes" in outcome.why


def test_every_claim_of_the_file_has_a_rule() -> None:
    assert len(claims("mptcp-iot")) == len(MPTCP_IOT.rules) == 11


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_every_plot_has_all_its_lines(plot: Plot) -> None:
    for axes in plot.draw(as_claimed()).axes:
        assert len(axes.get_legend_handles_labels()[1]) >= 3


def test_tables_of_what_was_not_run_have_their_heads_alone() -> None:
    for table in TABLES:
        rows = table.rows(as_claimed())
        assert all(len(row) == len(rows[0]) for row in rows)
