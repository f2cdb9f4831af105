"""MPCOA's arithmetic: what it prints follows from what it prints (its Tables 2 to 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anabranch.papers.mpcoa_printed import (
    PATH_MANAGERS,
    SITES,
    SMALLEST_MIB,
    coefficients,
    curves,
    printed,
    traditional_mib,
)
from anabranch.tuning.curves import Parabola, Saturating, smallest_within, value
from anabranch.tuning.impact import impact_factor, used
from anabranch.tuning.optimum import choose, global_maximum_first, smallest_buffer_first
from anabranch.tuning.regression import regress

LARGEST_MIB = printed()["largest_buffer_mib"]
DELTA = printed()["delta"]
CONGESTIONS = printed()["congestions"]


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("manager", PATH_MANAGERS)
def test_table_4_is_equations_13_to_15_with_offsets_counted_twice(site: str, manager: str) -> None:
    found = coefficients(site, manager).parabolas()
    # Table 4 is rounded to two digits, that of UiT-HAW to three.
    for one, congestion in zip(found, CONGESTIONS, strict=True):
        table = curves(site)[manager, congestion]
        assert (one.a, one.m, one.q) == pytest.approx((table.a, table.m, table.q), abs=0.0051)


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("manager", PATH_MANAGERS)
def test_the_printed_coefficients_are_the_least_squares_of_minimum_norm(site: str, manager: str) -> None:
    exact = coefficients(site, manager)
    # Seven rounded numbers: the minimum norm makes one the sum of the six others.
    digit = 0.001 if site == "uit-haw" else 0.01
    assert exact.c0 == pytest.approx(sum(exact.offsets), abs=3.5 * digit)
    assert exact.c1 == pytest.approx(sum(exact.slopes), abs=3.5 * digit)
    buffers = np.arange(1, 61) / 2
    throughputs = np.stack([one.at(buffers) for one in exact.parabolas()])
    found = regress(buffers, throughputs)
    assert found.c0 == pytest.approx(exact.c0, abs=3.5 * digit)
    assert found.c1 == pytest.approx(exact.c1, abs=3.5 * digit)
    assert found.q == pytest.approx(exact.q, abs=1e-9)
    assert found.offsets == pytest.approx(exact.offsets, abs=3.5 * digit)
    assert found.slopes == pytest.approx(exact.slopes, abs=3.5 * digit)


def test_the_maximum_and_the_buffer_of_srl_hu_within_the_rounding_of_its_coefficients() -> None:
    curve = curves("srl-hu")["pcdc", "hybla"]
    peak = curve.peak(SMALLEST_MIB, LARGEST_MIB)
    assert peak.buffer_mib == pytest.approx(18.118, abs=5e-4)
    assert peak.mbit_per_s == pytest.approx(80.292, abs=5e-4)
    assert curve.reaches(74.65, SMALLEST_MIB, LARGEST_MIB) == pytest.approx(12.357, abs=5e-4)


def test_the_maximum_and_the_buffer_of_unis_hin_within_the_rounding_of_its_coefficients() -> None:
    curve = curves("unis-hin")["pcdc", "cubic"]
    peak = curve.peak(SMALLEST_MIB, LARGEST_MIB)
    assert peak.buffer_mib == pytest.approx(17.833, abs=5e-4)
    assert peak.mbit_per_s == pytest.approx(286.688, abs=5e-4)
    assert curve.reaches(266.66, SMALLEST_MIB, LARGEST_MIB) == pytest.approx(9.221, abs=5e-4)


def test_the_maximum_of_uit_haw_is_at_the_largest_buffer_and_the_smallest_one_suffices() -> None:
    curve = curves("uit-haw")["fullmesh", "scalable"]
    assert curve.peak(SMALLEST_MIB, LARGEST_MIB) == pytest.approx((30.0, 0.867))
    assert smallest_within(curve, DELTA, SMALLEST_MIB, LARGEST_MIB) == SMALLEST_MIB
    assert value(curve, SMALLEST_MIB) == pytest.approx(0.808)


@pytest.mark.parametrize("site", SITES)
def test_the_global_maximum_first_gives_table_5(site: str) -> None:
    found = global_maximum_first(dict(curves(site)), DELTA, SMALLEST_MIB, LARGEST_MIB)
    paper = printed()[site]["choice"]
    assert (found.path_manager, found.congestion) == (paper["path_manager"], paper["congestion"])
    # Coefficients of two digits leave 0.01 MiB and, of throughputs, a part in 4000.
    assert found.buffer_mib == pytest.approx(paper["buffer_mib"], abs=0.01)
    assert found.mbit_per_s == pytest.approx(paper["mbit_per_s"], rel=2.5e-3 if site == "uit-haw" else 5e-4)
    assert found.largest_mbit_per_s == pytest.approx(printed()[site]["tp_max"], rel=4e-3)


def test_equations_10_and_11_as_printed_give_other_answers_than_table_5() -> None:
    found = smallest_buffer_first(dict(curves("srl-hu")), DELTA, SMALLEST_MIB, LARGEST_MIB)
    assert (found.path_manager, found.congestion) == ("fullmesh", "reno")
    assert found.buffer_mib == pytest.approx(11.00, abs=0.01)
    assert found.mbit_per_s == pytest.approx(36.8, abs=0.05)
    found = smallest_buffer_first(dict(curves("unis-hin")), DELTA, SMALLEST_MIB, LARGEST_MIB)
    assert (found.path_manager, found.congestion) == ("pcdc", "vegas")
    assert found.buffer_mib == pytest.approx(8.75, abs=0.01)


@pytest.mark.parametrize(
    ("site", "of_table_5", "as_printed"),
    [("srl-hu", 328.94, 213.52), ("unis-hin", 53.99, 18.70), ("uit-haw", 1.2177, 0.7904)],
)
def test_both_readings_of_the_traditional_buffer(site: str, of_table_5: float, as_printed: float) -> None:
    assert traditional_mib(site) == pytest.approx(of_table_5, abs=0.006)
    assert traditional_mib(site, as_printed=True) == pytest.approx(as_printed, abs=0.006)
    assert traditional_mib(site) == pytest.approx(printed()[site]["traditional_mib"], abs=0.07)


@pytest.mark.parametrize("site", SITES)
def test_positive_impact_factors_give_the_subsets_of_table_3(site: str) -> None:
    for at, congestion in enumerate(CONGESTIONS):
        factors = {name: of[at] for name, of in printed()[site]["impact"].items()}
        assert list(used(factors)) == printed()[site]["subsets"][congestion]


def test_a_subflow_without_which_less_arrives_has_a_positive_impact_factor() -> None:
    assert impact_factor([100.0, 100.0], [80.0, 80.0]).mean == pytest.approx(0.2)
    assert impact_factor([100.0], [150.0]).mean == pytest.approx(-0.5)


def test_rounding_makes_no_subflow_useful() -> None:
    factor = impact_factor([0.1 + 0.2, 0.7], [0.3, 0.8 - 0.1])
    assert (factor.mean, factor.half_width) == (0.0, 0.0)
    assert used({"wifi": 0.5, "lte": factor.mean}) == ("wifi",)


def test_a_factor_of_zero_is_not_used_and_the_largest_stands_in_for_none() -> None:
    assert used({"a": 0.0, "b": 0.1}) == ("b",)
    assert used({"a": -0.3, "b": -0.1}) == ("b",)


def test_a_parabola_that_opens_upwards_reaches_a_throughput_on_its_right() -> None:
    curve = Parabola(2.0, -2.0, 1.0)
    assert curve.peak(0.5, 4.0) == (4.0, 10.0)
    assert curve.reaches(5.0, 0.5, 4.0) == pytest.approx(3.0)


def test_a_saturating_curve_reaches_a_share_of_its_maximum_in_closed_form() -> None:
    curve = Saturating(50.0, 2.0)
    largest = 50 * (1 - math.exp(-15))
    assert curve.peak(1.0, 30.0) == pytest.approx((30.0, largest))
    wanted = -2 * math.log(1 - 0.93 * largest / 50)
    assert smallest_within(curve, 0.07, 1.0, 30.0) == pytest.approx(wanted)


def test_nothing_is_given_up_with_delta_zero() -> None:
    for curve in (Parabola(1.0, 2.0, -0.1), Saturating(50.0, 2.0)):
        found = choose("fullmesh", "lia", curve, 0.0, 0.5, 30.0)
        assert found.mbit_per_s == pytest.approx(found.largest_mbit_per_s)
        assert found.buffer_mib == pytest.approx(found.largest_at_mib, rel=1e-6)
