"""Study, store -> results: runs whatever the store still lacks, several repetitions at a time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import condshap
from condshap.evaluation import ec1, ec2, ec3
from condshap.exceptions import CondShapError, OptionError, StorageError, listing
from condshap.explainer import Explainer
from condshap.runtime.progress import progress_line
from condshap.runtime.threads import single_threaded_blas
from condshap.seeding import derive_seed
from condshap.studies.problems.cells import Cell, Problem, speed_up
from condshap.studies.problems.truths import Truth, find_truth
from condshap.studies.running.machine import machine, today
from condshap.studies.running.methods import Method, find_method
from condshap.studies.running.store import Key, Result, Store

TRUTH = "truth"
"""Name under which the truth itself has its results: EC3, and as EC1 its own sampling error."""


@dataclass(frozen=True, slots=True)
class Study:
    """What to measure.

    Attributes
    ----------
    name : in stores
    cells : settings of designs
    methods : names, see `find_method`
    repetitions : numbers of the repetitions, each a seed of its data
    seed : of the methods, together with the repetition
    """

    name: str
    cells: tuple[Cell, ...]
    methods: tuple[str, ...]
    repetitions: tuple[int, ...]
    seed: int = 0

    def key(self, cell: Cell, method: str, repetition: int) -> Key:
        """Where a result lies in a store."""
        return Key(self.name, cell.key, method, repetition, self.seed, condshap.__version__)


@dataclass(frozen=True, slots=True)
class Task:
    """A repetition of a cell, and the methods that it still lacks."""

    study: Study
    cell: Cell
    repetition: int
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A method that could not be run, or a whole repetition, and why."""

    cell: str
    method: str
    repetition: int
    reason: str


def run(
    study: Study,
    jobs: int,
    store: Path,
    *,
    again: Iterable[str] = (),
    device: str = "cpu",
    forest: str = "cpu",
    progress: bool | None = None,
) -> tuple[Failure, ...]:
    """Run what a store lacks of a study.

    Parameters
    ----------
    jobs : repetitions at a time, each in a process with one thread
    store : file of results; truths lie beside it, in a folder of the same name with the ending .truth
    again : methods to run once more, although the store has them
    device : where networks live, "cpu", "cuda" or "auto"
    forest : where forests are evaluated by condshap's own code, "cpu" or "cuda"; "sklearn" for by scikit-learn
    progress : a line that says how far this is, None for one on a terminal only

    Returns
    -------
    What failed; all else is in the store.

    Notes
    -----
    A store that holds results of the same study by another version of condshap is refused: they would not be mixed, but
    whoever reads the file later might.
    """
    from joblib import Parallel, delayed, parallel_config

    for method in study.methods:
        find_method(method)
    prepare_store(store)
    check_version(study, store)
    tasks = missing_tasks(study, store, again)
    failures: list[Failure] = []
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
        done = pool(delayed(run_task)(task, store, device, forest) for task in tasks)
        with progress_line(study.name, show=progress, total=len(tasks), unit="repetitions") as line:
            for failed in done:
                failures += failed
                line.update()
    return tuple(failures)


def prepare_store(path: Path) -> None:
    """Make the folder of a store and cut off what a killed run has left behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a"):
            pass
        Store(path).repair()
    except OSError as error:
        raise StorageError(f"results must be written to {path}, but that failed: {error}.") from error


def check_version(study: Study, store: Path) -> None:
    """Refuse a store that holds results of this study by another version."""
    others = Store(store).other_versions(study.name, condshap.__version__)
    if others:
        raise StorageError(
            f"results of study '{study.name}' in {store} must all be of one version: this is condshap "
            f"{condshap.__version__}, but the file has results of {listing(others)}. Choose another file, or use that "
            "version."
        )


def missing_tasks(study: Study, store: Path, again: Iterable[str] = ()) -> list[Task]:
    """Repetitions that lack a method, or whose methods are wanted again; the truth counts as a method."""
    done = {key for key in Store(store).read() if key.method not in set(again)}
    tasks = []
    for repetition in study.repetitions:
        for cell in study.cells:
            names = study.methods if cell.truth_key is None else (TRUTH, *study.methods)
            lacking = tuple(name for name in names if study.key(cell, name, repetition) not in done)
            tasks += [Task(study, cell, repetition, lacking)] if lacking else []
    return tasks


def run_task(task: Task, store: Path, device: str = "cpu", forest: str = "cpu") -> list[Failure]:
    """Pose the problem, find the truth, run the methods, and store each result at once."""
    failures: list[Failure] = []
    with single_threaded_blas():
        try:
            problem = speed_up(task.cell.make_problem(task.repetition), forest)
            has_truth = problem.design is not None
            truth = find_truth(task.cell, task.repetition, problem, store.with_suffix(".truth")) if has_truth else None
        except Exception as error:
            return [Failure(task.cell.key, TRUTH, task.repetition, _reason(error))]
        for name in task.methods:
            try:
                found = _measure(task, name, problem, truth, device)
                Store(store).append(replace(found, forest=forest, machine=machine(device, forest), date=today()))
            except StorageError:
                raise
            except Exception as error:  # one method must not cost the others their night
                failures.append(Failure(task.cell.key, name, task.repetition, _reason(error)))
    return failures


def _reason(error: Exception) -> str:
    """What went wrong: our own errors speak for themselves, others need their trace."""
    if isinstance(error, CondShapError):
        return f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception(error))


def _measure(task: Task, name: str, problem: Problem, truth: Truth | None, device: str) -> Result:
    key = task.study.key(task.cell, name, task.repetition)
    if name == TRUTH:
        assert truth is not None
        return measure_truth(key, problem, truth)
    seed = derive_seed(task.study.seed, f"repetition {task.repetition}") % 2**31
    return measure_method(key, find_method(name), problem, truth, seed=seed, device=device)


def measure_truth(key: Key, problem: Problem, truth: Truth) -> Result:
    """Result of the truth: its EC3, and its own sampling error on the scale of EC1."""
    inside = problem.plan.interior
    weights = {"coalition_weights": problem.coalition_weights, "weights": problem.row_weights}
    third = ec3(truth.v[-1], truth.v[inside], std_errors=truth.std_errors[inside], **weights)
    return Result(key, truth.error, 0.0, float(third), 0.0, truth.cpu, truth.wall, 0)


def make_explainer(method: Method, problem: Problem, *, seed: int, device: str) -> Explainer:
    """Unfitted explainer of a problem by a method; forests are where `speed_up` has put them."""
    return Explainer(
        problem.model,
        approach=method.make_approach(device),
        n_samples=method.n_samples,
        coalitions=problem.plan,
        base_value=problem.base_value,
        seed=seed,
        device=device,
        progress=False,
        check_draws=False,  # the truth is known, and times are those of the method
    )


def measure_method(
    key: Key, method: Method, problem: Problem, truth: Truth | None, *, seed: int, device: str = "cpu"
) -> Result:
    """Fit and explain with a method, and hold the explanation against the truth, if there is one.

    EC2 and EC3 are less the sampling variance, of the method and of the truth, so that few samples are not punished.
    """
    explainer = make_explainer(method, problem, seed=seed, device=device)
    cpu, wall = [time.process_time()], time.perf_counter()
    explainer.fit(problem.X_train)
    cpu.append(time.process_time())
    found = explainer.explain(problem.X)
    cpu.append(time.process_time())
    wall = time.perf_counter() - wall
    table, inside = found.value_table, problem.plan.interior
    weights = {"coalition_weights": problem.coalition_weights, "weights": problem.row_weights}
    if not np.array_equal(table.coalitions, problem.plan.masks):
        raise OptionError("a method must use the coalitions of the problem, got others.")
    first = second = np.nan
    if truth is not None:
        errors = np.hypot(truth.std_errors, table.std_errors)[inside]
        first = float(ec1(truth.phi, found.values, weights=problem.row_weights))
        second = float(ec2(truth.v[inside], table.values[inside], std_errors=errors, **weights))
    third = ec3(found.predictions, table.values[inside], std_errors=table.std_errors[inside], **weights)
    return Result(
        key,
        ec1=first,
        ec2=second,
        ec3=float(third),
        cpu_fit=cpu[1] - cpu[0],
        cpu_explain=cpu[2] - cpu[1],
        wall=wall,
        n_evaluations=int(table.n_evaluations),
        device=device,
    )
