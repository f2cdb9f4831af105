"""The part of docs/papers-kernel.md that belongs to one paper."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.kernel_runs import lateness
from anabranch.papers import document
from anabranch.papers.document import markdown
from anabranch.papers.kernel import Result, real_time_s
from anabranch.papers.model import Cell, Measured, Table, Verdict
from anabranch.stats import ratio
from anabranch.units import estimate_text, number, scale_of, title_of

#: What the document is made by.
COMMAND = "make kernel-papers"


def begin(name: str) -> str:
    """Return the line before the generated part of a paper."""
    return document.begin(name, COMMAND)


def replaced(text: str, result: Result) -> str:
    """Return the document with the part of one paper replaced.

    Parameters
    ----------
    text
        The document as it is; it has both lines of the paper.
    result
        What has been measured.

    Returns
    -------
    str
        The new document.
    """
    name = result.on_kernel.paper.name
    return document.between(text, begin(name), document.end(name), section(result))


def section(result: Result) -> str:
    """Return the part of one paper as Markdown, see :func:`replaced`."""
    parts = [_score(result), _conditions(result), _claims(result), _untested(result)]
    parts += [_figures(result, metric) for metric in result.on_kernel.shown]
    parts += [_table(result, table) for table in result.on_kernel.tables]
    parts += [_impossible(result), _notes(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def score(result: Result) -> str:
    """Count verdicts: ``of 16 claims 2 judged on the kernel: 2 partly; 1 of 2 as simulated``."""
    judged = [one for one in result.claims if one.kernel.verdict is not Verdict.NOT_TESTABLE]
    verdicts = [one.kernel.verdict for one in judged]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts]
    alike = sum(one.sim.verdict is one.kernel.verdict for one in judged)
    text = f"of {len(result.claims)} claims {len(judged)} judged on the kernel"
    return f"{text}: {', '.join(counts)}; {alike} of {len(judged)} as simulated" if judged else text


def _score(result: Result) -> str:
    text = score(result)
    return f"{text[0].upper()}{text[1:]}."


def _conditions(result: Result) -> str:
    kernels = _all(run.environment.get("kernel", "of unknown release") for run in result.runs)
    lines = [
        f"`anabranch reproduce {result.on_kernel.paper.name} --engine kernel`: {len(result.plan)} cells, "
        f"{len(result.runs)} runs, {real_time_s(result.plan) / 60:.0f} min of real time; the same cells in "
        "the simulator, with the same seeds.",
        f"Linux {kernels}, kernel engine {_all(run.manifest['version'] for run in result.runs)}.",
        lateness(result.runs),
        _attempts(result),
    ]
    lost = [f"  - {_words(one.cell)}, seed {one.seed}: {'; '.join(one.why)}" for one in result.lost]
    left_out = [f"  - left out for that: {_words(cell)}" for cell in result.left_out]
    return "\n".join([*(f"- {line}" for line in lines), *lost, *left_out])


def _all(texts: Iterable[object]) -> str:
    return ", ".join(f"`{text}`" for text in sorted({str(text) for text in texts}))


def _attempts(result: Result) -> str:
    attempts = [int(run.environment.get("attempts", 1)) for run in result.runs]
    repeated = sum(attempts) - len(attempts)
    invalid = sum(bool(run.invalid) for run in result.runs)
    seeds = ", ".join(map(str, result.seeds)) or "none"
    return (
        f"{repeated} attempts were repeated; of {len(attempts)} runs {invalid} do not count. Judged are the "
        f"seeds that count in every cell: {seeds}."
    )


def _words(cell: Cell) -> str:
    return ", ".join(cell)


def _claims(result: Result) -> str:
    rows = [["id", "claim", "paper", "simulator", "", "kernel", "", "why, on the kernel"]]
    for one in result.claims:
        if one.kernel.verdict is Verdict.NOT_TESTABLE:
            continue
        verdicts = [f"**{outcome.verdict}**" for outcome in (one.sim, one.kernel)]
        figures = [one.sim.ours, verdicts[0], one.kernel.ours, verdicts[1]]
        rows.append([one.claim.id, one.claim.claim, one.claim.paper, *figures, one.kernel.why])
    return markdown(rows) if len(rows) > 1 else ""


def _untested(result: Result) -> str:
    """Return the claims that are not judged, by reason."""
    by_reason: dict[str, list[str]] = {}
    for one in result.claims:
        if one.kernel.verdict is Verdict.NOT_TESTABLE:
            by_reason.setdefault(one.kernel.why, []).append(one.claim.id)
    rows = [["not testable on the kernel", "because"]]
    rows += [[", ".join(ids), reason] for reason, ids in by_reason.items()]
    return markdown(rows) if by_reason else ""


def _figures(result: Result, metric: str) -> str:
    unit = scale_of(metric).unit
    rows = [["cell", "simulator", "kernel", "difference, %"]]
    for cells in _sharing(result):
        cell = next((one for one in cells if metric in result.kernel.metrics(one)), None)
        if cell is None:
            continue
        shown = [
            estimate_text(metric, measured.mean(cell, metric)) for measured in (result.sim, result.kernel)
        ]
        names = "; ".join(_words(one) for one in cells)
        rows.append([names, *shown, _difference(result.sim, result.kernel, cell, metric)])
    title = title_of(metric).capitalize() + (f" in {unit}" if unit else "")
    return f"**{title}**\n\n{markdown(rows)}" if len(rows) > 1 else ""


def _table(result: Result, table: Table) -> str:
    """Return a table of both engines' figures; they need every cell."""
    if result.left_out:
        return ""
    engines = {"simulator": result.sim, "kernel": result.kernel}
    found = {engine: table.rows(measured) for engine, measured in engines.items()}
    head, *_ = found["kernel"]
    rows = [["engine", *head], *([engine, *row] for engine, (_, *rows) in found.items() for row in rows)]
    return f"**{table.title}.** {table.text}\n\n{markdown(rows)}"


def _sharing(result: Result) -> list[list[Cell]]:
    """Return the cells that count, those of the same runs together."""
    by_key: dict[str, list[Cell]] = {}
    counted = set(result.kernel.cells())
    for planned in result.plan:
        if planned.cell in counted:
            by_key.setdefault(planned.experiment.scenario.key, []).append(planned.cell)
    return list(by_key.values())


def _difference(sim: Measured, kernel: Measured, cell: Cell, metric: str) -> str:
    """Return the kernel's mean over the simulator's less one, as docs/agreement.md has it."""
    found = ratio(list(zip(sim.of(cell, metric), kernel.of(cell, metric), strict=False)))
    if found is None:
        return "-"
    half_width = None if found.half_width is None else 100 * found.half_width
    return number(100 * (found.mean - 1.0), half_width, signed=True)


def _impossible(result: Result) -> str:
    rows = [["what", "on a stock kernel"]]
    rows += [[one.what, one.why] for one in result.on_kernel.impossible]
    return markdown(rows) if len(rows) > 1 else ""


def _notes(result: Result) -> str:
    notes = sorted({note for run in result.runs for note in run.environment.get("notes", ())})
    if not notes:
        return ""
    return "\n".join(
        ["What the kernel does in another way than the scenarios say:", "", *(f"- {n}" for n in notes)]
    )
