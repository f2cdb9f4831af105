"""The claims of papers with their verdicts, as ``anabranch reproduce --json`` prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

VERDICTS = ("reproduced", "partly", "not reproduced", "not testable")


class ClaimsError(Exception):
    """A file of claims that cannot be used; the message says what was expected."""


class Claim(NamedTuple):
    """One claim: the paper's figure, ours with its interval, the verdict and why."""

    id: str
    claim: str
    paper: str
    ours: str
    low: float | None
    high: float | None
    verdict: str
    why: str


class Paper(NamedTuple):
    """A paper and its claims."""

    name: str
    claims: tuple[Claim, ...]


def read_claims(path: Path) -> tuple[Paper, ...]:
    """Read a file of claims.

    Parameters
    ----------
    path
        JSON: ``{"papers": [{"paper", "claims": [{"id", "claim", "paper", "ours", "low", "high", "verdict",
        "why"}]}]}``.

    Returns
    -------
    tuple of Paper
        In the order of the file.

    Raises
    ------
    ClaimsError
        If the file cannot be read or does not have this form.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ClaimsError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ClaimsError(f"{path}: not JSON: {error}") from None
    papers = document.get("papers") if isinstance(document, dict) else None
    if not isinstance(papers, list):
        raise ClaimsError(f"{path}: no list papers; expected what anabranch reproduce --json prints")
    return tuple(_paper(path, number, entry) for number, entry in enumerate(papers))


def _paper(path: Path, number: int, entry: Any) -> Paper:
    where = f"{path}: papers[{number}]"
    if not isinstance(entry, dict) or not isinstance(entry.get("claims"), list):
        raise ClaimsError(f"{where}: expected an object with paper and a list claims")
    claims = [_claim(f"{where}.claims[{at}]", claim) for at, claim in enumerate(entry["claims"])]
    return Paper(_text(where, entry, "paper"), tuple(claims))


def _claim(where: str, entry: Any) -> Claim:
    if not isinstance(entry, dict):
        raise ClaimsError(f"{where}: expected an object")
    verdict = _text(where, entry, "verdict")
    if verdict not in VERDICTS:
        raise ClaimsError(f"{where}: verdict {verdict!r}; expected one of {', '.join(VERDICTS)}")
    return Claim(
        id=_text(where, entry, "id"),
        claim=_text(where, entry, "claim"),
        paper=_text(where, entry, "paper"),
        ours=_text(where, entry, "ours"),
        low=_number(where, entry, "low"),
        high=_number(where, entry, "high"),
        verdict=verdict,
        why=_text(where, entry, "why"),
    )


def _text(where: str, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ClaimsError(f"{where}: {key} is missing; expected text")
    return str(value)


def _number(where: str, entry: dict[str, Any], key: str) -> float | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ClaimsError(f"{where}: {key} is {value!r}; expected a number or null")
    return float(value)
