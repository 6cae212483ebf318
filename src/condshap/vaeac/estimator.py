"""Tables <-> the networks: fit, sample, impute and log-likelihood for anything with rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from condshap.exceptions import NotFittedError, OptionError, SchemaError
from condshap.options import as_path, check_choice, check_device, check_integer
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import hash_words, row_keys
from condshap.types import Floats, Masks, RowKeys, Rows, Table
from condshap.vaeac.columns.by_name import Known, as_masks, as_membership, as_probabilities, as_support
from condshap.vaeac.options import VAEACOptions, options_of

if TYPE_CHECKING:
    from condshap.vaeac.ensemble import Networks
    from condshap.vaeac.validation import History


class VAEACNetworks(VAEACOptions):
    """An ensemble of networks that learns every conditional distribution of a table; it needs no model to explain.

    Options are those of `condshap.vaeac.config.VAEACConfig`; the defaults give a good first answer without tuning.

    Parameters
    ----------
    depth, width, latent, ..., refit : see `condshap.vaeac.config.VAEACConfig`; None means "from the data"
    device : "cpu", "cuda" or "auto", which uses the accelerator if there is one

    Attributes
    ----------
    schema_ : FeatureSchema
        Names, kinds and levels of the columns, and how encoded rows become a table again.
    networks_ : the trained networks, which read encoded rows

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"size": rng.normal(size=60), "kind": rng.choice(["a", "b"], 60)})
    >>> network = VAEACNetworks(epochs=2).fit(X)
    >>> network.sample(X[:5], [["size"]], 8).shape
    (1, 5, 8, 2)
    """

    def fit(
        self,
        X: Table,
        *,
        categorical: Iterable[str | int] = (),
        seed: int = 0,
        coalitions: Known | None = None,
        probabilities: npt.ArrayLike | None = None,
        groups: Mapping[str, Sequence[str | int]] | None = None,
        support: Mapping[str, tuple[float, float]] | None = None,
        progress: str | bool = "auto",
    ) -> Self:
        """Learn from training rows (N, M), which may have missing values.

        Parameters
        ----------
        X : pandas, Polars or PyArrow table, or NumPy array
        categorical : columns that hold levels although their dtype is numeric
        coalitions : which features will be known, as `masks` in `sample`; by default any subset is as likely as any other
        probabilities : (C,) how often each of `coalitions` will be used, on any scale; by default equally often
        groups : name -> columns that are always known, or unknown, together; columns left out stand alone
        support : column -> (least, largest) value that draws may take, e.g. ``{"income": (0, inf)}``; the training range
            for columns that are not named. With "support" in `scales` it also decides on logarithms and logits
        progress : show the progress of training: "auto" (in a terminal or notebook), True or False
        """
        for name in ("networks_", "schema_"):  # a fit that fails leaves nothing that looks fitted
            self.__dict__.pop(name, None)
        config = self.config
        check_device(self.device)
        check_integer("seed", seed, least=0)
        check_choice("progress", progress, ("auto", True, False))
        schema = FeatureSchema.learn(X, categorical)
        rows = schema.encode(X)
        if len(rows) < 2:
            raise SchemaError(
                f"there must be at least 2 training rows, got {len(rows)}. One row says nothing about how values vary."
            )
        known = self._coalitions(coalitions, schema)
        n_known = 0 if known is None else len(known)
        shares = None if probabilities is None else as_probabilities(probabilities, n_known)
        membership = None if groups is None else as_membership(groups, schema.names)
        bounds = self._support(support, schema, rows)
        from condshap.vaeac.ensemble import Networks
        from condshap.vaeac.training.checkpoint import MaskQuery
        from condshap.vaeac.training.progress import training_line

        masks = MaskQuery.of(known, shares, membership)
        networks = Networks(config, device=self.device)
        with training_line(progress) as report:
            networks.fit(rows, _n_levels(schema), masks=masks, support=bounds, seed=seed, progress=report)
        self.networks_, self.schema_ = networks, schema
        return self

    def continue_training(self, X: Table, epochs: int, *, progress: str | bool = "auto") -> Self:
        """Train for more epochs after `fit`, or after loading a network that was saved with its optimiser.

        Parameters
        ----------
        X : the rows that were given to `fit`, in the same order
        epochs : number of further epochs
        progress : as in `fit`
        """
        networks, rows = self._fitted(), self._encode(X)
        epochs = check_integer("epochs", epochs, least=1)
        check_choice("progress", progress, ("auto", True, False))
        from condshap.vaeac.training.progress import training_line

        with training_line(progress) as report:
            networks.continue_training(rows, epochs, progress=report)
        return self

    @property
    def history(self) -> History:
        """What happened in training: VLB, held-out IWAE, KL divergence by latent unit, best epoch of every network."""
        return self._fitted().history

    def sample(self, X: Table, masks: Known, n_samples: int, *, seed: int = 0, fill_missing: bool = False) -> Floats:
        """Draw the unknown features given the known ones.

        Parameters
        ----------
        X : table with R rows
        masks : (C, M) array, True = known, or a list with C collections of the names of known columns
        n_samples : K, draws per coalition and row
        seed : one seed, one answer, whatever other rows and coalitions are asked for
        fill_missing : draw known features that are missing as well, given that they are; otherwise they stay missing

        Returns
        -------
        (C, R, K, M) encoded draws: numbers as they are, levels as codes, positions in ``schema_.features[j].levels``. Known
        columns are unchanged. `sample_table` gives the same draws as a table.
        """
        networks, rows = self._fitted(), self._encode(X)
        K = check_integer("n_samples", n_samples, least=1)
        seed = check_integer("seed", seed, least=0)
        drawn = networks.sample(rows, as_masks(masks, self.schema_.names), K, seed=seed, fill_missing=fill_missing)
        return np.asarray(drawn)

    def sample_table(
        self, X: Table, masks: Known, n_samples: int, *, seed: int = 0, fill_missing: bool = False
    ) -> Table:
        """Draw as `sample` does, into one table with the type, columns and dtypes of the training rows.

        It has C x R x K rows: the draws for the first row given the first coalition, for the second row, and so on; then
        those for the next coalition.
        """
        drawn = self.sample(X, masks, n_samples, seed=seed, fill_missing=fill_missing)
        return self.schema_.decode(drawn.reshape(-1, drawn.shape[-1]))

    def impute(self, X: Table, n: int = 1, *, seed: int = 0) -> list[Table]:
        """Fill the gaps of rows n times: multiple imputation.

        Parameters
        ----------
        X : table with R rows
        n : number of completed tables; their differences show how uncertain the filled values are

        Returns
        -------
        n tables of the type of `X`, with its column order and, for pandas, its index. Observed entries are unchanged;
        integer columns are integers again, also where gaps had made floating-point numbers of them.
        """
        networks, rows = self._fitted(), self._encode(X)
        n, seed = check_integer("n", n, least=1), check_integer("seed", seed, least=0)
        filled = networks.impute(rows, n, keys=_keys_of_occurrences(rows), seed=seed)
        return [self.schema_.decode_like(X, table) for table in filled]

    def log_likelihood(self, X: Table, masks: Known, *, n_draws: int = 64, seed: int = 0) -> Floats:
        """Importance-weighted estimate (IWAE) of log p(x_unknown | x_known), shape (C, R).

        Parameters
        ----------
        X : table with R rows; missing entries are left out
        masks : as in `sample`
        n_draws : draws per network; the estimate is a lower bound in expectation, and closer with more

        Notes
        -----
        Densities of numbers and probabilities of levels, in the units of the table: adding up over rows, it ranks models of
        the same columns.
        """
        networks, rows = self._fitted(), self._encode(X)
        n_draws, seed = check_integer("n_draws", n_draws, least=1), check_integer("seed", seed, least=0)
        return networks.log_likelihood(rows, as_masks(masks, self.schema_.names), n_draws=n_draws, seed=seed)

    def save(self, path: str | Path, *, keep_optimiser: bool = False) -> None:
        """Write everything that was learned to one safetensors file, with the schema as JSON in its header; no pickle.

        `keep_optimiser` adds what `continue_training` needs, which makes the file about six times as large.
        """
        from condshap.storage.networks import save_networks

        save_networks(as_path(path), self._fitted(), self.schema_, keep_optimiser=keep_optimiser)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto") -> Self:
        """Read what `save` wrote; `device` is where to run the networks now."""
        from condshap.storage.networks import load_networks

        networks, schema = load_networks(as_path(path), check_device(device))
        loaded = cls(**options_of(networks.config), device=device)
        loaded.networks_, loaded.schema_ = networks, schema
        return loaded

    def _fitted(self) -> Networks:
        if not hasattr(self, "networks_"):
            raise NotFittedError(f"a {type(self).__name__} must be fitted first. Call fit(X), or load a saved one.")
        return self.networks_

    def _encode(self, X: Table) -> Rows:
        return self.schema_.encode(X)

    def _coalitions(self, coalitions: Known | None, schema: FeatureSchema) -> Masks | None:
        if coalitions is None:
            return None
        if self.masking != "coalitions":
            raise OptionError(f"coalitions need masking='coalitions', got {self.masking!r}. Leave one of them out.")
        return as_masks(coalitions, schema.names)

    def _support(
        self, support: Mapping[str, tuple[float, float]] | None, schema: FeatureSchema, rows: Rows
    ) -> Floats | None:
        if support is None:
            return None
        if not self.respect_support:
            raise OptionError("support needs respect_support=True, got False. Leave one of them out.")
        is_level = np.array([feature.kind is Kind.CATEGORICAL for feature in schema.features])
        return as_support(support, schema.names, is_level, rows)


def _n_levels(schema: FeatureSchema) -> list[int]:
    """Number of levels of each feature (M,), 0 for continuous ones."""
    return [len(feature.levels or ()) for feature in schema.features]


def _keys_of_occurrences(X: Rows) -> RowKeys:
    """Names of the random streams of rows (n, M): equal rows have different ones, as their gaps differ in truth."""
    keys = row_keys(X)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0])
    counts = np.diff(np.r_[starts, len(keys)])
    occurrence = np.empty(len(keys), dtype=np.uint64)
    occurrence[order] = np.arange(len(keys)) - np.repeat(starts, counts)
    return hash_words(keys, occurrence)
