"""The report in a browser without a network: everything is drawn, and a reader can change it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.compare import collect
from anabranch.report import read_claims, render
from support import TWO_PATHS
from test_report import CLAIMS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: make setup")

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is missing: as root, apt-get install chromium"
)

WIDTHS = (1280, 400)

#: How many lines with points in them are on the screen.
LINES = """id => [...document.querySelectorAll(`#${id} .scatterlayer .trace`)].filter(trace =>
    [...trace.querySelectorAll("path")].some(path => path.getTotalLength() > 0)).length"""

#: What is wider than the page and in no box of its own that scrolls.
TOO_WIDE = """() => [...document.body.querySelectorAll("*")]
    .filter(one => !one.parentElement.closest(".scroll, pre, svg") && one.getClientRects().length)
    .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(one => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two congestion controls with two seeds each, and a claim."""
    folder = tmp_path_factory.mktemp("report")
    scenario = folder / "two-paths.toml"
    scenario.write_text(TWO_PATHS, encoding="utf-8")
    experiment = ab.load(scenario)
    for one in (experiment, experiment.with_(**{"connection.meter.congestion": "reno"})):
        one.run(seeds=range(1, 3), out=folder / "out")
    claims = folder / "claims.json"
    claims.write_text(json.dumps(CLAIMS), encoding="utf-8")
    page = folder / "report.html"
    page.write_text(render(*collect([folder / "out"]), read_claims(claims)), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, which as root wants no sandbox."""
    with playwright.sync_playwright() as program:
        chromium = program.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


#: What of a plot its place on the page cuts off or leaves empty, in pixels.
MISFIT = """() => [...document.querySelectorAll(".plot")].map(place =>
    place.getBoundingClientRect().height - place.querySelector(".main-svg").getBoundingClientRect().height)
    .filter(pixels => Math.abs(pixels) > 2)"""


class Opened:
    """The page, what it complained of and what it asked for."""

    def __init__(self, browser: Any, report: Path, width: int, scheme: str) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, color_scheme=scheme
        )
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri())
        self.page.wait_for_function("document.querySelectorAll('#series .scatterlayer .trace').length > 0")

    def lines(self, name: str = "series") -> int:
        """Number of lines drawn."""
        return int(self.page.evaluate(LINES, name))

    def axis(self) -> str:
        """Title of the axis of values."""
        return str(self.page.text_content("#series .ytitle"))


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Opened]:
    """The page on a wide screen; at the end it must not have complained."""
    one = Opened(browser, report, WIDTHS[0], "light")
    yield one
    assert one.complaints == []
    one.page.context.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_drawn_and_nothing_is_wider_than_the_page(
    browser: Any, report: Path, width: int, scheme: str
) -> None:
    one = Opened(browser, report, width, scheme)
    # Of the connection and its two subflows, each with LIA and Reno: a line and a band.
    assert one.lines() == 12
    assert one.lines("figures") >= 2
    assert one.page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    for summary in one.page.query_selector_all("summary"):
        summary.click()
    assert one.page.evaluate(TOO_WIDE) == []
    assert one.page.evaluate(MISFIT) == []
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.complaints == []
    assert [url for url in one.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    one.page.context.close()


def test_of_three_variants_the_connection_is_shown_without_some_of_its_subflows(
    browser: Any, tmp_path: Path
) -> None:
    scenario = tmp_path / "two-paths.toml"
    scenario.write_text(TWO_PATHS, encoding="utf-8")
    for name in ("lia", "olia", "reno"):
        ab.load(scenario).with_(**{"connection.meter.congestion": name}).run(out=tmp_path / "out")
    page = tmp_path / "report.html"
    page.write_text(render(*collect([tmp_path / "out"]), []), encoding="utf-8")
    one = Opened(browser, page, WIDTHS[0], "light")
    chosen = """() => [...document.querySelectorAll('input[name="subject"]:checked')]
        .map(box => box.closest("label").textContent.trim())"""
    assert one.page.evaluate(chosen) == ["meter"]
    one.page.select_option("#quantity", label="cwnd")
    one.page.wait_for_function("document.querySelector('#series .ytitle').textContent.startsWith('cwnd')")
    assert one.page.evaluate(chosen) == ["meter", "meter/p1", "meter/p2"]
    assert one.complaints == []
    one.page.context.close()


def test_another_quantity_changes_the_plot(opened: Opened) -> None:
    assert opened.axis() == "goodput (Mbit/s)"
    before = opened.page.inner_html("#series .scatterlayer")
    opened.page.select_option("#quantity", label="cwnd")
    opened.page.wait_for_function("document.querySelector('#series .ytitle').textContent.startsWith('cwnd')")
    assert opened.axis() == "cwnd (packets)"
    # Windows are of subflows alone: two, with two congestion controls.
    assert opened.lines() == 8
    assert opened.page.inner_html("#series .scatterlayer") != before
    assert not opened.page.is_visible("label:has-text('meter') >> nth=0")


def test_a_quantity_of_which_nothing_was_chosen_shows_something(opened: Opened) -> None:
    opened.page.select_option("#quantity", label="queue")
    opened.page.wait_for_function("document.querySelector('#series .ytitle').textContent.startsWith('queue')")
    assert opened.lines() > 0


def test_lines_are_chosen_by_keyboard(opened: Opened) -> None:
    opened.page.focus("#quantity")
    for _ in range(5):
        opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.name") == "subject"
    opened.page.keyboard.press("Space")
    opened.page.wait_for_function("document.querySelectorAll('#series .scatterlayer .trace').length === 8")
    opened.page.uncheck("input[name=variant][value='1']")
    opened.page.wait_for_function("document.querySelectorAll('#series .scatterlayer .trace').length === 4")


def test_one_seed_is_shown_alone(opened: Opened) -> None:
    opened.page.select_option("#view", "points")
    opened.page.wait_for_function("document.querySelectorAll('#series .scatterlayer .trace').length === 6")
    assert "seed 1" in str(opened.page.text_content("#series .legend"))


def test_a_part_of_the_time_is_chosen_by_numbers(opened: Opened) -> None:
    opened.page.fill("#from", "1")
    opened.page.fill("#to", "2")
    opened.page.press("#to", "Enter")
    opened.page.wait_for_function("document.getElementById('series').layout.xaxis.range[1] === 2")
    assert opened.page.evaluate("document.getElementById('series').layout.xaxis.range") == [1, 2]
    opened.page.click("#whole")
    opened.page.wait_for_function("document.getElementById('to').value === '5'")


def test_another_figure_changes_the_summary(opened: Opened) -> None:
    opened.page.select_option("#figure", label="goodput: difference to congestion=lia, paired")
    opened.page.wait_for_function(
        "document.querySelector('#figures .xtitle').textContent === 'goodput: difference (%)'"
    )
    assert opened.lines("figures") == 1
    assert opened.page.evaluate(MISFIT) == []
