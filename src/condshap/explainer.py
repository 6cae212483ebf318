"""Model, options, training rows, rows -> explanation: the public class, and `explain` in one call."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from sklearn.base import BaseEstimator

from condshap.approaches.base import Approach
from condshap.bulk.options import Options as RunOptions
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import NotFittedError, OptionError
from condshap.explaining import ask, encode_rows, explain_rows, finish, get_ready
from condshap.explanation import Explanation
from condshap.game import Game
from condshap.games.explaining_losses import explain_loss_rows
from condshap.games.loss_explanation import LossExplanation
from condshap.games.losses import LossFunction, make_losses
from condshap.learning import learn, prepare, settings_of
from condshap.options import as_path, check_integer, known_options, spell_out
from condshap.precision.automatic import refine_rows
from condshap.storage.digests import check_explanation
from condshap.types import Floats, Model, Table
from condshap.views.rows import labels_of, with_draws

if TYPE_CHECKING:
    from condshap import ExplanationSet, FastExplainer


class Explainer(BaseEstimator):  # type: ignore[misc]
    """Explain individual predictions of any model with conditional Shapley values.

    Parameters
    ----------
    model : scikit-learn estimator, XGBoost or LightGBM model, torch module, or a function of a table
        Classifiers are explained through their probabilities, one output per class.
    approach : str, object, or a list of these
        How to model the remaining features given some of them; see `available_approaches`. Any object with the methods of
        `condshap.approaches.base.ConditionalSampler` or `ValueRegressor` works too. A list has one entry per coalition
        size 1, ..., P-1.
    n_samples : int, optional
        Samples per row and coalition. By default each approach chooses; those that draw decide by coalition size. With a
        single sample, standard errors are NaN unless nothing is random: one sample says nothing about its own error.
    target_error : float, optional
        Sample until the Monte Carlo standard error of every Shapley value of every row is at most this, in units of the
        prediction. Coalitions get samples in proportion to their influence and to how uncertain f is given x_S, judged on
        training rows first and then row by row. Samples do not reduce the part of `std_errors` that comes from leaving out
        coalitions.
    n_coalitions : int or "auto", optional
        Number of coalitions, including the empty and the grand one. By default all of them if there are at most 2^10, else
        1000. They come in pairs of a coalition and its complement, so an odd number is rounded down. Estimating the error
        takes at least two pairs more than there are players, so smaller numbers are raised to that;
        `provenance.n_coalitions` has the number used. A warning says when standard errors are as large as the values, which
        happens with many features. "auto" adds coalitions to every row until its largest standard error is at most
        `tolerance` times its spread, its largest minus its smallest Shapley value; `refine` continues from there.
    tolerance : float
        Target precision of ``n_coalitions="auto"``.
    max_coalitions : int, optional
        Upper limit for ``n_coalitions="auto"``, which stops there with a warning; by default 8192 or all if fewer.
    coalitions : CoalitionPlan, optional
        Your own coalitions and weights, see `CoalitionPlan.given`.
    groups : mapping of name to columns, optional
        Groups of features as players; they must partition the features.
    causal_ordering : list of lists of players, optional
        Components of players, causes first; together they name every player once. See `confounding` and `asymmetric`.
    confounding : bool, or one per component, optional
        None explains with conditional v(S). Otherwise v(S) = E[f(X) | do(x_S)] by `causal_ordering`: setting a feature moves
        its effects, not its causes. True says that something unseen causes the features of a component together, so that
        setting one of them tells nothing about the others; False that they influence each other.
    asymmetric : bool
        Average only over orders of players that respect `causal_ordering`, so that causes get what their effects pass on.
        Components of more than ten players are sampled with `n_coalitions` coalitions each.
    base_value : float, or one per output, optional
        v of the empty coalition; by default the mean prediction over the training rows.
    output : str or int, optional
        Explain one output only, by name or position. An integer that is the name of one class and the position of another,
        such as 1 with classes 1, 2, 3, raises an error: write "name:1" or "position:1". The command line has the same rule.
    seed : int
        The same seed gives the same answer, whatever the memory budget, jobs, progress lines and other rows: to the last bit
        for what condshap computes, and to the model's own rounding where its predictions depend on the batch, as matrix
        products may.
    n_jobs : int
        Number of joblib workers; choose the backend with ``joblib.parallel_config``.
    device : "auto", "cpu" or "cuda"
        Where to train and run networks (unless an approach object names its own device), draw samples and evaluate tree
        ensembles; "auto" uses an accelerator if there is one. Approaches and models that cannot use it stay on the CPU.
    memory_budget : str or int
        Limit on the memory that the computation uses beyond its inputs and the value table.
    progress : "auto", True or False
        Show a line with the current step, its progress and the time left: in a terminal or notebook only, always, or
        never. Where there is neither, True writes a line to stderr every 30 seconds.
    fast_trees : bool
        Evaluate tree ensembles (scikit-learn, XGBoost, LightGBM) with condshap's own compiled code, which is several times
        faster, wherever it gives the model's own numbers to the last bit; all other models are called as they are. `fit`
        reads the trees. The first use on a machine takes some seconds to compile.
    additive : "auto", True or False
        Whether the model is a sum of one function per feature. If so, a few hundred predictions per feature determine
        it, and samples need no further calls: gaussian, independence and ctree give conditional means without sampling
        noise, copula and vaeac with less noise. "auto" recognises scikit-learn's linear regressors, also behind scalers,
        encoders of levels, splines, bins and power transforms in a pipeline, and, with `fast_trees`, ensembles of trees that
        each split on one feature. True claims it for any other model; condshap tests the claim and raises an error if it is
        false. Tree thresholds are read one by one; anything else must reproduce the predictions of all training rows. Rows
        to explain whose predictions it does not reproduce go through the model itself, with a warning.
    link : "logit", optional
        For classifiers: explain log-odds, so that values are shares of logit(v(S)) instead of v(S), as shap's `link` does.
        Predictions and base values are log-odds then; a given `base_value` is a probability. The bias that noise in v(S)
        causes in log-odds is removed to second order. There is no MSEv, which judges probabilities.
    check_draws : bool
        Compare draws with training rows after the fit, and warn, naming the columns, if they do not look alike;
        `draw_check_` has the findings. The check does not call the model and takes about a second.

    Attributes
    ----------
    game_ : Game
        Everything that was learned. Its fields are also attributes of the explainer, with a trailing underscore: ``plan_``.
    draw_check_ : DrawCheck or None
        None if nothing is drawn (`categorical` and regression approaches), if drawing needs the model (`empirical` with AICc
        bandwidths), if there are fewer than 20 rows, or if `check_draws` is False.

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
        causal_ordering: Sequence[Sequence[str]] | None = None,
        confounding: bool | Sequence[bool] | None = None,
        asymmetric: bool = False,
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
        self.causal_ordering = causal_ordering
        self.confounding = confounding
        self.asymmetric = asymmetric
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
        """Unfitted copy that keeps the fitted model: cloning the model too would leave nothing to explain."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn's diagram whether the last fit has succeeded."""
        return "game_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Look what was learned up in the game, as scikit-learn spells it: ``plan_`` is ``game_.plan``."""
        if "game_" in vars(self) and name.endswith("_") and hasattr(self.game_, name[:-1]):
            return getattr(self.game_, name[:-1])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(self, X: Table, *, categorical: Iterable[str | int] | None = None) -> Explainer:
        """Learn the features' distribution from training rows (N, M).

        Parameters
        ----------
        X : table, of the type and with the columns that the model was trained with
        categorical : columns that hold levels although their dtype is numeric, [] for none. By default none, with a warning
            that names columns of few whole numbers
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
        loss : "squared_error" or "absolute_error", summed over outputs, "log_loss" for classifiers, or a function
            (y, prediction) -> loss per row, which costs two sets of samples. `link` is ignored here
        """
        start, game, settings = time.perf_counter(), replace(self._game(), link=None), settings_of(self)
        rows = encode_rows(game, X)
        losses = make_losses(loss, y, len(rows), game.predictor)
        return explain_loss_rows(game, ask(game, X, rows, settings, start), settings, losses, self._tolerance)

    def amortise(
        self,
        X_pool: Table,
        *,
        budget: float | str = 300.0,
        target: float | None = None,
        calibration_rows: int = 500,
        seed: int = 0,
    ) -> FastExplainer:
        """Train a network on the Shapley values of a pool of rows, to explain many more rows like them quickly.

        Parameters
        ----------
        X_pool : rows (N, M) like those to be explained later; `seed` decides how they are split and sampled, and training
        budget : for explaining rows with few samples each: seconds, or a text such as "20000 rows", which is reproducible
        target, calibration_rows : relative error at which to stop earlier, and rows to hold out for errors and intervals
        """
        from condshap.amortised.fast_explainer import amortise

        return amortise(self, self._game(), X_pool, (budget, target, calibration_rows, seed))

    def explain_dataset(
        self,
        source: Any,
        out: str | Path,
        **options: Any,
    ) -> ExplanationSet:
        """Explain all rows of a dataset that need not fit into memory, part by part, into a folder.

        The numbers are those of `explain` for the same rows, whatever the parts. A run that ends early, even by a kill,
        loses the parts that it was working on; the same call goes on from there. A different explainer, source or option
        raises an error that says what differs. After an error in one file, repair that file and make the call again.

        Parameters
        ----------
        source : Parquet, CSV or Arrow file, a folder or glob of these, a pyarrow Dataset, or a Polars LazyFrame
        out : folder for the parts and a manifest, new or from an earlier run
        rows_per_part : rows that are explained and written together; by default as many as suit `memory_budget`
        columns : further columns of the source to carry along
        key : column that identifies each row; `ExplanationSet.rows` finds rows by it
        cluster : None for this process, a ``dask.distributed.Client``, the address of a scheduler, or a number of processes
        resume : whether to continue the run in the folder; otherwise the folder must be empty
        values : "full", or "compact" for values, errors, base values and predictions only, without v(S) and the rows
        """
        from condshap.bulk.maker import maker_of
        from condshap.bulk.running import explain_dataset

        chosen = RunOptions(**known_options(Explainer.explain_dataset, options))
        maker = maker_of(self, self._game(), n_jobs=None if chosen.cluster is None else 1)
        return explain_dataset(maker, source, out, chosen)

    def refine(self, explanation: Explanation, *, tolerance: float) -> Explanation:
        """Continue an explanation that this explainer made with ``n_coalitions="auto"`` to a smaller tolerance.

        An explanation made with other training rows or another approach, seed, model or option raises an error: every
        explanation carries a digest of what made it, `provenance.made_by`. The explained rows are predicted again to check
        that the model is still the same. Coalitions in the explanation are not evaluated again. The result is the same as
        if you had asked for the smaller tolerance from the start: to the last bit for what condshap computes, and to the
        model's own rounding where its predictions depend on the batch.
        """
        check_explanation(explanation)
        game = self._game()
        rows = encode_rows(game, explanation.data)
        if self.n_coalitions != "auto":
            raise OptionError(
                f"refine needs an explainer fitted with n_coalitions='auto', got {self.n_coalitions!r}. Fit one with 'auto'."
            )
        return refine_rows(tolerance, game, explanation, rows, settings_of(self))

    def estimate_model_errors(self, X: Table, *, n_refits: int = 8) -> Floats:
        """Estimate how far the values of rows (R, M) are off because the features' distribution was learned.

        A parametric bootstrap: draw tables like the training rows from the fitted approach, fit the approach to each of
        them, and explain the same rows again. It takes `n_refits` times as long as fit and explain together.

        Returns
        -------
        Errors in the shape of `Explanation.values`, for `Explanation.with_model_errors`. They leave out what an approach
        cannot express, such as skewness for ``gaussian``.
        """
        from condshap.precision.model_errors import bootstrap_errors

        check_integer("n_refits", n_refits, least=2)
        game = self._game()
        encode_rows(game, X)  # refused, if at all, before anything is fitted
        return bootstrap_errors(self, game, X, n_refits)

    def sample(self, X: Table, known: Sequence[str], n: int = 100) -> Table:
        """Draw rows from the distribution that the approach has learned; their mean prediction is v(S).

        Parameters
        ----------
        X : (R, M) rows whose known features are kept
        known : names of the features, or groups, that are known; [] for none
        n : draws of each row

        Returns
        -------
        Table of the type of the training rows with R x n rows, the draws of the first row first. In pandas, the index has
        the label of the row and the number of the draw. With `confounding`, known features are set, not seen.
        """
        from condshap.values.conditional_rows import draw_rows, find_known

        game = self._game()
        mask, n_draws = find_known(game, known), check_integer("n", n, least=1)
        drawn = draw_rows(game, encode_rows(game, X), mask, n_draws)
        table = game.schema.decode(drawn.reshape(-1, len(mask)))
        return with_draws(table, labels_of(X, len(drawn)), n_draws)

    def save(self, path: str | Path) -> None:
        """Save what was learned to one file, without the model and without pickle; `load_explainer` reads it."""
        from condshap.storage.explainers import save_explainer

        save_explainer(self, as_path(path))

    @property
    def _tolerance(self) -> float | None:
        return self.tolerance if self.n_coalitions == "auto" else None

    def _game(self) -> Game:
        """What was learned, with the seed that is set now."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("an Explainer must be fitted before it can explain. Call fit(X_train) first.")
        return self.game_ if self.game_.seed == self.seed else replace(self.game_, seed=int(self.seed))


class ExplainerOptions(TypedDict, total=False):
    """Options of `Explainer`, for type checkers; a test holds the two together."""

    approach: str | Approach | Sequence[str | Approach]
    n_samples: int | None
    n_coalitions: int | str | None
    tolerance: float
    max_coalitions: int | None
    coalitions: CoalitionPlan | None
    groups: Mapping[str, Sequence[str]] | None
    causal_ordering: Sequence[Sequence[str]] | None
    confounding: bool | Sequence[bool] | None
    asymmetric: bool
    base_value: float | Sequence[float] | None
    output: str | int | None
    seed: int
    n_jobs: int
    device: str
    memory_budget: str | int
    progress: str | bool
    fast_trees: bool
    additive: bool | str
    target_error: float | None
    check_draws: bool
    link: str | None


def explain(
    model: Model,
    X_train: Table,
    X: Table,
    *,
    categorical: Iterable[str | int] | None = None,
    **options: Unpack[ExplainerOptions],
) -> Explanation:
    """Fit an `Explainer` to `X_train` and explain `X` in one call; the options are those of `Explainer`."""
    return finish(get_ready(Explainer(model, **options), X_train, X, categorical=categorical))


spell_out(explain, Explainer)
spell_out(Explainer.explain_dataset, RunOptions)
