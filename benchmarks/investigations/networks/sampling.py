"""Trained networks, arithmetic -> seconds of sampling, and how far v(S) of a smooth model moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from benchmarks.investigations.networks.arithmetic import Arithmetic
from condshap.studies.designs import Burr
from condshap.vaeac.ensemble import Networks
from condshap.vaeac.sampling.tiles import Asked


class Response(torch.nn.Module):
    """Expected response of a Burr design, eq. (12) of the paper, rows (n, M) -> (n, 1) on the device where they are."""

    def __init__(self, design: Burr) -> None:
        super().__init__()
        self.kappa = design.kappa
        self.r, self.b, self.c = (
            torch.nn.Parameter(torch.from_numpy(part.copy()), requires_grad=False)
            for part in (design.r, design.b, design.c)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """One term per block of five features and three coefficients."""
        u = -torch.expm1(-self.kappa * torch.log1p(self.r * rows**self.b))
        u, c = u.reshape(len(rows), -1, 5), self.c.view(-1, 3)
        waves = torch.sin(torch.pi * c[:, 0] * u[..., 0] * u[..., 1])
        return (waves + c[:, 1] * u[..., 2] * torch.exp(c[:, 2] * u[..., 3] * u[..., 4])).sum(1, keepdim=True)


def clock(call: Callable[[], Any], device: str) -> float:
    """Wall seconds of a call until the device has done its work; its result is let go."""
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


class Sampler:
    """Trained networks, and v(S) of all proper coalitions by their K draws, for rows (R, M)."""

    def __init__(self, networks: Networks, design: Burr, X: np.ndarray, n_samples: int) -> None:
        M, self.device = X.shape[1], networks.device
        self.networks, self.X, self.n_samples = networks, X, n_samples
        self.masks = (np.arange(1, 2**M - 1)[:, None] >> np.arange(M) & 1).astype(bool)
        self.model = Response(design).to(self.device)

    @cached_property
    def reference(self) -> torch.Tensor:
        """v(S) in float32, shape (C, R); not before it is needed, so that a first call is the first."""
        return self.values()

    def draw(self, seed: int = 0) -> torch.Tensor:
        """Samples (C, R, K, M)."""
        return self.networks.draw(Asked(self.X, self.masks, self.n_samples, seed=seed))

    def values(self, seed: int = 0) -> torch.Tensor:
        """v(S), shape (C, R)."""
        drawn = self.draw(seed)
        with torch.inference_mode():
            return torch.stack([self.model(some.flatten(0, 1)).view(some.shape[:2]).mean(1) for some in drawn])

    def measure(self, arithmetic: Arithmetic) -> dict[str, Any]:
        """Seconds of the first call and the best of two more, and how far v(S) moves."""
        with arithmetic.use(self.device, False):
            first, *more = (clock(self.draw, self.device) for _ in range(3))
            values = self.values()
        return {"first": first, "seconds": min(more), **self.apart(values)}

    def apart(self, values: torch.Tensor) -> dict[str, float]:
        """Largest and root mean square change of v(S), and the spread of v(S) over coalitions and rows."""
        change = values - self.reference
        return {
            "largest": float(change.abs().max()),
            "rms": float(change.square().mean().sqrt()),
            "spread": float(self.reference.std()),
        }

    def other_numbers(self) -> dict[str, float]:
        """Change of v(S) by other random numbers: the noise that any change must be seen against."""
        return self.apart(self.values(seed=1))
