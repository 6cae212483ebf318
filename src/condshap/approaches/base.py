"""Rows, masks -> conditional samples: what every approach must offer.

An approach is any object with these methods; it need not be registered or inherit from anything. Every file in this folder
binds ``APPROACH`` to its class, and the file's name is the approach's name. An approach declares what it offers beyond
sampling or estimating in one object, `Capabilities`; nothing probes for methods, and the contract suite checks that the
declaration is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from condshap.approaches import available_approaches, find_approach
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import ApproachError, SchemaError, listing
from condshap.numerics.additive import AdditiveFunction
from condshap.schema import FeatureSchema, Kind
from condshap.types import LARGEST, SMALLEST_RANGE, Floats, Indices, Masks, Outputs, RowKeys, Rows, Values

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from condshap.numerics.device_draws import DeviceDraws


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """Sampled rows for the full cross product of coalitions and explained rows.

    Attributes
    ----------
    rows : (C, R, K, M), known columns unchanged
    weights : (C, R, K), or None for equal weights
    error_factor : variance of the weighted mean divided by what independent draws would give, a number or (C, R). 1 for
        independent draws, 0 if nothing is random, None if it must be measured (quasi-Monte Carlo); samples are then in
        the order of their net, so that consecutive ones are evenly spread too.
    may_repeat : (C,) coalitions whose rows are likely to be equal, because levels were drawn: each is evaluated once
    members : (K,) which member of an ensemble drew each sample, -1 for none; their differences show the training error
    """

    rows: Floats
    weights: Floats | None = None
    error_factor: float | Floats | None = 1.0
    may_repeat: Masks | None = None
    members: Indices | None = None


@dataclass(frozen=True, slots=True)
class Donors:
    """Rows of the approach's own table, usually the training rows, whose values fill the unknown columns.

    The value engine splices them with the known columns of the explained rows.

    Attributes
    ----------
    indices : (C, R, K) positions in `table`
    table : (N, M) encoded rows
    weights : (C, R, K), or None for equal weights; zero-weight padding is never evaluated
    error_factor : as in `DrawnRows`
    may_repeat : an index may occur twice for the same coalition and row
    """

    indices: Indices
    table: Rows
    weights: Floats | None = None
    error_factor: float | Floats | None = 1.0
    may_repeat: bool = True


ConditionalSamples = DrawnRows | Donors


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What an additive model predicts for samples, or expects given part of what is random, without calling the model.

    Attributes
    ----------
    values : (C, R, K, O)
    weights : (C, R, K), or None for equal weights
    error_factor, members : as in `DrawnRows`
    """

    values: Floats
    weights: Floats | None = None
    error_factor: float | Floats | None = 0.0
    members: Indices | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an approach can do; it declares this in ``capabilities``.

    Attributes
    ----------
    samples : it has `sample`; else it has `estimate` (`ValueRegressor`)
    default_samples : samples per row and coalition by default; None lets the engine choose by coalition size
    draws_on_device : it has `sample_on`, see `DeviceSampler`
    knows_error : samples always have an error factor, so fit runs no pilot to measure it
    expects, expects_exactly : it has `expect`, see `Expecting`; a single outcome per coalition and row is exact
    follows_chains : it has ``along(chain) -> approach``, a copy that draws, or estimates, along a causal chain by itself
    draws_each : it has `sample_each`, see `EachSampler`; without it, one sample is asked for every row
    starts_chains : it has `sample_start`, see `EachSampler`; without it, `sample` makes the first draws along a chain
    has_members : it has ``estimate_members(X, masks) -> (E, C, R, O)``, an ensemble whose spread shows the training error
    is_storable : it has `to_state` and `from_state`, see `Storable`
    checks_options : it has ``check_options(X, schema, *, plan)``, which rejects invalid options before anything is trained
    fills_missing : it draws known features that are missing, because the model does not accept gaps
    ignores_dependence : draws are not meant to look like rows, so the draw check does not warn
    compares_all_rows : sampling compares all pairs of rows, so the draw check uses fewer of them
    asks_model_to_sample : sampling calls the model, so there is no draw check
    most_rows : training rows that it learns from; of more, a random part is taken. None: all of them
    leaves_open : options that may be "auto", which the explainer then decides
    packages : packages that affect the numbers, for the provenance
    """

    samples: bool = True
    default_samples: int | None = None
    draws_on_device: bool = False
    knows_error: bool = False
    expects: bool = False
    expects_exactly: bool = False
    follows_chains: bool = False
    draws_each: bool = False
    starts_chains: bool = False
    has_members: bool = False
    is_storable: bool = False
    checks_options: bool = False
    fills_missing: bool = False
    ignores_dependence: bool = False
    compares_all_rows: bool = False
    asks_model_to_sample: bool = False
    most_rows: int | None = None
    leaves_open: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


class ConditionalSampler(Protocol):
    """An approach that samples x_unknown given x_known."""

    name: ClassVar[str]
    supports: ClassVar[frozenset[Kind]]
    handles_missing: ClassVar[bool]
    needs_model: ClassVar[bool]

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> ConditionalSampler:
        """Learn from training rows (N, M); returns self."""
        ...

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> ConditionalSamples:
        """Sample for every coalition in `masks` (C, M) and every row of `X` (R, M); does not change the approach."""
        ...


class DeviceSampler(Protocol):
    """What a sampler may offer beyond `sample`: the same draws as tensors on a device, where they stay."""

    def sample_on(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int, device: str) -> DeviceDraws:
        """Sample as `sample` does, up to rounding; sums in an order that does not depend on the number of rows."""
        ...


class EachSampler(Protocol):
    """What a sampler may offer beyond `sample`: samples whose known features differ from sample to sample."""

    def sample_each(self, X: Rows, mask: Masks, *, keys: RowKeys, seed: int) -> Rows:
        """Sample once for each of K rows of R pairs, (R, K, M), given the features of a coalition (M,); `keys` (R,)."""
        ...

    def sample_start(self, X: Rows, mask: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Sample as `sample` does, up to rounding, for one coalition: (1, R, K, M). Only with `starts_chains`."""
        ...


class Expecting(Protocol):
    """What a sampler may offer beyond sampling: E[f(X) | x_known] of an additive f with less noise than from samples.

    For a sum of one function per feature the margins of the conditional distribution are enough, for a linear one its
    means. `Capabilities.expects_exactly` says that a single outcome per coalition and row is exact, with error factor 0.
    """

    def expect(
        self, X: Rows, masks: Masks, n_samples: int, *, function: AdditiveFunction, keys: RowKeys, seed: int
    ) -> Outcomes:
        """Return outcomes whose weighted mean is E[f(X) | x_known]; randomness as in `ConditionalSampler.sample`."""
        ...


class ValueRegressor(Protocol):
    """An approach that estimates E[f(X) | x_known] without sampling."""

    name: ClassVar[str]
    supports: ClassVar[frozenset[Kind]]
    handles_missing: ClassVar[bool]

    def fit(
        self, X: Rows, predictions: Outputs, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int
    ) -> ValueRegressor:
        """Learn from training rows (N, M) and the model's predictions for them (N, O); returns self."""
        ...

    def estimate(self, X: Rows, masks: Masks) -> Values:
        """Estimate v(S), shape (C, R, O), for every coalition in `masks` (C, M) and every row of `X` (R, M)."""
        ...


Approach = ConditionalSampler | ValueRegressor


@dataclass(frozen=True, slots=True)
class State:
    """A fitted approach with its options, in a form that a file can hold without pickle.

    Attributes
    ----------
    arrays : by name; booleans, integers and floats of any shape
    facts : whatever JSON can hold
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    facts: Mapping[str, Any]

    def extended(self, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any] | None = None) -> State:
        """Return a state with further arrays and facts."""
        return State({**self.arrays, **arrays}, {**self.facts, **(facts or {})})

    def joined(self, other: State) -> State:
        """Return a state with all of another one."""
        return self.extended(other.arrays, other.facts)

    def named(self, name: str) -> State:
        """Return the same state as a part of a larger one: arrays are called ``name/...``, facts are under `name`."""
        return State({f"{name}/{key}": array for key, array in self.arrays.items()}, {name: self.facts})

    def part(self, name: str) -> State:
        """Inverse of `named`."""
        front = f"{name}/"
        arrays = {key.removeprefix(front): array for key, array in self.arrays.items() if key.startswith(front)}
        return State(arrays, self.facts[name])


class Storable(Protocol):
    """What an approach may offer beyond sampling or estimating, so that ``Explainer.save`` can store it.

    A class with `needs_model` also gets the model in `from_state`, as ``predict(rows) -> (n, O)``.
    """

    def to_state(self) -> State:
        """Return everything that was given and learned; caches that can be made again need not be stored."""
        ...

    @classmethod
    def from_state(cls, state: State) -> Storable:
        """Make a fitted approach that gives the same numbers, bit for bit, as the one that was stored."""
        ...


def capabilities_of(approach: Any) -> Capabilities:
    """What an approach declares.

    An approach with only the attributes and methods of `ConditionalSampler` or `ValueRegressor` need not declare anything.
    One that offers more without declaring it raises an error that shows what to write: it would be ignored silently.
    """
    declared = getattr(approach, "capabilities", None)
    if isinstance(declared, Capabilities):
        return declared
    lacking = [name for name in ("name", "supports", "handles_missing") if not hasattr(approach, name)]
    undeclared = [name for name in _DECLARED_BY if hasattr(approach, name)]
    if lacking or undeclared:
        what = f"it has no {listing(lacking)}" if lacking else f"it has {listing(undeclared)} but does not declare them"
        raise ApproachError(
            f"an approach must declare what it can do, but {type(approach).__name__} does not: {what}. Add to its class\n"
            "    name, supports, handles_missing, needs_model = 'mine', ALL_KINDS, False, False\n"
            f"    capabilities = Capabilities({_example(approach)})\n"
            "Import these names from condshap.approaches.base; Capabilities lists everything that can be declared."
        )
    return Capabilities(samples=hasattr(approach, "sample"))


_DECLARED_BY = {
    "sample_on": "draws_on_device", "along": "follows_chains", "sample_each": "draws_each", "sample_start": "starts_chains",
    "expect": "expects", "estimate_members": "has_members", "to_state": "is_storable",
    "check_options": "checks_options", "default_samples": "default_samples", "expects_exactly": "expects_exactly",
    "ignores_dependence": "ignores_dependence", "compares_all_rows": "compares_all_rows", "packages": "packages",
    "asks_model_to_sample": "asks_model_to_sample",
}  # fmt: skip
"""What an approach may have, and by which of the capabilities it says so."""


def _example(approach: Any) -> str:
    """Declaration that an approach lacks, as it could be written."""
    found = [
        f"{says}={True if callable(getattr(approach, name)) else getattr(approach, name)!r}"
        for name, says in _DECLARED_BY.items()
        if hasattr(approach, name)
    ]
    return ", ".join([f"samples={hasattr(approach, 'sample')}", *found])


def is_sampler(approach: Approach) -> TypeIs[ConditionalSampler]:
    """Tell an approach that samples from one that estimates E[f(X) | x_known] directly."""
    return capabilities_of(approach).samples


def check_approach_options(approach: Any, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
    """Let an approach refuse its options before anything is trained."""
    if capabilities_of(approach).checks_options:
        approach.check_options(X, schema, plan=plan)


def fit_approach(
    approach: Any, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int, predict: Callable[[Rows], Outputs]
) -> Any:
    """Fit a sampler or a regressor; one that says `needs_model` gets the model as ``predict(rows) -> (n, O)`` too."""
    model = {"predict": predict} if getattr(approach, "needs_model", False) else {}
    if is_sampler(approach):
        return approach.fit(X, schema, plan=plan, seed=seed, **model)
    predictions = predict(X.copy())  # a model may write into its rows
    return approach.fit(X, predictions, schema, plan=plan, seed=seed, **model)


def restore_approach(kind: Any, state: State, *, predict: Callable[[Rows], Outputs]) -> Any:
    """Make a fitted approach of class `kind` from its state; one that says `needs_model` gets the model too."""
    model = {"predict": predict} if getattr(kind, "needs_model", False) else {}
    return kind.from_state(state, **model)


ENOUGH_ROWS = 50_000
"""Training rows that approaches learn from whose work grows with them for every coalition that is asked for."""

ALL_KINDS = frozenset(Kind)
CONTINUOUS_ONLY = frozenset({Kind.CONTINUOUS})


def check_supported(approach: Approach, schema: FeatureSchema) -> None:
    """Refuse features of a kind that the approach cannot model."""
    for kind in Kind:
        refused = schema.of_kind(kind)
        if kind not in approach.supports and refused:
            needed = " or ".join(sorted(k.value for k in approach.supports))
            raise SchemaError(
                f"approach '{approach.name}' needs {needed} features, got {kind.value} columns {listing(refused)}. "
                f"Use {_alternatives(schema)}, or drop these columns."
            )


def check_missing(approach: Approach, X: Rows, schema: FeatureSchema, *, what: str) -> None:
    """Refuse missing values where the approach cannot handle them; `what` names the rows in the message."""
    gaps = np.asarray(np.isnan(X))
    if approach.handles_missing or not gaps.any():
        return
    columns = [name for name, gone in zip(schema.names, np.atleast_1d(gaps.any(axis=0)), strict=True) if gone]
    rows = np.flatnonzero(gaps.any(axis=1)).tolist()
    raise SchemaError(
        f"approach '{approach.name}' needs complete {what}, got missing values in columns {listing(columns)}, rows "
        f"{listing(rows)}. Impute or drop them, or use {_alternatives(schema, missing=True)}.",
        rows=rows,
    )


def check_sizes(X: Rows, schema: FeatureSchema) -> None:
    """Refuse numbers whose powers overflow on the way to standard errors."""
    with np.errstate(invalid="ignore"):
        rows, columns = np.nonzero(np.abs(X) > LARGEST)
    if len(rows):
        name, where = schema.names[columns[0]], rows[columns == columns[0]].tolist()
        raise SchemaError(
            f"column '{name}' must hold numbers of at most {LARGEST:g} in absolute value, because standard errors need "
            f"their fourth powers, got larger ones in rows {listing(where)}. Rescale the column, or replace these numbers "
            "with NaN.",
            rows=where,
        )


def check_training_rows(X: Rows, schema: FeatureSchema) -> None:
    """Refuse a single row, and numbers in rows (N, M) so large, or so near each other, that powers overflow or vanish."""
    check_sizes(X, schema)
    if len(X) < 2:
        raise SchemaError(
            f"there must be at least 2 training rows, got {len(X)}. One row says nothing about how values vary."
        )
    for column, feature in zip(X.T, schema.features, strict=True):
        spread = float(np.nanmax(column) - np.nanmin(column))
        if feature.levels is None and 0 < spread < SMALLEST_RANGE:
            raise SchemaError(
                f"column '{feature.name}' must be constant or span at least {SMALLEST_RANGE:g}, because smaller "
                f"differences vanish when squared, got a range of {spread:.3g}. Multiply the column by a large number."
            )


def _alternatives(schema: FeatureSchema, *, missing: bool = False) -> str:
    """Names of approaches that support all kinds of the features, and missing values if needed, for error messages."""
    kinds = {kind for kind in Kind if schema.of_kind(kind)}
    classes = [find_approach(name) for name in available_approaches()]
    fitting = [c.name for c in classes if kinds <= c.supports and (c.handles_missing or not missing)]
    return "approach=" + " or ".join(f"'{name}'" for name in fitting)
