#!/usr/bin/env python3
"""How far a hint in the pacing rate leads Linux's packet scheduler: tables of docs/papers-kernel.md.

Runs ``hinted`` on the test bed, which has to be built with this folder in ``ANABRANCH_ALGORITHMS``: a
connection whose application sends less than two equal paths carry, one that sends as much as it can, and the
upload over WLAN and 3G of EE-MPTCP's test bed. Prints the tables as Markdown. Four minutes of real time.
Complete runs are reused.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from anabranch.stats import estimate
from anabranch.units import number

HERE = Path(__file__).resolve().parent
EQUAL = HERE / "equal.toml"
TESTBED = HERE.parents[1] / "scenarios/papers/ee-mptcp/testbed.toml"

#: Factors of Linux's pacing rate for the first and the second subflow. Below 5/6 a subflow is also held to
#: less than its window allows.
FACTORS = (("1", "1"), ("1", "2"), ("1", "4"), ("1", "16"), ("1", "0.25"))
FEW_FACTORS = (("1", "1"), ("16", "1"), ("1", "16"))


@dataclass(frozen=True)
class Case:
    """A scenario with overrides; ``subflows`` of ``connection`` are the first and the second."""

    title: str
    path: Path
    connection: str
    subflows: tuple[str, str]
    factors: tuple[tuple[str, str], ...]
    seeds: int
    overrides: tuple[str, ...] = ()


CASES = (
    Case("15 Mbit/s over 20 + 20 Mbit/s", EQUAL, "flow", ("a", "b"), FACTORS, 3),
    Case(
        "as much as it can over 20 + 20 Mbit/s",
        EQUAL,
        "flow",
        ("a", "b"),
        FEW_FACTORS,
        3,
        ('connection.flow.traffic={ kind = "ftp" }',),
    ),
    Case(
        "EE-MPTCP's test bed, 800 kB",
        TESTBED,
        "upload",
        ("wlan", "3g"),
        FEW_FACTORS,
        5,
        ("duration=4 s", "connection.upload.traffic.size=800 kB"),
    ),
)


def measured(bed: str, case: Case, factors: tuple[str, str], out: Path) -> dict[str, list[float]]:
    """Run one case with one pair of factors; return each figure by seed, of the runs that count."""
    first, second = factors
    hinted = f'{{ name = "hinted", first = {first}, second = {second} }}'
    command = [bed, "run", str(case.path), "--seeds", str(case.seeds), "--out", str(out), "--json"]
    for override in (f"connection.{case.connection}.congestion={hinted}", *case.overrides):
        command += ["--set", override]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    runs = [Path(event["path"]) for event in events if event["event"] == "run"]
    if len(runs) < case.seeds:
        sys.exit(f"error: {case.title}: the test bed made {len(runs)} of {case.seeds} runs")
    found: dict[str, list[float]] = {}
    for run in runs:
        if json.loads((run / "run.json").read_text(encoding="utf-8"))["environment"]["invalid"]:
            continue
        for name, value in figures(case, run).items():
            found.setdefault(name, []).append(value)
    return found


def figures(case: Case, run: Path) -> dict[str, float]:
    """Read the share of the first subflow in %, and the completion in s or else the goodput in Mbit/s."""
    with (run / "summary.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["connection"] == case.connection]
    rates = [_value(rows, "throughput_bps", subflow) for subflow in case.subflows]
    found = {"share": 100 * rates[0] / sum(rates)}
    if any(row["metric"] == "completion_s" for row in rows):
        return {**found, "completion": _value(rows, "completion_s")}
    return {**found, "goodput": _value(rows, "goodput_bps") / 1e6}


def _value(rows: list[dict[str, str]], metric: str, subflow: str = "") -> float:
    return next(float(row["value"]) for row in rows if (row["metric"], row["subflow"]) == (metric, subflow))


def _text(values: list[float]) -> str:
    found = estimate(values)
    return number(found.mean, found.half_width)


def main() -> None:
    """Run what is not complete and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bed", default=os.environ.get("ANABRANCH_BED", "target/release/anabranch-bed"))
    parser.add_argument("--out", type=Path, default=Path("runs/pacing-hint"))
    given = parser.parse_args()
    for case in CASES:
        print(f"**{case.title}**, {case.seeds} repetitions\n")
        first, second = case.subflows
        heads = (f"factor, {first}", f"factor, {second}", f"bytes over {first}, %")
        print("|", " | ".join((*heads, "goodput, Mbit/s", "completion, s")), "|")
        print("|---|---|---|---|---|")
        for factors in case.factors:
            found = measured(given.bed, case, factors, given.out)
            texts = [
                _text(found[name]) if name in found else "-" for name in ("share", "goodput", "completion")
            ]
            print("|", " | ".join((*factors, *texts)), "|", flush=True)
        print()


if __name__ == "__main__":
    main()
