"""Intervals against printed tables and hand calculation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.stats import ROUNDING, Estimate, estimate, ratio, t_cdf, t_quantile

#: 0.975 quantiles of Student's t as printed tables have them.
TABLE = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    9: 2.262,
    10: 2.228,
    19: 2.093,
    29: 2.045,
    30: 2.042,
    60: 2.000,
    120: 1.980,
}


@pytest.mark.parametrize(("degrees", "quantile"), TABLE.items())
def test_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(quantile, abs=5e-4)


def test_many_degrees_approach_the_normal_distribution() -> None:
    assert t_quantile(0.975, 100_000) == pytest.approx(1.959964, abs=1e-4)


@given(st.floats(0, 50), st.integers(1, 60))
def test_the_distribution_function_is_one(value: float, degrees: int) -> None:
    rounding = 1e-14
    assert 0.5 <= t_cdf(value, degrees) <= 1.0 + rounding
    assert t_cdf(value, degrees) <= t_cdf(value + 0.5, degrees) + rounding
    assert t_cdf(value, 1) == pytest.approx(0.5 + math.atan(value) / math.pi)


def test_an_estimate_by_hand() -> None:
    # Mean 5; squared deviations 9 + 1 + 1 + 9 = 20; variance 20/3; half width 3.182 * sqrt(20/3/4).
    mean, half_width, size = estimate([2.0, 4.0, 6.0, 8.0])
    assert (mean, size) == (5.0, 4)
    assert half_width == pytest.approx(3.18245 * math.sqrt(20 / 12), rel=1e-5)


def test_one_value_has_no_interval() -> None:
    assert estimate([3.0]) == (3.0, None, 1)


def test_values_that_are_equal_have_their_value_as_mean_and_an_interval_of_zero() -> None:
    value = 3.6970816
    assert estimate([value] * 5) == Estimate(value, 0.0, 5)


def test_rounding_is_no_spread() -> None:
    thirds = [1 / 3, 1 - 2 / 3, 0.1 + 0.7 / 3]
    assert len(set(thirds)) > 1
    assert estimate(thirds) == Estimate(thirds[0], 0.0, 3)
    pairs = [(0.1 + 0.2, 0.3), (0.7, 0.8 - 0.1), (1.1, 1.1)]
    assert ratio(pairs) == Estimate(1.0, 0.0, 3)


def test_differences_that_are_the_rounding_of_their_numbers_are_none() -> None:
    differences = [0.1 + 0.2 - 0.3, 0.0, 0.8 - 0.1 - 0.7]
    assert any(differences)
    assert estimate(differences, of=0.7) == Estimate(0.0, 0.0, 3)
    assert estimate([1e-9, 3e-9], of=0.7).mean == pytest.approx(2e-9)


@given(st.lists(st.floats(0.5, 1e12), min_size=2, max_size=8))
def test_a_real_spread_keeps_its_interval(values: list[float]) -> None:
    half_width = estimate(values).half_width
    assert half_width is not None
    assert (half_width > 0) == (max(values) - min(values) > ROUNDING * max(values))
