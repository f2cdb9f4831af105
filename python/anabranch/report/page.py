"""The page: sections in their order, with everything that they need inside one file."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple

import matplotlib
from plotly import io as plotly_io
from plotly.offline import get_plotlyjs

from anabranch.compare import Row, Variant, compare
from anabranch.plots import METADATA, RATE_BINS, STYLE
from anabranch.report import tables
from anabranch.report.charts import Chart, figures_chart, series_chart
from anabranch.report.claims import Paper
from anabranch.report.drawing import MAX_ROUTES, draw_topology
from anabranch.report.tables import text
from anabranch.report.topology import Topology, read_topology
from anabranch.verdict import judge, same_scenario
from anabranch.wording import seeds_text, usual

#: Networks that are drawn at most.
MAX_TOPOLOGIES = 4

#: Rows of the table of all figures at most.
MAX_ROWS = 1000

#: Characters of a scenario that is printed.
MAX_SCENARIO = 60_000


class Network(NamedTuple):
    """A network, and the variants that ran on it."""

    topology: Topology
    canonical: dict[str, Any]
    labels: tuple[str, ...]


def networks(variants: Sequence[Variant]) -> list[Network]:
    """Return the different networks of some variants, in their order."""
    found: dict[Topology, Network] = {}
    for variant in variants:
        canonical = variant.runs[0].manifest["canonical"]
        topology = read_topology(canonical)
        before = found.get(topology, Network(topology, canonical, ()))
        found[topology] = before._replace(labels=(*before.labels, variant.label))
    return list(found.values())


def render(variants: Sequence[Variant], notes: Sequence[str], papers: Sequence[Paper]) -> str:
    """Return a report as HTML.

    Parameters
    ----------
    variants
        What is reported, as ``compare.collect`` finds it.
    notes
        What was left out.
    papers
        Claims to show.

    Returns
    -------
    str
        The page, the same for the same runs.
    """
    rows = compare(variants)
    sections = [
        ("Conditions", "conditions", _conditions(variants, notes)),
        ("Network", "network", _networks(variants)),
        ("Figures", "summary", _summary(variants, rows)),
        ("Over time", "time", _over_time(variants)),
    ]
    if papers:
        sections.append(("Claims", "claims", tables.claims(papers)))
    titles = list(dict.fromkeys(str(variant.runs[0].manifest["title"]) for variant in variants))
    title = titles[0] if len(titles) == 1 else f"{len(titles)} scenarios compared"
    links = "".join(f'<li><a href="#{anchor}">{heading}</a></li>' for heading, anchor, _ in sections)
    body = "\n".join(
        f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{heading}</h2>\n{content}\n</section>'
        for heading, anchor, content in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>
{_file("page.css")}</style>
<script>{get_plotlyjs()}</script>
</head>
<body>
<header>
<p class="faint">Anabranch, a laboratory for multipath transport</p>
<h1>{text(title)}</h1>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<noscript><p>The figures that can be changed need scripts; tables and drawings do not.</p></noscript>
</header>
<main>
{body}
</main>
<script>
{_file("page.js")}</script>
</body>
</html>
"""


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _paragraphs(lines: Sequence[str]) -> str:
    return "\n".join(f'<p class="faint">{text(line)}</p>' for line in lines)


def _conditions(variants: Sequence[Variant], notes: Sequence[str]) -> str:
    sources = dict.fromkeys(
        str(source) for variant in variants if (source := variant.runs[0].manifest["canonical"].get("source"))
    )
    remarks = dict.fromkeys(
        f"{variant.label}: {note}"
        for variant in variants
        for run in variant.runs
        for note in run.environment.get("notes", ())
    )
    lines = [*(f"Source: {source}" for source in sources), *notes, *remarks]
    scenarios: dict[str, str] = {}
    for variant in variants:
        scenarios.setdefault(
            json.dumps(variant.runs[0].manifest["canonical"], indent=1, ensure_ascii=False), variant.label
        )
    printed = "\n".join(
        f"<details><summary>The scenario of {text(label)} in full, overrides applied</summary>"
        f'<pre tabindex="0">{text(scenario)}</pre></details>'
        for scenario, label in scenarios.items()
        if len(scenario) <= MAX_SCENARIO
    )
    return "\n".join((tables.conditions(variants), _paragraphs(lines), printed))


def _networks(variants: Sequence[Variant]) -> str:
    found = networks(variants)
    parts = [_network(network, several=len(found) > 1) for network in found[:MAX_TOPOLOGIES]]
    if len(found) > MAX_TOPOLOGIES:
        parts.append(_paragraphs([f"{len(found) - MAX_TOPOLOGIES} further networks are not drawn."]))
    return "\n".join(parts)


def _network(network: Network, *, several: bool) -> str:
    topology = network.topology
    drawn, size = _drawing(topology)
    said = []
    if several:
        said.append(f"Network of {', '.join(network.labels)}.")
    said.append("Grey bands are links, dotted ones media; lines are the ways of flows, each from its opener.")
    if topology.is_reduced:
        said.append("Of each family only the first member is drawn, with the number of all.")
    if len(topology.routes) > MAX_ROUTES:
        said.append(f"{len(topology.routes) - MAX_ROUTES} further ways are not drawn.")
    names = ", ".join(node.name for node in topology.nodes)
    return f"""<figure>
<div class="scroll" role="region" tabindex="0" aria-label="Drawing of the network">
<img src="data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"
 width="{size[0]:.0f}" height="{size[1]:.0f}"
 alt="The network: nodes {text(names)}; its links are in the table below."></div>
<figcaption>{text(" ".join(said))}</figcaption>
</figure>
<details><summary>Links and media as a table</summary>
{tables.wires(topology)}
</details>
{tables.timetable(network.canonical)}"""


def _drawing(topology: Topology) -> tuple[bytes, tuple[float, float]]:
    """Return a drawing as SVG, and its size in pixels of a page."""
    file = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure = draw_topology(topology)
        figure.savefig(file, format="svg", metadata=METADATA["svg"])
    width, height = figure.get_size_inches() * 96
    return file.getvalue(), (width, height)


def _summary(variants: Sequence[Variant], rows: Sequence[Row]) -> str:
    shown = usual(rows)
    is_shown = set(shown)
    chart = figures_chart(variants, [*shown, *(row for row in rows if row not in is_shown)])
    parts = [tables.figures("Summary", variants, shown), _paragraphs([f"Figures: {seeds_text(variants)}."])]
    if same_scenario(variants):
        sim, kernel = sorted(variants, key=lambda variant: variant.engine == "kernel")
        parts.append(tables.verdicts(judge(sim, kernel)))
    if chart is not None:
        options = _options(choice["title"] for choice in chart.choices["figures"])
        parts += [
            f'<div class="controls"><label>Figure<select id="figure">{options}</select></label></div>',
            _plot("figures", chart),
            _paragraphs(chart.notes),
        ]
    caption = "All figures"
    if len(rows) > MAX_ROWS:
        caption = f"The first {MAX_ROWS} of {len(rows)} figures; the run folders have all"
    table = tables.figures(caption, variants, rows[:MAX_ROWS])
    parts.append(f"<details><summary>{caption}, as a table</summary>\n{table}\n</details>")
    return "\n".join(parts)


def _over_time(variants: Sequence[Variant]) -> str:
    chart = series_chart(variants)
    if chart is None:
        return _paragraphs(["These runs have recorded no series."])
    choices = chart.choices
    if max(len(variant.runs) for variant in variants) > 1:
        views = (
            "mean over seeds, 95 % interval shaded",
            f"seed {variants[0].runs[0].seed} alone, every point",
        )
    else:
        views = (f"rates averaged over a {RATE_BINS}th of the run", "every point")
    titles = _options(one["title"] for one in choices["quantities"])
    controls = f"""<div class="controls">
<label>Quantity<select id="quantity">{titles}</select></label>
<label>View<select id="view"><option value="mean">{views[0]}</option>
<option value="points">{views[1]}</option></select></label>
<label>From (s)<input type="number" id="from" step="any"></label>
<label>To (s)<input type="number" id="to" step="any"></label>
<button type="button" id="whole">Whole run</button>
{_boxes("Of", "subject", choices["subjects"], checked=False)}
{_boxes("Runs", "variant", choices["variants"], checked=True) if len(choices["variants"]) > 1 else ""}
</div>"""
    hints = (
        "Goodput of a subflow or of datagrams is their throughput. Means of rates are over a "
        f"{RATE_BINS}th of the run: shorter ones show little but how delivery bunches behind gaps in the "
        "data. Drag to zoom, double-click to go back; markers stand on some points of a line."
    )
    return "\n".join((controls, _plot("series", chart), _paragraphs([hints, *chart.notes])))


def _options(titles: Iterator[str]) -> str:
    return "".join(f'<option value="{at}">{text(title)}</option>' for at, title in enumerate(titles))


def _boxes(legend: str, name: str, labels: Sequence[str], *, checked: bool) -> str:
    boxes = "".join(
        f'<label><input type="checkbox" name="{name}" value="{at}"{" checked" * checked}>'
        f"{text(label)}</label>"
        for at, label in enumerate(labels)
    )
    return f"<fieldset><legend>{legend}</legend>{boxes}</fieldset>"


def _plot(name: str, chart: Chart) -> str:
    """Return a figure with its choices."""
    drawn = plotly_io.to_html(
        chart.figure,
        config={"responsive": True, "displaylogo": False, "doubleClick": "reset"},
        include_plotlyjs=False,
        full_html=False,
        default_height="auto",
        div_id=name,
    )
    choices = json.dumps(chart.choices).replace("<", "\\u003c")
    script = f'<script type="application/json" id="{name}-choices">{choices}</script>'
    return f'<div class="plot">{drawn}</div>\n{script}'
