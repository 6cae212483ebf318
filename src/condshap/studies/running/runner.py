"""Studies, stores -> results: runs whatever the stores still lack, several repetitions at a time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condshap.evaluation import ec1, ec2, ec3
from condshap.exceptions import CondShapError, OptionError, StorageError, listing
from condshap.explainer import Explainer
from condshap.runtime.memory import sharing_device
from condshap.runtime.progress import progress_line
from condshap.runtime.threads import single_threaded_blas
from condshap.seeding import derive_seed
from condshap.studies.problems.cells import Cell, Problem, speed_up
from condshap.studies.problems.truths import Truth, find_truth
from condshap.studies.running.defaults import VERSION, is_present, outdated
from condshap.studies.running.machine import machine, peaks, reset_peaks, today
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
    left_out : keys of cells with methods that are not to be run there
    """

    name: str
    cells: tuple[Cell, ...]
    methods: tuple[str, ...]
    repetitions: tuple[int, ...]
    seed: int = 0
    left_out: frozenset[tuple[str, str]] = frozenset()

    def key(self, cell: Cell, method: str, repetition: int) -> Key:
        """Where a result lies in a store."""
        return Key(self.name, cell.key, method, repetition, self.seed, VERSION)


@dataclass(frozen=True, slots=True)
class Work:
    """A study and the file of its results; truths lie beside it, in a folder of the same name with the ending .truth."""

    study: Study
    store: Path


@dataclass(frozen=True, slots=True)
class How:
    """How tasks are run, which does not matter to what they find but for the devices' rounding.

    Attributes
    ----------
    device : where networks live, "cpu", "cuda" or "auto"
    forest : where forests are evaluated by condshap's own code, "cpu" or "cuda"; "sklearn" for by scikit-learn
    threads : of a task while it fits its forest; all else has one
    sharing : how many processes share the device
    until : time (`time.time`) by which all should be done, None for no end. A method whose expected seconds go beyond it
        is left for later
    """

    device: str = "cpu"
    forest: str = "cpu"
    threads: int = 1
    sharing: int = 1
    until: float | None = None

    def has_time(self, seconds: float = 0.0) -> bool:
        """Whether something that takes so many seconds would be done in time."""
        return self.until is None or time.time() + seconds < self.until


@dataclass(frozen=True, slots=True)
class Task:
    """A repetition of a cell, the methods that it still lacks, and the seconds that each may take, 0 where nobody knows."""

    study: Study
    cell: Cell
    repetition: int
    methods: tuple[str, ...]
    expected: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A method that could not be run, or a whole repetition, and why."""

    cell: str
    method: str
    repetition: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What did not come into the stores: failures, and the number of results that are left for another time."""

    failures: tuple[Failure, ...] = ()
    left: int = 0


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
    A store that holds results of the same study by an older default is refused: they would not be mixed, but whoever
    reads the file later might.
    """
    return run_all([Work(study, store)], jobs, How(device, forest), again=again, progress=progress).failures


def run_all(
    works: Sequence[Work],
    jobs: int,
    how: How,
    *,
    again: Iterable[str] = (),
    expected: Callable[[Cell, str], float] | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Run what the stores lack of several studies, in one pool of processes.

    Parameters
    ----------
    expected : seconds of a method in a cell; repetitions that take long are begun first, so that none is last and alone

    Notes
    -----
    First repetitions come before second ones, so that cells have equally many of them whenever a run ends.
    """
    from joblib import Parallel, delayed, effective_n_jobs, parallel_config

    for work in works:
        for method in work.study.methods:
            find_method(method)
    for work in works:
        prepare_store(work.store)
        check_version(work.study, work.store)
    tasks = tasks_in_order(works, again, expected)
    how = replace(how, sharing=effective_n_jobs(jobs))
    failures, left = [], 0
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
        done = pool(delayed(run_task)(task, store, how) for task, store in tasks)
        name = works[0].study.name if len(works) == 1 else f"{len(works)} studies"
        with progress_line(name, show=progress, total=len(tasks), unit="repetitions") as line:
            for outcome in done:
                failures += outcome.failures
                left += outcome.left
                line.update()
    return Outcome(tuple(failures), left)


def tasks_in_order(
    works: Iterable[Work], again: Iterable[str] = (), expected: Callable[[Cell, str], float] | None = None
) -> list[tuple[Task, Path]]:
    """What the stores lack, first repetitions first, and of these the longest."""
    found: list[tuple[int, float, Task, Path]] = []
    for work in works:
        number = {repetition: i for i, repetition in enumerate(work.study.repetitions)}
        for task in missing_tasks(work.study, work.store, again):
            seconds = tuple(expected(task.cell, name) for name in task.methods) if expected else ()
            timed = replace(task, expected=seconds)
            found.append((number[task.repetition], -sum(seconds), timed, work.store))
    return [(task, store) for _, _, task, store in sorted(found, key=lambda one: one[:2])]


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
    """Refuse a store that holds results of this study by older defaults."""
    others = outdated(study.name, Store(store))
    if others:
        raise StorageError(
            f"results of study '{study.name}' in {store} must all be by the present defaults: this is condshap "
            f"{VERSION}, but the file has results of {listing(others)}. Choose another file, or use that "
            "version."
        )


def missing_tasks(study: Study, store: Path, again: Iterable[str] = ()) -> list[Task]:
    """Repetitions that lack a method, or whose methods are wanted again; the truth counts as a method."""
    found = [key for key in Store(store).read() if key.method not in set(again) and is_present(key)]
    done = {replace(key, version="") for key in found}
    tasks = []
    for repetition in study.repetitions:
        for cell in study.cells:
            names = study.methods if cell.truth_key is None else (TRUTH, *study.methods)
            names = tuple(name for name in names if (cell.key, name) not in study.left_out)
            lacking = tuple(
                name for name in names if replace(study.key(cell, name, repetition), version="") not in done
            )
            tasks += [Task(study, cell, repetition, lacking)] if lacking else []
    return tasks


def run_task(task: Task, store: Path, how: How) -> Outcome:
    """Pose the problem, find the truth, run the methods for which there is time, and store each result at once."""
    from joblib import parallel_config

    expected = task.expected or (0.0,) * len(task.methods)
    if not how.has_time(min(expected)):
        return Outcome(left=len(task.methods))
    failures: list[Failure] = []
    left = 0
    with single_threaded_blas(), sharing_device(how.sharing):
        try:
            with parallel_config(backend="threading", n_jobs=how.threads):
                problem = speed_up(task.cell.make_problem(task.repetition), how.forest)
            has_truth = problem.design is not None
            truth = find_truth(task.cell, task.repetition, problem, store.with_suffix(".truth")) if has_truth else None
        except Exception as error:
            return Outcome((Failure(task.cell.key, TRUTH, task.repetition, _reason(error)),))
        for name, seconds in zip(task.methods, expected, strict=True):
            if not how.has_time(seconds):
                left += 1
                continue
            try:
                reset_peaks()
                found = _measure(task, name, problem, truth, how.device)
                peak, on_device = peaks()
                found = replace(found, forest=how.forest, machine=machine(how.device, how.forest), date=today())
                Store(store).append(replace(found, peak=peak, device_peak=on_device))
            except StorageError:
                raise
            except Exception as error:  # one method must not cost the others their night
                failures.append(Failure(task.cell.key, name, task.repetition, _reason(error)))
    return Outcome(tuple(failures), left)


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
