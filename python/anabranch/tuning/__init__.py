"""Path manager, congestion control and buffer size tuned together, after MPCOA (Electronics 2021, 1942)."""

from anabranch.tuning.grid import Grid, Samples, TuningError, parse_buffers
from anabranch.tuning.measure import Impact, Measured, Plan, Setting, Target, find_target
from anabranch.tuning.optimum import Choice, Regret, Tuning, measured_maximum, regrets, tune
from anabranch.tuning.regression import Fit, Model

__all__ = [
    "Choice",
    "Fit",
    "Grid",
    "Impact",
    "Measured",
    "Model",
    "Plan",
    "Regret",
    "Samples",
    "Setting",
    "Target",
    "Tuning",
    "TuningError",
    "find_target",
    "measured_maximum",
    "parse_buffers",
    "regrets",
    "tune",
]
