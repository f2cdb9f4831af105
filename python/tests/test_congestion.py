"""Congestion controls in Python: the same contract, results and errors as those in C."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import ClassVar

import pytest

import anabranch as ab
from anabranch import Call, CongestionControl, Parameter
from anabranch.compare import collect
from support import REPOSITORY, Command


class Twin(CongestionControl):
    """Reno as algorithms/reno.h has it, to be compared with it."""

    name = "twin"

    def __init__(self) -> None:
        self.odd = False

    def ack(self, call: Call) -> None:
        """RFC 5681, 3.1."""
        if not call.cwnd_limited:
            return
        cwnd, count, acked = call.cwnd, call.cwnd_cnt, call.acked
        if call.in_slow_start:
            used = min(acked, call.ssthresh - cwnd)
            cwnd += used
            acked -= used
            if not acked:
                call.set_cwnd(cwnd)
                return
        if count >= cwnd:
            count = 0
            cwnd += 1
            # as ab_additive_increase: the threshold is that of the window before
            threshold = cwnd - 1
        else:
            threshold = cwnd
        count += acked
        if count >= threshold:
            cwnd += count // threshold
            count %= threshold
        call.set_cwnd(cwnd)
        call.set_cwnd_cnt(count)

    def loss(self, call: Call) -> int:
        """RFC 5681, equation 4."""
        self.odd = call.cwnd > 4 and call.cwnd % 2 == 1
        return max(call.cwnd // 2, 2)

    def rto(self, call: Call) -> None:
        """Forget the half packet."""
        self.odd = False

    def recovery_exit(self, call: Call) -> None:
        """Take the half packet back."""
        call.set_cwnd_cnt(call.cwnd // 2 if self.odd else 0)
        self.odd = False


def test_reno_in_python_gives_the_bytes_of_reno_in_c(scenario: Path, tmp_path: Path) -> None:
    experiment = ab.load(scenario)
    of = {
        name: experiment.with_(**{"connection.meter.congestion": name}).run(out=tmp_path / name)
        for name in ("reno", "twin")
    }
    files = {name: (run.path / "series.parquet").read_bytes() for name, run in of.items()}
    assert of["reno"].summary == of["twin"].summary
    assert files["reno"] == files["twin"]


def test_parameters_are_written_in_their_units_and_reach_the_instance(scenario: Path, tmp_path: Path) -> None:
    seen = []

    class Fixed(CongestionControl):
        """A window that does not move."""

        name = "fixed"
        parameters: ClassVar[dict[str, Parameter]] = {
            "window": Parameter(10, 1, 100, "packets", "the window"),
            "pause": Parameter(5000, 0, 1_000_000, "us", "not used"),
            "way": Parameter(0, 0, 1, "choice", "not used", ("this", "that")),
        }

        def init(self, call: Call) -> None:
            seen.append(dict(self.values))
            call.set_cwnd(self.values["window"])
            call.set_ssthresh(self.values["window"])

        def loss(self, call: Call) -> int:
            return call.cwnd

    values = '{ name = "fixed", window = "7 packets", pause = "2 ms", way = "that" }'
    run = ab.load(scenario).with_(**{"connection.meter.congestion": values}).run(out=tmp_path)
    assert seen[0] == {"window": 7, "pause": 2000, "way": 1}
    windows = run.series.of("cwnd_packets").values()
    assert {float(one.values.max()) for one in windows} == {7.0}
    with pytest.raises(ab.ScenarioError, match=r"window.*0 packets.*out of range"):
        ab.load(scenario).with_(**{"connection.meter.congestion": '{ name = "fixed", window = "0 packets" }'})
    entry = next(one for one in ab._engine.list_algorithms() if one["name"] == "fixed")
    assert entry["title"] == "A window that does not move."
    assert entry["hosts"] == ["sim"]
    assert [one["default"] for one in entry["params"]] == ["10 packets", "5 ms", "this"]


def test_a_coupled_class_sees_its_peers_and_the_words_of_the_connection(
    scenario: Path, tmp_path: Path
) -> None:
    counts = set()

    class Shared(CongestionControl):
        name = "shared"
        coupled = True

        def ack(self, call: Call) -> None:
            total = sum(peer.cwnd for peer in call.peers if peer.usable)
            assert call.peers[call.self_index].cwnd == call.cwnd
            call.set_word(1, call.word(1) + call.acked)
            counts.add((call.n_usable, call.word(1) > 0))
            call.set_cwnd(call.cwnd + (total < 40))

    ab.load(scenario).with_(**{"connection.meter.congestion": "shared"}).run(out=tmp_path)
    assert (2, True) in counts


def test_a_class_that_is_not_coupled_is_refused_its_peers(scenario: Path, tmp_path: Path) -> None:
    class Curious(CongestionControl):
        name = "curious"

        def ack(self, call: Call) -> None:
            _ = call.peers

    with pytest.raises(TypeError, match="coupled = True") as error:
        ab.load(scenario).with_(**{"connection.meter.congestion": "curious"}).run(out=tmp_path)
    assert error.value.__notes__ == ["in congestion control curious: ack"]


def test_an_exception_ends_the_run_and_leaves_nothing(scenario: Path, tmp_path: Path) -> None:
    class Broken(CongestionControl):
        name = "broken"

        def ack(self, call: Call) -> None:
            call.set_cwnd(call.cwnd + 1)

        def loss(self, call: Call) -> int:
            return call.cwnd // 0

    experiment = ab.load(scenario).with_(**{"connection.meter.congestion": "broken"})
    out = tmp_path / "out"
    with pytest.raises(ZeroDivisionError) as error:
        experiment.run(out=out, seeds=[1, 2])
    assert error.value.__notes__ == ["in congestion control broken: loss"]
    assert not [path for path in out.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("answer", "error"), [(None, TypeError), (0, ValueError), (2.5, TypeError), (2**31, ValueError)]
)
def test_an_answer_that_is_no_window_is_an_error(
    answer: object, error: type[Exception], scenario: Path, tmp_path: Path
) -> None:
    class Odd(CongestionControl):
        name = "odd"

        def ack(self, call: Call) -> None:
            call.set_cwnd(call.cwnd + 1)

        def loss(self, call: Call) -> int:
            return answer  # type: ignore[return-value]

    with pytest.raises(error, match=r"odd.loss: expected a window of 1 to \d+ packets"):
        ab.load(scenario).with_(**{"connection.meter.congestion": "odd"}).run(out=tmp_path)


def test_names_that_cannot_be_are_refused() -> None:
    for name, why in [
        ("Twin", "1 to 12 characters"),
        ("reno", "the registry has"),
        ("tahoe", "the registry has"),
    ]:
        with pytest.raises(ValueError, match=why):
            type("Named", (CongestionControl,), {"name": name})


FILE = textwrap.dedent("""\
    import anabranch


    class Mine(anabranch.CongestionControl):
        name = "mine"

        def ack(self, call):
            call.set_cwnd(call.cwnd + {step})
    """)


def test_the_command_runs_a_file_and_its_text_counts_for_the_run_key(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    arguments = ["run", str(scenario), "--set", "connection.meter.congestion=mine", "--json"]
    arguments += ["--out", str(tmp_path / "out"), "--algorithms", str(file)]
    keys = []
    for step in (1, 1, 2):
        file.write_text(FILE.format(step=step))
        result = anabranch(*arguments)
        assert result.returncode == 0, result.stderr
        keys.append((json.loads(result.stdout)["key"], json.loads(result.stdout)["runs"][0]["reused"]))
    assert [reused for _, reused in keys] == [False, True, False]
    assert keys[0][0] == keys[1][0] != keys[2][0]


def test_a_class_is_compared_with_others_by_its_last_text(scenario: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "judged.py", tmp_path / "out"
    ab.load(scenario).run(out=out)
    for step in (1, 2):
        file.write_text(FILE.format(step=step).replace("mine", "judged"))
        ab.load_algorithms(file)
        last = ab.load(scenario).with_(**{"connection.meter.congestion": "judged"}).run(out=out)
    variants, notes = collect([out])
    assert [one.label for one in variants] == ["congestion=lia", "congestion=judged"]
    assert variants[1].runs[0].path == last.path
    assert notes == (f"{out}: 1 runs with earlier texts of congestion controls are left out",)


def test_the_command_says_what_is_wrong_with_a_file(
    anabranch: Command, scenario: Path, tmp_path: Path
) -> None:
    (tmp_path / "none.py").write_text("x = 1\n")
    for name, why in [("missing.py", "no such Python file"), ("none.py", "defines no subclass")]:
        result = anabranch("check", str(scenario), "--algorithms", str(tmp_path / name))
        assert result.returncode == 2
        assert why in result.stderr


def test_a_class_runs_in_the_simulator_only(anabranch: Command, scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(step=1))
    result = anabranch(
        *["run", str(scenario), "--set", "connection.meter.congestion=mine"],
        *["--algorithms", str(file), "--engine", "kernel"],
    )
    assert result.returncode == 2
    assert "mine: written in Python, for --engine sim" in result.stderr


def test_a_class_defined_again_is_not_mixed_with_a_scenario_loaded_before(
    scenario: Path, tmp_path: Path
) -> None:
    def define(text: str) -> None:
        file = tmp_path / "again.py"
        file.write_text(FILE.format(step=text).replace("mine", "again").replace("Mine", "Again"))
        assert ab.load_algorithms(file) == ["again"]

    define("1")
    experiment = ab.load(scenario).with_(**{"connection.meter.congestion": "again"})
    define("2")
    with pytest.raises(ValueError, match="load it again"):
        experiment.run(out=tmp_path / "out")


def test_the_example_of_the_document_runs(anabranch: Command, scenario: Path, tmp_path: Path) -> None:
    text = (REPOSITORY / "docs/custom-algorithms.md").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(text.partition("```python\n")[2].partition("```")[0])
    values = 'connection.meter.congestion={ name = "mine", step = "2 packets" }'
    arguments = ["--algorithms", tmp_path / "mine.py", "--set", values, "--out", tmp_path / "out", "--json"]
    result = anabranch("run", scenario, *arguments)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["runs"][0]["summary"]["connections"]["meter"]["goodput_bps"] > 1e6
