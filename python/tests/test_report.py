"""The report without a browser: what is in the file, that it repeats, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import anabranch as ab
from anabranch.cli.commands import app
from anabranch.compare import collect, relabelled
from anabranch.report import draw_figures, read_claims, render
from anabranch.report.charts import MEAN, POINTS, quantities, series_chart
from anabranch.report.tables import seeds
from anabranch.report.thinning import BUCKETS, MAX_POINTS, thinned, thinned_band
from support import Command, as_kernel_run

CLAIMS = {
    "papers": [
        {
            "paper": "A paper & its <claims>",
            "claims": [
                {
                    "id": "S9.1",
                    "claim": "more than LIA",
                    "paper": "3.1 Mbit/s",
                    "ours": "2.9 Mbit/s",
                    "low": 2.5,
                    "high": None,
                    "verdict": "partly",
                    "why": "the direction holds, <b>not</b> the size",
                }
            ],
        }
    ]
}


@pytest.fixture
def out(scenario: Path, tmp_path: Path) -> Path:
    """Two seeds with LIA, as the file says, and two with Reno."""
    experiment = ab.load(scenario)
    for one in (experiment, experiment.with_(**{"connection.meter.congestion": "reno"})):
        one.run(seeds=range(1, 3), out=tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def report(*arguments: object) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def script(page: str, name: str) -> Any:
    """The JSON that the page's script reads."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def without_plotly(page: str) -> str:
    """The page without the library."""
    from plotly.offline import get_plotlyjs

    library = get_plotlyjs()
    assert page.count(library) == 1
    return page.replace(library, "")


def test_the_page_says_what_was_run_and_what_came_out(out: Path) -> None:
    done = report(out, "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    path = Path(answer["report"])
    assert path == Path("report.html")
    assert path.stat().st_size == answer["bytes"]
    page = without_plotly(path.read_text(encoding="utf-8"))
    variants, _ = collect([out])
    for words in (
        "<h1>A meter with two paths</h1>",
        "congestion=lia",
        "connection.meter.congestion = reno",
        "1 to 2",
        variants[0].runs[0].key[:12],
        str(variants[0].runs[0].manifest["version"]),
        "mean over 2 seeds",
        "3 Mbit/s, 10 ms, 20 packets, loss 0.5 %",
    ):
        assert words in page, words
    compared = json.loads(CliRunner().invoke(app, ["compare", str(out), "--json"]).stdout)
    goodput = next(row for row in compared["figures"] if row["metric"] == "goodput_bps")
    assert f"{goodput['estimates'][0]['mean'] / 1e6:.2f}"[:4] in page


def test_the_page_asks_for_nothing_from_elsewhere(out: Path) -> None:
    page = without_plotly(render(*collect([out]), ()))
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "@import" not in page


def test_equal_runs_make_equal_files(anabranch: Command, out: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    one_variant = collect([out]).variants[:1]
    # The second in another process, where Python hashes texts otherwise.
    assert report(out, "--out", folders[0] / "report.html", "--figures", folders[0]).exit_code == 0
    assert (
        anabranch("report", out, "--out", folders[1] / "report.html", "--figures", folders[1]).returncode == 0
    )
    for folder in folders:
        draw_figures(one_variant, folder, "pdf")
    names = sorted(path.name for path in folders[0].iterdir())
    stems = ["cwnd", "drops", "goodput", "network", "queue", "retransmits", "srtt", "ssthresh", "summary"]
    assert names == sorted(["report.html", *(f"{stem}.{end}" for stem in stems for end in ("svg", "pdf"))])
    assert names == sorted(path.name for path in folders[1].iterdir())
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


def test_every_line_belongs_to_a_choice(out: Path) -> None:
    variants, _ = collect([out])
    chart = series_chart(variants)
    assert chart is not None
    assert len(chart.choices["traces"]) == len(chart.figure.data)
    found = quantities(variants)
    assert found[0].title == "goodput"
    for quantity, subject, variant, view in chart.choices["traces"]:
        assert subject in chart.choices["quantities"][quantity]["subjects"]
        assert 0 <= variant < 2
        assert view in (MEAN, POINTS)
    assert all(trace.visible is False for trace in chart.figure.data)


def test_lines_differ_in_more_than_their_colour(out: Path) -> None:
    chart = series_chart(collect([out]).variants)
    assert chart is not None
    looks: dict[tuple[int, str], set[tuple[str, str]]] = {}
    counts: dict[tuple[int, str], int] = {}
    for (quantity, _, _, view), trace in zip(chart.choices["traces"], chart.figure.data, strict=True):
        if trace.fill is None:
            looks.setdefault((quantity, view), set()).add((trace.line.dash, trace.marker.symbol))
            counts[quantity, view] = counts.get((quantity, view), 0) + 1
    few = {key for key, count in counts.items() if count <= 8}
    assert few
    assert all(len(looks[key]) == counts[key] for key in few)


def test_names_and_titles_are_text_and_not_markup(scenario: Path, tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script> & <b>"
    text = scenario.read_text(encoding="utf-8")
    text = text.replace('title = "A meter with two paths"', f'title = "{hostile}"\nsource = "{hostile}"')
    scenario.write_text(text, encoding="utf-8")
    ab.load(scenario).run(out=tmp_path / "out")
    variants, _ = collect([tmp_path / "out"])
    page = without_plotly(render(relabelled(variants, [hostile]), [hostile], ()))
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "& <b>" not in page
    assert script(page, "series-choices")["variants"] == [hostile]


def test_claims_are_shown_with_their_verdicts(out: Path, tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(CLAIMS), encoding="utf-8")
    done = report(out, "--claims", path, "--out", tmp_path / "report.html")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "A paper &amp; its &lt;claims&gt;: 1 partly" in page
    assert "2.5 to …" in page
    assert "&lt;b&gt;not&lt;/b&gt; the size" in page


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no list papers"),
        ('{"papers": [{"paper": "x"}]}', "papers[0]: expected an object with paper and a list claims"),
        ('{"papers": [{"paper": "x", "claims": [{"id": "a"}]}]}', "papers[0].claims[0]"),
        (json.dumps(CLAIMS).replace('"partly"', '"perhaps"'), "expected one of reproduced"),
        (json.dumps(CLAIMS).replace("2.5", '"much"'), "low is 'much'; expected a number or null"),
    ],
)
def test_claims_of_another_form_are_refused(out: Path, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "claims.json"
    path.write_text(content, encoding="utf-8")
    done = report(out, "--claims", path)
    assert done.exit_code == 2
    assert message in done.stderr


def test_claims_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(CLAIMS), encoding="utf-8")
    (paper,) = read_claims(path)
    assert (paper.claims[0].low, paper.claims[0].high) == (2.5, None)


def test_what_is_no_run_is_refused_with_one_message(out: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    damaged = tmp_path / "damaged"
    shutil.copytree(next(out.glob("two-paths/*/seed-1")), damaged)
    (damaged / "summary.csv").write_text("nothing", encoding="utf-8")
    blocked = tmp_path / "blocked"
    blocked.write_bytes(b"")
    cases = [
        ((empty,), "no run folder here"),
        ((tmp_path / "missing",), "no run folder here"),
        ((damaged,), "summary.csv"),
        ((out, "--out", empty), "is a folder"),
        ((out, "--out", blocked / "report.html"), "cannot write there"),
        ((out, "--figures", blocked), "cannot write there"),
        ((out, "--format", "pdf"), "--format is for --figures"),
        ((out, "--labels", "one"), "gives 1 names for 2"),
    ]
    for arguments, message in cases:
        done = report(*arguments)
        assert done.exit_code == 2, arguments
        assert message in done.stderr, arguments
        assert done.stderr.count("\n") == 1, done.stderr
    assert report().exit_code == 2


def test_both_engines_are_laid_side_by_side(scenario: Path, tmp_path: Path) -> None:
    runs = ab.load(scenario).run(seeds=range(1, 4), out=tmp_path / "out")
    for run in runs:
        as_kernel_run(run, tmp_path / "out", ["the emulator was late"] if run.seed == 3 else [])
    page = without_plotly(render(*collect([tmp_path / "out"]), ()))
    assert "kernel, Linux 6.18.44" in page
    assert "Simulator against kernel" in page
    assert "does not count: the emulator was late" in page
    assert "send_jitter is the machine&#x27;s own" in page
    assert page.count("Drawing of the network") == 1


def test_runs_without_series_are_reported_too(scenario: Path, tmp_path: Path) -> None:
    ab.load(scenario).with_(**{"measure.interval": "0 s"}).run(out=tmp_path / "out")
    page = without_plotly(render(*collect([tmp_path / "out"]), ()))
    assert "These runs have recorded no series." in page
    assert script(page, "figures-choices")["figures"]


def test_a_thinned_series_keeps_every_extreme() -> None:
    times_s = np.arange(10 * MAX_POINTS) / 7
    values = np.random.default_rng(1).normal(size=len(times_s))
    chosen = thinned(times_s, values)
    assert chosen is not None
    assert len(chosen) <= 2 * BUCKETS + 2
    assert (np.diff(chosen) > 0).all()
    assert {0, len(values) - 1, int(values.argmin()), int(values.argmax())} <= set(chosen.tolist())
    for part in np.array_split(np.arange(len(values)), BUCKETS):
        inside = chosen[(chosen >= part[0]) & (chosen <= part[-1])]
        assert values[inside].max() == values[part].max()
        assert values[inside].min() == values[part].min()


def test_a_thinned_band_covers_all_of_it() -> None:
    times_s = np.arange(3 * MAX_POINTS, dtype=float)
    low = np.sin(times_s)
    envelope = thinned_band(times_s, low, low + 1)
    assert len(envelope.times_s) == BUCKETS + 1
    part = np.searchsorted(envelope.times_s, times_s, side="right") - 1
    assert (envelope.low[part] <= low).all()
    assert (envelope.high[part] >= low + 1).all()


def test_a_short_series_is_drawn_as_it_is() -> None:
    times_s = np.arange(MAX_POINTS, dtype=float)
    assert thinned(times_s, times_s) is None
    assert thinned_band(times_s, times_s, times_s).times_s is times_s


def test_a_long_series_is_said_to_be_thinned(scenario: Path, tmp_path: Path) -> None:
    ab.load(scenario).with_(**{"measure.interval": "1 ms"}).run(out=tmp_path / "out")
    chart = series_chart(collect([tmp_path / "out"]).variants)
    assert chart is not None
    assert any("have too many points" in note for note in chart.notes)
    assert max(len(trace.x) for trace in chart.figure.data) <= 2 * BUCKETS + 2


def test_seeds_are_said_in_few_words() -> None:
    assert seeds([1, 2, 3, 5, 7, 8]) == "1 to 3, 5, 7 to 8"
    assert seeds([4]) == "4"
