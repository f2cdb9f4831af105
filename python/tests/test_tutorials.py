"""Tutorials: every file, command and output of their pages is as it is shown.

``ANABRANCH_ACCEPT=1`` writes what is really printed into the pages, to be reviewed with the change that made
it differ.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from support import REPOSITORY
from walkthrough import Reader, blocks, matches

FOLDER = REPOSITORY / "docs" / "tutorials"

PAGES = sorted(path.name for path in FOLDER.glob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_what_a_tutorial_shows_is_what_happens(name: str, tmp_path: Path) -> None:
    path = FOLDER / name
    page = path.read_text(encoding="utf-8")
    followed = Reader(tmp_path).follow(page)
    if os.environ.get("ANABRANCH_ACCEPT"):
        path.write_text(followed, encoding="utf-8")
    assert followed == page, "rightly so? then: ANABRANCH_ACCEPT=1 pytest python/tests/test_tutorials.py"


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_tutorial_lead_somewhere(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        if not target.startswith("http"):
            assert (FOLDER / target).exists(), target


def test_the_list_and_the_readme_name_every_tutorial() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    contents = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(PAGES) >= 6
    for name in PAGES:
        if name != "README.md":
            assert f"({name})" in contents
            assert f"(docs/tutorials/{name})" in readme


#: The set-up, and what needs root and a kernel.
NOT_FOLLOWED = ("README.md", "device-round-trip.md")


def test_only_the_set_up_and_what_needs_root_is_not_followed() -> None:
    for name in PAGES:
        languages = {block.language for block in blocks((FOLDER / name).read_text(encoding="utf-8"))}
        assert name in NOT_FOLLOWED or "sh" not in languages, name


@pytest.mark.parametrize(
    ("expected", "printed", "is_same"),
    [
        ("a\nb\n", "\na  \nb\n\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n...\nd\n", "a\nb\n", False),
        ("a.\n", "ab\n", False),
        ("runs/x/0123456789ab/seed-1\n", "runs/x/ba9876543210/seed-1\n", True),
        ("1.5 Mbit/s\n", "1.6 Mbit/s\n", False),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_a_page_is_held_to_every_line_that_it_shows(expected: str, printed: str, is_same: bool) -> None:
    assert matches(expected, printed) is is_same


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    page = "```python\n# one.py\nprint(2)\n```\n\n```console\n$ cat one.py; echo 3\n4\n```\n"
    assert Reader(tmp_path).follow(page) == page.replace("4\n", "# one.py\nprint(2)\n3\n")
