"""The tuning on made-up throughputs, whose best setting is known."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.tuning import Grid, Model, Samples, TuningError, measured_maximum, parse_buffers, regrets, tune
from anabranch.tuning.curves import Curve, Parabola, Saturating
from anabranch.tuning.optimum import held_out_error
from anabranch.tuning.regression import cross_validate, regress, saturate

BUFFERS = tuple(range(1, 21))


def samples(curves: dict[tuple[str, str], Curve], noise: float = 0.0, seeds: int = 3) -> Samples:
    """Throughputs of some curves, with normal noise."""
    managers = tuple(dict.fromkeys(manager for manager, _ in curves))
    congestions = tuple(dict.fromkeys(congestion for _, congestion in curves))
    grid = Grid(managers, congestions, tuple(map(float, BUFFERS)), tuple(range(1, seeds + 1)))
    exact = np.array(
        [[curves[pm, cc].at(np.array(grid.buffers_mib)) for cc in congestions] for pm in managers]
    )
    draws = np.random.default_rng(1).normal(0.0, noise, (*exact.shape, seeds))
    return Samples(grid, exact[..., np.newaxis] + draws)


PARABOLAS: dict[tuple[str, str], Curve] = {
    ("fullmesh", "lia"): Parabola(2.0, 4.0, -0.2),
    ("fullmesh", "cubic"): Parabola(4.0, 3.0, -0.2),
    ("pcdc", "lia"): Parabola(10.0, 6.0, -0.25),
    ("pcdc", "cubic"): Parabola(3.0, 5.0, -0.25),
}

SATURATING: dict[tuple[str, str], Curve] = {
    ("fullmesh", "lia"): Saturating(20.0, 2.0),
    ("fullmesh", "cubic"): Saturating(28.0, 3.0),
    ("pcdc", "lia"): Saturating(40.0, 4.0),
    ("pcdc", "cubic"): Saturating(30.0, 3.0),
}


@pytest.mark.parametrize(("curves", "model"), [(PARABOLAS, Model.PARABOLA), (SATURATING, Model.SATURATING)])
def test_the_model_that_made_the_data_is_found_with_its_optimum(
    curves: dict[tuple[str, str], Curve], model: Model
) -> None:
    found = tune(samples(curves), 0.07)
    assert found.model is model
    assert (found.choice.path_manager, found.choice.congestion) == ("pcdc", "lia")
    peak = curves["pcdc", "lia"].peak(1.0, 20.0)
    assert found.choice.largest_mbit_per_s == pytest.approx(peak.mbit_per_s, rel=1e-6)
    wanted = curves["pcdc", "lia"].reaches(0.93 * peak.mbit_per_s, 1.0, 20.0)
    assert found.choice.buffer_mib == pytest.approx(wanted, rel=1e-5)
    other = next(one for one in Model if one is not model)
    assert held_out_error(found.fits, other) > 10 * held_out_error(found.fits, model)


def test_noise_of_two_percent_moves_the_optimum_little() -> None:
    found = tune(samples(SATURATING, noise=0.8), 0.07)
    assert found.model is Model.SATURATING
    exact = tune(samples(SATURATING), 0.07).choice
    assert (found.choice.path_manager, found.choice.congestion) == ("pcdc", "lia")
    # The noise of a mean of three is 0.46 Mbit/s, at 37 Mbit/s 1.2 %; with a slope of 0.7 Mbit/s per MiB
    # there it stands for 0.7 MiB, and twenty buffers together leave less.
    assert found.choice.buffer_mib == pytest.approx(exact.buffer_mib, abs=0.7)


def test_a_model_that_explains_too_little_is_rejected_for_the_measured_maximum() -> None:
    data = samples(SATURATING)
    # A peak of one buffer that no smooth curve follows, in every congestion control at another place.
    rng = np.random.default_rng(2)
    data.mbit_per_s[:] = rng.uniform(1.0, 30.0, data.mbit_per_s.shape[:3])[..., np.newaxis]
    data.mbit_per_s[1, 0, 4] = 50.0
    data.mbit_per_s[1, 0, 2] = 47.0
    found = tune(data, 0.07)
    assert found.model is None
    assert found.choice == measured_maximum(data, 0.07)
    assert (found.choice.buffer_mib, found.choice.mbit_per_s) == (3.0, 47.0)
    assert (found.choice.largest_at_mib, found.choice.largest_mbit_per_s) == (5.0, 50.0)


def test_throughputs_that_never_change_are_explained_by_nothing() -> None:
    data = samples(SATURATING)
    data.mbit_per_s[:] = 7.3
    found = tune(data, 0.05)
    assert found.model is None
    assert {fit.r2 for of in found.fits.values() for fit in of.values()} == {0.0}
    assert (found.choice.path_manager, found.choice.buffer_mib) == ("fullmesh", 1.0)


def test_a_connection_that_delivers_nothing_is_tuned_to_nothing() -> None:
    data = samples(SATURATING)
    data.mbit_per_s[:] = 0.0
    assert tune(data, 0.05).model is None
    assert [one.throughput_share for one in regrets(data, 0.05)] == [0.0, 0.0, 0.0]


def test_equally_good_path_managers_give_full_mesh() -> None:
    curves = {("pcdc", "lia"): Saturating(40.2, 4.0), ("fullmesh", "lia"): Saturating(40.0, 4.0)}
    assert tune(samples(dict(curves)), 0.05).choice.path_manager == "fullmesh"
    curves = {("pcdc", "lia"): Saturating(41.0, 4.0), ("fullmesh", "lia"): Saturating(40.0, 4.0)}
    assert tune(samples(dict(curves)), 0.05).choice.path_manager == "pcdc"


def test_without_noise_the_regret_is_what_delta_gives_up_at_most() -> None:
    found = regrets(samples(SATURATING), 0.05)
    assert [one.seed for one in found] == [1, 2, 3]
    for one in found:
        assert 0.0 <= one.throughput_share <= 0.05
        assert one.extra_mib == 0.0


def test_regret_is_of_the_seed_that_was_not_tuned_on() -> None:
    data = samples(SATURATING)
    data.mbit_per_s[:, 1, :, 2] = 80.0  # on the third seed alone the other congestion control is the best
    first, second, third = regrets(data, 0.05)
    assert first.choice.congestion == second.choice.congestion == "cubic"
    assert third.choice.congestion == "lia"
    assert third.throughput_share > 0.5


def test_held_out_buffers_tell_the_models_apart() -> None:
    buffers = np.array(BUFFERS, dtype=float)
    line = np.stack([Saturating(30.0, 1.5).at(buffers)])
    assert cross_validate(Model.SATURATING, buffers, line) < 1e-3
    assert cross_validate(Model.PARABOLA, buffers, line) > 0.5


@pytest.mark.parametrize("c", [0.2, 1.0, 8.0, 100.0])
def test_a_saturating_curve_is_found_again(c: float) -> None:
    buffers = np.array(BUFFERS, dtype=float)
    found = saturate(buffers, Saturating(30.0, c).at(buffers))
    assert (found.a, found.c) == pytest.approx((30.0, c), rel=1e-3)


def test_two_buffers_make_the_design_singular() -> None:
    with pytest.raises(TuningError, match="singular: 2 different buffers"):
        regress(np.array([1.0, 2.0, 1.0]), np.ones((2, 3)))


def test_buffers_are_a_range_or_a_list() -> None:
    assert parse_buffers("0.5:30:0.5") == tuple(at / 2 for at in range(1, 61))
    assert parse_buffers("8, 1,2.5") == (1.0, 2.5, 8.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1:x:1", "'x' is no number"),
        ("", "'' is no number"),
        ("1:30", "FROM:TO:STEP"),
        ("1:30:0", "'0' is not above 0"),
        ("30:1:1", "are none"),
        ("-1,2", "'-1' is not above 0"),
        ("1,1", "there twice"),
        ("nan,1", "not above 0"),
        ("1:100000:0.5", "expected at most 1000"),
    ],
)
def test_buffers_that_are_none_are_refused(text: str, words: str) -> None:
    with pytest.raises(TuningError, match=words):
        parse_buffers(text)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (((), ("lia",), BUFFERS), "path managers: expected names"),
        ((("fullmesh",), ("",), BUFFERS), "congestion controls: expected names"),
        ((("fullmesh",), ("lia", "lia"), BUFFERS), "'lia' is named twice"),
        ((("fullmesh",), ("lia",), (1, 2, 3, 4)), "4 different buffers; expected at least 5"),
    ],
)
def test_a_grid_too_small_to_fit_is_refused(
    grid: tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]], words: str
) -> None:
    managers, congestions, buffers = grid
    with pytest.raises(TuningError, match=words):
        Grid(managers, congestions, tuple(map(float, buffers)), (1, 2))


def test_one_seed_leaves_none_to_hold_out() -> None:
    with pytest.raises(TuningError, match="seeds: 1; expected at least 2"):
        regrets(samples(SATURATING, seeds=1), 0.05)
