"""Anabranch: a laboratory for multipath transport.

Load a scenario, change it, run it, look at the result::

    import anabranch

    lia = anabranch.load("scenarios/papers/mfvl/setup3.toml").with_(
        **{"connection.meter.congestion": "lia"}
    )
    runs = lia.run(seeds=range(1, 21))
    print(runs[0].summary["connections"]["meter"]["goodput_bps"])

What it offers is imported when it is first asked for, so that the command can see to Ctrl-C before
it loads the libraries.
"""

TYPE_CHECKING = False  # typing's own takes longer to import than all that happens here
if TYPE_CHECKING:
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

if not TYPE_CHECKING:
    _MODULES = {
        "_engine": (
            "AnabranchError",
            "Cancelled",
            "OutputError",
            "RunError",
            "RunFolderError",
            "ScenarioError",
        ),
        "bed": ("KernelOptions", "Unavailable"),
        "cluster_worker": ("ClusterError",),
        "congestion": ("Call", "CongestionControl", "Parameter", "Subflow", "load_algorithms"),
        "experiment": ("Experiment", "load"),
        "grid": ("GridError",),
        "results": ("Run", "Runs", "Series", "open_run"),
        "sweeps": ("Sweep", "sweep"),
    }

    def __getattr__(name: str) -> object:
        """Take `name` from the module that has it."""
        from importlib import import_module

        if name == "__version__":
            return import_module("anabranch._engine").VERSION
        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(f"anabranch.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List what there is by now, and what may be asked for."""
        return sorted({*globals(), *__all__})
