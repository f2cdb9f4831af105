"""The tables of a report as HTML; every text from a run is escaped here."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anabranch.compare import Row, Variant
from anabranch.report.claims import VERDICTS, Claim, Paper
from anabranch.report.topology import Topology
from anabranch.units import estimate_text, number, scale_of, title_of
from anabranch.verdict import Judged
from anabranch.wording import cell_text, difference_text, percent

#: Before a verdict, so that it can be told at a glance without its colour.
MARKS = dict(zip(VERDICTS, ("✓", "◐", "✗", "○"), strict=True))

#: Keys of a change or an event that say when and where, and not what.
_WHEN_AND_WHERE = ("at", "link", "direction", "connection", "subflow")


def text(value: object) -> str:
    """Return a text with what HTML would take for its own escaped."""
    return html.escape(str(value))


def table(caption: str, head: Sequence[str], bodies: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> str:
    """Return a table in a box of its own that scrolls.

    Parameters
    ----------
    caption
        What the table shows; HTML.
    head
        Titles of the columns; HTML.
    bodies
        Groups of rows with their titles, which may be empty; the cells are HTML.

    Returns
    -------
    str
        HTML.
    """
    lines = [
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">',
        f"<table><caption>{caption}</caption>",
        "<thead><tr>" + "".join(f'<th scope="col">{title}</th>' for title in head) + "</tr></thead>",
    ]
    for title, rows in bodies:
        lines.append("<tbody>")
        if title:
            lines.append(f'<tr><th class="group" scope="rowgroup" colspan="{len(head)}">{title}</th></tr>')
        for first, *others in rows:
            cells = "".join(f"<td>{cell}</td>" for cell in others)
            lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
        lines.append("</tbody>")
    lines.append("</table></div>")
    return "\n".join(lines)


def conditions(variants: Sequence[Variant]) -> str:
    """Return what was run: a row for each variant."""
    rows = []
    for variant in variants:
        first = variant.runs[0]
        environment = first.environment
        kernel = environment.get("kernel")
        rows.append(
            [
                text(variant.label),
                text(variant.scenario),
                text(variant.engine if kernel is None else f"{variant.engine}, Linux {kernel}"),
                text(", ".join(dict.fromkeys(str(run.manifest["version"]) for run in variant.runs))),
                text(seeds(variant.seeds)),
                "<br>".join(text(f"{key} = {value}") for key, value in variant.overrides.items()) or "none",
                f"<code>{text(variant.runs[0].key[:12])}</code>",
            ]
        )
    head = ("runs", "scenario", "engine", "version", "seeds", "overrides", "key")
    return table("What was run", head, [("", rows)])


def seeds(numbers: Sequence[int]) -> str:
    """Return ascending seeds in few words: ``1 to 5, 9``."""
    spans: list[list[int]] = []
    for seed in numbers:
        if spans and seed == spans[-1][1] + 1:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in spans)


def figures(caption: str, variants: Sequence[Variant], rows: Sequence[Row]) -> str:
    """Return figures with their intervals, grouped by what they are about; after them the differences."""
    head = ["figure", *(text(variant.label) for variant in variants)]
    for variant in variants[1:]:
        head.append("difference" if len(variants) == 2 else f"{text(variant.label)}: difference")
    groups: dict[str, list[list[str]]] = {}
    for row in rows:
        unit = scale_of(row.metric).unit
        cells = [text(f"{title_of(row.metric)} {unit}".rstrip())]
        for variant, estimate in zip(variants, row.estimates, strict=True):
            cells.append(text(cell_text(row.metric, estimate, len(variant.runs))))
        for difference in row.differences:
            cells.append(text(difference_text(row.metric, difference, row.estimates[0])))
        groups.setdefault(str(row.subject), []).append(cells)
    return table(caption, head, [(text(subject), cells) for subject, cells in groups.items()])


def verdicts(judged: Sequence[Judged]) -> str:
    """Return how far the kernel is from the simulator."""
    groups: dict[str, list[list[str]]] = {}
    for one in judged:
        cells = [
            f"{title_of(one.metric)} {scale_of(one.metric).unit}".rstrip(),
            *("-" if value is None else estimate_text(one.metric, value) for value in (one.sim, one.kernel)),
            percent(one.difference),
            f"{100 * one.tolerance.share:g} %",
            str(one.verdict),
        ]
        groups.setdefault(str(one.subject), []).append([text(cell) for cell in cells])
    head = ("figure", "simulator", "kernel", "difference", "tolerance", "verdict")
    caption = "Simulator against kernel, differences paired by seed"
    return table(caption, head, [(text(subject), rows) for subject, rows in groups.items()])


def wires(topology: Topology) -> str:
    """Return the settings of links and media."""
    rows = [
        [
            text(wire.name),
            text(("medium of " if wire.is_medium else "") + ", ".join(wire.ends)),
            text(", ".join(wire.forward)),
            "the same" if wire.back == wire.forward else text(", ".join(wire.back)),
        ]
        for wire in topology.wires
    ]
    return table("Links and media", ("name", "between", "there", "back"), [("", rows)])


def timetable(canonical: Mapping[str, Any]) -> str:
    """Return what changes while the scenario runs; empty if nothing does."""
    rows = []
    for entry in canonical.get("change", ()):
        what = ", ".join(
            f"{key} {_value(value)}" for key, value in entry.items() if key not in _WHEN_AND_WHERE
        )
        where = f"{entry['link']} {entry.get('direction', '')}".rstrip()
        rows.append([text(entry["at"]), text(where), text(what)])
    for entry in canonical.get("event", ()):
        subflow = entry.get("subflow")
        subflow = int(subflow) if isinstance(subflow, float) else subflow
        where = f"{entry['connection']}/{subflow}"
        rows.append([text(entry["at"]), text(where), text(entry["action"])])
    return table("Changes and events", ("at", "of", "what"), [("", rows)]) if rows else ""


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def claims(papers: Sequence[Paper]) -> str:
    """Return claims with their verdicts, a table for each paper, and how many of each verdict there are."""
    parts = []
    for paper in papers:
        counts = Counter(claim.verdict for claim in paper.claims)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        caption = f"{text(paper.name)}: {said or 'no claims'}"
        head = ("id", "verdict", "claim", "the paper's figure", "ours", "95 % interval", "why")
        parts.append(table(caption, head, [("", [_claim(claim) for claim in paper.claims])]))
    return "\n".join(parts)


def _claim(claim: Claim) -> list[str]:
    bounds = ("…" if bound is None else number(bound, None) for bound in (claim.low, claim.high))
    interval = "-" if claim.low is None and claim.high is None else " to ".join(bounds)
    verdict = f'<span class="{claim.verdict.replace(" ", "-")}">{MARKS[claim.verdict]} {claim.verdict}</span>'
    others = (claim.claim, claim.paper, claim.ours, interval, claim.why)
    return [text(claim.id), verdict, *(f'<span class="words">{text(other)}</span>' for other in others)]
