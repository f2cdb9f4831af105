"""The numbers that MPCOA prints, as objects of the tuning: its arithmetic can be repeated from them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from anabranch.tuning.buffer_rule import of_table_5_mib, printed_mib
from anabranch.tuning.curves import Parabola
from anabranch.tuning.regression import Coefficients

SITES = ("srl-hu", "unis-hin", "uit-haw")
PATH_MANAGERS = ("fullmesh", "pcdc")

#: The smallest buffer of the paper's grid, in MiB.
SMALLEST_MIB = 0.5


@cache
def printed() -> dict[str, Any]:
    """Return the tables of ``mpcoa_printed.toml``."""
    return tomllib.loads((files("anabranch.papers") / "mpcoa_printed.toml").read_text(encoding="utf-8"))


def coefficients(site: str, path_manager: str) -> Coefficients:
    """Return the coefficients of eqs. (13) to (15) of one scenario and path manager."""
    table = printed()[site][path_manager]
    return Coefficients(table["c0"], table["c1"], table["q"], tuple(table["offsets"]), tuple(table["slopes"]))


def curves(site: str) -> dict[tuple[str, str], Parabola]:
    """Return the parabolas of Table 4 of one scenario, by path manager and congestion control."""
    return {
        (manager, congestion): Parabola(a, m, printed()[site][manager]["q"])
        for manager in PATH_MANAGERS
        for congestion, a, m in zip(
            printed()["congestions"],
            printed()[site][manager]["a"],
            printed()[site][manager]["m"],
            strict=True,
        )
    }


def traditional_mib(site: str, *, as_printed: bool = False) -> float:
    """Return the traditional buffer of one scenario, in MiB, by either reading of eq. (1)."""
    table = printed()[site]
    rule = printed_mib if as_printed else of_table_5_mib
    return rule([table["rtt_max_s"]], [table["rto_max_s"]], [1000 * rate for rate in table["rates_kbps"]])
