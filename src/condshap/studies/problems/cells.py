"""Cells of a study: one setting of a design each, and the problem that every repetition of it poses.

Data depend on the repetition only. As in the paper (Appendix E.1) they are shared between training sizes: the rows of a
smaller training set are the head of a larger one's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from condshap.coalitions import CoalitionPlan, all_coalitions
from condshap.schema import Kind
from condshap.seeding import derive_seed, generator
from condshap.studies.designs import MIXED_SETUPS, burr_design, categorical_design, likely_cells, mixed_design
from condshap.types import Floats, Masks, Model, Table

Law = Literal["kernel", "formula"]
"""How coalitions are drawn, see `draw_coalitions`."""
NUMBERS = frozenset({Kind.CONTINUOUS})
FACTORS = frozenset({Kind.CATEGORICAL})


class KnowsTruth(Protocol):
    """A design as far as a study needs it."""

    def true_values(
        self, model: Model, X: Table, masks: Masks, *, base_value: float | None = None
    ) -> tuple[Floats, Floats]:
        """True contribution function and its standard errors, both (C, R)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One repetition of a cell: everything that a method is given, and where the truth comes from.

    Attributes
    ----------
    design : where the rows come from, None where nobody knows the truth
    X_train, X : training rows, and R rows to explain
    row_weights : (R,) weights of the explained rows in all criteria, None for equal ones
    model : what is explained; truth and explanations both call it
    base_value : v of the empty coalition, the mean training response
    plan : coalitions of the truth and of every method
    coalition_weights : (C - 2,) of the interior coalitions in EC2 and EC3, None for equal ones
    """

    design: KnowsTruth | None
    X_train: pd.DataFrame
    X: pd.DataFrame
    row_weights: Floats | None
    model: Model
    base_value: float
    plan: CoalitionPlan
    coalition_weights: Floats | None = None


class Cell(Protocol):
    """One setting of a design."""

    @property
    def key(self) -> str:
        """Name of the cell in stores, the same for ever."""
        ...

    @property
    def truth_key(self) -> str | None:
        """Name of its truth; cells that differ in nothing that matters to the truth share one. None: there is no truth."""
        ...

    @property
    def setting(self) -> Mapping[str, float]:
        """What tells it from the other cells of its study: M, L, N and rho, as far as they apply."""
        ...

    @property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of its features, which a method must support."""
        ...

    def make_problem(self, repetition: int) -> Problem:
        """Draw the data of a repetition and fit the model; `repetition` seeds it all."""
        ...

    def quick(self) -> Cell:
        """A small version of the cell, to see that everything runs."""
        ...


@dataclass(frozen=True, slots=True)
class BurrCell:
    """Continuous study: Burr data and a random forest (Section 4.2 of the paper).

    Attributes
    ----------
    n_features, n_train, n_rows : M, N_train and the number of explained rows
    kappa : of the Burr distribution
    n_trees : of the forest
    n_coalitions, law : how many coalitions are drawn, None for all, and how
    missing : share of the training entries that no method sees; the forest does
    """

    n_features: int
    n_train: int
    n_rows: int = 100
    kappa: float = 2.0
    n_trees: int = 500
    n_coalitions: int | None = None
    missing: float = 0.0
    law: Law = "kernel"

    @property
    def key(self) -> str:
        """Name of the cell.

        >>> BurrCell(25, 1000, n_coalitions=1000).key
        'burr M=25 N=1000 S=1000 rows=100 kappa=2 trees=500'
        """
        gaps = f" missing={self.missing:g}" if self.missing else ""
        size = f"M={self.n_features} N={self.n_train}{_coalitions_key(self)} rows={self.n_rows}"
        return f"burr {size} kappa={self.kappa:g} trees={self.n_trees}{gaps}"

    @property
    def truth_key(self) -> str:
        """Name of the truth, which knows nothing of missing training entries."""
        return replace(self, missing=0.0).key

    @property
    def setting(self) -> Mapping[str, float]:
        """M and N."""
        return {"M": self.n_features, "N": self.n_train}

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers only."""
        return NUMBERS

    def make_problem(self, repetition: int) -> Problem:
        """Draw a design, rows and responses, and fit the forest that is nearest to R's ranger."""
        design = burr_design(self.n_features, repetition, kappa=self.kappa)
        X_train = design.draw(self.n_train, derive_seed(repetition, "training rows"))
        X = design.draw(self.n_rows, derive_seed(repetition, "test rows"))
        y = design.respond(X_train, derive_seed(repetition, "training responses"))
        model = fit_forest(X_train, y, self.n_trees, seed=repetition)
        seen = remove_entries(X_train, self.missing, seed=repetition)
        coalitions = draw_coalitions(self.n_features, self.n_coalitions, repetition, self.law)
        return Problem(design, seen, X, None, model, float(y.mean()), *coalitions)

    def quick(self) -> BurrCell:
        """A cell of 30 rows and 50 trees, with a fifth of the training rows and a tenth of the coalitions."""
        few = None if self.n_coalitions is None else max(self.n_coalitions // 10, 2 * self.n_features)
        return replace(self, n_rows=30, n_trees=50, n_train=_fewer(self.n_train), n_coalitions=few)


@dataclass(frozen=True, slots=True)
class MixedCell:
    """Mixed study: normals, some of them cut into levels, and a linear model (Section 4.3 of the paper).

    Attributes
    ----------
    setup : name of the design, see `condshap.studies.designs.MIXED_SETUPS`
    rho : correlation
    n_train, n_rows : N_train and the number of explained rows, 500 in the paper
    n_coalitions, law : how many coalitions are drawn, None for all, and how
    """

    setup: str
    rho: float
    n_train: int
    n_rows: int = 500
    n_coalitions: int | None = None
    law: Law = "kernel"

    @property
    def key(self) -> str:
        """Name of the cell.

        >>> MixedCell("M4", 0.5, 1000).key
        'mixed M4 rho=0.5 N=1000 rows=500'
        """
        coalitions = _coalitions_key(self)
        return f"mixed {self.setup} rho={self.rho:g} N={self.n_train}{coalitions} rows={self.n_rows}"

    @property
    def truth_key(self) -> str:
        """Name of the truth."""
        return self.key

    @property
    def setting(self) -> Mapping[str, float]:
        """M, L, N and rho."""
        setup = MIXED_SETUPS[self.setup]
        size = {"M": setup.n_continuous + setup.n_categorical, "L": len(setup.cutoffs) + 1}
        return {**size, "N": self.n_train, "rho": self.rho}

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers and factors."""
        return NUMBERS | FACTORS

    def make_problem(self, repetition: int) -> Problem:
        """Draw rows and responses, and fit the linear model."""
        design = mixed_design(self.setup, self.rho, seed=repetition)
        X_train = design.draw(self.n_train, derive_seed(repetition, "training rows"))
        X = design.draw(self.n_rows, derive_seed(repetition, "test rows"))
        y = design.respond(X_train, derive_seed(repetition, "training responses"))
        coalitions = draw_coalitions(X.shape[1], self.n_coalitions, repetition, self.law)
        return Problem(design, X_train, X, None, design.fit_linear(X_train, y), float(y.mean()), *coalitions)

    def quick(self) -> MixedCell:
        """A cell of 30 rows with a fifth of the training rows and a tenth of the coalitions."""
        few = None if self.n_coalitions is None else max(self.n_coalitions // 10, 200)
        return replace(self, n_rows=30, n_train=_fewer(self.n_train), n_coalitions=few)


@dataclass(frozen=True, slots=True)
class CategoricalCell:
    """Categorical study: all cells of the design, or the likeliest ones, weighted by p(x) (Appendix D of the paper).

    Attributes
    ----------
    n_features, n_levels : M and L, see `condshap.studies.designs.CATEGORICAL_SETUPS`
    rho : correlation
    n_train : N_train
    n_rows : most rows to explain
    """

    n_features: int
    n_levels: int
    rho: float
    n_train: int = 1000
    n_rows: int = 2000

    @property
    def key(self) -> str:
        """Name of the cell.

        >>> CategoricalCell(3, 4, 0.5).key
        'categorical M=3 L=4 rho=0.5 N=1000 rows=2000'
        """
        size = f"M={self.n_features} L={self.n_levels} rho={self.rho:g}"
        return f"categorical {size} N={self.n_train} rows={self.n_rows}"

    @property
    def truth_key(self) -> str:
        """Name of the truth."""
        return self.key

    @property
    def setting(self) -> Mapping[str, float]:
        """M, L, N and rho."""
        return {"M": self.n_features, "L": self.n_levels, "N": self.n_train, "rho": self.rho}

    @property
    def kinds(self) -> frozenset[Kind]:
        """Factors only."""
        return FACTORS

    def make_problem(self, repetition: int) -> Problem:
        """Draw coefficients, rows and responses, and fit the linear model."""
        design = categorical_design(self.n_features, self.n_levels, self.rho, seed=repetition)
        X_train = design.draw(self.n_train, derive_seed(repetition, "training rows"))
        y = design.respond(X_train, derive_seed(repetition, "training responses"))
        cells = likely_cells(design, self.n_rows)
        model, plan = design.fit_linear(X_train, y), all_coalitions(self.n_features)
        return Problem(design, X_train, cells.X, cells.weights, model, float(y.mean()), plan)

    def quick(self) -> CategoricalCell:
        """A cell of 30 rows with a fifth of the training rows."""
        return replace(self, n_rows=30, n_train=_fewer(self.n_train))


def fit_forest(X: Any, y: Floats, n_trees: int, *, seed: int) -> Any:
    """Fit the forest that is nearest to ranger's default, to rows (N, M) and responses (N,).

    It has one thread, or as many as a surrounding ``joblib.parallel_config`` says, and then the same trees.
    """
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(n_trees, max_features="sqrt", min_samples_split=6, random_state=seed)
    forest.fit(X, y)
    return forest.set_params(n_jobs=1)  # of several jobs predictions are added up in any order


def speed_up(problem: Problem, forest: str) -> Problem:
    """Return the problem with its forest evaluated by condshap's own code, to the same numbers.

    Parameters
    ----------
    forest : "cpu" or "cuda" for where, "sklearn" to leave it as it is; models that are no forests stay as they are
    """
    model = problem.model
    is_wrapped = hasattr(model, "with_forest")
    if forest == "sklearn" or not (is_wrapped or hasattr(model, "estimators_")):
        return problem
    from condshap.trees import FastTrees

    faster = partial(FastTrees, device=forest)
    return replace(problem, model=model.with_forest(faster) if is_wrapped else faster(model))


def remove_entries(X: pd.DataFrame, share: float, *, seed: int) -> pd.DataFrame:
    """Set each number of a table to missing with probability `share`, but leave every row one of them."""
    if not share:
        return X
    rng = generator(seed, "missing entries")
    gaps = rng.random(X.shape) < share
    kept = rng.integers(X.shape[1], size=len(X))
    gaps[np.arange(len(X)), kept] &= ~gaps.all(axis=1)
    return X.mask(gaps)


def draw_coalitions(
    n_features: int, n_drawn: int | None, seed: int, law: Law = "kernel"
) -> tuple[CoalitionPlan, Floats | None]:
    """All coalitions, or the different ones among `n_drawn`; and their weights in EC2 and EC3, None for equal ones.

    Notes
    -----
    The members are a uniform subset of a drawn size s, draws are with replacement. By the law of the kernel, which is
    shapr's, s has probability proportional to 1 / (s (M - s)), the weight of a coalition in the regression is how often it
    was drawn, and criteria take the different ones alike. By the weights of the Shapley formula it is 1 / (M - s). The
    paper's figures have that law, with coalitions in EC2 and EC3 as often as they were drawn (``python -m benchmarks
    coalition_law``). The kernel is the formula times 1 / s, so in the regression each draw counts 1 / s.
    """
    if n_drawn is None:
        return all_coalitions(n_features), None
    rng = generator(seed, "sampled coalitions")
    sizes = np.arange(1, n_features)
    chance = 1.0 / (sizes * (n_features - sizes)) if law == "kernel" else 1.0 / (n_features - sizes)
    drawn = rng.choice(sizes, size=n_drawn, p=chance / chance.sum())
    masks = rng.random((n_drawn, n_features)).argsort(axis=1).argsort(axis=1) < drawn[:, None]
    counted = CoalitionPlan.given(masks, np.ones(n_drawn))
    if law == "kernel":
        return counted, None
    return CoalitionPlan.given(masks, 1.0 / drawn), counted.weights[counted.interior]


def _coalitions_key(cell: BurrCell | MixedCell) -> str:
    by_formula = " by formula" if cell.law == "formula" else ""
    return "" if cell.n_coalitions is None else f" S={cell.n_coalitions}{by_formula}"


def _fewer(n_train: int) -> int:
    return max(50, n_train // 5)
