"""condshap beside what a user would take instead, in one run: a linear and a forest problem whose truth is known.

X ~ N(0, Sigma) with 10 features and all correlations 0.6; 2000 training rows, 100 background rows, 100 explained rows. The
truth of the linear model is a closed form, that of the forest a mean over exact conditional quasi-random draws. shap and
shapiq run in an environment of their own, .peers, which is made when it is absent; where it cannot be made their lines say
so and the others are measured all the same. Every line is a fresh process, of lines under 5 CPU s the best of three.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from benchmarks.lib.measure import asked_of_models, measure, run_alone
from benchmarks.lib.problems import compile_kernels
from benchmarks.lib.report import parser, publish, table, yes
from benchmarks.speed.peers_worker import FOREST, read_problem
from benchmarks.speed.peers_worker import Problem as WorkerProblem
from condshap.coalitions import all_coalitions
from condshap.precision.sample_sizes import allocate_samples
from condshap.solvers import solve_shapley
from condshap.studies.designs import LinearModel, MixedGaussian, OneFactor
from condshap.trees import FastTrees

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".peers"
PEERS = ("shap==0.51.0", "shapiq==1.4.1", "xgboost-cpu==3.2.0")  # shapiq's conditional imputer fits an XGBoost model
N_FEATURES, RHO, N_TRAIN, N_BACKGROUND, N_ROWS = 10, 0.6, 2000, 100, 100
COEF = np.linspace(-1.5, 3.0, N_FEATURES)
TRUTH_MORE, TRUTH_REPLICATES = 4, 2


@dataclass(frozen=True)
class Line:
    """A method: whose it is, how it is called, what the table calls it, and how many of the rows it explains."""

    package: str
    method: str
    title: str
    n_rows: int = N_ROWS


OURS = (
    Line("condshap", "gaussian", "condshap gaussian"),
    Line("condshap", "vaeac", "condshap vaeac"),
    Line("condshap", "ctree", "condshap ctree"),
    Line("condshap", "independence", "condshap independence"),
)
LINES = {
    "linear": (
        Line("shap", "kernel", "shap KernelExplainer"),
        Line("shap", "permutation", "shap PermutationExplainer"),
        Line("shap", "linear_impute", "shap LinearExplainer + Impute"),
        Line("shapiq", "shapiq_marginal", "shapiq TabularExplainer"),
        Line("shapiq", "shapiq_conditional", "shapiq TabularExplainer, conditional"),
        Line("shapiq", "shapiq_gaussian", "shapiq GaussianImputer by hand"),
        *OURS,
    ),
    "forest": (
        Line("shap", "kernel", "shap KernelExplainer"),
        Line("shap", "permutation", "shap PermutationExplainer", 10),
        Line("shap", "tree", "shap TreeExplainer, path dependent"),
        Line("shapiq", "shapiq_gaussian", "shapiq GaussianImputer by hand", 1),
        *OURS,
        Line("condshap", "gaussian, fast_trees=False", "condshap gaussian, fast_trees=False"),
    ),
}
SHORT, REPEATS = 5.0, 3  # lines of fewer CPU seconds are run so often, and the best counts
N_SETS = 8  # of gaussian's error with the linear model, most of which is that of 2000 training rows
JUDGED = ("gaussian", "gaussian, fast_trees=False", "vaeac")
NEAR = {"linear": 0.045, "forest": 0.06}
"""Mean error, as a share of the mean value, that is near enough. With the linear model nothing but 2000 training rows stands
between `gaussian` and the truth, and exact values by their mean and covariance have 0.043; a forest is not smooth."""
QUICK = 0.5
"""Share of KernelExplainer's time: whoever comes from shap should wait half as long at most."""
TITLES = {
    "linear": "Linear model; truth in closed form",
    "forest": f"Forest of {FOREST['n_estimators']} trees of depth {FOREST['max_depth']}, n_jobs = {FOREST['n_jobs']}",
}


def make_problem(path: Path, seed: int) -> MixedGaussian:
    """Draw rows and responses, fit the forest, and write what the peers need to a file; returns the design."""
    design = MixedGaussian(OneFactor(0, N_FEATURES, (), RHO), LinearModel.of(0.0, [], COEF))
    train, X = (design.draw(n, seed=2 * seed + i).to_numpy() for i, n in enumerate((N_TRAIN, N_ROWS)))
    noise = np.random.default_rng(seed).normal(scale=0.5, size=N_TRAIN)
    y = train @ COEF + train[:, 0] * train[:, 1] + np.sin(2 * train[:, 2]) + noise
    forest = RandomForestRegressor(**FOREST).fit(train, y)
    background = train[:N_BACKGROUND]
    predictions = forest.predict(X)
    np.savez(path, train=train, background=background, X=X, coef=COEF, y=y, forest_predictions=predictions)
    return design


def find_truth(design: MixedGaussian, path: Path, kind: str) -> tuple[np.ndarray, float]:
    """True Shapley values (R, M) and their mean absolute error by sampling."""
    problem, plan = read_problem(str(path), kind), all_coalitions(N_FEATURES)
    model = LinearModel.of(0.0, [], COEF) if kind == "linear" else FastTrees(problem.model)
    v, errors = np.zeros((2, len(plan.masks), N_ROWS))
    samples = TRUTH_MORE * allocate_samples(plan)
    samples[0] = samples.max()
    for n_samples in np.unique(samples):
        some = samples == n_samples
        v[some], errors[some] = design.true_values(
            model, problem.X, plan.masks[some], n_samples=int(n_samples), n_replicates=TRUTH_REPLICATES
        )
    solved = solve_shapley(v[..., None], errors[..., None], plan)
    return solved.values[..., 0], float(np.sqrt(2 / np.pi) * solved.std_errors.mean())


def run_ours(path: str, kind: str, method: str, n_rows: str) -> dict[str, Any]:
    """Fit and explain with condshap's defaults; returns what it found and cost."""
    problem = read_problem(path, kind)
    approach, _, rest = method.partition(", ")
    model = problem.predict if kind == "linear" else problem.model
    options = {"fast_trees": False} if rest else {}
    explainer = cs.Explainer(model, approach=approach, progress=False, device="cpu", **options)
    with asked_of_models() as asked:
        ran = measure(lambda: explainer.fit(problem.train).explain(problem.X[: int(n_rows)]))
    cost = {"cpu": ran.cpu, "wall": ran.wall, "peak_mib": ran.peak_mib, "calls": asked.calls, "n_rows": asked.n_rows}
    return {**cost, "values": ran.result.values.tolist()}


def find_python(*, install: bool = True) -> str | None:
    """Python of the peers' environment, made if need be; None if it cannot be made here."""
    python = ENVIRONMENT / "bin" / "python"
    check = [str(python), "-c", "import shap, shapiq"]
    if python.exists() and subprocess.run(check, capture_output=True).returncode == 0:
        return str(python)
    if not install:
        return None
    print(f"Setting up {ENVIRONMENT.name} for shap and shapiq ...", file=sys.stderr)
    wanted = (*PEERS, f"scikit-learn=={sklearn.__version__}", f"numpy=={np.__version__}")
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]
    for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)], pip):
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            print(f"It could not be set up:\n{ran.stderr[-1000:]}", file=sys.stderr)
            return None
    return str(python)


def run_line(line: Line, path: Path, kind: str, python: str | None) -> dict[str, Any] | None:
    """What a method found and cost, in fresh processes, of short ones the best of some; None if it is not installed here."""
    arguments = (str(path), kind, line.method, str(line.n_rows))
    if line.package == "condshap":
        run = partial(run_alone, "peers", "--line", *arguments)
    elif python is None:
        return None
    else:
        run = partial(run_alone, "peers_worker", *arguments, python=python, env={"PYTHONPATH": str(ROOT)})
    runs = [json.loads(run())]
    while runs[0]["cpu"] < SHORT and len(runs) < REPEATS:
        runs.append(json.loads(run()))
    return min(runs, key=lambda ran: ran["cpu"])


def errors_against(truth: np.ndarray, values: Any) -> dict[str, float]:
    """MAE, mean |error| over mean |true phi|, and the share of rows whose most important feature is right."""
    values = np.asarray(values)
    truth = truth[: len(values)]
    mae = float(np.abs(values - truth).mean())
    top1 = float((np.abs(values).argmax(axis=1) == np.abs(truth).argmax(axis=1)).mean())
    return {"mae": mae, "rel": mae / float(np.abs(truth).mean()), "top1": top1}


def run_problem(kind: str, path: Path, design: MixedGaussian, python: str | None, lines: Sequence[Line]) -> dict:
    """Measure all lines of a problem."""
    truth, truth_error = find_truth(design, path, kind)
    found = []
    for line in lines:
        print(f"{kind}: {line.title}", file=sys.stderr, flush=True)
        ran = run_line(line, path, kind, python)
        about = {"package": line.package, "method": line.method, "title": line.title, "explained": line.n_rows}
        if ran is not None:
            about |= ran | errors_against(truth, ran.pop("values"))
        found.append(about)
    return {"lines": found, "truth_error": truth_error, "truth_mean": float(np.abs(truth).mean())}


def run_sets(n_sets: int) -> dict[str, list[float]]:
    """Error (rel) of gaussian with the linear model, beside that of exact values by the estimated mean and covariance."""
    found: dict[str, list[float]] = {"gaussian": [], "floor": []}
    with TemporaryDirectory() as folder:
        for seed in range(n_sets):
            path = Path(folder) / "problem.npz"
            truth, _ = find_truth(make_problem(path, seed), path, "linear")
            found["gaussian"].append(
                errors_against(truth, run_ours(str(path), "linear", "gaussian", "100")["values"])["rel"]
            )
            found["floor"].append(errors_against(truth, values_by_moments(read_problem(str(path), "linear")))["rel"])
    return found


def values_by_moments(problem: WorkerProblem) -> np.ndarray:
    """Conditional Shapley values (R, M) of the linear model in closed form, by the training rows' mean and covariance."""
    mean, covariance, plan = problem.train.mean(axis=0), np.cov(problem.train.T), all_coalitions(N_FEATURES)
    centred, v = problem.X - mean, np.empty((len(plan.masks), len(problem.X)))
    for c, known in enumerate(plan.masks):
        given = np.linalg.solve(covariance[np.ix_(known, known)], covariance[known]) @ COEF  # known columns: themselves
        v[c] = mean @ COEF + centred[:, known] @ given
    return solve_shapley(v[..., None], np.zeros_like(v)[..., None], plan).values[..., 0]


def describe_sets(found: dict[str, list[float]]) -> str:
    """Sentence on the error over several data sets."""
    means = {name: float(np.mean(values)) for name, values in found.items()}
    n, spread = len(found["gaussian"]), np.std(found["gaussian"], ddof=1) / np.sqrt(len(found["gaussian"]))
    return (
        f"Over {n} data sets (this one and {n - 1} others), gaussian's rel is {means['gaussian']:.4f} ± {spread:.4f}, at "
        f"most {NEAR['linear']}: {yes(means['gaussian'] <= NEAR['linear'])}; exact values by the estimated moments have "
        f"{means['floor']:.4f}. Single sets: {', '.join(f'{value:.3f}' for value in found['gaussian'])}."
    )


def describe(kind: str, results: dict[str, Any]) -> str:
    """Table of a problem, with what is asked of our methods and whether it holds."""
    found = results["lines"]
    reference = next((line for line in found if line["method"] == "kernel" and "cpu" in line), None)
    text = [f"### {TITLES[kind]}", table([cells_of(line, reference) for line in found])]
    share = results["truth_error"] / results["truth_mean"]
    if share:
        text.append(f"The truth's own sampling error is {share:.4f} on the scale of rel.")
    text.append("\n".join(judge(line, reference, kind) for line in found if line["method"] in JUDGED))
    return "\n\n".join([*text, *([describe_sets(results["sets"])] if "sets" in results else [])])


def cells_of(line: dict[str, Any], reference: dict[str, Any] | None) -> dict[str, str]:
    """One method as a line of the table."""
    heads = (
        "method", "rows explained", "CPU s", "wall s", "model rows", "predict calls", "peak MiB beyond the data", "MAE",
        "rel", "top1", "CPU a row / KernelExplainer's",
    )  # fmt: skip
    if "cpu" not in line:
        parts = (line["title"], "not installed here", *["-"] * (len(heads) - 2))
    else:
        parts = (
            line["title"], str(line["explained"]), f"{line['cpu']:.2f}", f"{line['wall']:.2f}", f"{line['n_rows']:,}",
            f"{line['calls']:,}", f"{line['peak_mib']:.0f}", f"{line['mae']:.4f}", f"{line['rel']:.3f}",
            f"{line['top1']:.2f}", "-" if reference is None else f"{ratio(line, reference, 'cpu'):.3f}",
        )  # fmt: skip
    return dict(zip(heads, parts, strict=True))


def ratio(line: dict[str, Any], reference: dict[str, Any], seconds: str) -> float:
    """Seconds a row over the reference's."""
    return float(line[seconds] / line["explained"] / (reference[seconds] / reference["explained"]))


def judge(line: dict[str, Any], reference: dict[str, Any] | None, kind: str) -> str:
    """Say whether a method of ours is near enough and quick enough."""
    near = line["rel"] <= NEAR[kind]
    text = f"- {line['title']}: rel {line['rel']:.3f}, at most {NEAR[kind]}: {yes(near)}"
    if reference is None:
        return f"{text}; time not judged, KernelExplainer was not measured"
    times = [(name, ratio(line, reference, key)) for name, key in (("CPU", "cpu"), ("wall", "wall"))]
    return text + "".join(
        f"; {name} {r:.3f} of KernelExplainer's, at most {QUICK}: {yes(r <= QUICK)}" for name, r in times
    )


def main() -> None:
    """Measure both problems, or one line of one."""
    given = parser("peers", __doc__)
    given.add_argument("--only", choices=("linear", "forest"), help="one of the problems")
    given.add_argument("--seed", type=int, default=0, help="of the data")
    given.add_argument("--no-peers", action="store_true", help="leave shap and shapiq out")
    given.add_argument("--line", nargs=4, help="one line of condshap, by itself: FILE PROBLEM METHOD ROWS")
    options = given.parse_args()
    if options.line:
        print(json.dumps(run_ours(*options.line)))
        return
    compile_kernels()
    python = None if options.no_peers else find_python()
    kinds = [options.only] if options.only else list(LINES)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        design = make_problem(path, options.seed)
        results = {kind: run_problem(kind, path, design, python, LINES[kind]) for kind in kinds}
    if "linear" in kinds:
        results["linear"]["sets"] = run_sets(N_SETS)
    publish("peers", results, "\n\n".join(describe(kind, results[kind]) for kind in kinds), write=options.write)


if __name__ == "__main__":
    main()
