"""The claims of the papers, in our words: one file ``claims_<paper>.toml`` for each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    ``claim`` is what it says, ``paper`` the paper's own figure (a dash where it gives none), ``where`` the
    section or the figure.
    """

    id: str
    claim: str
    paper: str
    where: str


def claims(paper: str) -> tuple[Claim, ...]:
    """Return the claims of a paper in the order of its file.

    Parameters
    ----------
    paper
        The name of the paper, as in ``anabranch reproduce``.

    Returns
    -------
    tuple of Claim
        The claims.
    """
    file = resources.files(__package__) / f"claims_{paper.replace('-', '_')}.toml"
    return tuple(Claim(**one) for one in tomllib.loads(file.read_text(encoding="utf-8"))["claim"])
