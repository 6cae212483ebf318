"""Model, training rows, rows -> explanation: the only file that knows the whole order."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import (
    Approach,
    check_approach_options,
    check_missing,
    check_sizes,
    check_supported,
    check_training_rows,
    fit_approach,
    is_sampler,
)
from condshap.assembly import assemble_explanation, describe, warn_if_blurred
from condshap.coalitions import CoalitionPlan, Players, make_plan
from condshap.coalitions.nested import beginning, learning_pairs, nested_plan
from condshap.draw_check.checking import announce_departures, check_draws
from condshap.draw_check.result import DrawCheck
from condshap.exceptions import CoalitionError, CondShapWarning, NotFittedError, OptionError
from condshap.explanation import Explanation
from condshap.models.additive_proof import TrainingProof, warn_if_missed
from condshap.models.predictor import Predictor
from condshap.models.read_additive import find_knots, kind_of_reading, read_function, without_model
from condshap.options import (
    as_path,
    check_choice,
    check_coalitions,
    check_device,
    check_integer,
    check_jobs,
    check_target,
    parse_memory,
)
from condshap.precision.automatic import explain_until, known_table
from condshap.precision.error_factors import share_samples
from condshap.precision.members import MemberSpread
from condshap.precision.target_error import choose_samples
from condshap.runtime.announcing import overheard
from condshap.runtime.devices import find_accelerator
from condshap.schema import FeatureSchema
from condshap.seeding import column_sizes
from condshap.solvers import solve_shapley
from condshap.storage.digests import check_explanation, check_maker, digest_of_fit
from condshap.types import Floats, Indices, Model, Outputs, Rows, Table
from condshap.values.assignments import Part, make_parts
from condshap.values.engine import aim_of, error_factors, is_read, value_table
from condshap.values.null_players import even_out, find_constants, find_null_players, find_unread, settle
from condshap.values.predictions import check_scale, given_base, predict_early, predict_rows, without_gaps
from condshap.values.table import Settings

_FEW_ROWS = 50


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
        Explain one output only, by name or position. An integer that is the name of one class and the position of another,
        as 1 of classes 1, 2, 3, is refused: write "name:1" or "position:1". The command line has the same rule.
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
        Thresholds of trees are read one by one; whatever else is read must give the predictions of all training rows.
        Explained rows whose predictions are not the sums of what was read are left to the model itself, with a warning.
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
        self._prepare(X, categorical)
        return self._learn()

    def _prepare(self, X: Table, categorical: Iterable[str | int], encoded: Rows | None = None) -> None:
        """Do all of a fit that comes before training: whatever can be refused, is refused here.

        `encoded` (N, M) are the rows of `X` if another explainer has encoded them already.
        """
        self.__dict__.pop("error_factors_", None)  # made last: a fit that fails leaves nothing that looks fitted
        self.warnings_: tuple[str, ...] = ()
        self.seconds_ = 0.0
        self._record(lambda: self._get_ready(X, categorical, encoded))

    def _learn(self) -> Explainer:
        """Do the rest of a fit: train, and look at what was learned."""
        self._record(self._train)
        del self._rows, self._outputs
        return self

    def _record(self, work: Callable[[], None]) -> None:
        """Do a part of a fit; its time and warnings are kept, and warnings go to the caller of `fit`."""
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
        self.warnings_ = (*self.warnings_, *(str(w.message) for w in caught))
        self.seconds_ += time.perf_counter() - start
        for w in caught:
            warnings.warn(w.message, w.category, stacklevel=4)

    def _get_ready(self, X: Table, categorical: Iterable[str | int], encoded: Rows | None) -> None:
        self._check_options()
        self.schema_ = FeatureSchema.learn(X, categorical)
        self._rows = rows = self.schema_.encode(X) if encoded is None else encoded
        check_training_rows(rows, self.schema_)
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
        self.parts_ = make_parts(self.approach, self.plan_)
        learning = self._feature_plan()
        for part in self.parts_:
            check_supported(part.approach, self.schema_)
            check_missing(part.approach, rows, self.schema_, what="training rows")
            check_approach_options(part.approach, rows, self.schema_, plan=learning)
        self.example_rows_ = without_gaps(rows)  # for trials, and by which a saved explainer knows its model
        predictor = Predictor.of(
            self.model,
            self.schema_,
            self.example_rows_,
            self.output,
            fast_trees=self.fast_trees,
            device=find_accelerator(self.device),
        )
        self.units_ = column_sizes(rows, np.array([feature.levels is not None for feature in self.schema_.features]))
        self.predictor_ = replace(predictor, units=self.units_)
        self.knots_ = find_knots(self.predictor_, self.schema_, rows, self.additive)
        proof = TrainingProof(self._predict_early, rows, self.example_rows_)
        self.function_ = read_function(
            self.predictor_, self.schema_, self.example_rows_, self.additive, self.knots_, proof
        )
        self.reading_ = kind_of_reading(self.function_)
        self.read_limit_ = None if self.function_ is None else proof.limit
        self.n_samples_ = self._samples(without_model(self.parts_, self.function_), len(rows))
        self.asked_samples_ = self._samples(self.parts_, len(rows))  # where the function is not the model after all
        if self.base_value is None:
            is_known = self.function_ is not None and proof.covers_all
            self._outputs = proof.predictions if is_known else self._predict_early(rows)
            check_scale(self._outputs)
        else:
            self._outputs = given_base(self.base_value, len(self.predictor_.output_names))[None]

    def _train(self) -> None:
        rows = self._rows
        self.parts_ = self._fit_parts(self.parts_, rows)
        self.training_rows_ = rows
        self.constants_ = find_constants(rows)
        self.unread_ = find_unread(self.predictor_, self.schema_, self.function_, self.parts_)
        self.draw_check_ = self._check_draws(rows)
        outputs = self._outputs if self.base_value is not None else self._predict(rows, self._outputs)
        self.base_value_ = np.asarray(outputs.mean(axis=0))
        factors = error_factors(self, rows)
        if self.target_error is not None:
            parts = without_model(self.parts_, self.function_)
            self.n_samples_ = choose_samples(
                parts,
                self.predictor_,
                rows,
                self.masks_,
                aim_of(self, factors),
                seed=self.seed,
                settings=self._settings(),
            )
            factors = error_factors(self, rows)
        known = self._outputs if self.base_value is None else self._outputs[:0]  # else only the given base value
        self.made_by_ = digest_of_fit(self, rows, known)
        self.error_factors_ = factors

    def explain(self, X: Table) -> Explanation:
        """Explain rows (R, M): their conditional Shapley values, with standard errors."""
        start = time.perf_counter()
        rows = self._encode(X)
        return self._explain(X, rows, self._predict(rows), start)

    def _explain(self, X: Table, rows: Rows, predictions: Outputs, start: float) -> Explanation:
        """Explain encoded rows (R, M) with known predictions (R, O)."""
        check_scale(predictions, self.base_value_)
        if self.n_coalitions == "auto":
            return explain_until(self.tolerance, self, X, rows, predictions, start=start)
        is_null = find_null_players(rows, self.constants_, self.unread_, self.players_.membership)
        spread = MemberSpread(self.plan_, len(rows), len(self.predictor_.output_names))
        positions = np.arange(len(self.plan_.masks))
        with overheard() as warned:
            table = value_table(self, rows, predictions, positions, self._settings(), spread)
            table = even_out(table, is_null)
            solved = settle(solve_shapley(table.values, table.std_errors, self.plan_), is_null)
            warn_if_blurred(solved, self.plan_, self.predictor_.output_names)
            warn_if_missed(is_read(self, rows, predictions))
        seconds = time.perf_counter() - start
        about = describe(self, self.plan_, self.n_samples_, seconds=seconds, warned=warned)
        return assemble_explanation(self, X, table, solved, about, spread.errors(is_null))

    __call__ = explain

    def refine(self, explanation: Explanation, *, tolerance: float) -> Explanation:
        """Go on from an explanation of this explainer, made with ``n_coalitions="auto"``, to a smaller tolerance.

        One that was made with other training rows, another approach, seed, model or option is refused: every explanation
        carries a digest of what made it, `provenance.made_by`. The model is asked for the explained rows to see that it is
        still the same. Coalitions that the explanation has are not evaluated again. The result is the same as if the smaller
        tolerance had been asked for at once: to the last bit for what condshap computes, to the model's own rounding where
        its predictions depend on the batch.
        """
        start = time.perf_counter()
        check_explanation(explanation)
        rows = self._encode(explanation.data)
        known = known_table(explanation, self)
        check_maker(explanation, self, self._predict(rows))
        return explain_until(
            tolerance,
            self,
            explanation.data,
            rows,
            known.values[-1],
            start=start,
            known=known,
            before=explanation,
        )

    def estimate_model_errors(self, X: Table, *, n_refits: int = 8) -> Floats:
        """Estimate how far the values of rows (R, M) are off because the features' distribution was learned.

        A parametric bootstrap: tables like the training rows are drawn from the fitted approach, it is fitted to each of
        them, and the same rows are explained again. It takes `n_refits` times as long as fit and explain together.

        Returns
        -------
        Errors in the shape of `Explanation.values`, for `Explanation.with_model_errors`. What an approach cannot express,
        such as the skewness of rows for ``gaussian``, is not in them.
        """
        from condshap.precision.model_errors import bootstrap_errors

        check_integer("n_refits", n_refits, least=2)
        self._encode(X)  # refused, if at all, before anything is fitted
        return bootstrap_errors(self, X, n_refits)

    def save(self, path: str | Path) -> None:
        """Write what was learned to one file, without the model and without pickle; `load_explainer` reads it."""
        from condshap.storage.explainers import save_explainer

        save_explainer(self, as_path(path))

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
            check_integer("n_samples", self.n_samples, least=1, most=2**31 - 1)
        if self.target_error is not None:
            check_target(self.target_error, self.n_samples, self.n_coalitions)
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
        return self._check_rows(X)

    def _check_rows(self, X: Table) -> Rows:
        """Encode rows to explain (R, M), or refuse them: all of it is known before training."""
        rows = self.schema_.encode(X)
        check_sizes(rows, self.schema_)
        for part in self.parts_:
            check_missing(part.approach, rows, self.schema_, what="rows to explain")
        return rows

    def _settings(self) -> Settings:
        progress = None if self.progress == "auto" else bool(self.progress)
        return Settings(
            parse_memory(self.memory_budget), check_jobs(self.n_jobs), progress, find_accelerator(self.device)
        )

    def _predict_early(self, rows: Rows) -> Outputs:
        """Predict those of rows (n, M) that have no gaps, before anything is learned; NaN for the others."""
        return predict_early(self.predictor_, rows, parse_memory(self.memory_budget))

    def _predict(self, rows: Rows, known: Outputs | None = None) -> Outputs:
        """Predict rows (n, M), but for those of which `known` (n, O) has predictions already."""
        budget = parse_memory(self.memory_budget)
        return predict_rows(self.predictor_, self.parts_, rows, budget, seed=self.seed, known=known)

    def _samples(self, parts: Sequence[Part], n_train: int) -> Indices:
        """Samples per coalition, shape (C,); 0 where an approach uses none."""
        for option in ("n_samples", "target_error"):
            if getattr(self, option) is not None and not any(is_sampler(part.approach) for part in parts):
                raise OptionError(
                    f"approach '{parts[0].approach.name}' uses no samples, so {option} must be None, got "
                    f"{getattr(self, option)}."
                )
        return share_samples(parts, self.plan_, self._learning_plan(), self.n_samples, n_train)

    def _feature_plan(self) -> CoalitionPlan:
        """Coalitions to learn with, of features: approaches see these, not groups of them."""
        plan = self._learning_plan()
        return replace(plan, masks=self.players_.feature_masks(plan.masks))

    def _fit_parts(self, parts: Sequence[Part], rows: Rows) -> tuple[Part, ...]:
        plan = self._feature_plan()
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


def refit(explainer: Explainer, rows: Rows, *, seed: int) -> Explainer:
    """Copy of a fitted explainer, its approach fitted to other encoded rows (n, M) and seed; coalitions and model stay."""
    other = copy.copy(explainer)
    other.seed, other.progress = seed, False
    other.parts_ = other._fit_parts(make_parts(explainer.approach, explainer.plan_), rows)
    if explainer.base_value is None:
        other.base_value_ = np.asarray(other._predict(rows).mean(axis=0))
    other.error_factors_ = error_factors(other, rows)
    return other
