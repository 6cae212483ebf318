"""All choices about a VAEAC in one frozen place, and the rules that fill in what was left open."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, replace
from math import sqrt
from typing import Any, Self

from condshap.exceptions import OptionError

SCALES = ("standard", "normal_scores", "support")
MASKINGS = ("uniform", "by_size", "coalitions")
DRAWS = ("qmc", "plain")
_OLD_WORDS = {("draws", "nets"): "qmc"}  # option, value in 0.1.0 -> value now
_MANY = 25  # features from which on networks are larger, start anywhere, and see standardised columns only
_FEW_ROWS = 500
ROWS_OF_EPOCH = 50_000
"""Training rows that an epoch goes through at most: many more rows then cost no more steps."""
_WARMUP, _MOST_WARMUP, _WARMUP_STEPS = 0.15, 0.3, 180  # shares of all epochs, and steps that a warm-up needs
_WARMUP_OF_FEW = 0.4
SCHEDULES = ("constant", "cosine", "plateau")


# Options are written once, here. `VAEACConfig`, `VAEACOptions` and the approach inherit these fields, and dataclasses write
# their constructors, so that editors, mypy, inspect.signature and scikit-learn (get_params, set_params, clone) all see plain
# keyword parameters. Annotations are real types in this module (no postponed ones), because modules that inherit them do not
# know the names. One base serves both sides because it is neither frozen, as the configuration must be, nor checked in
# its constructor, as estimators must not be.
@dataclass(kw_only=True, repr=False, eq=False)
class VAEACFields:
    """Names, types and defaults of everything that can be chosen about a VAEAC; `VAEACConfig` says what they mean."""

    depth: int = 3
    width: int | None = None
    latent: int | None = None
    scales: Sequence[str] | None = None
    n_restarts: int = 1
    restart_epochs: int = 5
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    schedule: str = "constant"
    validation_share: float = 0.25
    max_validation: int | None = 2500
    validate_every: int = 2
    n_importance: int = 10
    patience: int | None = 40
    ema: float | None = 0.99
    advice: bool = True
    kl_warmup: int | None = None
    companions: bool = True
    zero_init: bool | None = None
    masking: str = "coalitions"
    size_probabilities: Sequence[float] | None = None
    mask_floor: float = 0.05
    missing_flags: bool = True
    artificial_missing: float = 0.1
    respect_support: bool = True
    sigma_mu: float = 1e4
    sigma_sigma: float = 1e4
    latent_floor: float = 1e-3
    scale_floor: float = 1e-3
    draws: str = "qmc"
    refit: bool = False


@dataclass(kw_only=True, unsafe_hash=True)  # safe: `__setattr__` lets nothing change
class VAEACConfig(VAEACFields):
    """Architecture, training and sampling of an ensemble of VAEACs; None means "from the data", see `resolve`.

    Attributes
    ----------
    depth, width, latent : residual blocks per encoder, units per layer, latent dimension d
    scales : scale of the continuous columns, one entry per member of the ensemble: "standard", "normal_scores", or
        "support": logarithms of columns with one end, logits of those with two, and z-scores of the others. Ends are the
        declared ones; otherwise 0 where all training values have one sign, and 0 and 1 for fractions
    n_restarts, restart_epochs : initialisations per member, and for how many epochs they compete by training VLB
    epochs : at most this many in all, restarts included. An epoch goes through all training rows, or through 50,000 of
        them, drawn anew each time, if there are more
    batch_size, learning_rate : of Adam
    schedule : of the learning rate: "constant", "cosine" (to 0 over the epochs) or "plateau" (halved for a member whose
        smoothed IWAE has stalled)
    validation_share, max_validation : share of the rows that a member holds out, and at most this many
    validate_every, n_importance : epochs between two validations; V, draws of the IWAE
    patience : epochs without a better smoothed IWAE before training ends, or None
    ema : decay of the moving average of the weights per step, or None
    advice : tell the encoders what a linear model expects of the hidden columns, see
        `condshap.vaeac.columns.advice`
    companions : linear members and neighbours may vote beside the networks of an approach, see `companions` and `votes`
    kl_warmup : epochs over which the weight of the KL divergence grows from 0 to 1, so that latents are found first; by
        default 15 to 30 % of all where hidden features tell much about each other, 40 % below 500 rows, see `warmed_up`
    zero_init : output layer starts at zero with biases at the marginals, so that a network starts at independence
    masking : "uniform", "by_size" or "coalitions" (those given to `fit`, otherwise uniform)
    size_probabilities : for "by_size", probabilities of 0, ..., M masked features (None: equal)
    mask_floor : share of uniform masks mixed into given coalitions, which keeps full support
    missing_flags : the masked encoder is told which known features are missing, where training rows have gaps
    artificial_missing : present entries flagged as missing in training, as a share of the feature's own missing share
    respect_support : draws never leave the training range, and whole-numbered columns stay whole; "support" needs it
    sigma_mu, sigma_sigma : weak priors of the masked encoder's mean and scale (section 3.3.1 of the paper)
    latent_floor, scale_floor : least standard deviations of latents and of Gaussian heads, in units of the scale
    draws : "qmc" (randomised quasi-Monte Carlo) or "plain" (independent)
    refit : train again on all rows, each member for as many epochs as were best for it
    """

    def __post_init__(self) -> None:
        _check(self)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set each field once, in the constructor; dataclasses forbid frozen=True below a base that is not frozen."""
        if name in vars(self):
            raise FrozenInstanceError(f"a configuration cannot change, got a new {name}. Use dataclasses.replace.")
        super().__setattr__(name, _in_new_words(name, value, warn=True))

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return the paper's settings (appendix C.2): one network, 15 restarts of 5 epochs, best IWAE, plain draws.

        >>> VAEACConfig.paper(width=16).n_restarts
        15
        """
        settings: dict[str, Any] = {
            "width": 32, "latent": 8, "scales": ("standard",), "n_restarts": 15, "restart_epochs": 5,
            "batch_size": 64, "learning_rate": 1e-3, "max_validation": None, "validate_every": 1, "n_importance": 40,
            "patience": None, "ema": None, "advice": False, "kl_warmup": 0, "companions": False,
            "zero_init": False, "mask_floor": 0.0, "missing_flags": False,
            "respect_support": False, "scale_floor": 1e-4, "draws": "plain",
        }  # fmt: skip
        return cls(**{**settings, **overrides})

    @property
    def linear_scales(self) -> tuple[str, ...]:
        """Scales of the linear members."""
        return ("standard", "normal_scores") if self.companions else ()

    @property
    def n_members(self) -> int | None:
        """Number of networks in the ensemble, None where the data decide."""
        return None if self.scales is None else len(self.scales)

    def resolve(self, n_rows: int, n_features: int, *, has_continuous: bool) -> Self:
        """Fill in what was left open.

        Notes
        -----
        - width 32 and latent 8; from 25 features on 64 and 16 (an ensemble of that size beats Gaussian at M = 50).
        - start at independence below 25 features; from there on it cost accuracy (Burr data, M = 25).
        - members: 3 on standardised and 3 on normal-score columns, in turn; from 25 features on 6 on standardised
          ones, which were nearer to the truth (Burr data, M = 50); 5 where no feature is continuous.
        - epochs: 200 up to 5000 rows, then 200 sqrt(5000 / N), at least 30: more rows mean more steps per epoch, up to
          50,000 rows. Large networks, from 25 features on, do so from 1000 rows on: their epochs are slow. With the
          paper's plain settings (no moving average): 200 below 5000 rows, 100 from there on.
        - batches of 128 rows with learning rate 2e-3; of 32 with 5e-4 below 500 rows, where steps are scarce.

        >>> VAEACConfig().resolve(1000, 10, has_continuous=True).epochs
        200
        """
        is_many = n_features >= _MANY
        members = (
            ("standard",) * 5 if not has_continuous else ("standard", "standard" if is_many else "normal_scores") * 3
        )
        batch = self.batch_size or (32 if n_rows < _FEW_ROWS else 128)
        epochs = self.epochs or self._rule_for_epochs(n_rows, is_many=is_many)
        return replace(
            self,
            width=self.width or (64 if is_many else 32),
            latent=self.latent or (16 if is_many else 8),
            scales=self.scales or members,
            epochs=epochs,
            batch_size=batch,
            learning_rate=self.learning_rate or 1e-3 * batch / 64,
            zero_init=not is_many if self.zero_init is None else self.zero_init,
        )

    def warmed_up(self, n_rows: int, *, share_much: bool) -> Self:
        """Decide on the warm-up, by whether hidden features tell much about each other, see `Columns.share_much`.

        15 % of the epochs where that is much, up to 30 % where these have few steps: latents of duplicates were found in
        about 180. Below 500 rows always 40 %: without it, draws of small tables often fail the check of draws, because
        hidden features are drawn too independently of each other.
        """
        if self.kl_warmup is not None:
            return self
        assert self.epochs is not None
        assert self.batch_size is not None
        if n_rows < _FEW_ROWS:
            return replace(self, kl_warmup=round(_WARMUP_OF_FEW * self.epochs))
        n_rows = min(n_rows, ROWS_OF_EPOCH)
        enough = _WARMUP_STEPS / max(1.0, n_rows * (1 - self.validation_share) / self.batch_size)
        epochs = min(max(_WARMUP * self.epochs, enough), _MOST_WARMUP * self.epochs)
        return replace(self, kl_warmup=round(epochs) if share_much else 0)

    def _rule_for_epochs(self, n_rows: int, *, is_many: bool) -> int:
        if self.ema is None:
            return 200 if n_rows < 5000 else 100
        full = 1000 if is_many else 5000
        return round(min(200.0, max(30.0, 200 * sqrt(full / min(n_rows, ROWS_OF_EPOCH)))))


def in_new_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Stored options, in which an older version may have written words that are others now."""
    return {name: _in_new_words(name, value, warn=False) for name, value in options.items()}


def _in_new_words(name: str, value: Any, *, warn: bool) -> Any:
    new = _OLD_WORDS.get((name, value)) if isinstance(value, str) else None
    if new is not None and warn:
        text = f"{name}={value!r} has been renamed to {name}={new!r}. The old word will be removed in version 0.4."
        warnings.warn(text, FutureWarning, stacklevel=4)
    return value if new is None else new


_LEAST_INTEGERS = {
    "depth": 1, "width": 1, "latent": 1, "n_restarts": 1, "restart_epochs": 1, "epochs": 1, "batch_size": 1,
    "max_validation": 1, "validate_every": 1, "n_importance": 1, "patience": 1,
}  # fmt: skip
_POSITIVE = ("learning_rate", "sigma_mu", "sigma_sigma", "latent_floor", "scale_floor")
_SHARES = ("ema", "mask_floor", "artificial_missing", "validation_share")


def _check(config: VAEACConfig) -> None:
    for name, least in _LEAST_INTEGERS.items():
        value = getattr(config, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise OptionError(f"{name} must be an integer of at least {least}, got {value!r}.")
    for name in _POSITIVE:
        value = getattr(config, name)
        if value is not None and not value > 0:
            raise OptionError(f"{name} must be positive, got {value!r}.")
    for name in _SHARES:
        value = getattr(config, name)
        if value is not None and not 0 <= value < 1:
            raise OptionError(f"{name} must be at least 0 and below 1, got {value!r}.")
    if config.validation_share == 0:
        raise OptionError("validation_share must be positive: the best weights are chosen on held-out rows.")
    choices = [("masking", config.masking, MASKINGS), ("draws", config.draws, DRAWS)]
    choices += [("schedule", config.schedule, SCHEDULES)]
    choices += [("scales", scale, SCALES) for scale in config.scales or ()]
    for name, value, allowed in choices:
        if value not in allowed:
            raise OptionError(f"{name} must be one of {list(allowed)}, got {value!r}.")
    if config.scales is not None and len(config.scales) == 0:
        raise OptionError("scales must name at least one member, got none.")
    if "support" in (config.scales or ()) and not config.respect_support:
        raise OptionError("the scale 'support' needs respect_support=True, got False. Leave one of them out.")
