"""Results of NetPerfMeter as tables: files that 1.9.4 wrote, and what is no file of it.

``data/netperfmeter`` was written over loopback within three seconds: a TCP flow of 4 messages of 1000 B a
second, and 2 of 200 B back, and a UDP flow of 5 messages of 300 B a second.
"""

from __future__ import annotations

import bz2
from pathlib import Path

import pyarrow.parquet
import pytest

from anabranch.netperfmeter import Kind, NetPerfMeterError, Table, read
from support import REPOSITORY, Command

DATA = REPOSITORY / "python" / "tests" / "data" / "netperfmeter"


def _rows(table: Table, **wanted: object) -> list[int]:
    """Return which rows have these values."""
    return [
        row
        for row in range(table.rows)
        if all(table.columns[name][row] == value for name, value in wanted.items())
    ]


def _scalar(table: Table, node: str, subject: str, name: str) -> float:
    (row,) = _rows(table, node=node, subject=subject, name=name)
    return float(table.columns["value"][row])


def test_scalars_of_both_ends_tell_the_same_transfer() -> None:
    table = read(DATA / "scalar-active.sca.bz2", DATA / "scalar-passive.sca.bz2")
    assert table.kind is Kind.SCALARS
    for flow, message_bytes in ((0, 1000), (1, 300)):
        subject = f"flow[{flow}]"
        sent = _scalar(table, "active", subject, "Transmitted Bytes")
        received = _scalar(table, "passive", subject, "Received Bytes")
        assert sent == received
        assert sent == message_bytes * _scalar(table, "passive", subject, "Received Packets")
    assert {table.columns["flow"][row] for row in _rows(table, subject="flow[1]")} == {1}
    assert {table.columns["flow"][row] for row in _rows(table, subject="total")} == {None}
    idle = _scalar(table, "active", "totalCPU", "Idle")
    assert 0.0 <= idle <= 100.0


def test_the_overview_adds_up_to_its_last_row_which_is_within_the_scalars() -> None:
    table = read(DATA / "vector-passive.vec.bz2")
    scalars = read(DATA / "scalar-passive.sca.bz2")
    assert table.kind is Kind.OVERVIEW
    for flow, description in ((0, "bulk transfer"), (1, "voice")):
        rows = _rows(table, flow=flow, description=description, action="received")
        received = [table.columns["bytes"][row] for row in rows]
        assert received == sorted(received)
        assert sum(table.columns["bytes_since"][row] for row in rows) == received[-1] > 0
        # The scalars go on to the end, the overview to the last statistics.
        assert received[-1] <= _scalar(scalars, "passive", f"flow[{flow}]", "Received Bytes")
    times_s = [table.columns["time_s"][row] for row in _rows(table, flow=None, action="sent")]
    intervals_s = [table.columns["interval_s"][row] for row in _rows(table, flow=None, action="sent")]
    assert times_s[0] == 0.0
    assert sum(intervals_s) == pytest.approx(times_s[-1], abs=1e-5), "both are printed to a microsecond"


def test_a_flow_has_a_row_for_each_message() -> None:
    table = read(DATA / "vector-passive-00000001-0000.vec.bz2")
    assert table.kind is Kind.FLOW
    assert list(table.columns["sequence"]) == list(range(2, 15)), (
        "what came before the first statistics is not there"
    )
    assert set(table.columns["bytes_since"]) == {300}
    assert all(0.0 < delay < 1.0 for delay in table.columns["delay_ms"]), "milliseconds, on loopback"
    assert table.columns["epoch_us"][0] // 1_000_000 == 1_795_277_849


def test_tables_go_to_pandas_and_arrow() -> None:
    table = read(DATA / "vector-active.vec.bz2")
    frame = table.to_pandas()
    assert frame.flow.isna().sum() == 12, "three rows for the sum of the flows, four times"
    received = frame[(frame.flow == 0) & (frame.action == "received")]
    assert received.bytes.iloc[-1] == table.to_arrow().to_pandas().loc[received.index[-1], "bytes"]
    scalars = read(DATA / "scalar-active.sca.bz2").to_pandas()
    assert scalars[scalars.name == "Transmitted Bytes"].set_index("subject").value["total"] > 0


def test_the_command_writes_one_table_of_several_files(anabranch: Command, tmp_path: Path) -> None:
    files = sorted(DATA.glob("vector-*-0000*.vec.bz2"))
    done = anabranch("import", "netperfmeter", *files, "--to", tmp_path / "flows.parquet")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"flow: 30 rows in {tmp_path / 'flows.parquet'}\n"
    table = pyarrow.parquet.read_table(tmp_path / "flows.parquet")
    assert table.num_rows == 30
    assert set(table["file"].to_pylist()) == {file.name for file in files}
    done = anabranch(
        "import", "netperfmeter", DATA / "scalar-active.sca.bz2", "--to", tmp_path / "scalars.csv"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scalars.csv").read_text(encoding="utf-8").startswith('"file","node","subject",')


def test_plain_files_are_read_as_compressed_ones(tmp_path: Path) -> None:
    packed = DATA / "vector-active.vec.bz2"
    plain = tmp_path / "vector.vec"
    plain.write_bytes(bz2.decompress(packed.read_bytes()))
    ours, theirs = read(plain).columns, read(packed).columns
    assert {name: ours[name] for name in ours if name != "file"} == {
        name: theirs[name] for name in theirs if name != "file"
    }


def test_a_vector_without_counts_has_fewer_columns(tmp_path: Path) -> None:
    old = tmp_path / "old.vec"
    old.write_text(
        "AbsTime RelTime SeqNumber Delay PrevPacketDelayDiff Jitter\n"
        "000001 1000000 0.5 7 1.250 0.250 0.100\n",
        encoding="utf-8",
    )
    table = read(old)
    assert {name: list(values) for name, values in table.columns.items()} == {
        "file": ["old.vec"],
        "epoch_us": [1_000_000],
        "time_s": [0.5],
        "sequence": [7],
        "delay_ms": [1.25],
        "delay_change_ms": [0.25],
        "jitter_ms": [0.1],
    }
    with pytest.raises(NetPerfMeterError, match="has other columns than"):
        read(DATA / "vector-passive-00000001-0000.vec.bz2", old)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("empty.vec", b"", "empty.vec:1: not of NetPerfMeter"),
        ("other.vec", b"time goodput\n1 2\n", "other.vec:1: not of NetPerfMeter"),
        ("cut.sca", b'scalar "netPerfMeter.active.total" "Lost Bytes"\n', "cut.sca:1: expected scalar"),
        (
            "word.sca",
            b'scalar "netPerfMeter.active.total" "Lost Bytes" no\n',
            "word.sca:1: no: expected a number",
        ),
        (
            "cut.vec",
            b"AbsTime RelTime SeqNumber Delay PrevPacketDelayDiff Jitter\n000001 1 0.5 7 1.250\n",
            "cut.vec:2: 4 values behind the row's number, expected 6",
        ),
        ("cut.vec.bz2", bz2.compress(b"AbsTime\n")[:20], "cut.vec.bz2: "),
        ("no.vec.bz2", b"AbsTime\n", "no.vec.bz2: Invalid data stream"),
    ],
)
def test_what_is_no_file_of_it_is_refused_with_its_place(
    anabranch: Command, tmp_path: Path, name: str, text: bytes, message: str
) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    with pytest.raises(NetPerfMeterError) as caught:
        read(file)
    assert message in str(caught.value)
    done = anabranch("import", "netperfmeter", file, "--to", tmp_path / "out.csv")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_files_of_different_kinds_are_no_table(anabranch: Command, tmp_path: Path) -> None:
    files = (DATA / "scalar-active.sca.bz2", DATA / "vector-active.vec.bz2")
    done = anabranch("import", "netperfmeter", *files, "--to", tmp_path / "out.csv")
    assert done.returncode == 2
    assert "holds overview" in done.stderr
    assert "expected files of one kind" in done.stderr
    done = anabranch("import", "netperfmeter", tmp_path / "none.sca", "--to", tmp_path / "out.csv")
    assert done.returncode == 2
    assert "none.sca: No such file" in done.stderr
    done = anabranch("import", "netperfmeter", files[0], "--to", tmp_path / "no" / "out.csv")
    assert done.returncode == 2
    assert "--to" in done.stderr
