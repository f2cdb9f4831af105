"""Laying runs side by side: who is compared, and the figures with their intervals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from anabranch import _engine
from anabranch.results import Run, Subject
from anabranch.stats import Estimate, estimate


@dataclass(frozen=True)
class Variant:
    """Runs that differ in nothing but the seed, in the order of their seeds."""

    label: str
    runs: tuple[Run, ...]

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.runs[0].manifest["scenario"])

    @property
    def overrides(self) -> dict[str, str]:
        """Overrides of the scenario."""
        return dict(self.runs[0].manifest["overrides"])

    @property
    def engine(self) -> str:
        """What carried the packets, ``sim`` or ``kernel``."""
        return self.runs[0].engine

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds, ascending."""
        return tuple(run.seed for run in self.runs)


class Row(NamedTuple):
    """One figure of every variant.

    ``differences`` holds, for every variant but the first, the mean of its value minus that of the first
    with the same seed; None without two common seeds. Paired so, what the seed does to both cancels out.
    """

    subject: Subject
    metric: str
    estimates: tuple[Estimate | None, ...]
    differences: tuple[Estimate | None, ...]


class Collection(NamedTuple):
    """The variants found, and what was left out."""

    variants: tuple[Variant, ...]
    notes: tuple[str, ...]


def collect(paths: Sequence[Path]) -> Collection:
    """Find the runs in some folders and sort them into variants.

    Parameters
    ----------
    paths
        Run folders, or folders with run folders somewhere in them. From the latter, runs of other
        versions of an engine are left out: of the simulator, if there are runs of this version; of the
        kernel engine, those of all versions but that of the youngest run. Of congestion controls in Python
        the text of the youngest run counts.

    Returns
    -------
    Collection
        Variants in the order of ``paths``, within a folder by their overrides, the simulator first. Runs
        that do not count are in no variant; the notes name them.

    Raises
    ------
    RunFolderError
        If a folder holds no run, or a damaged one; if no run counts.
    """
    by_key: dict[str, dict[int, Run]] = {}
    notes = []
    for path in paths:
        found, left_out = _runs_in(path)
        notes += left_out
        for run in found:
            if run.invalid:
                notes.append(f"{run.path}: does not count: {'; '.join(run.invalid)}")
            else:
                by_key.setdefault(run.key, {}).setdefault(run.seed, run)
    if not by_key:
        raise _engine.RunFolderError(f"no run that counts: {' | '.join(notes)}")
    variants = [
        Variant(label="", runs=tuple(seeds[seed] for seed in sorted(seeds))) for seeds in by_key.values()
    ]
    return Collection(_labelled(variants), tuple(dict.fromkeys(notes)))


def _runs_in(path: Path) -> tuple[list[Run], list[str]]:
    if (path / "run.json").exists():
        return [Run(path)], []
    manifests = sorted(path.rglob("run.json"))
    folders = [found.parent for found in manifests if not found.parent.name.startswith(".")]
    if not folders:
        raise _engine.RunFolderError(f"{path}: no run folder here (a run folder has a run.json)")
    runs = [Run(folder) for folder in folders]
    kept, notes = [], []
    for engine in sorted({run.engine for run in runs}, key=_rank):
        of_engine = [run for run in runs if run.engine == engine]
        version = _version_to_keep(engine, of_engine)
        current = [run for run in of_engine if version is None or _is_of(run, version)]
        if others := len(of_engine) - len(current):
            what = "anabranch" if engine == "sim" else f"the {engine} engine than {version}"
            notes.append(f"{path}: {others} runs of other versions of {what} are left out")
        youngest = _with_youngest_texts(current) if version is not None else current
        if earlier := len(current) - len(youngest):
            notes.append(f"{path}: {earlier} runs with earlier texts of congestion controls are left out")
        kept += youngest
    kept.sort(
        key=lambda run: (
            len(run.manifest["overrides"]),
            sorted(run.manifest["overrides"].items()),
            _rank(run.engine),
        )
    )
    return kept, notes


def _version_to_keep(engine: str, runs: Sequence[Run]) -> str | None:
    """Return the version whose runs are compared; None: those of all versions."""
    if engine == "sim":
        return _engine.VERSION if any(_is_of(run, _engine.VERSION) for run in runs) else None
    return str(max(runs, key=_age).manifest["version"])


def _is_of(run: Run, version: str) -> bool:
    """Say whether a version has made a run; texts of congestion controls in Python may be added to it."""
    found = str(run.manifest["version"])
    return found == version or found.startswith(f"{version}+")


def _with_youngest_texts(runs: Sequence[Run]) -> list[Run]:
    """Return the runs without those whose congestion controls in Python have been written anew since."""
    youngest: dict[str, Run] = {}
    for run in sorted(runs, key=_age):
        youngest[_what(run)] = run
    return [run for run in runs if run.manifest["version"] == youngest[_what(run)].manifest["version"]]


def _what(run: Run) -> str:
    return json.dumps([run.manifest["canonical"], run.manifest["overrides"]])


def _age(run: Run) -> int:
    return (run.path / "run.json").stat().st_mtime_ns


def _rank(engine: str) -> tuple[bool, str]:
    """Order engines: the simulator first."""
    return engine != "sim", engine


def _labelled(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Name variants by what distinguishes them."""
    several_scenarios = len({variant.scenario for variant in variants}) > 1
    several_engines = len({variant.engine for variant in variants}) > 1
    keys = sorted({key for variant in variants for key in variant.overrides})
    distinguishing = [key for key in keys if len({_value(variant, key) for variant in variants}) > 1]
    labels = []
    for variant in variants:
        parts = [f"{key.rpartition('.')[2]}={_value(variant, key)}" for key in distinguishing]
        parts += [variant.engine] * several_engines
        if several_scenarios or not parts:
            parts.insert(0, variant.scenario)
        labels.append(" ".join(parts))
    return relabelled(variants, labels)


def relabelled(variants: Sequence[Variant], labels: Sequence[str]) -> tuple[Variant, ...]:
    """Return the variants with other labels; equal ones are told apart by their run key."""
    return tuple(
        replace(
            variant,
            label=f"{label} {variant.runs[0].key[:12]}" if labels.count(label) > 1 else label,
        )
        for variant, label in zip(variants, labels, strict=True)
    )


def _value(variant: Variant, key: str) -> str:
    """Value of a dotted key: as overridden, else as in the file."""
    if key in variant.overrides:
        return variant.overrides[key].strip("\"'")
    value: Any = variant.runs[0].manifest["canonical"]
    for part in key.split("."):
        if isinstance(value, list):
            named = [item for item in value if isinstance(item, dict) and item.get("name") == part]
            numbered = value[int(part) : int(part) + 1] if part.isdecimal() else []
            value = next(iter(named or numbered), None)
        else:
            value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = value.get("name")
    return "default" if value is None else str(value)


def compare(variants: Sequence[Variant]) -> list[Row]:
    """Return every figure of the variants, in the order of the engine.

    Parameters
    ----------
    variants
        At least one.

    Returns
    -------
    list of Row
        The figures; an estimate is None where no run of the variant has the figure.
    """
    tables = [by_figure(variant.runs) for variant in variants]
    names = list(dict.fromkeys(name for table in tables for name in table))
    rows = []
    for subject, metric in names:
        samples = [table.get((subject, metric), {}) for table in tables]
        rows.append(
            Row(
                subject,
                metric,
                tuple(estimate(list(sample.values())) if sample else None for sample in samples),
                tuple(_paired(samples[0], sample) for sample in samples[1:]),
            )
        )
    return rows


#: Values of one figure by seed.
Sample = dict[int, float]


def by_figure(runs: Iterable[Run]) -> dict[tuple[Subject, str], Sample]:
    """Return the values of every figure by seed, in the order of the engine."""
    table: dict[tuple[Subject, str], Sample] = {}
    for run in runs:
        for subject, metric, value in run.figures:
            table.setdefault((subject, metric), {})[run.seed] = value
    return table


def _paired(first: Sample, other: Sample) -> Estimate | None:
    common = [seed for seed in first if seed in other]
    if len(common) < 2:
        return None
    largest = max(abs(sample[seed]) for sample in (first, other) for seed in common)
    return estimate([other[seed] - first[seed] for seed in common], of=largest)
