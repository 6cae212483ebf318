"""Problem -> true contribution function and true Shapley values, kept in files because forests make them slow to compute."""

from __future__ import annotations

import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.models.predictor import Predictor
from condshap.precision.sample_sizes import allocate_samples
from condshap.schema import FeatureSchema
from condshap.seeding import derive_seed
from condshap.solvers import solve_shapley
from condshap.storage.file_kinds import FileKind
from condshap.storage.sealing import new_seal, sealed
from condshap.storage.writing import write_whole
from condshap.studies.designs import Burr
from condshap.studies.problems.cells import Cell, Problem
from condshap.types import Floats, Indices

_MORE = 2
_REPLICATES = 2
_AGREEMENT = 1e-5
_FILE = FileKind("truth", "a truth", "NumPy", "Remove it, and the truth is computed again.")


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What is true about the R explained rows of a problem.

    Attributes
    ----------
    v, std_errors : (C, R) contribution function, and its standard errors by sampling; 0 where it is exact
    phi : (R, M) Shapley values, from the problem's own coalitions
    error : mean absolute error of `phi` by sampling; on the scale of EC1, where it adds in quadrature
    cpu, wall : seconds that it took
    """

    v: Floats
    std_errors: Floats
    phi: Floats
    error: float
    cpu: float
    wall: float


def find_truth(cell: Cell, repetition: int, problem: Problem, folder: Path) -> Truth:
    """Truth of a repetition, from its file if that was computed before for the same problem."""
    assert cell.truth_key is not None
    path = folder / cell.truth_key.replace(" ", "_").replace("/", "-") / f"{repetition}.npz"
    found = _read(path, problem)
    if found is not None:
        return found
    truth = compute_truth(problem)
    path.parent.mkdir(parents=True, exist_ok=True)
    seconds = np.array([truth.cpu, truth.wall])
    arrays = {"v": truth.v, "std_errors": truth.std_errors, "masks": problem.plan.masks, "seconds": seconds}
    write_whole(path, _packed(arrays), _FILE.what)
    return truth


def compute_truth(problem: Problem) -> Truth:
    """Find the truth: by exact conditional draws for a forest, by quadrature or a closed form otherwise."""
    cpu, wall = time.process_time(), time.perf_counter()
    assert problem.design is not None
    if isinstance(problem.design, Burr):
        v, std_errors = _sampled_values(problem, problem.design)
    else:
        v, std_errors = problem.design.true_values(
            problem.model, problem.X, problem.plan.masks, base_value=problem.base_value
        )
    return _solved(v, std_errors, problem.plan, time.process_time() - cpu, time.perf_counter() - wall)


def truth_samples(plan: CoalitionPlan) -> Indices:
    """Draws per replicate and coalition, shape (C,): many where v(S) weighs much in the Shapley values."""
    return np.asarray(_MORE * allocate_samples(plan))


def _sampled_values(problem: Problem, design: Burr) -> tuple[Floats, Floats]:
    """Mean of the model over exact conditional draws and its standard error, both (C, R)."""
    masks, samples = problem.plan.masks, truth_samples(problem.plan)
    v, std_errors = np.zeros((2, len(masks), len(problem.X)))
    inside = np.arange(len(masks))[problem.plan.interior]
    v[0], v[-1] = problem.base_value, _predictions(problem)
    for n_samples in np.unique(samples[inside]):
        some = inside[samples[inside] == n_samples]
        v[some], std_errors[some] = design.true_values(
            problem.model,
            problem.X,
            masks[some],
            method="sampling",
            n_samples=int(n_samples),
            n_replicates=_REPLICATES,
            seed=derive_seed(0, "truth"),
        )
    return v, std_errors


def _predictions(problem: Problem) -> Floats:
    """f(x) of the explained rows, shape (R,)."""
    schema = FeatureSchema.learn(problem.X_train)
    rows = schema.encode(problem.X)
    return np.asarray(Predictor.of(problem.model, schema, rows)(rows)[:, 0])


def _solved(v: Floats, std_errors: Floats, plan: CoalitionPlan, cpu: float, wall: float) -> Truth:
    solved = solve_shapley(v[..., None], std_errors[..., None], plan)
    error = float(np.sqrt(2 / np.pi) * solved.std_errors.mean())
    return Truth(v, std_errors, solved.values[..., 0], error, cpu, wall)


def _packed(arrays: dict[str, Any]) -> bytes:
    """Arrays as an .npz file whose comment is a checksum of the whole."""
    file, seal = BytesIO(), new_seal()
    np.savez_compressed(file, **arrays)
    with ZipFile(file, "a") as archive:
        archive.comment = seal.encode()
    return sealed(file.getvalue(), seal)


def _read(path: Path, problem: Problem) -> Truth | None:
    """Truth in a file, None if there is none, or one of other coalitions or another model; a damaged one is refused."""
    if not path.exists():
        return None
    content = _FILE.read(path)
    _FILE.check_seal(path, content)
    with _FILE.opening(path), np.load(BytesIO(content), allow_pickle=False) as arrays:
        v, std_errors, masks, seconds = (arrays[name] for name in ("v", "std_errors", "masks", "seconds"))
    expected, n_rows = _predictions(problem), len(problem.X)
    if not np.array_equal(masks, problem.plan.masks) or v.shape != (len(masks), n_rows):
        return None
    if not np.allclose(v[-1], expected, rtol=0, atol=_AGREEMENT * (1 + np.abs(expected).max())):
        return None
    return _solved(v, std_errors, problem.plan, *seconds.tolist())
