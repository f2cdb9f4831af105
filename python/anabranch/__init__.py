"""Anabranch: a laboratory for multipath transport.

Load a scenario, change it, run it, look at the result::

    import anabranch

    lia = anabranch.load("scenarios/papers/mfvl/setup3.toml").with_(
        **{"connection.meter.congestion": "lia"}
    )
    runs = lia.run(seeds=range(1, 21))
    print(runs[0].summary["connections"]["meter"]["goodput_bps"])
"""

from anabranch._engine import (
    VERSION,
    AnabranchError,
    Cancelled,
    OutputError,
    RunError,
    RunFolderError,
    ScenarioError,
)
from anabranch.bed import KernelOptions, Unavailable
from anabranch.cluster_worker import ClusterError
from anabranch.congestion import Call, CongestionControl, Parameter, Subflow, load_algorithms
from anabranch.experiment import Experiment, load
from anabranch.grid import GridError
from anabranch.results import Run, Runs, Series, open_run
from anabranch.sweeps import Sweep, sweep

__version__ = VERSION

__all__ = [
    "AnabranchError",
    "Call",
    "Cancelled",
    "ClusterError",
    "CongestionControl",
    "Experiment",
    "GridError",
    "KernelOptions",
    "OutputError",
    "Parameter",
    "Run",
    "RunError",
    "RunFolderError",
    "Runs",
    "ScenarioError",
    "Series",
    "Subflow",
    "Sweep",
    "Unavailable",
    "__version__",
    "load",
    "load_algorithms",
    "open_run",
    "sweep",
]
