"""A design: where simulated rows come from, and what is true about them.

Every design of the paper's Section 4 knows its own conditional distributions. The true contribution function
v_true(S) = E[f(X) | x_S] (eq. 2) is then an exact number where f is linear, and a mean over exact conditional draws with
a standard error otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
import pandas as pd

from condshap.exceptions import ModelError, OptionError
from condshap.models.predictor import Predictor
from condshap.schema import Feature, FeatureSchema, Kind
from condshap.seeding import Words, derive_seed, row_keys
from condshap.studies.designs.linear import LinearModel, read_linear
from condshap.tables.formats import TableFormat
from condshap.types import Floats, Indices, Masks, Model, RowKeys, Rows, Table

Method = Literal["auto", "exact", "sampling"]

_BLOCK_NUMBERS = 2**22  # 32 MiB of sampled rows at a time
_PROOF_ROWS = 256
_PROOF_SEED = 20_220_831


class Design(Protocol):
    """What every design offers. Rows are tables with typed columns outside, encoded arrays (n, M) inside."""

    @property
    def schema(self) -> FeatureSchema:
        """Names, kinds and levels of the M features."""
        ...

    @property
    def n_categorical(self) -> int:
        """How many of the features, the first ones, are factors."""
        ...

    @property
    def n_levels(self) -> int:
        """Levels of each factor, L; 0 if there is no factor."""
        ...

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Draw n rows; with the same seed, fewer rows are the head of more rows."""
        ...

    def respond(self, X: Table, seed: int) -> Floats:
        """Draw the response (n,) of rows, noise included."""
        ...

    def sample_conditional(
        self, X: Table, masks: Masks, n_samples: int, *, seed: int, keys: RowKeys | None = None
    ) -> Floats:
        """Draw x_unknown | x_known exactly.

        Parameters
        ----------
        X : R rows
        masks : (C, M), True = known
        n_samples : K
        keys : (R,) names of the rows' random streams, None for a hash of their content

        Returns
        -------
        (C, R, K, M) encoded, known columns unchanged
        """
        ...

    def linear_values(self, model: LinearModel, rows: Rows, masks: Masks) -> Floats:
        """Exact E[f(X) | x_S], shape (C, R), of a linear f."""
        ...


def make_schema(names: list[str], levels: list[tuple[str, ...] | None]) -> FeatureSchema:
    """Schema of pandas tables with these columns; `levels` is None for numbers."""
    columns = {
        name: pd.Series([], dtype=np.float64) if lv is None else pd.Series(pd.Categorical([], categories=list(lv)))
        for name, lv in zip(names, levels, strict=True)
    }
    features = tuple(
        Feature(name, Kind.CONTINUOUS, support=(-np.inf, np.inf))
        if lv is None
        else Feature(name, Kind.CATEGORICAL, levels=lv)
        for name, lv in zip(names, levels, strict=True)
    )
    return FeatureSchema(features, TableFormat.of(pd.DataFrame(columns), list(levels)))


def encode_rows(design: Design, X: Table) -> Rows:
    """Encode a table of the design; arrays are taken as encoded rows already, shape (n, M)."""
    if not isinstance(X, np.ndarray):
        return design.schema.encode(X)
    if X.ndim != 2 or X.shape[1] != len(design.schema):
        raise OptionError(f"encoded rows must have shape (n, {len(design.schema)}), got {X.shape}. Pass a drawn table.")
    return np.ascontiguousarray(X, dtype=np.float64)


def check_masks(design: Design, masks: Masks) -> Masks:
    """Coalitions as a boolean array (C, M), or an error."""
    checked = np.asarray(masks)
    if checked.dtype != bool or checked.ndim != 2 or checked.shape[1] != len(design.schema):
        raise OptionError(
            f"masks must be a boolean array of shape (C, {len(design.schema)}), True = known, got {checked.dtype} of "
            f"shape {checked.shape}. Take them from a CoalitionPlan."
        )
    return checked


def true_values(
    design: Design,
    model: Model,
    X: Table,
    masks: Masks,
    *,
    base_value: float | None = None,
    method: Method = "auto",
    n_samples: int = 512,
    n_replicates: int = 8,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """True contribution function of any model on rows of a design, eq. (2) of the paper.

    Parameters
    ----------
    model : a `LinearModel`, or whatever condshap can explain that has a single output
    X : R rows, a table of the design or encoded
    masks : (C, M), True = in S
    base_value : v of the empty coalition; None for the true mean of f. The paper takes the mean training response.
    method : "exact" for linear models, by integration; "sampling" for any model; "auto" finds out which it can be
    n_samples : quasi-Monte Carlo draws per replicate, a power of two is best
    n_replicates : independent replicates, at least 2

    Returns
    -------
    v : (C, R)
    std_errors : (C, R); 0 where nothing is random, otherwise from the spread of the replicates, with as many degrees
        of freedom as there are replicates less one
    """
    rows, masks = encode_rows(design, X), check_masks(design, masks)
    if method not in ("auto", "exact", "sampling"):
        raise OptionError(f"method must be 'auto', 'exact' or 'sampling', got {method!r}.")
    predictor = _single_output(design, model, rows)
    linear = None if method == "sampling" else _as_linear(design, model, predictor, rows)
    if linear is not None:
        v = design.linear_values(linear, rows, masks)
        std_errors = np.zeros_like(v)
    elif method == "exact":
        raise OptionError("method 'exact' needs an additive linear model, got another one. Use method='sampling'.")
    else:
        v, std_errors = _sampled_values(design, predictor, rows, masks, n_samples, n_replicates, seed)
    v[masks.all(axis=1)] = predictor(rows)[:, 0]
    if base_value is not None:
        v[~masks.any(axis=1)] = base_value
        std_errors[~masks.any(axis=1)] = 0.0
    return v, std_errors


def _single_output(design: Design, model: Model, rows: Rows) -> Predictor:
    predictor = Predictor.of(model, design.schema, rows)
    if len(predictor.output_names) > 1:
        raise ModelError(
            f"the model must have one output, got {len(predictor.output_names)}. Pass a function that picks one."
        )
    return predictor


def _as_linear(design: Design, model: Model, predictor: Predictor, rows: Rows) -> LinearModel | None:
    """Linear form of the model if it has one, proved on drawn rows and on the rows in question."""
    if isinstance(model, LinearModel):
        return model
    drawn = design.schema.encode(design.draw(_PROOF_ROWS, _PROOF_SEED))
    return read_linear(predictor, np.concatenate([drawn, rows]), design.n_categorical, design.n_levels)


def _sampled_values(
    design: Design, predictor: Predictor, rows: Rows, masks: Masks, n_samples: int, n_replicates: int, seed: int
) -> tuple[Floats, Floats]:
    """Mean of f over exact conditional draws, and its standard error from independent replicates; both (C, R)."""
    if n_samples < 1 or n_replicates < 2:
        raise OptionError(
            f"sampling needs n_samples >= 1 and n_replicates >= 2, got {n_samples} and {n_replicates}. "
            "Several replicates are what the standard error comes from."
        )
    n_known = masks.sum(axis=1)
    interior, empty = (n_known > 0) & (n_known < masks.shape[1]), n_known == 0
    seeds = [derive_seed(seed, f"truth {i}") for i in range(n_replicates)]
    v, std_errors = np.zeros((len(masks), len(rows))), np.zeros((len(masks), len(rows)))
    for which, some, keys in (
        (interior, rows, row_keys(rows)),
        (empty, rows[:1], np.zeros(1, dtype=np.uint64)),  # no row matters to the empty coalition
    ):
        means = np.stack(
            [_sample_means(design, predictor, some, keys, masks[which], n_samples, seed=one) for one in seeds]
        )
        v[which] = means.mean(axis=0)
        std_errors[which] = means.std(axis=0, ddof=1) / np.sqrt(n_replicates)
    return v, std_errors


def _sample_means(
    design: Design, predictor: Predictor, rows: Rows, keys: RowKeys, masks: Masks, n_samples: int, *, seed: int
) -> Floats:
    """Means of f over one replicate's draws, shape (C, R), in blocks of bounded memory."""
    means = np.empty((len(masks), len(rows)))
    for some, part in _blocks(len(masks), len(rows), n_samples * rows.shape[1]):
        drawn = design.sample_conditional(rows[part], masks[some], n_samples, keys=keys[part], seed=seed)
        f = predictor(drawn.reshape(-1, rows.shape[1]))[:, 0]
        means[some, part] = f.reshape(drawn.shape[:3]).mean(axis=2)
    return means


def _blocks(n_masks: int, n_rows: int, numbers_per_pair: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of coalitions and rows whose samples fit into memory together."""
    n_pairs = max(1, _BLOCK_NUMBERS // numbers_per_pair)
    rows_at_once = min(n_rows, n_pairs)
    masks_at_once = max(1, n_pairs // max(n_rows, 1))
    for c in range(0, n_masks, masks_at_once):
        for r in range(0, n_rows, rows_at_once):
            yield slice(c, c + masks_at_once), slice(r, r + rows_at_once)


def net_choice(words: Words, n_nets: int) -> Indices:
    """Position in a pool of nets for every random word."""
    return np.asarray((words % np.uint64(n_nets)).astype(np.intp))
