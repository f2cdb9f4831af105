"""MPCOA's multiple regression, a saturating model beside it, and how good they are.

Both are fitted to the means over the seeds: the paper regresses averages of nine runs. The libraries are
loaded where they are used, because together they take longer to load than most commands take to run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from anabranch.tuning.curves import Curve, Parabola, Saturating
from anabranch.tuning.grid import Doubles, Samples, TuningError

#: What MPCOA asks of a model (section 3, step 6).
LEAST_R2 = 0.90
LARGEST_P = 0.05

#: Parts that the buffers are divided into by cross-validation.
FOLDS = 5


class Model(StrEnum):
    """A family of curves."""

    PARABOLA = "parabola"
    SATURATING = "saturating"


@dataclass(frozen=True)
class Fit:
    """A model of one path manager.

    Attributes
    ----------
    model
        The family.
    curves
        The curve of each congestion control.
    r2
        Share of the variance of the means over buffers and congestion controls that it explains.
    p_value
        Probability of an F as large as this one if throughput depended on neither.
    held_out_mbit_per_s
        Root of the mean squared error at buffers that the fit has not seen, in Mbit/s.
    """

    model: Model
    curves: Mapping[str, Curve]
    r2: float
    p_value: float
    held_out_mbit_per_s: float

    @property
    def is_accepted(self) -> bool:
        """Whether MPCOA's rule accepts it: R² of at least 0.90 and p of at most 0.05."""
        return self.r2 >= LEAST_R2 and self.p_value <= LARGEST_P


def design(buffers_mib: Doubles, congestions: int) -> Doubles:
    """Return the design matrix of MPCOA's eqs. (13) to (15): 1, bs, CC_j, bs², bs CC_j, CC_j².

    One row per congestion control and buffer. It is rank-deficient, for CC_j² = CC_j and the sum of the CC_j
    is 1; the paper's coefficients are the solution of minimum norm.

    Parameters
    ----------
    buffers_mib
        The buffers.
    congestions
        Number of congestion controls.

    Returns
    -------
    array
        The matrix.
    """
    bs = np.tile(buffers_mib, congestions)[:, np.newaxis]
    dummies = np.repeat(np.eye(congestions), len(buffers_mib), axis=0)
    return np.hstack([np.ones_like(bs), bs, dummies, bs**2, bs * dummies, dummies**2])


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of MPCOA's eqs. (13) to (15), signs included.

    Attributes
    ----------
    c0, c1, q
        Of 1, bs and bs².
    offsets, slopes
        Of CC_j (and of CC_j² once more) and of bs CC_j.
    """

    c0: float
    c1: float
    q: float
    offsets: tuple[float, ...]
    slopes: tuple[float, ...]

    def parabolas(self) -> list[Parabola]:
        """Return the parabola of each congestion control, as in Table 4: offsets count twice."""
        return [
            Parabola(self.c0 + 2 * offset, self.c1 + slope, self.q)
            for offset, slope in zip(self.offsets, self.slopes, strict=True)
        ]


def regress(buffers_mib: Doubles, throughputs: Doubles) -> Coefficients:
    """Return MPCOA's multiple regression by scikit-learn's least squares of minimum norm.

    Without a separate intercept: the printed c0 is the sum of the printed offsets and c1 that of the slopes,
    to the rounding, in all six regressions of the paper, which holds for the minimum norm with a column of
    ones and not for centred data.

    Parameters
    ----------
    buffers_mib
        The buffers.
    throughputs
        By congestion control and buffer, in Mbit/s.

    Returns
    -------
    Coefficients
        The coefficients.

    Raises
    ------
    TuningError
        If there are fewer than three different buffers: the design is then singular.
    """
    from sklearn.linear_model import LinearRegression

    count = len(throughputs)
    matrix = design(buffers_mib, count)
    rank = int(np.linalg.matrix_rank(_reduced(buffers_mib, count)))
    if rank < 2 * count + 1:
        raise TuningError(
            f"the design of the regression is singular: {len(set(buffers_mib))} different buffers; expected "
            "at least 3"
        )
    found = LinearRegression(fit_intercept=False).fit(matrix, throughputs.ravel()).coef_
    offsets, slopes = found[2 : 2 + count], found[3 + count : 3 + 2 * count]
    return Coefficients(
        float(found[0]),
        float(found[1]),
        float(found[2 + count]),
        tuple(map(float, offsets)),
        tuple(map(float, slopes)),
    )


def _reduced(buffers_mib: Doubles, congestions: int) -> Doubles:
    """Return the same design without columns that depend on others; what it can fit is the same."""
    matrix = design(buffers_mib, congestions)
    keep = [*range(2, 3 + congestions), *range(3 + congestions, 3 + 2 * congestions)]
    reduced: Doubles = matrix[:, keep]
    return reduced


def saturate(buffers_mib: Doubles, throughputs: Doubles) -> Saturating:
    """Return the saturating curve with the least squares: c by a search, a in closed form for each c.

    Parameters
    ----------
    buffers_mib
        The buffers.
    throughputs
        Their throughputs, in Mbit/s.

    Returns
    -------
    Saturating
        The curve. c is searched between a twentieth of the smallest buffer, where the curve is flat, and
        twenty times the largest, where it is straight.
    """
    from scipy.optimize import minimize_scalar

    def curve(log_c: float) -> Saturating:
        c = math.exp(log_c)
        shape = Saturating(1.0, c).at(buffers_mib)
        return Saturating(float(shape @ throughputs / (shape @ shape)), c)

    def error(log_c: float) -> float:
        return float(np.sum((curve(log_c).at(buffers_mib) - throughputs) ** 2))

    low, high = math.log(buffers_mib.min() / 20), math.log(buffers_mib.max() * 20)
    # The bounded search finds one minimum; beginning from the best of some places makes it the lowest one.
    places = np.linspace(low, high, 41)
    best = int(np.argmin([error(place) for place in places]))
    bounds = (places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)])
    found = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return min((curve(float(found.x)), curve(float(places[best]))), key=lambda one: error(math.log(one.c)))


def curves(model: Model, buffers_mib: Doubles, throughputs: Doubles) -> list[Curve]:
    """Return a curve for each congestion control; throughputs by congestion control and buffer."""
    if model is Model.PARABOLA:
        return list(regress(buffers_mib, throughputs).parabolas())
    return [saturate(buffers_mib, one) for one in throughputs]


def fit(samples: Samples, path_manager: str, model: Model) -> Fit:
    """Fit a model to the throughputs of one path manager.

    Parameters
    ----------
    samples
        What was measured.
    path_manager
        One of its grid.
    model
        The family of curves.

    Returns
    -------
    Fit
        The model and its quality.
    """
    means = samples.means[samples.grid.path_managers.index(path_manager)]
    buffers = samples.buffers_mib
    found = curves(model, buffers, means)
    r2, p_value = _quality(model, found, buffers, means)
    names = samples.grid.congestions
    return Fit(
        model,
        dict(zip(names, found, strict=True)),
        r2,
        p_value,
        cross_validate(model, buffers, means),
    )


def _quality(
    model: Model, found: Sequence[Curve], buffers: Doubles, throughputs: Doubles
) -> tuple[float, float]:
    """Return R² and the p-value of the F test; constant throughputs are explained by nothing: 0 and 1."""
    count = len(found)
    total = float(np.sum((throughputs - throughputs.mean()) ** 2))
    # Of equal throughputs only rounding is left.
    if total <= throughputs.size * (1e-9 * float(np.abs(throughputs).max())) ** 2:
        return 0.0, 1.0
    if model is Model.PARABOLA:
        from statsmodels.regression.linear_model import OLS

        result = OLS(throughputs.ravel(), _reduced(buffers, count)).fit()
        return float(result.rsquared), float(result.f_pvalue)
    fitted = np.stack([curve.at(buffers) for curve in found])
    residual = float(np.sum((throughputs - fitted) ** 2))
    parameters = 2 * count
    explained_df, residual_df = parameters - 1, throughputs.size - parameters
    r2 = 1 - residual / total
    if residual == 0.0:
        return r2, 0.0
    statistic = max(total - residual, 0.0) / explained_df / (residual / residual_df)
    from scipy.stats import f as f_distribution

    return r2, float(f_distribution.sf(statistic, explained_df, residual_df))


def cross_validate(model: Model, buffers_mib: Doubles, throughputs: Doubles) -> float:
    """Return the root of the mean squared error at buffers that were held out, in Mbit/s.

    Every fifth buffer is held out in turn, so that most lie between others: what a tuning asks a model for.

    Parameters
    ----------
    model
        The family of curves.
    buffers_mib
        The buffers.
    throughputs
        By congestion control and buffer, in Mbit/s.

    Returns
    -------
    float
        The error.
    """
    squares = []
    part = np.arange(len(buffers_mib)) % FOLDS
    for held_out in range(FOLDS):
        seen = part != held_out
        found = curves(model, buffers_mib[seen], throughputs[:, seen])
        guessed = np.stack([curve.at(buffers_mib[~seen]) for curve in found])
        squares.append((guessed - throughputs[:, ~seen]) ** 2)
    return math.sqrt(float(np.mean(np.concatenate(squares, axis=1))))
