"""A report of runs: one HTML file that needs nothing else, and the same figures as files."""

from __future__ import annotations

from anabranch.report.claims import ClaimsError, read_claims
from anabranch.report.figures import draw_figures
from anabranch.report.page import render

__all__ = ["ClaimsError", "draw_figures", "read_claims", "render"]
