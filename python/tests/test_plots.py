"""What plots average."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from anabranch.plots import mean_over_seeds
from anabranch.results import OneSeries, Run, Subject

FLOW = Subject("flow", "0")


def run(engine: str, times_s: list[float], values: list[float]) -> Run:
    """A run with one series of windows."""
    one = OneSeries(FLOW, "cwnd_packets", np.array(times_s), np.array(values))
    series = SimpleNamespace(of=lambda metric: {FLOW: one} if metric == one.metric else {})
    return cast(Run, SimpleNamespace(engine=engine, series=series))


def test_simulated_runs_are_averaged_at_the_times_that_all_have() -> None:
    runs = [run("sim", [0.1, 0.2, 0.3], [1.0, 2.0, 3.0]), run("sim", [0.2, 0.3, 0.4], [4.0, 5.0, 6.0])]
    band = mean_over_seeds(runs, "cwnd_packets", FLOW)
    assert band is not None
    assert band.times_s.tolist() == [0.2, 0.3]
    assert band.mean.tolist() == [3.0, 4.0]


def test_readings_on_a_kernel_are_matched_to_the_nearest() -> None:
    runs = [
        run("kernel", [0.1001, 0.2002, 0.3001, 0.4001], [1.0, 2.0, 3.0, 4.0]),
        run("kernel", [0.1003, 0.2001, 0.3004], [10.0, 20.0, 30.0]),
    ]
    band = mean_over_seeds(runs, "cwnd_packets", FLOW)
    assert band is not None
    assert band.times_s.tolist() == [0.2002, 0.3001]
    assert band.mean.tolist() == [11.0, 16.5]


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_a_series_without_points_is_no_series(engine: str) -> None:
    band = mean_over_seeds([run(engine, [], []), run(engine, [0.5], [7.0])], "cwnd_packets", FLOW)
    assert band is not None
    assert band.mean.tolist() == [7.0]
    assert mean_over_seeds([run(engine, [], [])], "cwnd_packets", FLOW) is None
    assert mean_over_seeds([run(engine, [0.5], [7.0])], "srtt_s", FLOW) is None
