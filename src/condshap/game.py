"""Training rows, model, options -> Game: all that `fit` learned, in one frozen object.

Everything after `fit` is a function of a Game: explaining, refining, saving, estimating errors. Nothing changes it; what
differs, such as another seed, is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from condshap.coalitions import CoalitionPlan, Players
from condshap.coalitions.ordering import Ordering, chain_of
from condshap.draw_check import DrawCheck
from condshap.models.predictor import Predictor
from condshap.numerics.additive import AdditiveFunction
from condshap.numerics.chains import Chain
from condshap.schema import FeatureSchema
from condshap.types import Floats, Indices, Masks, Outputs, Rows, Table
from condshap.values.assignments import Part


@dataclass(frozen=True, eq=False)
class Setup:
    """What is known before anything is learned about the features: players, coalitions, and how to call the model.

    Attributes
    ----------
    masks : (C, M) known features of the plan's coalitions
    pairs : (n, 2) the order in which ``n_coalitions="auto"`` takes pairs of coalitions; empty without it
    parts : approaches and the coalitions that each answers for
    example_rows : (k, M) some training rows without gaps, for trials, and by which a saved explainer knows its model
    function, reading, knots, read_limit : an additive model as it was read, how, at which values, and how far its sums may
        be from the model's predictions, (O,); None where the model is asked
    n_samples, asked_samples : (C,) samples per coalition, and those where the model must be asked after all
    ordering : causal order of the players, None without one
    seed : names the random streams
    target_error : largest Monte Carlo error that is wanted, or None
    is_base_given : whether the user gave the base value
    link : scale of v(S), "logit" for log-odds of probabilities, None for that of the prediction
    """

    schema: FeatureSchema
    players: Players
    plan: CoalitionPlan
    pairs: Indices
    masks: Masks
    parts: tuple[Part, ...]
    predictor: Predictor
    example_rows: Rows
    function: AdditiveFunction | None
    reading: str | None
    knots: Floats | None
    read_limit: Floats | None
    n_samples: Indices
    asked_samples: Indices
    ordering: Ordering | None
    seed: int
    target_error: float | None
    is_base_given: bool
    link: str | None

    @property
    def chain(self) -> Chain | None:
        """How unknown features are drawn after known ones were set; None where v(S) is conditional."""
        return chain_of(self.ordering, self.players)


@dataclass(frozen=True, eq=False)
class Game(Setup):
    """A `Setup` whose approaches are fitted, and everything else that was learned.

    Attributes
    ----------
    base_value : (O,) v of the empty coalition
    error_factors : (C, O) variance of v(S) over that of independent blocks of samples
    constants : (M,) values of columns that are constant in training, NaN for the others
    unread : (M,) features that the model never reads, and that move none that it reads
    draw_check : how training rows compare with draws, None if that was not checked
    training_rows : (N, M) those that approaches have learned from, None in an explainer that was loaded
    made_by : digest of all that numbers depend on
    warnings, seconds : what was said, and how long it took
    n_learned : how many `training_rows` are, where they are a random part of those given to `fit`; else None
    """

    base_value: Floats
    error_factors: Floats
    constants: Floats
    unread: Masks
    draw_check: DrawCheck | None
    training_rows: Rows | None
    made_by: str
    warnings: tuple[str, ...]
    seconds: float
    n_learned: int | None = None


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows to explain: the table (R, M) as given and encoded, predictions (R, O), and when explaining began."""

    X: Table
    rows: Rows
    predictions: Outputs
    start: float
