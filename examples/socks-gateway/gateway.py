#!/usr/bin/env python3
"""A file over two paths to a SOCKS gateway, which passes it on by TCP: Figure 3 of MPTCP-IoT.

The test bed emulates the paper's paths; device, gateway and server are its network namespaces. On the gateway
danted runs under mptcpize, which makes its sockets those of Multipath TCP; neither knows of it. Prints one
JSON object about what the device and the server have seen. Left out: everything but the set-up; what buffers
do is measured by ``anabranch reproduce mptcp-iot --engine kernel``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios/papers/mptcp-iot/mptcp.toml"

#: Linux's own MPTCP has neither.
OVERRIDES = ("transport.opportunistic_retransmission=false", "transport.penalisation=false")

SOCKS_PORT, SERVER_PORT = 1080, 5001

#: From <linux/mptcp.h> and <linux/tcp.h>; Python 3.11 has no names for them.
IPPROTO_MPTCP, SOL_MPTCP, MPTCP_INFO, TCP_IS_MPTCP = 262, 284, 1, 43

#: How long anything may take, in seconds.
LIMIT_S = 60.0

#: Seed of the file.
SEED = 1

CONFIGURATION = """\
logoutput: stderr
internal: {inside} port = {port}
external: {outside}
clientmethod: none
socksmethod: none
user.privileged: root
user.unprivileged: nobody
client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}
socks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}
"""


class NoGateway(Exception):
    """It could not be set up; the message says why."""


def content(size: int) -> bytes:
    """Return the file."""
    return random.Random(SEED).randbytes(size)


def serve(address: str) -> None:
    """Accept one connection of plain TCP, and answer with the SHA-256 of what it brought."""
    with socket.create_server((address, SERVER_PORT)) as listener:
        listener.settimeout(LIMIT_S)
        print("listening", flush=True)
        connection, _ = listener.accept()
        digest = hashlib.sha256()
        with connection:
            while data := connection.recv(1 << 16):
                digest.update(data)
            connection.sendall(digest.digest())


def send(own: str, gateway: str, server: str, size: int) -> dict[str, Any]:
    """Send the file to the server through the gateway, from inside of the device."""
    data = content(size)
    before = _sent_bytes()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as stream:
        stream.settimeout(LIMIT_S)
        stream.bind((own, 0))
        stream.connect((gateway, SOCKS_PORT))
        _ask_for(stream, server, SERVER_PORT)
        begun_s = time.monotonic()
        stream.sendall(data)
        # The first byte of the structure is the number of subflows beside the first.
        subflows = 1 + stream.getsockopt(SOL_MPTCP, MPTCP_INFO, 256)[0]
        is_mptcp = stream.getsockopt(socket.IPPROTO_TCP, TCP_IS_MPTCP) == 1
        stream.shutdown(socket.SHUT_WR)
        digest = _exactly(stream, hashlib.sha256().digest_size)
        seconds = time.monotonic() - begun_s
    sent = {name: value - before[name] for name, value in _sent_bytes().items()}
    return {
        "bytes": size,
        "is_whole": digest == hashlib.sha256(data).digest(),
        "is_mptcp": is_mptcp,
        "subflows": subflows,
        "seconds": round(seconds, 3),
        "sent_bytes": sent,
    }


def _ask_for(stream: socket.socket, address: str, port: int) -> None:
    """Ask a SOCKS server, without authentication, for a connection (RFC 1928, sections 3, 4 and 6)."""
    stream.sendall(b"\x05\x01\x00")
    if _exactly(stream, 2) != b"\x05\x00":
        raise NoGateway("the SOCKS server wants authentication")
    stream.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(address) + port.to_bytes(2, "big"))
    reply = _exactly(stream, 10)
    if reply[1] != 0:
        raise NoGateway(f"the SOCKS server does not connect to {address}: reply {reply[1]} of RFC 1928")


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise NoGateway(f"the connection ended after {len(data)} of {count} bytes")
        data += more
    return data


def _sent_bytes() -> dict[str, int]:
    """Return what each interface but the loopback has sent, headers included."""
    return {
        folder.name: int((folder / "statistics/tx_bytes").read_text(encoding="ascii"))
        for folder in sorted(Path("/sys/class/net").iterdir())
        if folder.name != "lo"
    }


@contextlib.contextmanager
def emulated(bed: str) -> Iterator[Mapping[str, Mapping[str, str]]]:
    """Have the test bed build hosts and links; yield their addresses by node and link."""
    command = [bed, "emulate", str(SCENARIO)]
    for override in OVERRIDES:
        command += ["--set", override]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield _hosts(process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT_S)


def _hosts(process: subprocess.Popen[str]) -> Mapping[str, Mapping[str, str]]:
    assert process.stdout is not None
    hosts: dict[str, dict[str, str]] = {}
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        words = line.split()
        if line.startswith("anabranch-"):
            host = hosts.setdefault(words[0].removeprefix("anabranch-"), {})
        elif line.startswith("  if") and len(words) == 3:
            host[words[1]] = words[2]
        elif line.startswith("Ctrl-C"):
            return hosts
    raise NoGateway("; ".join(lines))


def _inside(node: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", f"anabranch-{node}", *command]


def _self(node: str, *arguments: str) -> list[str]:
    return _inside(node, sys.executable, str(Path(__file__).resolve()), *arguments)


@contextlib.contextmanager
def running(command: list[str], sign: str) -> Iterator[None]:
    """Run a program that says ``sign`` when it is ready; it has ended afterwards."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line.strip())
                if sign in line:
                    break
            else:
                raise NoGateway(f"{' '.join(command[4:])}: {'; '.join(lines)}")
            yield
        finally:
            process.terminate()
            try:
                process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def transfer(bed: str, size: int) -> dict[str, Any]:
    """Set everything up, send the file, and say what came of it."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        hosts = stack.enter_context(emulated(bed))
        gateway, outside = hosts["gateway"]["wifi-core"], hosts["gateway"]["onward"]
        server = hosts["server"]["onward"]
        configuration = Path(folder) / "danted.conf"
        configuration.write_text(
            CONFIGURATION.format(inside=gateway, outside=outside, port=SOCKS_PORT), encoding="ascii"
        )
        stack.enter_context(running(_self("server", "--serve", server), "listening"))
        danted = _inside("gateway", "mptcpize", "run", "danted", "-f", str(configuration))
        stack.enter_context(running(danted, "running"))
        arguments = ["--send", hosts["device"]["wifi"], gateway, server, "--bytes", str(size)]
        done = subprocess.run(
            _self("device", *arguments), capture_output=True, text=True, check=False, timeout=2 * LIMIT_S
        )
        if done.returncode:
            raise NoGateway(done.stderr.strip())
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description="A file over two paths to a SOCKS gateway.")
    parser.add_argument("--bytes", type=int, default=4_000_000, help="size of the file")
    parser.add_argument(
        "--bed", default=os.environ.get("ANABRANCH_BED", "anabranch-bed"), help="the test bed"
    )
    parser.add_argument("--serve", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--send", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    try:
        if given.serve:
            serve(given.serve)
        elif given.send:
            own, gateway, server = given.send
            print(json.dumps(send(own, gateway, server, given.bytes)))
        else:
            for program in (given.bed, "danted", "mptcpize", "ip"):
                if shutil.which(program) is None:
                    raise NoGateway(f"{program} is missing; on Debian: apt-get install dante-server mptcpize")
            print(json.dumps(transfer(given.bed, given.bytes), indent=2))
    except NoGateway as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
