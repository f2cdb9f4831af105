"""The pages of schedulers and path managers say what the simulator measures today."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import _engine, policy_pages
from anabranch.algorithm_pages import generated_part
from anabranch.policy_pages import CASES, ENERGY, FILE_P95, GOODPUT, KINDS, OUT_OF_ORDER, Figures, Kind
from support import REPOSITORY

SCENARIOS = REPOSITORY / "scenarios"


def _part(kind: Kind, name: str) -> str | None:
    return generated_part((REPOSITORY / "docs" / kind.folder / f"{name}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.folder)
def test_pages_show_what_is_measured(kind: Kind, tmp_path: Path) -> None:
    names = sorted({*kind.names(), kind.baseline})
    measured = policy_pages.measure(kind, names, SCENARIOS, tmp_path)
    for name in kind.names():
        assert _part(kind, name) == policy_pages.part(kind, name, measured), "run: make pages"
    assert _part(kind, "README") == policy_pages.summary(kind, measured), "run: make pages"


def test_lists_tell_the_parameters_of_policies() -> None:
    schedulers = {one["name"]: one for one in _engine.list_schedulers()}
    (beta,) = schedulers["ecf"]["params"]
    assert (beta["name"], beta["default"], beta["max"], schedulers["ecf"]["tag"]) == (
        "beta",
        "0.25",
        "10",
        "A",
    )
    managers = {one["name"]: one for one in _engine.list_path_managers()}
    assert managers["static"]["params"] == []
    assert {one["name"]: one["default"] for one in managers["failover"]["params"]}["hold"] == "1 s"


def test_best_and_worst_are_the_figures_that_differ_most_and_delays_out_of_order_do_not_count() -> None:
    bulk, files = CASES[0], CASES[-2]
    base: Figures = {
        (bulk, GOODPUT): 10.0,
        (bulk, ENERGY): 100.0,
        (bulk, OUT_OF_ORDER): 1.0,
        (files, FILE_P95): 1.0,
    }
    ours: Figures = {
        (bulk, GOODPUT): 15.0,
        (bulk, ENERGY): 50.0,
        (bulk, OUT_OF_ORDER): 90.0,
        (files, FILE_P95): 4.0,
    }
    best, worst = policy_pages.extremes(ours, base)
    assert best == "energy of bulk, 100 kB: 50 against 100 nJ/bit (0.50 times)"
    assert worst == "completion p95 of files of 1 MB: 4.000 against 1.000 s (4.00 times)"
    assert policy_pages.extremes(base, base) == ("nothing by more than 1 %",) * 2
