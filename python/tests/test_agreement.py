"""The agreement of simulator and kernel: what is run, the tables, and a short check on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anabranch.agreement import Group, Kind, cases
from anabranch.agreement_report import MARKER
from anabranch.as_linux import as_linux
from anabranch.experiment import Experiment
from support import REPOSITORY, Command

SCENARIOS = REPOSITORY / "scenarios" / "agreement"

#: A real check may have to repeat runs; this is an upper bound and not what it takes.
LIMIT_S = 400

#: Part of the message when the emulator gets the processor too late for runs to count: no fault of ours, and
#: nothing that the machine lacks. Runs that count are kept, so that asking again makes only the others.
TOO_BUSY = "too few runs on the kernel count on this machine now: the emulator was late"

#: Two engines give the same here, for nothing is random.
STEADY = """\
name = "NAME"
duration = "5 s"
transport = { profile = "linux" }
node = [{ names = ["a", "b"] }]
measure = { from = "2 s" }

[[link]]
name = "path"
between = ["a", "b"]
rate = "4 Mbit/s"
delay = "10 ms"
queue = "30 packets"

[[connection]]
name = "flow"
from = "a"
to = "b"
congestion = "reno"
"""


def test_there_are_twelve_scenarios_and_six_more_and_the_document_names_them() -> None:
    text = (REPOSITORY / "docs" / "agreement.md").read_text(encoding="utf-8").partition(MARKER)[0]
    for group, folder, count in ((Group.TWELVE, SCENARIOS, 12), (Group.EXTRA, SCENARIOS / "extra", 6)):
        files = sorted(path.stem for path in folder.glob("*.toml"))
        found = [case for case in cases(SCENARIOS, extra=True, quick=False) if case.group is group]
        assert [case.name for case in found if case.kind is Kind.BULK] == files
        assert len(files) == count
        for name in files:
            assert f"`{name}`" in text


def test_multipath_has_scenarios_of_its_own_and_its_document_names_them() -> None:
    text = (REPOSITORY / "docs" / "agreement-mptcp.md").read_text(encoding="utf-8").partition(MARKER)[0]
    names = sorted(path.stem for path in (SCENARIOS / "mptcp").glob("*.toml"))
    planned = cases(SCENARIOS / "mptcp", extra=True, quick=False, files=False)
    assert [case.name for case in planned] == names
    assert {case.group for case in planned} == {Group.MPTCP}
    assert {case.kind for case in planned} == {Kind.BULK}
    for name in names:
        assert f"`{name}`" in text
    with_files = cases(SCENARIOS / "mptcp", extra=True, quick=False)
    alone = set(names) - {case.name for case in with_files if case.kind is Kind.FILE}
    assert alone == {"lia-backup-takes-over", "lia-subflow-closes", "telemetry-lossy-path"}


def test_files_are_sent_where_one_connection_is_left_alone() -> None:
    planned = cases(SCENARIOS, extra=True, quick=False)
    bulk = {case.name for case in planned if case.kind is Kind.BULK}
    files = {case.name for case in planned if case.kind is Kind.FILE}
    assert bulk - files == {"lia-shared-bottleneck", "lia-path-fails", "two-cubic", "reno-rate-change"}
    for case in planned:
        traffic = case.experiment.overrides.get("connection.flow.traffic", "")
        assert ("2 MB" in traffic) == (case.kind is Kind.FILE)


def test_the_quick_check_is_two_scenarios() -> None:
    planned = cases(SCENARIOS, extra=True, quick=True)
    assert {case.name for case in planned} == {"reno-20mbit-10ms", "lia-equal-paths"}
    assert sum(3 * case.experiment.scenario.duration_s for case in planned) < 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Scenarios of an agreement, one and one more, and a document."""
    extra = tmp_path / "agreement" / "extra"
    extra.mkdir(parents=True)
    (extra.parent / "steady.toml").write_text(STEADY.replace("NAME", "steady"), encoding="utf-8")
    (extra / "other.toml").write_text(STEADY.replace("NAME", "other"), encoding="utf-8")
    (tmp_path / "agreement.md").write_text(f"# By hand\n\n{MARKER}\n\nold tables\n", encoding="utf-8")
    return extra.parent


@pytest.mark.usefixtures("fake_bed")
def test_the_tables_are_written_and_complete_runs_are_reused(
    anabranch: Command, folder: Path, tmp_path: Path
) -> None:
    document = tmp_path / "agreement.md"
    options = ("--scenarios", folder, "--seeds", 2, "--out", tmp_path / "out", "--write", document)
    done = anabranch("agreement", *options)
    assert done.returncode == 0, done.stderr
    assert "steady (bulk): flow goodput_bps: +0.0 %, agrees\n" in done.stdout
    first = document.read_text(encoding="utf-8")
    assert first.startswith(f"# By hand\n\n{MARKER}\n\n## Conditions\n")
    assert "old tables" not in first
    assert "- 2 repetitions of each on both engines.\n" in first
    assert "the whole suite took" in first
    assert ": 72 µs in the median, 72 µs at most.\n" in first
    assert "0 attempts were repeated; of 8 runs 0 do not count.\n" in first
    assert "| goal | the twelve | the six more |\n" in first
    assert "| goodput within 5 % | 1 of 1 | 1 of 1 |\n" in first
    assert "| completion of a file, verdicts | 1 agrees | 1 agrees |\n" in first
    rows = re.findall(r"^\| `(.*?)` \| flow \| .* \| \+?0 ± 0 \| agrees \|$", first, flags=re.MULTILINE)
    assert rows.count("steady") == rows.count("other") == 3, "goodput, completion, retransmissions"
    again = anabranch("agreement", *options)
    assert again.returncode == 0, again.stderr
    second = document.read_text(encoding="utf-8")
    assert re.sub("; the whole suite took .*", ".", first) == second


def test_without_the_program_nothing_is_run(
    anabranch: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_BED", str(tmp_path / "missing"))
    done = anabranch("agreement", "--scenarios", folder, "--out", tmp_path / "out")
    assert done.returncode == 4
    assert done.stderr.startswith("skipped: --engine kernel needs anabranch-bed")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("fake_bed")
def test_multipath_is_also_compared_with_the_simulator_as_linux(
    anabranch: Command, folder: Path, tmp_path: Path
) -> None:
    multipath = folder.rename(folder.parent / "mptcp")
    text = STEADY.replace("NAME", "over-two").replace('"reno"', '"lia"\nprotocol = "mptcp"')
    (multipath / "over-two.toml").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    done = anabranch("agreement", "--scenarios", multipath, "--seeds", 2, "--no-files", "--out", out)
    assert done.returncode == 0, done.stderr
    _, _, table = done.stdout.partition(
        "### Goodput in Mbit/s, the simulator with Linux's scheduler and send buffer"
    )
    assert re.findall(r"^\| `(.*?)`", table, flags=re.MULTILINE) == ["over-two"], "not of plain TCP"
    manifests = [json.loads(path.read_text(encoding="utf-8")) for path in out.rglob("over-two/*/*/run.json")]
    settings = {"connection.flow.scheduler": "linux", "transport.send_buffer_tuning": "true"}
    assert [one["overrides"] for one in manifests if one["engine"] == "sim"].count(settings) == 2


def test_the_scheduler_and_send_buffer_of_linux_cost_controls_that_follow_the_delay_half(
    tmp_path: Path,
) -> None:
    ratios = {}
    for name in ("mfvl", "wvegas", "olia"):
        experiment = Experiment(SCENARIOS / "mptcp" / f"{name}-unequal-paths.toml")
        plain, alike = (
            one.run(seeds=[1], out=tmp_path)[0].summary["connections"]["flow"]["goodput_bps"]
            for one in (experiment, as_linux(experiment))
        )
        ratios[name] = alike / plain
    assert ratios["mfvl"] < 0.6
    assert ratios["wvegas"] < 0.6
    assert ratios["olia"] > 0.85


def test_a_send_buffer_that_the_scenario_gives_does_not_grow() -> None:
    alike = as_linux(Experiment(SCENARIOS / "mptcp" / "lia-small-send-buffer.toml"))
    assert alike.overrides == {"connection.flow.scheduler": "linux"}
    plain = Experiment(SCENARIOS / "mptcp" / "cubic-small-send-buffer.toml")
    assert as_linux(plain) is plain


@pytest.mark.usefixtures("fake_bed")
def test_a_document_without_a_place_for_tables_is_refused_before_anything_is_run(
    anabranch: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "agreement.md").write_text("# By hand\n", encoding="utf-8")
    for document in ("agreement.md", "missing.md"):
        options = ("--scenarios", folder, "--out", tmp_path / "out", "--write", tmp_path / document)
        done = anabranch("agreement", *options)
        assert done.returncode == 2
        assert document in done.stderr
    assert anabranch("agreement", "--scenarios", tmp_path).returncode == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("fake_bed")
def test_too_few_runs_that_count_are_an_error_and_leave_the_document_alone(
    anabranch: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BED", "loses the second")
    document = tmp_path / "agreement.md"
    before = document.read_text(encoding="utf-8")
    options = (
        "--scenarios",
        folder,
        "--seeds",
        2,
        "--out",
        tmp_path / "out",
        "--no-extra",
        "--write",
        document,
    )
    done = anabranch("agreement", *options)
    assert done.returncode == 1
    assert "error: steady (bulk): too few runs count\n" in done.stderr
    assert "steady (bulk), seed 2: lateness p99 3.1 ms, above 2 ms" in done.stdout
    assert "| `steady` | - | - | too few runs count | - | - |" in done.stdout
    assert "other" not in done.stdout
    assert document.read_text(encoding="utf-8") == before


@pytest.mark.usefixtures("fake_bed")
def test_the_quick_check_fails_where_a_goal_is_missed(
    anabranch: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = folder / "reno-20mbit-10ms.toml"
    (folder / "steady.toml").rename(quick)
    options = ("--scenarios", folder, "--quick")
    done = anabranch("agreement", *options, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("FAKE_BED", "is slower")
    done = anabranch("agreement", *options, "--out", tmp_path / "slower")
    assert done.returncode == 1
    assert "error: steady (bulk): flow goodput_bps differs\n" in done.stderr
    assert "**differs**" in done.stdout


def test_both_engines_agree_on_two_scenarios(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "agreement", "--quick", "--scenarios", str(SCENARIOS)]
    command += ["--out", str(tmp_path)]
    end = time.monotonic() + LIMIT_S
    while True:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if not any(why in done.stderr for why in ("another bed runs", TOO_BUSY)) or time.monotonic() > end:
            break
        time.sleep(1)
    required = "bed" in os.environ.get("ANABRANCH_REQUIRE", "").split(",")
    if done.returncode == 4 and (TOO_BUSY in done.stderr or not required):
        pytest.skip(done.stderr.removeprefix("skipped: ").strip())
    assert done.returncode == 0, done.stderr + done.stdout
    manifests = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.rglob("run.json")]
    assert {one["engine"] for one in manifests} == {"sim", "kernel"}
