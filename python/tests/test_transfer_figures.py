"""The commands of the transfer beside MPTCP and TCP: what is run and judged; a short real check."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anabranch.cli.commands import app
from anabranch.papers import transfer
from anabranch.papers.claims import claims
from anabranch.papers.kernel import experiments
from anabranch.papers.model import Cell, Measured, Verdict
from anabranch.papers.mptcp_iot_needs import DELAY, LARGE, buffer_bytes
from anabranch.papers.transfer_document import BEGIN, END, PLOTS, draw, replaced
from support import REPOSITORY

#: A real check may have to repeat runs; this is an upper bound and not what it takes.
LIMIT_S = 300

PLAN = transfer.plan(False)


def measured(needed_kb: Callable[[Cell], float]) -> Measured:
    """Return numbers for the plan: goodput grows with the buffer until it is full with what is needed."""
    values: dict[Cell, dict[str, tuple[float, ...]]] = {}
    for planned in PLAN:
        cell = planned.cell
        part = min(1.0, 0.95 * buffer_bytes(cell) / 1e3 / needed_kb(cell))
        # What is held is twice the limit at most, and what is needed if there is no limit.
        held = min(buffer_bytes(cell), needed_kb(cell) * 1e3)
        values[cell] = {
            "goodput_bps": tuple(24e6 * part * (1 + seed / 1000) for seed in range(3)),
            **{
                f"{end}_memory": tuple(held * (1 + seed / 1000) for seed in range(3))
                for end in ("send", "receive")
            },
            "send_memory_per_socket": (held,) * 3,
            "receive_memory_per_socket": (held,) * 3,
        }
    return Measured(values)


def needing(mptcp_kb: float, sockets_kb: float) -> Measured:
    """Return numbers where MPTCP needs so much, and each of the two sockets so much."""
    return measured(lambda cell: sockets_kb if cell[1] == "mptcp-iot" else mptcp_kb)


def verdicts(numbers: Measured) -> dict[str, Verdict]:
    """Judge all claims, by their ids."""
    return {one.claim.id: one.kernel.verdict for one in transfer.judge(numbers, numbers)}


def result(numbers: Measured) -> transfer.Result:
    """Return a campaign with the same numbers on both engines."""
    judged = tuple(transfer.judge(numbers, numbers))
    return transfer.Result(
        tuple(PLAN), numbers, numbers, {"3G delay of 60 ms": (1, 2, 3)}, (), (), (), judged
    )


def test_every_claim_is_judged_or_has_a_reason() -> None:
    names = {claim.id for claim in claims("mptcp-iot")}
    assert set(transfer.NEEDS) | set(transfer.UNTESTED) == names
    assert not set(transfer.NEEDS) & set(transfer.UNTESTED)
    cells = [planned.cell for planned in PLAN]
    beginnings = {words for needed in transfer.NEEDS.values() for words in needed}
    assert all(any(cell[: len(words)] == words for cell in cells) for words in beginnings)


def test_every_line_has_a_cell_without_a_limit_and_the_campaign_ends_within_its_45_minutes() -> None:
    cells = {planned.cell for planned in PLAN}
    assert all((*cell[:-1], LARGE) in cells for cell in cells)
    assert transfer.real_time_s(False) < 45 * 60
    assert transfer.real_time_s(True) < 60
    assert all(planned.seeds >= 3 for planned in PLAN)


def test_memory_is_compared_at_sizes_that_are_half_and_a_quarter_of_each_other() -> None:
    for pairs, times in ((transfer.EQUAL, 2.0), (transfer.HALF, 4.0)):
        assert all(buffer_bytes((theirs,)) == times * buffer_bytes((ours,)) for ours, theirs in pairs)
        for kind in ("receive", "send"):
            wanted = {(kind, "mptcp-iot", DELAY, ours) for ours, _ in pairs}
            wanted |= {(kind, "mptcp", DELAY, theirs) for _, theirs in pairs}
            assert wanted <= {planned.cell for planned in PLAN}


@pytest.mark.parametrize(
    ("mptcp_kb", "sockets_kb", "equal", "half", "held"),
    [
        (1200.0, 150.0, Verdict.REPRODUCED, Verdict.REPRODUCED, Verdict.REPRODUCED),
        (1200.0, 500.0, Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.REPRODUCED),
        (600.0, 250.0, Verdict.REPRODUCED, Verdict.PARTLY, Verdict.REPRODUCED),
        (300.0, 300.0, Verdict.PARTLY, Verdict.NOT_REPRODUCED, Verdict.NOT_REPRODUCED),
        (300.0, 1200.0, Verdict.NOT_REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_REPRODUCED),
    ],
)
def test_the_verdicts_about_memory_follow_the_numbers(
    mptcp_kb: float, sockets_kb: float, equal: Verdict, half: Verdict, held: Verdict
) -> None:
    found = verdicts(needing(mptcp_kb, sockets_kb))
    assert (found["M2"], found["M1"], found["M3"]) == (equal, half, held)


def test_a_claim_that_needs_a_cell_that_is_left_out_is_not_judged() -> None:
    numbers = needing(1200.0, 150.0)
    judged = {one.claim.id: one for one in transfer.judge(numbers, numbers, [("real", "mptcp", LARGE)])}
    assert judged["S3-C9"].kernel.verdict is Verdict.NOT_TESTABLE
    assert "real, mptcp" in judged["S3-C9"].kernel.why
    assert judged["S3-C1"].kernel.verdict is not Verdict.NOT_TESTABLE


def test_the_document_has_verdicts_tables_and_plots_between_its_lines(tmp_path: Path) -> None:
    text = replaced(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n", result(needing(1200.0, 150.0)), "transfer")
    assert text.startswith(f"Before.\n{BEGIN}\n\nOf {len(claims('mptcp-iot')) + 3} claims 11 judged")
    assert text.endswith(f"{END}\nAfter.\n")
    assert "\nold\n" not in text
    assert "| receive, 75 kB | anabranchd | " in text
    row = next(line for line in text.splitlines() if line.startswith("| receive | 60 ms |"))
    assert row.split(" | ")[2:4] == ["1200 ± 0 kB", "150 ± 0 kB"]
    assert all(f"](transfer/{plot.name}.svg)" in text for plot in PLOTS)
    paths = draw(result(needing(1200.0, 150.0)), tmp_path)
    assert all(path.read_text(encoding="utf-8").count("<svg") == 1 for path in paths)


def test_the_commands_carry_the_cells_of_mptcp_iot_and_the_test_bed_the_others(
    fake_bed: Path, tmp_path: Path
) -> None:
    found = transfer.campaign(tmp_path / "out", quick=True)
    calls = fake_bed.read_text(encoding="utf-8").splitlines()
    assert len(calls) == len(experiments(transfer.plan(True))) == 2
    for call in calls:
        wanted = "anabranchd" if "down-iot" in call else "own"
        assert call.endswith(f"--application {wanted}")
        assert "direction=upload" in call
    assert found.seeds == {"3G delay of 60 ms": (1, 2)}
    by_id = {one.claim.id: one.kernel for one in found.claims}
    assert by_id["S3-C8"].why.startswith("not in the shorter plan")
    assert by_id["M1"].why.startswith("not run")
    # The stand-in has the simulator make the runs, where both use both paths.
    assert transfer.sane(found.kernel) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick", "--write", "transfer.md"], "--write: expected the whole campaign"),
        (["--write", "no/transfer.md"], "--write no/transfer.md: No such file"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_run(
    fake_bed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["transfer-figures", *arguments])
    assert found.exit_code == 2
    assert message in found.output
    assert not fake_bed.exists()


def test_the_commands_use_both_paths_on_this_machines_kernel(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "anabranch", "transfer-figures", "--quick", "--out", str(tmp_path)]
    until = time.monotonic() + LIMIT_S
    while True:
        done = subprocess.run(
            arguments, cwd=REPOSITORY, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if "another bed runs" not in done.stderr or time.monotonic() > until:
            break
        time.sleep(1)
    required = "bed" in os.environ.get("ANABRANCH_REQUIRE", "").split(",")
    if done.returncode == 4 and not required:
        pytest.skip(done.stderr.removeprefix("skipped: ").strip())
    assert done.returncode == 0, done.stderr + done.stdout
    reports = list(tmp_path.rglob("anabranchd.json"))
    assert len(reports) == 2, "two repetitions by the commands, the others by the test bed"
