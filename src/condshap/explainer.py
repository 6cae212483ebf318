"""Model, training rows, rows -> explanation: the only file that knows the whole order."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from condshap.accelerator.finding import find_accelerator
from condshap.adaptive import Aim, choose_samples, reach_target
from condshap.additive import find_knots, read_function, without_model
from condshap.approaches.base import Approach, check_missing, check_supported, fit_approach, is_sampler
from condshap.assembly import assemble_explanation, describe, warn_if_blurred
from condshap.automatic import explain_until, known_table
from condshap.checking import announce_departures, check_draws
from condshap.coalitions import CoalitionPlan, Players, make_plan
from condshap.coalitions.nested import beginning, learning_pairs, nested_plan
from condshap.combination import Part, make_parts, restrict_parts
from condshap.draw_check import DrawCheck
from condshap.exceptions import CoalitionError, CondShapWarning, NotFittedError, OptionError, SchemaError
from condshap.explanation import Explanation
from condshap.options import (
    check_choice,
    check_coalitions,
    check_device,
    check_integer,
    check_jobs,
    check_positive,
    parse_memory,
)
from condshap.precision import allocate_samples, measure_error_factors, squared_influences
from condshap.predict import Predictor
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys
from condshap.solvers import solve_shapley
from condshap.types import Floats, Indices, Masks, Model, Outputs, Rows, Table
from condshap.values import Moments, Settings, ValueTable, draw, estimate_values, evaluate

_FEW_ROWS = 50
_FILLS = 256  # draws of missing values behind the prediction of a row that the model itself refuses


class Explainer(BaseEstimator):  # type: ignore[misc]
    """Explain single predictions of any model by conditional Shapley values.

    Parameters
    ----------
    model : scikit-learn estimator, XGBoost or LightGBM model, torch module, or a function of a table
        Classifiers are explained through their probabilities, one output per class.
    approach : str, object, or a list of these
        How to model the features given some of them; see `available_approaches`. Any object with the methods of
        `condshap.approaches.base.ConditionalSampler` or `ValueRegressor` will do. A list has one entry per coalition
        size 1, ..., P-1.
    n_samples : int, optional
        Samples per row and coalition. By default each approach chooses: drawing ones by coalition size. With a single one
        standard errors are NaN, unless nothing is random: one sample does not show how far others would be from it.
    target_error : float, optional
        Sample until the Monte Carlo standard error of every Shapley value of every row is at most this, in units of the
        prediction. Coalitions get samples by their influence and by how uncertain f is given x_S, on training rows first
        and then row by row. The part of `std_errors` that comes from leaving out coalitions is not reduced by samples.
    n_coalitions : int or "auto", optional
        Number of coalitions, the empty and the grand one included. By default all up to 2^10, beyond that 1000. They come in
        pairs of a coalition and its complement, so an odd number gives one less; less than two pairs more than players could
        not judge their own error, and give so many; `provenance.n_coalitions` has the number that was used. A warning says
        when standard errors are as large as the values, as with many features. "auto" adds
        coalitions to every row until its largest standard error is at most `tolerance` times its spread, its largest minus
        its smallest Shapley value; `refine` goes on from there.
    tolerance : float
        Precision that ``n_coalitions="auto"`` is to reach.
    max_coalitions : int, optional
        Where ``n_coalitions="auto"`` stops at the latest, with a warning; by default 8192, or all if there are fewer.
    coalitions : CoalitionPlan, optional
        Coalitions and weights of your own, see `CoalitionPlan.given`.
    groups : mapping of name to columns, optional
        Groups of features as players; they must partition the features.
    base_value : float, or one per output, optional
        v of the empty coalition; by default the mean prediction over the training rows.
    output : str or int, optional
        Explain one output only, by name or position.
    seed : int
        One seed, one answer, whatever the blocks, jobs, bars and other rows: to the last bit for what condshap computes, to
        the model's own rounding where its predictions depend on the batch, as those of matrix products may.
    n_jobs : int
        joblib workers; the backend can be chosen with ``joblib.parallel_config``.
    device : "auto", "cpu" or "cuda"
        Where networks are trained and asked, unless an approach object names its own device, and where samples are drawn and
        tree ensembles evaluated; "auto" takes an accelerator if there is one. Approaches and models that cannot use it stay
        on the CPU.
    memory_budget : str or int
        Bound on what the computation holds beyond its inputs and the value table.
    progress : "auto", True or False
        A bar on a terminal or notebook, always, or never.
    fast_trees : bool
        Evaluate samples of a tree ensemble (scikit-learn, XGBoost, LightGBM) by compiled code of our own, which is several
        times faster, where it gives the model's own numbers to the last bit; all other models are called as they are. The
        trees are read by `fit`. The first use on a machine compiles for some seconds.
    additive : "auto", True or False
        Whether the model is a sum of one function per feature. It is then read by some hundred predictions per feature, and
        samples need no call of it: gaussian, independence and ctree give conditional means instead of samples, without
        noise, copula and vaeac with less. "auto" recognises linear regressors of scikit-learn, also behind scalers, encoders
        of levels, splines, bins and power transforms in a pipeline, and, with `fast_trees`, ensembles of trees that look at
        one feature each. True vouches for any other model, which is tested; one that is no such sum is refused.
    check_draws : bool
        Compare training rows with draws after the fit, and warn by the names of the columns if they do not look alike;
        `draw_check_` has what was found. It calls no model and takes about a second.

    Attributes
    ----------
    draw_check_ : DrawCheck or None
        None where nothing is drawn (`categorical` and regression approaches), samples ask the model (`empirical` with AICc
        bandwidths), there are fewer than 20 rows, or `check_draws` is False.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> explainer = Explainer(lambda x: x @ [1.0, 2.0, 3.0], approach="gaussian").fit(X)
    >>> explainer.explain(X[:2]).values.shape
    (2, 3)
    """

    def __init__(
        self,
        model: Model,
        *,
        approach: str | Approach | Sequence[str | Approach] = "vaeac",
        n_samples: int | None = None,
        n_coalitions: int | str | None = None,
        tolerance: float = 0.02,
        max_coalitions: int | None = None,
        coalitions: CoalitionPlan | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        base_value: float | Sequence[float] | None = None,
        output: str | int | None = None,
        seed: int = 0,
        n_jobs: int = 1,
        device: str = "auto",
        memory_budget: str | int = "1GiB",
        progress: str | bool = "auto",
        fast_trees: bool = True,
        additive: bool | str = "auto",
        target_error: float | None = None,
        check_draws: bool = True,
    ) -> None:
        self.model = model
        self.approach = approach
        self.n_samples = n_samples
        self.n_coalitions = n_coalitions
        self.tolerance = tolerance
        self.max_coalitions = max_coalitions
        self.coalitions = coalitions
        self.groups = groups
        self.base_value = base_value
        self.output = output
        self.seed = seed
        self.n_jobs = n_jobs
        self.device = device
        self.memory_budget = memory_budget
        self.progress = progress
        self.fast_trees = fast_trees
        self.additive = additive
        self.target_error = target_error
        self.check_draws = check_draws

    def __sklearn_clone__(self) -> Explainer:
        """Unfitted copy that keeps the fitted model: cloning that as well would leave nothing to explain."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn's diagram whether the last fit has succeeded."""
        return hasattr(self, "error_factors_")

    def fit(self, X: Table, *, categorical: Iterable[str | int] = ()) -> Explainer:
        """Learn the features' distribution from training rows (N, M).

        Parameters
        ----------
        X : table, of the type and with the columns that the model was trained with
        categorical : columns that hold levels although their dtype is numeric
        """
        start = time.perf_counter()
        self.__dict__.pop("error_factors_", None)  # made last: a fit that fails leaves nothing that looks fitted
        self._check_options()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._fit(X, categorical)
        self.warnings_ = tuple(str(w.message) for w in caught)
        self.seconds_ = time.perf_counter() - start
        for w in caught:
            warnings.warn(w.message, w.category, stacklevel=2)
        return self

    def _fit(self, X: Table, categorical: Iterable[str | int]) -> None:
        self.schema_ = FeatureSchema.learn(X, categorical)
        rows = self.schema_.encode(X)
        if len(rows) < 2:
            raise SchemaError(
                f"training rows must be at least 2, got {len(rows)}. A distribution needs more than a point."
            )
        if len(rows) < _FEW_ROWS:
            warnings.warn(
                f"training rows should be at least {_FEW_ROWS}, got {len(rows)}. How features depend on each other is then "
                "a guess, and no standard error shows how poor a one. Pass more rows if you can.",
                CondShapWarning,
                stacklevel=2,
            )
        self.players_ = Players.of(self.schema_.names, self.groups)
        self.plan_, self.pairs_ = self._make_plan()
        self.masks_ = self.players_.feature_masks(self.plan_.masks)
        parts = make_parts(self.approach, self.plan_)
        for part in parts:
            check_supported(part.approach, self.schema_)
            check_missing(part.approach, rows, self.schema_, what="training rows")
        self.example_rows_ = _without_gaps(rows)  # for trials, and by which a saved explainer knows its model
        self.predictor_ = Predictor.of(
            self.model,
            self.schema_,
            self.example_rows_,
            self.output,
            fast_trees=self.fast_trees,
            device=find_accelerator(self.device),
        )
        self.knots_ = find_knots(self.predictor_, self.schema_, rows, self.additive)
        self.function_ = read_function(self.predictor_, self.schema_, self.example_rows_, self.additive, self.knots_)
        self.n_samples_ = self._samples(without_model(parts, self.function_), len(rows))
        self.parts_ = self._fit_parts(parts, rows)
        self.draw_check_ = self._check_draws(rows)
        self.base_value_ = self._base_value(rows)
        factors = self._error_factors(rows)
        if self.target_error is not None:
            parts = without_model(self.parts_, self.function_)
            self.n_samples_ = choose_samples(
                parts, self.predictor_, rows, self.masks_, self._aim(factors), seed=self.seed, settings=self._settings()
            )
            factors = self._error_factors(rows)
        self.error_factors_ = factors

    def _aim(self, factors: Floats) -> Aim:
        return Aim(float(self.target_error or 0.0), squared_influences(self.plan_), self.n_samples_, factors)

    def explain(self, X: Table) -> Explanation:
        """Explain rows (R, M): their conditional Shapley values, with standard errors."""
        start = time.perf_counter()
        rows = self._encode(X)
        predictions = self._predict(rows)
        if self.n_coalitions == "auto":
            return explain_until(self.tolerance, self, X, rows, predictions, start=start)
        table = self._values(rows, predictions, np.arange(len(self.plan_.masks)), self._settings())
        solved = solve_shapley(table.values, table.std_errors, self.plan_)
        warned = warn_if_blurred(solved, self.plan_, self.predictor_.output_names)
        seconds = time.perf_counter() - start
        about = describe(self, self.plan_, self.n_samples_, seconds=seconds, warned=warned)
        return assemble_explanation(self, X, table, solved, about)

    __call__ = explain

    def refine(self, explanation: Explanation, *, tolerance: float) -> Explanation:
        """Go on from an explanation of this explainer, made with ``n_coalitions="auto"``, to a smaller tolerance.

        Coalitions that the explanation has are not evaluated again. The result is the same as if the smaller tolerance had
        been asked for at once: to the last bit for what condshap computes, to the model's own rounding where its predictions
        depend on the batch.
        """
        start = time.perf_counter()
        rows = self._encode(explanation.data)
        known = known_table(explanation, self)
        return explain_until(
            tolerance,
            self,
            explanation.data,
            rows,
            known.values[-1],
            start=start,
            known=known,
            before=explanation.provenance,
        )

    def save(self, path: str | Path) -> None:
        """Write what was learned to one file, without the model and without pickle; `load_explainer` reads it."""
        from condshap.saving import save_explainer

        save_explainer(self, Path(path))

    def _check_options(self) -> None:
        check_integer("seed", self.seed, least=0)
        check_jobs(self.n_jobs)
        parse_memory(self.memory_budget)
        check_device(self.device)
        check_choice("progress", self.progress, ("auto", True, False))
        check_choice("fast_trees", self.fast_trees, (True, False))
        check_choice("additive", self.additive, ("auto", True, False))
        check_choice("check_draws", self.check_draws, (True, False))
        if self.n_samples is not None:
            check_integer("n_samples", self.n_samples, least=1)
        if self.target_error is not None:
            self._check_target()
        check_coalitions(self.n_coalitions, self.tolerance, self.max_coalitions)
        if self.n_coalitions == "auto" and self.n_samples == 1:
            raise OptionError(
                "n_samples must be at least 2 with n_coalitions='auto', which goes by standard errors, got 1: one sample "
                "has none. Raise n_samples, or leave it out."
            )
        if self.coalitions is not None and not isinstance(self.coalitions, CoalitionPlan):
            raise OptionError(f"coalitions must be a CoalitionPlan, got {type(self.coalitions).__name__}.")
        if self.coalitions is not None and self.n_coalitions is not None:
            raise OptionError("n_coalitions and coalitions must not both be given. Leave n_coalitions out.")

    def _check_target(self) -> None:
        check_positive("target_error", self.target_error)
        if self.n_samples is not None:
            raise OptionError("n_samples and target_error must not both be given. Leave n_samples out.")
        if self.n_coalitions == "auto":
            raise OptionError(
                "target_error must not come with n_coalitions='auto', whose tolerance holds for all errors together. "
                "Leave one of them out."
            )

    def _make_plan(self) -> tuple[CoalitionPlan, Indices]:
        """Coalitions that may be used, and for ``n_coalitions="auto"`` the order (n, 2) in which pairs of them are."""
        n_players = len(self.players_)
        if self.coalitions is None and self.n_coalitions == "auto":
            return nested_plan(n_players, self.max_coalitions, seed=self.seed)
        no_order = np.zeros((0, 2), dtype=np.intp)
        if self.coalitions is None:
            assert not isinstance(self.n_coalitions, str)
            return make_plan(n_players, self.n_coalitions, seed=self.seed), no_order
        if self.coalitions.n_players != n_players:
            raise CoalitionError(
                f"coalitions must be over the {n_players} players, got coalitions of {self.coalitions.n_players}."
            )
        return self.coalitions, no_order

    def _learning_plan(self) -> CoalitionPlan:
        """Coalitions to learn with: with "auto" a usual number of those that may be asked for."""
        if self.n_coalitions != "auto":
            return self.plan_
        return beginning(self.plan_, self.pairs_, learning_pairs(self.plan_.n_players, len(self.pairs_)))[0]

    def _encode(self, X: Table) -> Rows:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("an Explainer must be fitted before it explains. Call fit(X_train) first.")
        rows = self.schema_.encode(X)
        for part in self.parts_:
            check_missing(part.approach, rows, self.schema_, what="rows to explain")
        return rows

    def _settings(self) -> Settings:
        progress = None if self.progress == "auto" else bool(self.progress)
        return Settings(
            parse_memory(self.memory_budget), check_jobs(self.n_jobs), progress, find_accelerator(self.device)
        )

    def _predict(self, rows: Rows) -> Outputs:
        """Predict rows (n, M) in batches that fit the memory budget.

        Where an approach draws missing values because the model refuses them, f(x) is the mean over such draws.
        """
        fillers = [part.approach for part in self.parts_ if getattr(part.approach, "fills_missing_", False)]
        gaps = np.asarray(np.isnan(rows).any(axis=1) & bool(fillers))
        outputs = np.empty((len(rows), len(self.predictor_.output_names)))
        at_once = max(1, parse_memory(self.memory_budget) // (40 * rows.shape[1] + 64))
        for some in _pieces(np.logical_not(gaps), at_once):
            outputs[some] = self.predictor_(rows[some])
        for some in _pieces(gaps, max(1, at_once // _FILLS)):
            everything = np.ones_like(self.masks_[:1])
            batch = draw(fillers[0], rows[some], everything, _FILLS, row_keys(rows[some]), self.seed)
            outputs[some] = evaluate([batch], self.predictor_)[0].means[0]
        return outputs

    def _base_value(self, rows: Rows) -> Floats:
        n_outputs = len(self.predictor_.output_names)
        if self.base_value is None:
            return np.asarray(self._predict(rows).mean(axis=0))
        try:
            given = np.atleast_1d(np.asarray(self.base_value, dtype=np.float64))
        except (TypeError, ValueError):
            given = np.array([np.nan])
        if given.shape not in {(1,), (n_outputs,)} or not np.isfinite(given).all():
            several = f", or {n_outputs}, one per output" if n_outputs > 1 else ""
            raise OptionError(f"base_value must be one finite number{several}, got {self.base_value!r}.")
        return np.broadcast_to(given, (n_outputs,)).copy()

    def _samples(self, parts: Sequence[Part], n_train: int) -> Indices:
        """Samples per coalition, shape (C,); 0 where an approach uses none."""
        samples = np.zeros(len(self.plan_.masks), dtype=np.intp)
        for option in ("n_samples", "target_error"):
            if getattr(self, option) is not None and not any(is_sampler(part.approach) for part in parts):
                raise OptionError(
                    f"approach '{parts[0].approach.name}' uses no samples, so {option} must be None, got "
                    f"{getattr(self, option)}."
                )
        for part in parts:
            if not is_sampler(part.approach):
                continue
            default = getattr(part.approach, "default_samples", None)
            if self.n_samples is not None:
                samples[part.positions] = self.n_samples
            elif default is None:
                plan = self._learning_plan()
                by_size = np.zeros(plan.n_players + 1, dtype=np.intp)
                by_size[plan.sizes] = allocate_samples(plan)  # the same for all coalitions of a size
                samples[part.positions] = by_size[self.plan_.sizes[part.positions]]
            else:
                samples[part.positions] = min(n_train, int(default))
        return samples

    def _fit_parts(self, parts: Sequence[Part], rows: Rows) -> tuple[Part, ...]:
        plan = self._learning_plan()
        plan = replace(
            plan, masks=self.players_.feature_masks(plan.masks)
        )  # approaches see features, not groups of them
        for part in parts:
            for option in ("device", "progress"):  # what an approach leaves open, the explainer decides
                if getattr(part.approach, option, None) == "auto":
                    setattr(part.approach, option, getattr(self, option))
            fit_approach(part.approach, rows, self.schema_, plan=plan, seed=self.seed, predict=self.predictor_)
        return tuple(parts)

    def _check_draws(self, rows: Rows) -> DrawCheck | None:
        """Compare training rows (N, M) with draws, and warn if they do not look alike."""
        if not self.check_draws:
            return None
        found = check_draws(self.parts_, rows, self.schema_, self.plan_, self.masks_, seed=self.seed)
        announce_departures(found, self.parts_)
        return found

    def _error_factors(self, rows: Rows) -> Floats:
        """Variance of v(S) over that of independent blocks, (C, O), for approaches that leave it to be measured."""
        factors = np.ones((len(self.plan_.masks), len(self.predictor_.output_names)))
        for part in without_model(self.parts_, self.function_):
            if is_sampler(part.approach) and _has_unknown_error(part, rows, self):
                factors[part.positions] = measure_error_factors(
                    part, self.predictor_, rows, self.plan_, self.masks_, self.n_samples_, seed=self.seed
                )
        return factors

    def _values(self, rows: Rows, predictions: Outputs, positions: Indices, settings: Settings) -> ValueTable:
        """Value table of the plan's coalitions at `positions` (c,), ascending."""
        parts = without_model(restrict_parts(self.parts_, positions), self.function_)
        n_samples, masks = self.n_samples_[positions], self.masks_[positions]
        moments = estimate_values(parts, self.predictor_, rows, masks, n_samples, seed=self.seed, settings=settings)
        if self.target_error is not None:  # of all coalitions
            aim = self._aim(self.error_factors_)
            moments = reach_target(parts, self.predictor_, rows, masks, moments, aim, seed=self.seed, settings=settings)
        return self._complete(moments, predictions, positions)

    def _complete(self, moments: Moments, predictions: Outputs, positions: Indices) -> ValueTable:
        """Value table (C, R, O): the empty and the grand coalition are known exactly, the others' errors made honest."""
        values, variances = moments.means, moments.variances  # this explanation's own arrays, so worked on in place
        is_grand = positions == len(self.plan_.masks) - 1
        values[positions == 0], values[is_grand] = self.base_value_, predictions
        variances *= np.where(moments.is_nominal[:, None], self.error_factors_[positions], 1.0)[:, None, :]
        errors = np.sqrt(variances, out=variances)
        n_evaluations = moments.n_evaluations + len(predictions) * int(is_grand.sum())
        return ValueTable(self.plan_.masks[positions], values, errors, n_evaluations)


def _pieces(chosen: Masks, at_once: int) -> Iterator[Indices]:
    """Positions where `chosen` (n,) is True, at most `at_once` at a time."""
    positions = np.flatnonzero(chosen)
    for start in range(0, len(positions), at_once):
        yield positions[start : start + at_once]


def _without_gaps(rows: Rows, n: int = 8) -> Rows:
    """Some of the rows (N, M), evenly spaced, gaps filled with another row's value."""
    some = rows[:: max(1, len(rows) // n)][:n].copy()
    for j in np.flatnonzero(np.isnan(some).any(axis=0)):
        present = rows[~np.isnan(rows[:, j]), j]
        some[np.isnan(some[:, j]), j] = present[0] if len(present) else np.nan
    return some


def _has_unknown_error(part: Part, rows: Rows, explainer: Explainer) -> bool:
    """Try one small sample to see whether the approach leaves its error to be measured."""
    if len(part.positions) == 0:
        return False
    first = part.positions[:1]
    keys = np.zeros(1, dtype=np.uint64)
    n_samples = int(explainer.n_samples_[first[0]])
    samples = part.approach.sample(rows[:1], explainer.masks_[first], n_samples, keys=keys, seed=0)
    return samples.error_factor is None
