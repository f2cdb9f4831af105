"""Verdicts: the interval of a ratio by hand, what each verdict means, and who is judged."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import anabranch as ab
from anabranch.compare import Variant, collect
from anabranch.results import Figure, Run, Subject
from anabranch.stats import Estimate, ratio
from anabranch.verdict import TOLERANCES, Judged, Verdict, judge, verdict_of
from support import Command, as_kernel_run

FLOW = Subject("flow")


def test_the_interval_of_a_ratio_by_hand() -> None:
    # Means 10 and 12, r = 1.2; residuals -0.8, 0, 0.8 of variance 0.64; variance of r 0.64/3/100.
    found = ratio([(9.0, 10.0), (10.0, 12.0), (11.0, 14.0)])
    assert found is not None
    assert found.mean == pytest.approx(1.2)
    assert found.half_width == pytest.approx(4.30265 * math.sqrt(0.64 / 3) / 10, rel=1e-5)
    assert found.size == 3


def test_what_both_of_a_pair_have_in_common_does_not_widen_the_interval() -> None:
    found = ratio([(5.0, 6.0), (10.0, 12.0), (20.0, 24.0)])
    assert found is not None
    assert found.half_width == pytest.approx(0.0, abs=1e-12)


def test_where_the_first_do_not_vary_the_interval_is_that_of_the_others() -> None:
    found = ratio([(10.0, 9.0), (10.0, 10.0), (10.0, 11.0)])
    assert found is not None
    assert found.half_width == pytest.approx(4.30265 * math.sqrt(1 / 3) / 10, rel=1e-5)
    assert ratio([(2.0, 3.0), (2.0, 3.0)]) == Estimate(1.5, 0.0, 2)


def test_a_ratio_needs_two_pairs_for_an_interval_and_a_divisor_for_itself() -> None:
    assert ratio([(4.0, 3.0)]) == Estimate(0.75, None, 1)
    assert ratio([(0.0, 1.0), (0.0, 2.0)]) is None


def test_only_seeds_that_both_have_are_compared() -> None:
    sim, kernel = (variant({(FLOW, "goodput_bps"): [10.0, 20.0, 30.0]}, 3) for _ in range(2))
    (one,) = judge(sim, Variant("", kernel.runs[1:]))
    assert one.difference == Estimate(0.0, 0.0, 2)
    (none,) = judge(Variant("", sim.runs[:1]), Variant("", kernel.runs[1:]))
    assert (none.verdict, none.difference) == (Verdict.UNCLEAR, None)


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (0.02, 0.02, Verdict.AGREES),
        (-0.03, 0.02, Verdict.AGREES),
        (0.03, 0.03, Verdict.UNCLEAR),
        (0.10, 0.06, Verdict.UNCLEAR),
        (0.10, 0.04, Verdict.DIFFERS),
        (-0.10, 0.04, Verdict.DIFFERS),
        (0.00, 0.30, Verdict.UNCLEAR),
        (0.00, None, Verdict.UNCLEAR),
        (0.90, None, Verdict.UNCLEAR),
        (0.05, 0.00, Verdict.AGREES),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(
    mean: float, half_width: float | None, verdict: Verdict
) -> None:
    assert verdict_of(Estimate(mean, half_width, 5), 0.05) is verdict


def variant(values: dict[tuple[Subject, str], list[float]], runs: int) -> Variant:
    """Runs with figures; one that has fewer values than there are runs is missing in the last ones."""
    made = [
        SimpleNamespace(
            seed=index + 1,
            figures=tuple(
                Figure(subject, metric, of_run[index])
                for (subject, metric), of_run in values.items()
                if index < len(of_run)
            ),
        )
        for index in range(runs)
    ]
    return Variant("", tuple(cast(Run, run) for run in made))


def judged_alone(metric: str, sim: list[float], kernel: list[float], runs: int = 3) -> Judged:
    """The judgement of one figure of a connection."""
    (one,) = judge(variant({(FLOW, metric): sim}, runs), variant({(FLOW, metric): kernel}, runs))
    return one


def test_a_figure_that_a_run_lacks_is_unclear() -> None:
    one = judged_alone("completion_s", [2.0, 2.0, 2.0], [2.0, 2.0])
    assert one.verdict is Verdict.UNCLEAR
    assert one.kernel is not None
    assert one.kernel.size == 2
    one = judged_alone("completion_s", [2.0, 2.0, 2.0], [])
    assert (one.verdict, one.kernel, one.difference) == (Verdict.UNCLEAR, None, None)
    assert not one.is_within


def test_nothing_on_both_sides_agrees_and_something_beside_nothing_is_unclear() -> None:
    one = judged_alone("retransmits", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert (one.verdict, one.is_within) == (Verdict.AGREES, True)
    one = judged_alone("retransmits", [0.0, 0.0, 0.0], [3.0, 3.0, 3.0])
    assert (one.verdict, one.is_within) == (Verdict.UNCLEAR, False)


def test_a_mean_may_be_within_the_tolerance_while_the_verdict_is_unclear() -> None:
    one = judged_alone("goodput_bps", [10.0, 10.0, 10.0], [9.0, 10.0, 11.5])
    assert (one.verdict, one.is_within) == (Verdict.UNCLEAR, True)


def test_a_single_subflow_is_not_judged_twice() -> None:
    first, second = Subject("flow", "a"), Subject("flow", "b")
    metrics = ("goodput_bps", "retransmits", "throughput_bps", "mean_srtt_s", "drops")
    one = {(FLOW, metric): [1.0, 1.0] for metric in metrics[:2]}
    one |= {(first, metric): [1.0, 1.0] for metric in metrics[1:]}
    found = judge(variant(one, 2), variant(one, 2))
    assert [(str(row.subject), row.metric) for row in found] == [
        ("flow", "goodput_bps"),
        ("flow/a", "mean_srtt_s"),
        ("flow", "retransmits"),
    ]
    two = one | {(second, "throughput_bps"): [1.0, 1.0]}
    found = judge(variant(two, 2), variant(two, 2))
    assert [str(row.subject) for row in found if row.metric == "throughput_bps"] == ["flow/a", "flow/b"]
    assert [str(row.subject) for row in found if row.metric == "retransmits"] == ["flow", "flow/a"]


@pytest.fixture
def both(scenario: Path, tmp_path: Path) -> Path:
    """Three seeds on both engines; on the kernel the second does not count."""
    out = tmp_path / "out"
    for run in ab.load(scenario).run(seeds=range(1, 4), out=out):
        as_kernel_run(run, out, ["lateness p99 3.1 ms, above 2 ms"] if run.seed == 2 else [])
    return out


def test_engines_are_told_apart_and_runs_that_do_not_count_are_named(both: Path) -> None:
    variants, notes = collect([both])
    assert [one.label for one in variants] == ["sim", "kernel"]
    assert [one.seeds for one in variants] == [(1, 2, 3), (1, 3)]
    (note,) = notes
    assert note.endswith("seed-2: does not count: lateness p99 3.1 ms, above 2 ms")
    kernel = variants[1].runs[0].path.parent
    assert [one.label for one in collect([kernel]).variants] == ["two-paths"]
    with pytest.raises(ab.RunFolderError, match="does not count"):
        collect([kernel / "seed-2"])


def test_engines_and_overrides_are_told_apart_together(both: Path, scenario: Path) -> None:
    for run in ab.load(scenario).with_(**{"connection.meter.congestion": "reno"}).run(seeds=[1], out=both):
        as_kernel_run(run, both)
    assert [one.label for one in collect([both]).variants] == [
        "congestion=lia sim",
        "congestion=lia kernel",
        "congestion=reno sim",
        "congestion=reno kernel",
    ]


def test_of_several_versions_of_the_kernel_engine_the_youngest_is_compared(both: Path) -> None:
    (sim, _) = collect([both]).variants
    path, _ = as_kernel_run(sim.runs[0], both, version="0.1.0+src.fedcba987654@6.19.0")
    later = (path / "run.json").stat().st_mtime_ns + 10**12
    os.utime(path / "run.json", ns=(later, later))
    variants, notes = collect([both])
    assert [(one.label, one.seeds) for one in variants] == [("sim", (1, 2, 3)), ("kernel", (1,))]
    (note,) = notes
    assert "3 runs of other versions of the kernel engine than 0.1.0+src.fedcba987654@6.19.0" in note


def test_a_scenario_on_both_engines_is_judged_unasked(anabranch: Command, both: Path) -> None:
    done = anabranch("compare", both, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert [one["engine"] for one in answer["variants"]] == ["sim", "kernel"]
    assert {one["metric"] for one in answer["verdicts"]} == TOLERANCES.keys() - {
        "completion_s",
        "latency_mean_s",
    }
    (goodput,) = [one for one in answer["verdicts"] if one["metric"] == "goodput_bps"]
    # The runs on the kernel are copies of the simulator's, and seed 2 does not count there.
    assert goodput["difference"]["size"] == 2
    assert goodput["difference"]["mean"] == pytest.approx(0.0, abs=1e-12)
    assert goodput["sim"]["mean"] != goodput["kernel"]["mean"]
    assert goodput["is_goal"]
    assert goodput["tolerance"] == 0.05
    text = anabranch("compare", both).stdout
    assert "tolerance" in text
    assert "paired by seed" in text
    assert "does not count" in text
    assert "tolerance" not in anabranch("compare", both, "--no-verdict").stdout


def test_a_verdict_is_refused_where_there_are_not_both_engines(
    anabranch: Command, both: Path, scenario: Path
) -> None:
    (sim, _) = collect([both]).variants
    done = anabranch("compare", sim.runs[0].path.parent, "--verdict")
    assert done.returncode == 2
    assert "two-paths (sim)" in done.stderr
    assert json.loads(anabranch("compare", sim.runs[0].path.parent, "--json").stdout)["verdicts"] == []
    ab.load(scenario).with_(duration="4 s").run(out=both)
    assert anabranch("compare", both, "--verdict").returncode == 2
