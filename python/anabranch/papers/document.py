"""The part of docs/papers.md that belongs to one paper."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch._engine import VERSION
from anabranch.papers.model import Table, Verdict
from anabranch.papers.reproduction import Reproduction


def begin(name: str, command: str = "make papers") -> str:
    """Return the line before the part of a paper that a command generates."""
    return f"<!-- {name}: generated, {command} -->"


def end(name: str) -> str:
    """Return the line after the generated part of a paper."""
    return f"<!-- end of {name} -->"


def between(text: str, first: str, last: str, section: str) -> str:
    """Return a text with what stands between two of its lines replaced by a section."""
    before, _, rest = text.partition(first)
    _, _, after = rest.partition(last)
    return f"{before}{first}\n\n{section}\n{last}{after}"


def replaced(text: str, reproduction: Reproduction, figures: str) -> str:
    """Return the document with the part of one paper replaced.

    Parameters
    ----------
    text
        The document as it is; it has both lines of the paper.
    reproduction
        What has been measured.
    figures
        The folder of the plots, as a link of the document names it.

    Returns
    -------
    str
        The new document.
    """
    name = reproduction.paper.name
    return between(text, begin(name), end(name), section(reproduction, figures))


def section(reproduction: Reproduction, figures: str) -> str:
    """Return the part of one paper as Markdown, see :func:`replaced`."""
    paper = reproduction.paper
    parts = [_score(reproduction), _claims(reproduction)]
    for plot in paper.plots:
        link = f"![{plot.caption}]({figures}/{paper.name}-{plot.name}.svg)"
        parts.append(f"{link}\n\n*{plot.paper}: {plot.caption}*")
    parts += [_table(table, reproduction) for table in paper.tables]
    parts.append(_rules(reproduction))
    return "\n\n".join(parts) + "\n"


def score(reproduction: Reproduction) -> str:
    """Count the verdicts: ``of 7 claims 3 reproduced, 4 not reproduced``."""
    verdicts = [one.outcome.verdict for one in reproduction.claims]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts]
    return f"of {len(verdicts)} claims {', '.join(counts)}"


def _score(reproduction: Reproduction) -> str:
    seeds = sorted({planned.seeds for planned in reproduction.plan})
    shown = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    text = score(reproduction)
    return (
        f"{text[0].upper()}{text[1:]}. `anabranch reproduce {reproduction.paper.name}`: "
        f"{len(reproduction.plan)} cells, {shown} seeds each, {reproduction.runs} runs, "
        f"{reproduction.simulated_s / 3600:.1f} simulated hours, simulator `{VERSION}`."
    )


def _claims(reproduction: Reproduction) -> str:
    rows = [["id", "claim", "paper", "ours", "verdict", "why"]]
    for one in reproduction.claims:
        verdict = f"**{one.outcome.verdict}**"
        rows.append(
            [one.claim.id, one.claim.claim, one.claim.paper, one.outcome.ours, verdict, one.outcome.why]
        )
    return markdown(rows)


def _rules(reproduction: Reproduction) -> str:
    rows = [["id", "where", "what counts", "refuted by"]]
    rows += [
        [one.claim.id, one.claim.where, one.rule.metric, one.rule.refuted_by] for one in reproduction.claims
    ]
    return f"**How each claim is judged**\n\n{markdown(rows)}"


def _table(table: Table, reproduction: Reproduction) -> str:
    return f"**{table.title}**\n\n{table.text}\n\n{markdown(table.rows(reproduction.measured))}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row has the heads."""
    lines = [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
