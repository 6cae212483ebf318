"""Flat trees on an accelerator: a Triton kernel, and the same walk as plain torch operations for any device.

Leaves are their own left children, so that every row takes as many steps as its tree is deep and nothing diverges.
Siblings lie side by side: one number tells both. A node is one 64-bit word when rows are float32: one load per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import ModelError
from condshap.trees.flat import FlatTrees, round_down, sibling_order

if TYPE_CHECKING:
    import torch

CHILD_BITS, FEATURE_BITS = 20, 11
"""Of the upper half of a word: left child within its tree, feature; the sign bit says that NaN goes left."""

ROW_BLOCK, N_WARPS = 256, 4
TORCH_CELLS = 2**22
"""Rows times trees that the torch version holds at once."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTrees:
    """Trees as tensors on one device, nodes sorted by tree and level with siblings side by side.

    Attributes
    ----------
    words : (N,) int64: threshold as float32 in the lower half; left child, feature, default in the upper half
    thresholds : (N,) float64, empty if rows are compared in float32
    values : (N, V) float64
    firsts : (T,) int64 positions of the roots
    depths : (T,) int32
    ranges : (O, 2) int32 trees that add to an output, from and to; the trees are sorted by output
    trees : what they were made from
    """

    words: torch.Tensor
    thresholds: torch.Tensor
    values: torch.Tensor
    firsts: torch.Tensor
    depths: torch.Tensor
    ranges: torch.Tensor
    trees: FlatTrees

    @classmethod
    def of(cls, trees: FlatTrees, device: str = "cpu") -> DeviceTrees:
        """Pack trees and copy them to a device."""
        import torch

        if (trees.code_sets >= 0).any():
            raise ModelError(
                "trees on a device must split on numbers, got some that split on categories. Use device='cpu'."
            )
        order, depths = sibling_order(trees)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        firsts = place[trees.roots]
        by_output, ranges = _ranges(trees)
        is_wide = trees.threshold.dtype == np.float64
        tensor = partial(torch.as_tensor, device=device)
        return cls(
            words=tensor(_pack_words(trees, order, place, firsts)),
            thresholds=tensor(trees.threshold[order] if is_wide else np.empty(0)),
            values=tensor(trees.values[order].astype(np.float64)),
            firsts=tensor(firsts[by_output]),
            depths=tensor(depths[by_output].astype(np.int32)),
            ranges=tensor(ranges),
            trees=trees,
        )


def _pack_words(
    trees: FlatTrees, order: npt.NDArray[Any], place: npt.NDArray[Any], firsts: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Write nodes as (N,) words; refuses trees that are too large for them."""
    sizes = np.diff(np.append(firsts, len(order)))
    child = place[trees.left[order]] - np.repeat(firsts, sizes)
    if sizes.max() > 2**CHILD_BITS or trees.n_features > 2**FEATURE_BITS:
        raise ModelError(
            f"trees on a device must have at most {2**CHILD_BITS} nodes each and {2**FEATURE_BITS} features, "
            f"got {sizes.max()} nodes and {trees.n_features} features. Use device='cpu'."
        )
    upper = child | trees.feature[order].astype(np.int64) << CHILD_BITS
    upper |= trees.default_left[order].astype(np.int64) << (CHILD_BITS + FEATURE_BITS)
    lower = round_down(trees.threshold[order], np.float32).view(np.uint32).astype(np.int64)
    return np.asarray(upper << 32 | lower)


def _ranges(trees: FlatTrees) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int32]]:
    """Order of the trees by output, and which of them (O, 2) add to each output."""
    n_outputs = len(trees.base)
    by_output = np.argsort(trees.outputs, kind="stable")
    if trees.values.shape[1] > 1:
        ends = np.full(n_outputs, trees.n_trees)
        return by_output, np.stack([ends * 0, ends], axis=1).astype(np.int32)
    ends = np.searchsorted(trees.outputs[by_output], np.arange(n_outputs + 1))
    return by_output, np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int32)


def predict_device(packed: DeviceTrees, X: torch.Tensor, *, triton: bool | None = None) -> torch.Tensor:
    """Predictions of rows on the device of the trees.

    Parameters
    ----------
    packed : trees
    X : (n, M) rows, float32 or float64
    triton : whether to use the Triton kernel; None: on CUDA devices if Triton is there

    Returns
    -------
    (n, O) float64, or (n, 2) after a sigmoid
    """
    import torch

    if packed.trees.threshold.dtype == np.float32 or X.dtype != torch.float64:
        X = X.to(torch.float32)  # exact for narrower types: their thresholds are rounded down
    use_triton = X.is_cuda and _kernel() is not None if triton is None else triton
    sums = torch.zeros((len(X), len(packed.trees.base)), dtype=torch.float64, device=X.device)
    if len(X):
        (_add_by_triton if use_triton else _add_by_torch)(packed, X.contiguous(), sums)
    return _finish(sums + torch.as_tensor(packed.trees.base, device=X.device), packed.trees)


def predict_from_host(packed: DeviceTrees, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Predictions (n, O) of rows (n, M) that are not on the device yet."""
    import torch

    on_device = torch.as_tensor(rows).to(packed.words.device)
    return np.asarray(predict_device(packed, on_device).cpu().numpy())


def _finish(sums: torch.Tensor, trees: FlatTrees) -> torch.Tensor:
    """Turn sums (n, O) into predictions, as `condshap.trees.links.finish` does, but for the last bits."""
    import torch

    sums = sums / trees.divisor
    if trees.link == "identity":
        return sums
    if trees.link == "exp":
        return sums.exp()
    if trees.link == "softmax":
        return sums.softmax(dim=1)
    positive = sums[:, 0].sigmoid()
    return torch.stack([1 - positive, positive], dim=1)


def _add_by_torch(packed: DeviceTrees, X: torch.Tensor, sums: torch.Tensor) -> None:
    """Write sums (n, O) of the trees for rows X (n, M): all trees at once for a block of rows."""
    block = max(1, TORCH_CELLS // max(1, len(packed.firsts)))
    for start in range(0, len(X), block):
        leaves = _find_leaves(packed, X[start : start + block])
        for k, (low, high) in enumerate(packed.ranges.tolist()):
            column = packed.values[:, k if packed.values.shape[1] > 1 else 0]
            sums[start : start + block, k] = column[leaves[:, low:high]].sum(dim=1)


def _find_leaves(packed: DeviceTrees, X: torch.Tensor) -> torch.Tensor:
    """Positions (n, T) of the leaves that rows X (n, M) fall into."""
    import torch

    thresholds = packed.thresholds if X.dtype == torch.float64 else packed.words.view(torch.float32)[::2]
    at = packed.firsts.expand(len(X), -1)
    for _ in range(int(packed.depths.max())):
        upper = packed.words[at] >> 32
        x = X.gather(1, upper >> CHILD_BITS & 2**FEATURE_BITS - 1)
        goes_right = (x > thresholds[at]) | (x.isnan() & (upper >= 0))
        at = packed.firsts + (upper & 2**CHILD_BITS - 1) + goes_right
    return at


def _add_by_triton(
    packed: DeviceTrees, X: torch.Tensor, sums: torch.Tensor, *, block: int = ROW_BLOCK, warps: int = N_WARPS
) -> None:
    """Write sums (n, O) of the trees for rows X (n, M): one program per block of rows and output."""
    import torch

    kernel = _kernel()
    n, n_outputs = sums.shape
    wide = X.dtype == torch.float64
    with torch.cuda.device(X.device):
        kernel[(-(-n // block), n_outputs)](
            X, packed.words, packed.thresholds if wide else packed.words, packed.values,
            packed.firsts, packed.depths, packed.ranges, sums, n, X.shape[1], n_outputs,
            WIDTH=packed.values.shape[1], WIDE=wide, SHIFT=CHILD_BITS, FEATURES=2**FEATURE_BITS - 1, BLOCK=block,
            num_warps=warps,
        )  # fmt: skip


def _kernel() -> Any:
    """Import the Triton kernel only when it is needed; None where Triton is absent."""
    from condshap.trees.triton_kernel import sum_trees

    return sum_trees
