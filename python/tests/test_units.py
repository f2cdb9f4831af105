"""Figures as people read them."""

from __future__ import annotations

import pytest

from anabranch.stats import Estimate
from anabranch.units import estimate_text, number, scale_of, title_of


@pytest.mark.parametrize(
    ("value", "half_width", "signed", "text"),
    [
        (2.34567, 0.0123, False, "2.346 ± 0.012"),
        (-1.0, 0.5, True, "-1.00 ± 0.50"),
        (3.0, 0.5, True, "+3.00 ± 0.50"),
        (12345.6, 234.0, False, "12346 ± 234"),
        (2.34567, None, False, "2.3457"),
        (5.0, 0.0, False, "5 ± 0"),
        (1162048.4, None, False, "1162048"),
        (99999.9, None, False, "100000"),
        (0.0, 0.0, True, "0 ± 0"),
        (7.375, 3.3e-15, False, "7.375 ± 0"),
        (70.26620, 3e-9, False, "70.266 ± 0"),
        (2.2e-16, 3.3e-15, True, "0 ± 0"),
        (-2.2e-16, 0.0, True, "0 ± 0"),
        (0.0, 3.3e-15, False, "0 ± 0"),
        (3.2e-10, 1.5e-10, True, "+3.2e-10 ± 1.5e-10"),
        (0.0000012, 0.0000003, False, "0.00000120 ± 0.00000030"),
        (1e6, 0.3, False, "1000000.00 ± 0.30"),
    ],
)
def test_a_number_has_the_digits_that_its_interval_warrants(
    value: float, half_width: float | None, signed: bool, text: str
) -> None:
    assert number(value, half_width, signed=signed) == text


def test_metrics_are_shown_in_units_for_people() -> None:
    assert scale_of("goodput_bps").unit == "Mbit/s"
    assert scale_of("mean_srtt_s").unit == "ms"
    assert scale_of("drops").unit == ""
    assert scale_of("energy_huang_j").unit == "J"
    assert scale_of("energy_huang_per_bit_j").unit == "nJ/bit"
    assert title_of("energy_huang_per_bit_j") == "energy huang per bit"
    assert title_of("mean_srtt_s") == "mean srtt"
    assert title_of("loss_rate") == "loss rate"
    assert scale_of("goodput_mbit_per_s") == ("Mbit/s", 1.0)
    assert title_of("goodput_mbit_per_s") == "goodput"
    assert estimate_text("loss_rate", Estimate(0.0123, 0.0012, 20)) == "1.23 ± 0.12"
