"""The example of a SOCKS gateway, on this machine's kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from anabranch.bed import Unavailable, find
from support import REPOSITORY

GATEWAY = REPOSITORY / "examples/socks-gateway/gateway.py"

#: Far above what it takes; another bed may run before.
LIMIT_S = 300

SIZE = 4_000_000


@pytest.fixture
def bed() -> str:
    """The test bed; without it, or a program of the example, the test is skipped."""
    for program in ("danted", "mptcpize"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing; on Debian: apt-get install dante-server mptcpize")
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    try:
        return str(find())
    except Unavailable as error:
        pytest.skip(str(error))


def test_a_file_reaches_the_server_whole_through_danted_over_two_subflows(bed: str) -> None:
    command = [sys.executable, str(GATEWAY), "--bed", bed, "--bytes", str(SIZE)]
    until = time.monotonic() + LIMIT_S
    while True:
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if "another bed runs" not in done.stderr or time.monotonic() > until:
            break
        time.sleep(1)
    if "skipped: " in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bytes"] == SIZE
    assert found["is_whole"]
    assert found["is_mptcp"]
    assert found["subflows"] == 2
    # Headers are counted, so together they have sent more than the file; each has carried a part of it.
    wifi, cell = found["sent_bytes"]["if0"], found["sent_bytes"]["if1"]
    assert wifi + cell > SIZE
    assert min(wifi, cell) > SIZE / 20
    # It cannot be faster than 20 and 5 Mbit/s together.
    assert found["seconds"] > 8 * SIZE / 25e6
