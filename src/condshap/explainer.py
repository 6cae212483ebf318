"""Model, options, training rows, rows -> explanation: the face of the house, and `explain` in one call."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from condshap.approaches.base import Approach, check_missing, check_sizes
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import NotFittedError, OptionError
from condshap.explaining import ask, explain_rows
from condshap.explanation import Explanation
from condshap.game import Asked, Game, Setup
from condshap.games.explaining_losses import explain_loss_rows
from condshap.games.links import check_probabilities, linked
from condshap.games.loss_explanation import LossExplanation
from condshap.games.losses import LossFunction, make_losses
from condshap.learning import Prepared, learn, prepare, settings_of
from condshap.options import as_path, check_integer
from condshap.precision.automatic import explain_until, known_table
from condshap.storage.digests import check_explanation, check_maker
from condshap.types import Floats, Model, Outputs, Rows, Table
from condshap.values.predictions import predict_early, predict_rows


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
    link : "logit", optional
        For classifiers: explain log-odds, so that values are shares of logit(v(S)) instead of v(S), as shap's `link` does.
        Predictions and base values are log-odds then; a given `base_value` is a probability. The bias that noise of v(S) has
        on log-odds is taken off to second order. Without MSEv, which judges probabilities.
    check_draws : bool
        Compare training rows with draws after the fit, and warn by the names of the columns if they do not look alike;
        `draw_check_` has what was found. It calls no model and takes about a second.

    Attributes
    ----------
    game_ : Game
        All that was learned; its fields can be asked of the explainer too, with an underscore at the end, such as ``plan_``.
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
        link: str | None = None,
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
        self.link = link

    def __sklearn_clone__(self) -> Explainer:
        """Unfitted copy that keeps the fitted model: cloning that as well would leave nothing to explain."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn's diagram whether the last fit has succeeded."""
        return "game_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Look what was learned up in the game, as scikit-learn spells it: ``plan_`` is ``game_.plan``."""
        if "game_" in vars(self) and name.endswith("_") and hasattr(self.game_, name[:-1]):
            return getattr(self.game_, name[:-1])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(self, X: Table, *, categorical: Iterable[str | int] = ()) -> Explainer:
        """Learn the features' distribution from training rows (N, M).

        Parameters
        ----------
        X : table, of the type and with the columns that the model was trained with
        categorical : columns that hold levels although their dtype is numeric
        """
        self.__dict__.pop("game_", None)  # a fit that fails leaves nothing that looks fitted
        self.game_: Game = learn(self, prepare(self, X, categorical))
        return self

    def explain(self, X: Table) -> Explanation:
        """Explain rows (R, M): their conditional Shapley values, with standard errors."""
        start, game, settings = time.perf_counter(), self._game(), settings_of(self)
        asked = ask(game, X, encode_rows(game, X), settings, start)
        return explain_rows(game, asked, settings, self._tolerance)

    __call__ = explain

    def explain_loss(self, X: Table, y: Any, loss: str | LossFunction = "squared_error") -> LossExplanation:
        """Explain the losses of rows (R, M) with true answers y (R,): which features the model needs, with errors.

        Parameters
        ----------
        y : numbers, or labels for a classifier; (R, O) where a regressor has several outputs
        loss : "squared_error" or "absolute_error", added over outputs, "log_loss" for classifiers, or a function
            (y, prediction) -> loss per row, which costs two sets of samples. A `link` has no say here
        """
        start, game, settings = time.perf_counter(), replace(self._game(), link=None), settings_of(self)
        rows = encode_rows(game, X)
        losses = make_losses(loss, y, len(rows), game.predictor)
        return explain_loss_rows(game, ask(game, X, rows, settings, start), settings, losses, self._tolerance)

    def refine(self, explanation: Explanation, *, tolerance: float) -> Explanation:
        """Go on from an explanation of this explainer, made with ``n_coalitions="auto"``, to a smaller tolerance.

        One that was made with other training rows, another approach, seed, model or option is refused: every explanation
        carries a digest of what made it, `provenance.made_by`. The model is asked for the explained rows to see that it is
        still the same. Coalitions that the explanation has are not evaluated again. The result is the same as if the smaller
        tolerance had been asked for at once: to the last bit for what condshap computes, to the model's own rounding where
        its predictions depend on the batch.
        """
        start, settings = time.perf_counter(), settings_of(self)
        check_explanation(explanation)
        game = self._game()
        rows = encode_rows(game, explanation.data)
        if self.n_coalitions != "auto":
            raise OptionError(
                f"refine must be asked of an explainer with n_coalitions='auto', got {self.n_coalitions!r}. Fit such a one."
            )
        known = known_table(explanation, game)
        found = predict_rows(game.predictor, game.parts, rows, settings, seed=game.seed)
        check_maker(explanation, game, linked(game.link, found))
        asked = Asked(explanation.data, rows, known.values[-1] if game.link is None else found, start)
        return explain_until(tolerance, game, asked, settings, known, before=explanation)

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
        game = self._game()
        encode_rows(game, X)  # refused, if at all, before anything is fitted
        return bootstrap_errors(self, game, X, n_refits)

    def save(self, path: str | Path) -> None:
        """Write what was learned to one file, without the model and without pickle; `load_explainer` reads it."""
        from condshap.storage.explainers import save_explainer

        save_explainer(self, as_path(path))

    @property
    def _tolerance(self) -> float | None:
        return self.tolerance if self.n_coalitions == "auto" else None

    def _game(self) -> Game:
        """What was learned, with the seed that is set now."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("an Explainer must be fitted before it explains. Call fit(X_train) first.")
        return self.game_ if self.game_.seed == self.seed else replace(self.game_, seed=int(self.seed))


def encode_rows(setup: Setup, X: Table) -> Rows:
    """Encode rows to explain (R, M), or refuse them: all of it is known before training."""
    rows = setup.schema.encode(X)
    check_sizes(rows, setup.schema)
    for part in setup.parts:
        check_missing(part.approach, rows, setup.schema, what="rows to explain")
    return rows


def explain(
    model: Model,
    X_train: Table,
    X: Table,
    *,
    approach: str | Approach | Sequence[str | Approach] = "vaeac",
    categorical: Iterable[str | int] = (),
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
    link: str | None = None,
) -> Explanation:
    """Fit an `Explainer` on training rows and explain rows with it, in one call; see there for the options."""
    explainer = Explainer(
        model,
        approach=approach,
        n_samples=n_samples,
        n_coalitions=n_coalitions,
        tolerance=tolerance,
        max_coalitions=max_coalitions,
        coalitions=coalitions,
        groups=groups,
        base_value=base_value,
        output=output,
        seed=seed,
        n_jobs=n_jobs,
        device=device,
        memory_budget=memory_budget,
        progress=progress,
        fast_trees=fast_trees,
        additive=additive,
        target_error=target_error,
        check_draws=check_draws,
        link=link,
    )
    return finish(get_ready(explainer, X_train, X, categorical=categorical))


@dataclass(frozen=True, eq=False)
class Ready:
    """An explainer before training, and rows for it to which it will not object.

    Attributes
    ----------
    X, rows : (R, M) the table to explain as given and encoded
    outputs : (R, O) predictions, NaN where a gap is yet to be filled by what is learned
    seconds : that these took
    """

    explainer: Explainer
    prepared: Prepared
    X: Table
    rows: Rows
    outputs: Outputs
    seconds: float


def get_ready(
    explainer: Explainer,
    X_train: Table,
    X: Table,
    *,
    categorical: Iterable[str | int] = (),
    encoded: Rows | None = None,
) -> Ready:
    """Refuse whatever can be refused, of training rows, rows to explain, options and model, before anything is trained.

    `encoded` (N, M) are the training rows if another explainer has encoded them already.
    """
    prepared = prepare(explainer, X_train, categorical, encoded)
    start = time.perf_counter()
    rows = encode_rows(prepared.setup, X)
    outputs = predict_early(prepared.setup.predictor, rows, settings_of(explainer).memory_budget)
    check_probabilities(explainer.link, outputs, what="rows")
    return Ready(explainer, prepared, X, rows, outputs, time.perf_counter() - start)


def finish(ready: Ready) -> Explanation:
    """Train and explain."""
    explainer = ready.explainer
    explainer.game_ = game = learn(explainer, ready.prepared)
    start, settings = time.perf_counter() - ready.seconds, settings_of(explainer)
    asked = ask(game, ready.X, ready.rows, settings, start, known=ready.outputs)
    return explain_rows(game, asked, settings, explainer.tolerance if explainer.n_coalitions == "auto" else None)
