"""MPCOA on synthetic paths: its arithmetic, and its whole campaign of 3 x 6 x 2 x 60 x 9 runs of 30 s.

The rates are those of its Table 1, each interface is one link. Left out: that NorNet's paths change with the
hour and the day (one change is a part of its own), routes that subflows share inside the networks, and the
traffic of others. Absolute throughputs are thus not comparable; UNIS-HiN's 287 Mbit/s is more than Table 1
allows.
"""

from __future__ import annotations

from anabranch.papers.model import Paper
from anabranch.papers.mpcoa_cells import extract, plan, then
from anabranch.papers.mpcoa_figures import PLOTS, TABLES
from anabranch.papers.mpcoa_rules import RULES

MPCOA = Paper(
    "S4",
    "mpcoa",
    "A Multi-Parameter Comprehensive Optimized Algorithm for MPTCP Networks (Electronics 2021, 10:1942)",
    plan,
    extract,
    RULES,
    PLOTS,
    TABLES,
    then,
)
