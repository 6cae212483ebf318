"""Causal order of features -> what each component is drawn given, coalition by coalition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.types import Masks


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Components of features in causal order, by which unknown features are drawn after known ones were set.

    Known features are set to x from outside, which breaks what causes them (Heskes, Sijben, Bucur and Claassen 2020). One
    component after the other is drawn: its unknown features given all features of earlier components, set or drawn, and its
    own known ones, unless it is confounded: then what was set there has no say.

    Attributes
    ----------
    components : (K, M) features of each component
    confounded : (K,)
    """

    components: Masks
    confounded: tuple[bool, ...]

    def given(self, k: int, masks: Masks) -> Masks:
        """What the k-th component is drawn given, (C, M), for coalitions (C, M)."""
        earlier = self.components[:k].any(axis=0)
        own = np.zeros_like(masks) if self.confounded[k] else masks & self.components[k]
        return np.asarray(earlier | own)

    def drawn(self, k: int, masks: Masks) -> Masks:
        """Unknown features of the k-th component, (C, M)."""
        return np.asarray(self.components[k] & ~masks)
