"""The generated part of docs/agreement.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from anabranch.agreement import Group, Kind, Measured
from anabranch.kernel_runs import lateness
from anabranch.stats import Estimate
from anabranch.units import estimate_text, number, scale_of, title_of
from anabranch.verdict import TOLERANCES, Judged, Verdict

#: What is after this line of the document is generated.
MARKER = "<!-- Generated from here on: make agreement -->"

#: From the best to the worst; of several figures the worst counts.
_ORDER = (Verdict.AGREES, Verdict.UNCLEAR, Verdict.DIFFERS)

#: The goals and where they are measured.
_GOALS = {
    "goodput_bps": (Kind.BULK, "goodput"),
    "completion_s": (Kind.FILE, "completion of a file"),
}


def document(text: str, measured: Sequence[Measured], duration_s: float | None) -> str:
    """Return the document with its generated part replaced.

    Parameters
    ----------
    text
        The document as it is; it has the marker.
    measured
        What has been measured.
    duration_s
        How long the suite has taken, if every run was made anew.

    Returns
    -------
    str
        The new document.
    """
    written, _, _ = text.partition(MARKER)
    return f"{written}{MARKER}\n\n{report(measured, duration_s)}"


def report(measured: Sequence[Measured], duration_s: float | None) -> str:
    """Return the tables as Markdown, see :func:`document`."""
    parts = [_conditions(measured, duration_s), _score(measured)]
    for group in Group:
        of_group = [one for one in measured if one.case.group is group]
        if of_group:
            parts += [f"## Measured: {group}", *_tables(of_group), *_as_linux(of_group)]
    return "\n\n".join(parts) + "\n"


def _conditions(measured: Sequence[Measured], duration_s: float | None) -> str:
    kernel = [run for one in measured for run in one.kernel]
    sim = [run for one in measured for run in one.sim]
    seeds = sorted({len(one.kernel) for one in measured})
    attempts = [int(run.environment.get("attempts", 1)) for run in kernel]
    real_s = sum(
        one.case.experiment.scenario.duration_s * int(run.environment.get("attempts", 1))
        for one in measured
        for run in one.kernel
    )
    took = "" if duration_s is None else f"; the whole suite took {_minutes(duration_s)}"
    lines = [
        f"Linux {_all(run.environment.get('kernel', 'of unknown release') for run in kernel)}, "
        f"kernel engine {_all(run.manifest['version'] for run in kernel)}, "
        f"simulator {_all(run.manifest['version'] for run in sim)}.",
        f"{' or '.join(map(str, seeds))} repetitions of each on both engines.",
        f"The runs on the kernel take {_minutes(real_s)} of real time{took}.",
        lateness(kernel),
        f"{sum(attempts) - len(attempts)} attempts were repeated; "
        f"of {len(kernel)} runs {sum(bool(run.invalid) for run in kernel)} do not count.",
    ]
    invalid = [
        f"  - {one.case.name} ({one.case.kind}), seed {run.seed}: {'; '.join(run.invalid)}"
        for one in measured
        for run in one.kernel
        if run.invalid
    ]
    return "\n".join(["## Conditions", "", *(f"- {line}" for line in lines), *invalid])


def _all(texts: Iterable[object]) -> str:
    return ", ".join(f"`{text}`" for text in sorted({str(text) for text in texts}))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _score(measured: Sequence[Measured]) -> str:
    """Count the scenarios whose goals are met, by group."""
    groups = list(dict.fromkeys(one.case.group for one in measured))
    rows = [["goal", *groups]]
    for metric, (kind, name) in _GOALS.items():
        chosen = [[one for one in measured if one.case.group is g and one.case.kind is kind] for g in groups]
        within = f"{name} within {100 * TOLERANCES[metric].share:g} %"
        rows.append([within, *(f"{sum(_is_within(o, metric) for o in c)} of {len(c)}" for c in chosen)])
        verdicts = [[_worst(one, metric) for one in cases] for cases in chosen]
        counts = [", ".join(f"{found.count(v)} {v}" for v in Verdict if v in found) for found in verdicts]
        rows.append([f"{name}, verdicts", *(text or "-" for text in counts)])
    return "## Result\n\n" + _markdown(rows)


def _of_metric(one: Measured, metric: str) -> list[Judged]:
    return [judged for judged in one.judged() if judged.metric == metric]


def _is_within(one: Measured, metric: str) -> bool:
    """Whether the means of all connections of a scenario are within the tolerance."""
    judged = _of_metric(one, metric)
    return bool(judged) and all(each.is_within for each in judged)


def _worst(one: Measured, metric: str) -> Verdict:
    verdicts = [judged.verdict for judged in _of_metric(one, metric)]
    return max(verdicts, key=_ORDER.index, default=Verdict.UNCLEAR)


def _tables(measured: Sequence[Measured]) -> list[str]:
    """Return a table for each figure, the goals first."""
    tables = []
    for metric, tolerance in TOLERANCES.items():
        kind = Kind.FILE if metric == "completion_s" else Kind.BULK
        unit = scale_of(metric).unit
        head = ["scenario", "of", "simulator", "kernel", "difference, %", "verdict"]
        rows = [head]
        for one in measured:
            if one.case.kind is not kind:
                continue
            for judged in _of_metric(one, metric):
                rows.append([f"`{one.case.name}`", str(judged.subject), *_compared(judged)])
            if not one.counts:
                rows.append([f"`{one.case.name}`", "-", "-", "too few runs count", "-", "-"])
        title = f"### {title_of(metric).capitalize()}" + (f" in {unit}" if unit else "")
        aim = "goal" if tolerance.is_goal else "for information"
        tables.append(f"{title}\n\nTolerance {100 * tolerance.share:g} %, {aim}.\n\n{_markdown(rows)}")
    return tables


def _as_linux(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield a table of goodput beside that of the simulator with Linux's scheduler, if it was run."""
    found = [
        (one.case.name, judged)
        for one in measured
        for judged in one.judged_as_linux()
        if judged.metric == "goodput_bps"
    ]
    if found:
        head = ["scenario", "of", "simulator as Linux", "kernel", "difference, %", "verdict"]
        rows = [[f"`{name}`", str(judged.subject), *_compared(judged)] for name, judged in found]
        unit = scale_of("goodput_bps").unit
        yield f"### Goodput in {unit}, the simulator with Linux's scheduler and send buffer\n\n" + _markdown(
            [head, *rows]
        )


def _compared(judged: Judged) -> list[str]:
    figures = [_figure(judged.metric, judged.sim), _figure(judged.metric, judged.kernel)]
    return [*figures, _difference(judged.difference), _shown(judged)]


def _figure(metric: str, value: Estimate | None) -> str:
    return "-" if value is None else estimate_text(metric, value)


def _difference(difference: Estimate | None) -> str:
    if difference is None:
        return "-"
    half_width = None if difference.half_width is None else 100 * difference.half_width
    return number(100 * difference.mean, half_width, signed=True)


def _shown(judged: Judged) -> str:
    return f"**{judged.verdict}**" if judged.verdict is Verdict.DIFFERS else str(judged.verdict)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
