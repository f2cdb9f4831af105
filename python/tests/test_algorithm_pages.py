"""The pages of the congestion controls say what the simulator measures today."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch import Call
from anabranch.algorithm_pages import BEGIN, END, document, generated_part, measured, names
from anabranch.equilibrium import RELATIONS, Relation, checked
from support import REPOSITORY
from test_congestion import Twin

PAGES = REPOSITORY / "docs/algorithms"
SCENARIOS = REPOSITORY / "scenarios"


class Sixty(Twin):
    """Reno that keeps 60 % of its window at a loss."""

    name = "sixty"

    def loss(self, call: Call) -> int:
        """Mutated: 0.6 for 0.5."""
        return max(call.cwnd * 6 // 10, 2)

    def recovery_exit(self, call: Call) -> None:
        """Keep nothing."""


#: Algorithms with one constant changed, which their relation must find out.
MUTANTS = {
    "reno": "sixty",
    "lia": "reno",
}


@pytest.mark.parametrize("name", names())
def test_a_page_shows_what_is_measured(name: str) -> None:
    part = generated_part((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert part is not None, "run: make pages"
    assert part == measured(name, SCENARIOS), "run: make pages"
    assert (PAGES.parent / f"figures/algorithms/{name}.svg").is_file()


@pytest.mark.parametrize("name", RELATIONS)
def test_an_equilibrium_is_where_the_closed_form_has_it_or_the_page_says_why_not(name: str) -> None:
    relation = RELATIONS[name]
    found = checked(name, relation, SCENARIOS)
    assert found.holds == (not relation.finding), found


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutated_constant_is_found_out(name: str) -> None:
    assert not RELATIONS[name].finding
    found = checked(MUTANTS[name], RELATIONS[name], SCENARIOS)
    assert not found.holds, found


def test_a_relation_that_does_not_hold_is_called_so() -> None:
    relation: Relation = replace(RELATIONS["reno"], expected=80.0)
    assert not checked("reno", relation, SCENARIOS, seeds=1).holds


def test_what_a_person_has_written_stays() -> None:
    text = "# A\n\nWords.\n"
    once = document(text, "a", "one")
    assert once == f"# A\n\nWords.\n\n## Measured\n\n{BEGIN}\n\none\n\n{END}\n"
    assert document(once, "a", "two") == once.replace("one", "two")
    assert document(f"{once}\nMore.\n", "a", "two").endswith(f"{END}\nMore.\n")
    assert generated_part(once) == "one"
    with pytest.raises(ValueError, match="expected the lines"):
        document(f"{text}{BEGIN}\n", "a", "one")
