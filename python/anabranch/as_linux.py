"""The simulator with what Linux does to Multipath TCP and its default leaves out."""

from __future__ import annotations

import json
from typing import Any

from anabranch.experiment import Experiment


def as_linux(experiment: Experiment) -> Experiment:
    """Return an experiment with Linux's packet scheduler and a send buffer that grows with the windows.

    Linux gives a subflow bursts of 64 kB whatever its window, and its send buffer holds about two windows
    of all subflows. A send buffer that the scenario gives stays as it is: a size that an application sets
    does not grow there either.

    Parameters
    ----------
    experiment
        Any experiment.

    Returns
    -------
    Experiment
        The same if no connection of it is one of Multipath TCP.
    """
    canonical: dict[str, Any] = json.loads(experiment.scenario.canonical)
    multipath = [one["name"] for one in canonical["connection"] if one.get("protocol") == "mptcp"]
    if not multipath:
        return experiment
    settings = {f"connection.{name}.scheduler": "linux" for name in multipath}
    if "send_buffer" not in canonical.get("transport", {}):
        settings["transport.send_buffer_tuning"] = "true"
    return experiment.with_(**settings)
