"""The pages of the congestion controls say what the simulator measures today."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from anabranch import Call
from anabranch.algorithm_pages import BEGIN, END, document, generated_part, measured, names
from anabranch.equilibrium import RELATIONS, checked
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
    "cubic": '{ name = "cubic", beta = 0.8 }',
    "scalable": '{ name = "scalable", ai_cnt = "120 packets" }',
    "hybla": '{ name = "hybla", rtt0 = "29 ms" }',
    "vegas": '{ name = "vegas", alpha = "4 packets", beta = "6 packets" }',
    "mvegas": '{ name = "mvegas", alpha = "6 packets", beta = "8 packets" }',
    "fast": '{ name = "fast", alpha = "23 packets" }',
    "mfast": '{ name = "mfast", alpha = "112 packets" }',
    "lia": "reno",
    "olia": "semicoupled",
    "balia": "semicoupled",
    "coupled": "semicoupled",
    "semicoupled": '{ name = "semicoupled", a = 0.75 }',
    "ewtcp": '{ name = "ewtcp", a = "fair" }',
    "ecmtcp": "emreno",
    "emreno": "lia",
    "mpfast": '{ name = "mpfast", alpha_total = "23 packets" }',
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
    found = checked(relation.congestion(name), relation, SCENARIOS)
    assert found.holds == (not relation.finding), found


def test_every_relation_that_holds_has_a_mutant() -> None:
    assert {name for name, relation in RELATIONS.items() if not relation.finding} == set(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutated_constant_is_found_out(name: str) -> None:
    assert not RELATIONS[name].finding
    found = checked(MUTANTS[name], RELATIONS[name], SCENARIOS)
    assert not found.holds, found


def test_independent_losses_make_cubics_window_larger() -> None:
    """Integrate W(t) = C (t - K)^3 + W_max (RFC 9438) from loss to loss, exponential gaps apart."""
    loss, rtt_s, scale, beta = 1e-4, 0.2, 0.4, 0.7
    closed_form = 1.054 * (rtt_s / loss) ** 0.75
    draw = random.Random(1)

    def mean_window(packets: Callable[[], float], losses: int) -> float:
        origin = previous = 4 / (3 + beta) * closed_form
        least = beta * origin
        sent = elapsed_s = 0.0
        for _ in range(losses):
            rise_s = ((origin - least) / scale) ** (1 / 3)
            wanted = packets()
            low, high = 0.0, 1000.0
            for _ in range(60):
                middle = (low + high) / 2
                done = (scale / 4 * ((middle - rise_s) ** 4 - rise_s**4) + origin * middle) / rtt_s
                low, high = (middle, high) if done < wanted else (low, middle)
            window = scale * (high - rise_s) ** 3 + origin
            falls = window < previous * (1 - 1e-9)  # equal windows of periodic losses differ by rounding
            origin = window * (1 + beta) / 2 if falls else window  # fast convergence
            previous, least = origin, window * beta
            sent += wanted
            elapsed_s += high
        return sent * rtt_s / elapsed_s

    assert mean_window(lambda: 1 / loss, 200) == pytest.approx(closed_form, rel=0.015)
    independent = mean_window(lambda: draw.expovariate(loss), 10_000)
    assert independent == pytest.approx(1.14 * closed_form, rel=0.02)


def test_two_semicoupled_windows_under_independent_losses() -> None:
    """Add w_r / w_total packets per round, halve at a loss; and Reno's one packet, to know the model by."""
    loss, rounds = 1e-3, 200_000

    def mean_window(subflows: int) -> float:
        draw = random.Random(1)
        windows, total = [30.0] * subflows, 0.0
        for _ in range(rounds):
            whole = sum(windows)
            total += whole
            for index, window in enumerate(windows):
                if draw.random() < 1 - (1 - loss) ** window:
                    windows[index] = max(window / 2, 1.0)
                else:
                    windows[index] += window / whole
        return total / rounds

    assert mean_window(1) == pytest.approx(1.31 / math.sqrt(loss), rel=0.02)
    assert mean_window(2) == pytest.approx(1.77 / math.sqrt(loss), rel=0.02)


def test_a_relation_that_does_not_hold_is_called_so() -> None:
    relation = replace(RELATIONS["reno"], least=60.0, largest=80.0)
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
