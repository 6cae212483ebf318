"""Any model -> predictor: encoded rows (n, M) to outputs (n, O).

The model gets tables of the type, column order, dtypes and categories that it was trained with. What it answers is
checked at every call, because a NaN that slips through here becomes a wrong explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import ModelError
from condshap.models.calling import call_model, call_torch, describe_model, find_caller
from condshap.models.fast_trees import copy_to_device, evaluate_trees, find_numbers, meets_outputs, predict_numbers
from condshap.models.input_format import find_input_format, holds_plain_numbers
from condshap.models.level_codes import LevelCodes
from condshap.models.outputs import are_in_range, as_outputs, check_count, find_output, name_outputs, range_error
from condshap.schema import FeatureSchema
from condshap.tables.formats import TableFormat
from condshap.trees import PackedTrees, read_trees
from condshap.trees.cuda import DeviceTrees
from condshap.trees.pipelines import adds_in_any_order, encoder_of, split_pipeline, transform, with_one_job
from condshap.types import Floats, Model, Outputs, Rows

if TYPE_CHECKING:
    import torch

_MANY_ROWS = 1000
"""From so many rows on a forest is faster with its own jobs than with one."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """A model, how to call it, and which of its outputs to explain.

    Attributes
    ----------
    model : the user's object
    table_format : how encoded rows become the table that the model wants
    order : positions of the schema's features in the model's column order, None if they agree
    output_names : names of the explained outputs, O of them
    picked : position of the one output that was asked for, None for all
    n_outputs : outputs of the model at its trial, which it must have at every call; None before that
    trees : the model's trees, for samples, if it is a tree ensemble that `condshap.trees` evaluates to the last bit, or a
        pipeline that ends in one
    level_codes : how rows become what the trees compare, if the model encodes categories and rows need not be tables for it
    device_trees : the same on an accelerator, where samples are evaluated if there are any; their sums are float64
    units : (M,) sizes of the training values, in which rows name their random streams, see `condshap.seeding.row_keys`
    """

    model: Model
    table_format: TableFormat
    order: tuple[int, ...] | None
    output_names: tuple[str, ...]
    picked: int | None
    n_outputs: int | None = None
    trees: PackedTrees | None = field(default=None, repr=False, compare=False)
    level_codes: LevelCodes | None = field(default=None, repr=False, compare=False)
    device_trees: DeviceTrees | None = field(default=None, repr=False, compare=False)
    units: Floats | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        model: Model,
        schema: FeatureSchema,
        X: Rows,
        output: str | int | None = None,
        *,
        fast_trees: bool = False,
        device: str | None = None,
    ) -> Predictor:
        """Find out how to call `model` by a trial on the first rows of `X`.

        With `fast_trees` its trees are read, and copied to `device` if there is one.
        """
        table_format, order = find_input_format(model, schema.table_format)
        trial = X[:2].copy()  # a copy, because nothing stops a model from changing its input
        outputs = cls(model, table_format, order, (), None)._all_outputs(trial)
        names = name_outputs(model, outputs.shape[1])
        picked = None if output is None else find_output(output, names)
        chosen = names if picked is None else (names[picked],)
        predictor = cls(model, table_format, order, chosen, picked, outputs.shape[1])
        return predictor._with_trees(X[:2], device) if fast_trees else predictor

    def __call__(self, rows: Rows) -> Outputs:
        """Predict encoded rows (n, M); returns finite float64 outputs (n, O). The model may write into `rows`."""
        return self._checked(self._steady_outputs(rows), rows)

    def predict_fast(self, rows: Rows) -> Outputs:
        """Predict rows (n, M) as a call does, but by the trees where they are known, which is faster; outputs (n, O).

        Rows with numbers that the model refuses go to the model, which says so in its own words; in a pipeline only to its
        last step, because those before it may have changed them.
        """
        if self.trees is None:
            return self(rows)
        return self._checked(self._tree_outputs(self.trees, rows, self.device_trees), rows)

    def compared_numbers(self, rows: Rows) -> npt.NDArray[Any]:
        """Numbers (n, columns) that the trees compare with their thresholds, for rows (n, M)."""
        assert self.trees is not None
        numbers = find_numbers(self.trees, self._last_step_input(rows), split_pipeline(self.model)[1])
        if numbers is None:
            raise ModelError(
                f"model {describe_model(self.model)} must pass {self.trees.n_features} columns of numbers to its trees, but "
                "passed others. Set fast_trees=False."
            )
        return numbers

    def call_module(self, rows: torch.Tensor) -> torch.Tensor:
        """Outputs of a torch module for rows (n, M) that are a tensor: (n, O), unless the module returns anything else."""
        outputs: torch.Tensor = call_torch(self.model, self.in_order(rows))
        outputs = outputs[:, None] if outputs.ndim == 1 else outputs
        if outputs.ndim == 2:
            check_count(outputs.shape[1], self.n_outputs, self.model)
        explained: torch.Tensor = self.explained(outputs)
        return explained

    @property
    def takes_plain_rows(self) -> bool:
        """Whether the model, and nothing that comes before it, gets the encoded numbers as they are, but for their order."""
        steps, last = split_pipeline(self.model)
        return not steps and encoder_of(last) is None and holds_plain_numbers(self.table_format.columns)

    def in_order(self, rows: Any) -> Any:
        """Rows (n, M), an array or a tensor, with the columns in the model's order."""
        return rows if self.order is None else rows[:, list(self.order)]

    def explained(self, outputs: Any) -> Any:
        """Those of the model's outputs, an array or a tensor, that are explained: (n, O)."""
        return outputs if self.picked is None else outputs[:, self.picked : self.picked + 1]

    def _with_trees(self, trial: Rows, device: str | None) -> Predictor:
        """The same with the model's trees, also on a device if there is one; as it is if they are not certain to be exact.

        The model's own outputs for trial rows (n, M) prove that the columns are the right ones. A forest of several jobs
        adds its trees in any order, so it is tried with one.
        """
        _, last = split_pipeline(self.model)
        trees = read_trees(last, exact=True)
        if trees is None:
            return self
        expected = self._all_outputs(trial.copy(), with_one_job(self.model))
        if not meets_outputs(trees, self._last_step_input(trial.copy()), last, expected):
            return self
        codes = LevelCodes.learn(self.model, self.table_format)
        packed = PackedTrees.of(trees)
        return replace(self, trees=packed, level_codes=codes, device_trees=copy_to_device(trees, device))

    def _all_outputs(self, rows: Rows, model: Model = None) -> Outputs:
        """All outputs of the model, or of another form of it, for rows (n, M), explained or not; numbers of any size."""
        table = self.table_format.write(self.in_order(rows))
        return as_outputs(call_model(self.model if model is None else model, table), self.model, len(rows))

    def _steady_outputs(self, rows: Rows) -> Outputs:
        """All outputs of the model for rows (n, M), the same at every call.

        A forest of several jobs adds its trees in the order in which they finish, so the last bits of its predictions
        change from call to call. It is asked with one job, or, for many rows, its trees are, which add up alike.
        """
        if not adds_in_any_order(self.model):
            return self._all_outputs(rows)
        if len(rows) < _MANY_ROWS:
            return self._all_outputs(rows, with_one_job(self.model))
        return self._all_outputs(rows) if self.trees is None else self._tree_outputs(self.trees, rows)

    def _tree_outputs(self, trees: PackedTrees, rows: Rows, device_trees: DeviceTrees | None = None) -> Outputs:
        """All outputs for rows (n, M) by trees, or by the model where it refuses the numbers."""
        if self.level_codes is not None:
            return predict_numbers(trees, self.level_codes.look_up(self.in_order(rows)), self.model)
        steps, last = split_pipeline(self.model)
        table = self._last_step_input(rows)
        outputs = evaluate_trees(trees, table, last, device_trees)
        if outputs is None and steps:
            outputs = as_outputs(call_model(self.model, table, find_caller(last)), self.model, len(rows))
        return self._all_outputs(rows) if outputs is None else outputs

    def _last_step_input(self, rows: Rows) -> Any:
        """Rows (n, M) as the last step of a pipeline gets them; as they are if the model takes plain numbers."""
        if self.takes_plain_rows:
            return self.in_order(rows)
        steps, _ = split_pipeline(self.model)
        table = self.table_format.write(self.in_order(rows))
        return call_model(self.model, table, partial(transform, steps))

    def _checked(self, outputs: Outputs, rows: Rows) -> Outputs:
        """Explained outputs (n, O), all of them finite, of all outputs of the model for rows (n, M)."""
        check_count(outputs.shape[1], self.n_outputs, self.model)
        outputs = np.ascontiguousarray(self.explained(outputs))  # sums over samples are rounded by the layout
        if not are_in_range(outputs):
            raise range_error(outputs, self.in_order(rows), self.model, self.table_format)
        return outputs
