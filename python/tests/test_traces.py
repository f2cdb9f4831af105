"""Rate traces: the generator keeps its word, and what is wrong is said."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import traces
from support import REPOSITORY, Command

SHIPPED = REPOSITORY / "scenarios/traces"


@given(
    kind=st.sampled_from(traces.KINDS),
    mean_bps=st.integers(200_000, 50_000_000),
    length_ms=st.integers(6_000, 20_000),
    seed=st.integers(0, 2**32),
)
def test_a_made_trace_has_its_length_and_within_one_percent_its_mean(
    kind: str, mean_bps: int, length_ms: int, seed: int
) -> None:
    times = traces.make(kind, mean_bps, length_ms, seed)
    assert times == sorted(times)
    assert times[0] >= 0
    found = traces.info(times)
    assert found.length_s == length_ms / 1000
    assert found.mean_bps == pytest.approx(mean_bps, rel=0.01)
    assert times == traces.make(kind, mean_bps, length_ms, seed)


def test_the_kinds_differ_in_how_much_they_vary() -> None:
    spread = {}
    for kind in traces.KINDS:
        found = traces.info(traces.make(kind, 8_000_000, 30_000, 1))
        assert found.min_1s_bps is not None
        assert found.max_1s_bps is not None
        spread[kind] = (found.max_1s_bps - found.min_1s_bps) / found.mean_bps
    # One opportunity more or less in a second.
    assert spread["constant"] < 2 * traces.OPPORTUNITY_BITS / 8_000_000
    # The mean over one second of a sine of 10 s reaches 98 % of its amplitude, 0.8.
    assert spread["sine"] == pytest.approx(2 * 0.8 * 0.98, rel=0.03)
    assert spread["lte-drive"] > 0.5
    assert spread["wifi-fade"] > 0.3


def test_opportunities_of_a_constant_rate_are_evenly_spaced() -> None:
    assert traces.make("constant", 1_000_000, 60, 7) == [12, 24, 36, 48, 60]


def commands() -> list[list[str]]:
    text = (SHIPPED / "README.md").read_text(encoding="utf-8")
    return [
        shlex.split(line) for line in re.findall(r"^anabranch (trace make .*)$", text, flags=re.MULTILINE)
    ]


@pytest.mark.parametrize("arguments", commands(), ids=lambda arguments: str(arguments[-1]))
def test_the_shipped_traces_are_what_their_commands_make(
    arguments: list[str], anabranch: Command, tmp_path: Path
) -> None:
    name = arguments[-1]
    made = tmp_path / name
    done = anabranch(*arguments[:-1], made)
    assert done.returncode == 0, done.stderr
    assert made.read_bytes() == (SHIPPED / name).read_bytes()


def test_every_shipped_trace_has_its_command() -> None:
    assert {arguments[-1] for arguments in commands()} == {path.name for path in SHIPPED.glob("*.up")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nx\n", ":2: 'x' is no time; expected whole milliseconds"),
        ("1\n\n2\n", ":2: '' is no time; expected whole milliseconds"),
        ("5\n4\n", ":2: 4 comes after 5; expected times that do not decrease"),
        ("", ": the trace has no length; expected a last time above 0"),
        ("0\n0\n", ": the trace has no length; expected a last time above 0"),
    ],
)
def test_what_is_wrong_with_a_trace_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t"
    path.write_text(text, encoding="ascii")
    with pytest.raises(traces.TraceError, match=re.escape(f"{path}{message}") + "$"):
        traces.read(path)


def test_a_recording_becomes_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(
        "time_s,rate_bps\n# a comment\n10, 1200000\n11, 0\n12, 12000000\n13, 5\n", encoding="ascii"
    )
    times = traces.read_csv(path)
    first, second, third = (sum(begin < time <= begin + 1000 for time in times) for begin in (0, 1000, 2000))
    assert (first, second, third, times[-1]) == (100, 0, 1000, 3000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n1;2\n", ":2: '1;2'; expected a time in s, a comma and a rate in bit/s"),
        ("0,1\n0,2\n", ":2: the time 0 is not after the line before"),
        ("0,-1\n1,2\n", ":1: the rate -1 is negative"),
        ("0,1\n", ": expected at least two lines; the last one ends the trace"),
        ("0,1\n1,1\n", ": 0 opportunities of 1500 B; expected 1 to 2000000"),
    ],
)
def test_what_is_wrong_with_a_recording_is_said_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text, encoding="ascii")
    with pytest.raises(traces.TraceError, match=re.escape(f"{path}{message}") + "$"):
        traces.read_csv(path)


def test_the_command_makes_describes_and_imports(anabranch: Command, tmp_path: Path) -> None:
    made, copy = tmp_path / "made.up", tmp_path / "copy.up"
    options = ("--kind", "sine", "--mean", "2 Mbit/s", "--length", "10 s", "--out", made)
    assert anabranch("trace", "make", *options).returncode == 0
    described = anabranch("trace", "info", made)
    assert "2.000 Mbit/s" in described.stdout
    assert anabranch("trace", "import", made, "--from", "mahimahi", "--out", copy).returncode == 0
    assert copy.read_bytes() == made.read_bytes()
    wrong = anabranch("trace", "make", *options[:2], "--mean", "2 Mbps", *options[4:])
    assert wrong.returncode == 2
    assert (
        "'2 Mbps': expected a rate such as 10 Mbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s)" in wrong.stderr
    )
