"""Axes and grids: what a text means, and what is refused."""

from __future__ import annotations

import pytest

import anabranch as ab
from anabranch.grid import POINTS_MAX, Axis, grid, read_axis


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("k=lia,reno", ["lia", "reno"]),
        (" k = 1 Mbit/s , 2 Mbit/s ", ["1 Mbit/s", "2 Mbit/s"]),
        ("k=1:5:2 Mbit/s", ["1 Mbit/s", "3 Mbit/s", "5 Mbit/s"]),
        ("k=5 ms:20 ms:5 ms", ["5 ms", "10 ms", "15 ms", "20 ms"]),
        ("k=0.1:0.3:0.05", ["0.1", "0.15", "0.2", "0.25", "0.3"]),
        ("k=1:6:2", ["1", "3", "5"]),
        ("k=-5:5:5", ["-5", "0", "5"]),
        ("k=3:3:1", ["3"]),
        ("k=10:30:10,50", ["10", "20", "30", "50"]),
        ("k=uniform(0 s, 1 s),5 s", ["uniform(0 s, 1 s)", "5 s"]),
        ("k=\"a,b\",'c:d'", ['"a,b"', "'c:d'"]),
        ('k={ name = "vegas", alpha = 2 },lia', ['{ name = "vegas", alpha = 2 }', "lia"]),
        ("k=[1, 2],[3]", ["[1, 2]", "[3]"]),
    ],
)
def test_lists_and_ranges_become_values_with_their_units(text: str, values: list[str]) -> None:
    assert read_axis(text) == Axis("k", tuple(values))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k", "KEY=VALUE"),
        ("=1", "KEY=VALUE"),
        ("k=", "k: no values"),
        ("k=1,,2", "k: an empty value"),
        ("k=1,2,1", "k: 1 is there twice"),
        ("k=1:2", "1:2: expected FROM:TO:STEP"),
        ("k=1:2:3:4", "1:2:3:4: expected FROM:TO:STEP"),
        ("k=a:b:c", "'a' is no number"),
        ("k=1:1e3:1", "'1e3' is no number"),
        ("k=1::1", "'' is no number"),
        ("k=5:1:1", "ascends"),
        ("k=1:5:0", "the step is 0"),
        ("k=1:5:-1", "the step is -1"),
        ("k=1 ms:5 s:1 ms", "one unit for all three"),
        ("k=1 ms:5 ms:1", "one unit for all three"),
        ("k=0:999999999999999:0.000000001", f"at most {POINTS_MAX:,}"),
    ],
)
def test_what_is_no_list_and_no_range_is_refused(text: str, words: str) -> None:
    with pytest.raises(ab.GridError) as error:
        read_axis(text)
    assert words in str(error.value)


def test_the_last_key_varies_fastest() -> None:
    points = grid([Axis("a", ("1", "2")), Axis("b", ("x", "y", "z"))])
    assert [(point["a"], point["b"]) for point in points] == [
        ("1", "x"),
        ("1", "y"),
        ("1", "z"),
        ("2", "x"),
        ("2", "y"),
        ("2", "z"),
    ]


def test_a_grid_needs_keys_each_once_and_has_a_largest_size() -> None:
    one = Axis('link."a.b".rate', ("1", "2"))
    with pytest.raises(ab.GridError, match="empty grid"):
        grid([])
    with pytest.raises(ab.GridError, match=r"link\.a\.b\.rate: given twice"):
        grid([one, Axis("link.a.b.rate", ("3",))])
    with pytest.raises(ab.GridError, match="given twice"):
        grid([one], fixed=["link.a.b.rate"])
    many = tuple(map(str, range(200)))
    with pytest.raises(ab.GridError, match=f"40,000 points; expected at most {POINTS_MAX:,}"):
        grid([Axis("a", many), Axis("b", many)])
