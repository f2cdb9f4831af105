"""Packets and logs of runs, from Python and on the command line."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import anabranch as ab
from support import Command


def pcap_packets(path: Path) -> list[bytes]:
    """The packets of a classic pcap file with Ethernet headers."""
    content = path.read_bytes()
    magic, linktype = struct.unpack_from("<I16xI", content)
    assert (magic, linktype) == (0xA1B2C3D4, 1)
    packets, at = [], 24
    while at < len(content):
        (length,) = struct.unpack_from("<8xI", content, at)
        packets.append(content[at + 16 : at + 16 + length])
        at += 16 + length
    return packets


def test_a_run_has_the_files_that_it_was_asked_for(scenario: Path, tmp_path: Path) -> None:
    experiment = ab.load(scenario).with_(duration="2 s")
    plain = experiment.run(out=tmp_path)
    assert (plain.packets, plain.qlog) == (None, None)
    logged = experiment.run(out=tmp_path, capture=True, qlog=True)
    assert not logged.reused
    assert logged.packets == logged.path / "packets.pcapng"
    assert logged.qlog == logged.path / "events.qlog"
    assert logged.packets.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    traces = json.loads(logged.qlog.read_text(encoding="utf-8"))["traces"]
    assert [trace["title"] for trace in traces] == ["meter/p1 at S", "meter/p2 at S"]
    assert logged.figures == plain.figures
    assert experiment.run(out=tmp_path).reused
    assert experiment.run(out=tmp_path, capture=True).reused


def test_a_host_sees_what_it_sends_and_what_reaches_it(scenario: Path, tmp_path: Path) -> None:
    run = ab.load(scenario).with_(duration="2 s").run(out=tmp_path / "out", capture=True)
    sender, receiver = tmp_path / "s.pcap", tmp_path / "d.pcap"
    host, packets = run.export_packets(sender)
    assert host == "S", "the opener"
    assert run.export_packets(receiver, "D").host == "D"
    sent = [packet for packet in pcap_packets(sender) if packet[6:12] == b"\x02\0\0\0\0\x01"]
    received = [packet for packet in pcap_packets(receiver) if packet[6:12] == b"\x02\0\0\0\0\x02"]
    assert len(pcap_packets(sender)) == packets
    assert 0 < len(received) <= len(sent)
    assert all(packet[12:14] == b"\x08\x00" for packet in sent)


def test_the_command_exports_or_says_why_not(anabranch: Command, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = anabranch("run", scenario, "--set", "duration=2 s", "--out", out, "--capture", "--json")
    run = json.loads(done.stdout)["runs"][0]["path"]
    done = anabranch("export", run, "--to", tmp_path / "view.pcap", "--at", "D")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f" packets as seen at D, in {tmp_path / 'view.pcap'}\n")
    done = anabranch("export", run, "--to", tmp_path / "view.pcap", "--at", "R1")
    assert done.returncode == 2
    assert done.stderr.endswith('no packets begin or end at "R1"; expected one of D, S\n')
    done = anabranch("run", scenario, "--set", "duration=1 s", "--out", out, "--json")
    plain = json.loads(done.stdout)["runs"][0]["path"]
    done = anabranch("export", plain, "--to", tmp_path / "view.pcap")
    assert done.returncode == 2
    assert done.stderr.endswith("it has no packets.pcapng; make it again with --capture\n")


def test_a_file_that_the_simulator_does_not_write_is_a_mistake(scenario: Path, tmp_path: Path) -> None:
    loaded = ab.load(scenario).scenario
    with pytest.raises(ValueError, match=r"colours\.txt"):
        loaded.run(1, tmp_path, False, ["colours.txt"], ab._engine.Control())
