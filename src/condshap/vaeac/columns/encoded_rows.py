"""Encoded rows and masks -> inputs of the encoders and targets of the decoder, in bulk.

What the masked encoder may know about a feature (appendix C.4 of the paper):

================================  ======  =====  =====  ===========
feature                           value   mask   flag   likelihood
================================  ======  =====  =====  ===========
known                             x       0      0      no
masked                            0       1      0      if present
known to be missing               0       0      1      no
present, but flagged as missing   0       0      1      yes
================================  ======  =====  =====  ===========

Without flags (the paper's network) a missing feature is always masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from condshap.types import Rows
from condshap.vaeac.columns.adviser import Adviser
from condshap.vaeac.columns.encoding import Layout, Scale


class Targets(NamedTuple):
    """What outputs are compared with; a leading axis may be E or (T, E).

    Attributes
    ----------
    numbers : (E, B, Mc) scaled continuous features
    codes : (E, B, M - Mc) levels, 0 where missing
    counted : (E, B, M) 1 where a feature is hidden from the masked encoder and not missing, else 0
    """

    numbers: Tensor
    codes: Tensor
    counted: Tensor


class Batch(NamedTuple):
    """Inputs of the encoders (E, B, .) and what the decoder's outputs are compared with."""

    full_input: Tensor
    masked_input: Tensor
    targets: Targets


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Rows as networks read them, in the internal order of features.

    Attributes
    ----------
    inputs : (n_scales, N, D1) float32, zeros for gaps
    codes : (N, M - Mc) int64, 0 for gaps
    missing : (N, M) float32, 1 for gaps
    is_complete : there is no gap
    columns : (D1,) position of the feature behind each column
    advise : linear expectations of hidden columns, where networks take them
    """

    layout: Layout
    inputs: Tensor
    codes: Tensor
    missing: Tensor
    is_complete: bool
    columns: Tensor
    advise: Adviser | None = None

    @classmethod
    def of(cls, layout: Layout, scales: Sequence[Scale], X: Rows, device: torch.device) -> EncodedRows:
        """Encode rows (N, M), in the order given, on every scale."""
        ordered = X[:, list(layout.order)]
        gaps, Mc = np.isnan(ordered), layout.n_continuous
        codes = np.where(gaps, 0.0, ordered)[:, Mc:].astype(np.int64)
        one_hot = layout.one_hot(codes, ~gaps[:, Mc:])
        parts = []
        for scale in scales:
            numbers = np.where(gaps[:, :Mc], 0.0, scale.encode(ordered[:, :Mc])).astype(np.float32)
            parts.append(np.concatenate([numbers, one_hot], axis=1))
        return cls(
            layout=layout,
            inputs=torch.from_numpy(np.stack(parts)).to(device),
            codes=torch.from_numpy(codes).to(device),
            missing=torch.from_numpy(gaps.astype(np.float32)).to(device),
            is_complete=not gaps.any(),
            columns=torch.from_numpy(layout.column_features).to(device),
        )

    def __len__(self) -> int:
        """Return the number of rows N."""
        return self.inputs.shape[1]

    def spread(self, features: Tensor) -> Tensor:
        """Numbers per feature (..., M) -> per input column (..., D1)."""
        if not self.layout.groups:
            return features
        return features.index_select(-1, self.columns)

    def batch(
        self, rows: Tensor, scale_of: Tensor, masks: Tensor, *, has_flags: bool, pretended: Tensor | None = None
    ) -> Batch:
        """Put together the inputs and targets of rows.

        Parameters
        ----------
        rows : (..., E, B) positions of rows
        scale_of : (E,) scale of each model
        masks : (..., E, B, M), 1 = masked
        has_flags : the masked encoder is told which known features are missing
        pretended : (..., E, B, M), 1 where a known feature is to be flagged as missing although it is there
        """
        flat = (rows + (scale_of * len(self)).unsqueeze(-1)).reshape(-1)
        x = self.inputs.flatten(0, 1).index_select(0, flat).view(*rows.shape, -1)
        codes = self.codes.index_select(0, rows.reshape(-1)).view(*rows.shape, -1)
        missing = torch.zeros_like(masks)
        if not self.is_complete:
            missing = self.missing.index_select(0, rows.reshape(-1)).view(*rows.shape, -1)
        hidden, flags = masks, torch.zeros_like(masks)
        if has_flags:
            pretended = torch.zeros_like(masks) if pretended is None else pretended * (1 - missing) * (1 - masks)
            flags = missing * (1 - masks) + pretended
            hidden = masks + pretended
        elif not self.is_complete:
            masks = hidden = torch.maximum(masks, missing)
        seen = 1 - torch.maximum(hidden, flags)
        masked_parts = [x * self.spread(seen), masks, *([flags] if has_flags else [])]
        counted = hidden * (1 - missing)
        advice = [] if self.advise is None else [self.advise(x, scale_of, seen)]
        return Batch(
            full_input=torch.cat([x, missing, hidden, *advice], dim=-1),
            masked_input=torch.cat([*masked_parts, *advice], dim=-1),
            targets=Targets(x[..., : self.layout.n_continuous], codes, counted),
        )


def step_of(batch: Batch, t: int) -> Batch:
    """Batch of step t out of a batch with a leading axis of steps."""
    targets = Targets(batch.targets.numbers[t], batch.targets.codes[t], batch.targets.counted[t])
    return Batch(batch.full_input[t], batch.masked_input[t], targets)


def pretended_rates(missing: Tensor, relative: float) -> Tensor:
    """How often a present entry is flagged as missing in training, shape (M,).

    `relative` times the feature's own missing share, so that at most about that share of all flags is pretended and flags
    keep what they tell; and a tenth of `relative` for a feature that is never missing, whose flag would otherwise be
    meaningless when a row to explain has a gap there.
    """
    share = missing.mean(0)
    return torch.where(share > 0, relative * share, torch.full_like(share, 0.1 * relative))
