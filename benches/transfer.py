#!/usr/bin/env python3
"""How fast `anabranchd send` is over the loopback interface.

Against `iperf3` under `mptcpize`, out of memory and from file to file (`-F`), TLS against plaintext, and
small files against one of their total size. `make bench-transfer` runs it; docs/transfer.md has its figures.

Beside it is what the folder alone takes: `dd` and `cp` of the same files, made permanent. All kinds are run
in turn, `--rounds` times, so that what else the machine does meets each alike; ratios are of the same
round, and the median of them is told. Sending is timed from the first socket to the last answer, so it
includes that all is on stable storage; iperf3 tells the rate at its receiver.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PORT = 7431


def iperf3_seconds(size_bytes: int, files: tuple[Path, Path] | None) -> float:
    """How long iperf3 takes over one connection of Multipath TCP, out of memory or from file to file."""
    wrapped = ["mptcpize", "run", "iperf3", "-p", str(PORT)]
    source, sink = ([], []) if files is None else (["-F", str(files[0])], ["-F", str(files[1])])
    server = subprocess.Popen([*wrapped, "-s", "-1", *sink], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            time.sleep(0.05)
            client = [*wrapped, "-c", "127.0.0.1", "-n", str(size_bytes), "-J", *source]
            said = json.loads(subprocess.run(client, capture_output=True, text=True).stdout)
            if "error" not in said:
                server.wait(10)
                return float(said["end"]["sum_received"]["seconds"])
        raise SystemExit(f"iperf3: {said['error']}")
    finally:
        server.kill()
        server.wait()
        if files is not None:
            files[1].unlink(missing_ok=True)


def copy_seconds(files: list[Path], place: Path, *, keeps: bool) -> float:
    """How long a copy takes that is made permanent."""
    folder = tempfile.mkdtemp(prefix="copy", dir=place)
    begin = time.perf_counter()
    if len(files) == 1:
        command = ["dd", f"if={files[0]}", f"of={folder}/copy", "bs=64K", "conv=fsync"]
        subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    else:
        subprocess.run(["cp", "-t", folder, *map(str, files)], check=True)
        subprocess.run(["sync", "-f", folder], check=True)
    seconds = time.perf_counter() - begin
    if not keeps:
        shutil.rmtree(folder)
    return seconds


class Transfer:
    """Keys and a folder to receive into."""

    def __init__(self, command: str, place: Path) -> None:
        self.command = command
        self.place = place
        self.keys = [self._key("sender"), self._key("receiver")]

    def _key(self, role: str) -> str:
        made = subprocess.run(
            [self.command, "keygen", "--key", str(self.place / role)],
            capture_output=True,
            text=True,
            check=True,
        )
        return made.stdout.strip()

    def seconds(self, files: list[Path], *, secret: bool = False, keeps: bool = False) -> float:
        """How long sending files takes, until all are received for good."""
        folder = Path(tempfile.mkdtemp(prefix="in", dir=self.place))
        trust = (
            ["--key", str(self.place / "receiver"), "--trust", self.keys[0]] if secret else ["--plaintext"]
        )
        whom = ["--key", str(self.place / "sender"), "--peer", self.keys[1]] if secret else ["--plaintext"]
        receive = [
            self.command,
            "receive",
            "--dir",
            str(folder),
            "--listen",
            "127.0.0.1:0",
            "--once",
            "--json",
        ]
        with (self.place / "said").open("w") as said:
            receiver = subprocess.Popen([*receive, *trust], stdout=said)
        try:
            address = self._address()
            send = [self.command, "send", *map(str, files), address, "--json", *whom]
            outcome = json.loads(subprocess.run(send, capture_output=True, text=True, check=True).stdout)
            receiver.wait(20)
        finally:
            receiver.kill()
            receiver.wait()
        there = sum(path.stat().st_size for path in folder.iterdir())
        assert there == sum(path.stat().st_size for path in files)
        if not keeps:
            shutil.rmtree(folder)
        return float(outcome["seconds"])

    def _address(self) -> str:
        for _ in range(200):
            lines = (self.place / "said").read_text().splitlines(keepends=True)
            if lines and lines[0].endswith("\n"):
                return str(json.loads(lines[0])["address"])
            time.sleep(0.02)
        raise SystemExit("the receiver does not listen")


def warm_memory(size_bytes: int) -> None:
    """Touch so much memory and give it back.

    A virtual machine may have to ask its host for each page that it has not used for some seconds, which
    takes longer than copying it. What follows finds pages that are there.
    """
    with mmap.mmap(-1, size_bytes) as memory:
        for at in range(0, size_bytes, mmap.PAGESIZE):
            memory[at] = 1


def write_noise(path: Path, size_bytes: int) -> None:
    """Write bytes that cannot be guessed."""
    with path.open("wb") as file:
        for at in range(0, size_bytes, 1 << 20):
            file.write(os.urandom(min(1 << 20, size_bytes - at)))


def main() -> None:
    """Measure what the arguments say."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", default="target/release/anabranchd")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--size-mib", type=int, default=256, help="of the large file")
    options.add_argument("--small-files", type=int, default=1000)
    options.add_argument("--small-kib", type=int, default=16, help="of each small file")
    options.add_argument("--place", type=Path, help="folder for files, sent and received; default /dev/shm")
    options.add_argument("--only", choices=["large", "small"])
    chosen = options.parse_args()
    place = Path(tempfile.mkdtemp(dir=chosen.place or "/dev/shm"))
    try:
        measure(chosen, place)
    finally:
        shutil.rmtree(place)


def measure(chosen: argparse.Namespace, place: Path) -> None:
    """Measure in a folder, and print."""
    transfer = Transfer(chosen.command, place)
    large, size_bytes = place / "large", chosen.size_mib << 20
    one = place / "one"
    folder = place / "small"
    folder.mkdir()
    small = [folder / f"{number:04}" for number in range(chosen.small_files)]
    if chosen.only != "small":
        write_noise(large, size_bytes)
    if chosen.only != "large":
        write_noise(one, chosen.small_files * chosen.small_kib << 10)
        for path in small:
            write_noise(path, chosen.small_kib << 10)
    # What was written for the measurement is not to be made permanent during it.
    os.sync()
    seconds: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}

    def took(what: str, run: Callable[[], float], bytes_written: int) -> float:
        warm_memory(bytes_written + (256 << 20))
        time_s = run()
        seconds.setdefault(what, []).append(time_s)
        return time_s

    small_bytes = chosen.small_files * chosen.small_kib << 10

    for _ in range(chosen.rounds):
        if chosen.only != "small":
            copied = took("copy", lambda: copy_seconds([large], place, keeps=False), size_bytes)
            iperf3 = took("iperf3", lambda: iperf3_seconds(size_bytes, None), 0)
            between = took(
                "iperf3 -F", lambda: iperf3_seconds(size_bytes, (large, place / "iperf3")), size_bytes
            )
            plain = took("plaintext", lambda: transfer.seconds([large]), size_bytes)
            tls = took("TLS", lambda: transfer.seconds([large], secret=True), size_bytes)
            ratios.setdefault("plaintext / iperf3", []).append(iperf3 / plain)
            ratios.setdefault("plaintext / iperf3 -F", []).append(between / plain)
            ratios.setdefault("copy / iperf3", []).append(iperf3 / copied)
            ratios.setdefault("TLS / plaintext", []).append(plain / tls)
        if chosen.only != "large":
            # What is received stays until the end: emptied, a folder of ext4 gives no inodes for five seconds
            # and takes long to find that out, and memory that was just freed is faster than other.
            whole = took("one file", lambda: transfer.seconds([one], keeps=True), small_bytes)
            many = took("small files", lambda: transfer.seconds(small, keeps=True), small_bytes)
            ratios.setdefault("time of small files / of one", []).append(many / whole)
            copied = took("copy of one", lambda: copy_seconds([one], place, keeps=True), small_bytes)
            copies = took("small copies", lambda: copy_seconds(small, place, keeps=True), small_bytes)
            ratios.setdefault("the same, of copies", []).append(copies / copied)
    for what, times in seconds.items():
        size = (
            small_bytes if what in ("one file", "small files", "copy of one", "small copies") else size_bytes
        )
        rate = size / statistics.median(times) / 2**20
        spread = f"{min(times):.3f} to {max(times):.3f} s"
        print(f"{what:12} median {statistics.median(times):7.3f} s, {rate:6.0f} MiB/s; {spread}")
    for what, values in ratios.items():
        print(f"{what:30} median {statistics.median(values):.2f}; {min(values):.2f} to {max(values):.2f}")


if __name__ == "__main__":
    main()
