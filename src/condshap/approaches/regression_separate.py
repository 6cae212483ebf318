"""One regression of the model's output on the known features per coalition: no sampling at all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from condshap.approaches._regression import (
    Design,
    FittedRegressor,
    LeastSquares,
    check_regressors,
    encode,
    fit_best,
    level_counts,
)
from condshap.approaches.base import ALL_KINDS, ENOUGH_ROWS, Capabilities, State
from condshap.coalitions import CoalitionPlan
from condshap.runtime.threads import single_threaded_blas
from condshap.schema import FeatureSchema, Kind
from condshap.storage.plain_values import restored_options, stored_options
from condshap.types import Indices, Masks, Outputs, Rows, Values


class RegressionSeparate(BaseEstimator):  # type: ignore[misc]
    """Regress f(x) on x_S over the training rows; the prediction at x_S estimates v(S) = E[f(X) | x_S].

    Parameters
    ----------
    regressor : object with fit and predict, or a list of them, optional
        By default linear. From a list, every coalition takes the one with the smallest cross-validated mean squared error
        (five folds). Levels are one-hot encoded; a ``random_state`` of None is set from the explainer's seed. If the
        predictions of your own regressor depend on the rows beside them, the last bits of a row's values may too.

    Notes
    -----
    A regression is fitted when its coalition is first needed, and kept; of more than 50,000 training rows, to a random part
    of that size. For a linear model of continuous features the default gives the exact answer of a normal distribution with
    the training rows' mean and covariance.
    """

    name: ClassVar[str] = "regression_separate"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = Capabilities(
        samples=False, is_storable=True, checks_options=True, most_rows=ENOUGH_ROWS
    )

    def __init__(self, regressor: Any = None) -> None:
        self.regressor = regressor

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse what is no regressor."""
        check_regressors(self.regressor, None)

    def fit(
        self, X: Rows, predictions: Outputs, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int
    ) -> RegressionSeparate:
        """Keep the training rows (N, M) and the model's predictions for them (N, O)."""
        return self._prepare(X, predictions, level_counts(schema), seed)

    def _prepare(self, X: Rows, predictions: Outputs, n_levels: tuple[int, ...], seed: int) -> RegressionSeparate:
        # scikit-learn's least squares drops directions of small scale, so features get the same scale first
        default = make_pipeline(StandardScaler(), LeastSquares())
        self.candidates_ = check_regressors(self.regressor, default)
        self.rows_ = X
        self.predictions_ = predictions
        self.n_levels_ = n_levels
        self.seed_ = seed
        self.fits_: dict[bytes, FittedRegressor] = {}
        return self

    def to_state(self) -> State:
        """Store the training rows and predictions: from them the same regressions are fitted again, when needed."""
        arrays = {"rows": self.rows_, "predictions": self.predictions_}
        return stored_options(self).extended(arrays, {"n_levels": self.n_levels_, "seed": int(self.seed_)})

    @classmethod
    def from_state(cls, state: State) -> RegressionSeparate:
        """Inverse of `to_state`."""
        arrays, facts = state.arrays, state.facts
        approach = cls(**restored_options(state))
        return approach._prepare(arrays["rows"], arrays["predictions"], tuple(facts["n_levels"]), facts["seed"])

    def estimate(self, X: Rows, masks: Masks) -> Values:
        """Predict from the known columns of rows (R, M), one regression per coalition of `masks` (C, M); (C, R, O)."""
        values = np.empty((len(masks), len(X), self.predictions_.shape[1]))
        with single_threaded_blas():
            for c, mask in enumerate(masks):
                values[c] = self._predict(X, mask) if mask.any() else self.predictions_.mean(axis=0)
        return values

    def _predict(self, X: Rows, mask: Masks) -> Outputs:
        key = mask.tobytes()
        fitted = self.fits_.get(key)
        if fitted is None:
            # two threads may do this twice, but with the same result, and storing it is atomic
            fitted = self.fits_[key] = self._fit(mask)
        return fitted.predict(self._design(X, mask, fitted.code_limit))

    def _fit(self, mask: Masks) -> FittedRegressor:
        def build(positions: Indices, limit: int) -> tuple[Design, Outputs]:
            return self._design(self.rows_[positions], mask, limit), self.predictions_[positions]

        return fit_best(self.candidates_, build, len(self.rows_), self.seed_)

    def _design(self, X: Rows, mask: Masks, limit: int) -> Design:
        known = np.flatnonzero(mask)
        return encode(X[:, known], [self.n_levels_[j] for j in known], limit)


APPROACH = RegressionSeparate
