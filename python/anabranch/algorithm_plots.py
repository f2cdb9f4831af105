"""The plot of a congestion control's page: goodput beside Reno, beside itself, with two round trips."""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from anabranch.algorithm_pages import STANDARDS, run_standard
from anabranch.plots import STYLE
from anabranch.results import Run

#: Title, position in STANDARDS, and the connections with their labels; "{}" is the algorithm.
PANELS = (
    ("beside Reno", 1, {"subject": "{}", "standard": "reno"}),
    ("beside itself", 2, {"subject": "{}", "standard": "{}, second"}),
    ("20 and 100 ms", 3, {"near": "{}, 20 ms", "far": "{}, 100 ms"}),
)

#: Goodput is averaged over bins of this many seconds.
BIN_S = 2.0


def draw(name: str, scenarios: Path, folder: Path) -> Path:
    """Draw the plot of a congestion control from runs with seed 1.

    Parameters
    ----------
    name
        The congestion control.
    scenarios
        The folder of scenario files.
    folder
        Where ``<name>.svg`` goes; made if it is not there.

    Returns
    -------
    Path
        The file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    style = {**STYLE, "svg.fonttype": "none"}
    with matplotlib.rc_context(style), tempfile.TemporaryDirectory() as out:
        figure = Figure(figsize=(9, 2.4), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, (title, position, labels) in zip(figure.subplots(1, 3), PANELS, strict=True):
            run = run_standard(STANDARDS[position], name, scenarios, [1], Path(out))[0]
            for number, (connection, label) in enumerate(labels.items()):
                _line(axes, f"C{number}", run, connection, label.format(name))
            axes.set_title(title, loc="left")
            axes.set_xlabel("time (s)")
            axes.set_ylim(0, 24)
            axes.margins(x=0)
            axes.legend(fontsize=7, loc="upper right", ncols=2)
        figure.axes[0].set_ylabel("goodput (Mbit/s)")
        figure.savefig(path, metadata={"Date": None})
    return path


def _line(axes: Axes, colour: str, run: Run, connection: str, label: str) -> None:
    found = [one for one in run.series.of("goodput_bps").values() if one.subject.connection == connection]
    times_s, values = found[0].times_s, found[0].values / 1e6
    bins = np.ceil(times_s / BIN_S - 1e-9).astype(int) - 1  # a sample is at the end of its interval
    means = [values[bins == one].mean() for one in np.unique(bins)]
    axes.plot((np.unique(bins) + 0.5) * BIN_S, means, color=colour, label=label)
