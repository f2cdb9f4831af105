"""The documents tell the truth: commands exist, the stub fits, the figures are there."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer

import anabranch as ab
from anabranch import _engine
from anabranch.cli.commands import app
from support import REPOSITORY

DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    "docs/evaluation.md",
    "docs/tuning.md",
    "docs/papers.md",
    "docs/report.md",
]


def commands() -> list[str]:
    """Every command line of the program in the documents' code blocks and in the Makefile."""
    found = []
    for document in DOCUMENTS:
        text = (REPOSITORY / document).read_text(encoding="utf-8").replace("$(BIN)/", "")
        text = text.replace("$(DEMO)", "scenarios/papers/mfvl/setup3.toml").replace(".venv/bin/", "")
        found += re.findall(r"^\s*(anabranch [a-z].*)$", text, flags=re.MULTILINE)
    return found


def test_there_are_commands_in_the_documents() -> None:
    assert len(commands()) >= 5


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_documents_parses(line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    root = typer.main.get_command(app)
    command = root.commands[name]  # type: ignore[attr-defined]
    command.make_context(name, arguments)
    # What a command writes is not there.
    for scenario in re.findall(r"\S+\.toml", re.sub(r"--emit-agent \S+", "", line)):
        assert (REPOSITORY / scenario).is_file(), scenario


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        if not target.startswith("http"):
            assert (REPOSITORY / target).exists(), target


def test_the_stub_describes_the_module() -> None:
    stub = ast.parse((REPOSITORY / "python/anabranch/_engine.pyi").read_text(encoding="utf-8"))
    declared: dict[str, set[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            typed = any(isinstance(base, ast.Name) and base.id == "TypedDict" for base in node.bases)
            if not typed:
                declared[node.name] = {
                    member.name for member in node.body if isinstance(member, ast.FunctionDef)
                }
        elif isinstance(node, ast.FunctionDef):
            declared[node.name] = set()
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared[node.target.id] = set()
    assert set(declared) == {name for name in vars(_engine) if not name.startswith("_")}
    for name in ("Control", "Scenario"):
        members = {member for member in vars(getattr(_engine, name)) if not member.startswith("_")}
        assert declared[name] - {"__new__"} == members


def test_the_stub_describes_the_dictionaries() -> None:
    algorithm = _engine.list_algorithms()[0]
    assert set(algorithm) == set(_engine_dict("Algorithm"))
    parameters = [param for one in _engine.list_algorithms() for param in one["params"]]
    assert all(set(param) == set(_engine_dict("Parameter")) for param in parameters)
    assert set(_engine.list_links()[0]) == set(_engine_dict("Named"))


def _engine_dict(name: str) -> list[str]:
    stub = ast.parse((REPOSITORY / "python/anabranch/_engine.pyi").read_text(encoding="utf-8"))
    (found,) = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == name]
    return [
        node.target.id
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]


def test_the_version_is_the_packages() -> None:
    cargo = (REPOSITORY / "Cargo.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'^version = "(.*)"$', cargo, flags=re.MULTILINE)
    assert re.fullmatch(re.escape(version) + r"\+src\.[0-9a-f]{12}", ab.__version__)


def test_the_sums_of_continuous_integration(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        """\
running 3 tests
---- live stdout ----
SKIPPED: live: no BTF; enable with: another kernel
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.65s
running 1 test
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.65s
SKIPPED: crates/kernel: packages are missing; enable with: sudo apt-get install clang-14
SKIPPED [1] python/tests/test_x.py:3: no
=================== 1 failed, 12 passed, 2 skipped in 83.10s (0:01:23) ===================
""",
        encoding="utf-8",
    )
    done = subprocess.run([REPOSITORY / ".ci" / "count", log], capture_output=True, text=True, check=True)
    assert done.stdout == "skips: 5\n14 passed, 2 failed, 5 skipped\n"
