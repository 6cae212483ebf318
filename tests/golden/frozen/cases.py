"""Small problems that go through every stage: explanations by name, for the frozen numbers beside this file.

``python tests/golden/frozen/cases.py --write`` stores the numbers of this machine in numbers.json. Do so in a commit that
changes numbers on purpose, and say there which and why; a commit that only moves code must leave the file alone.
"""

import hashlib
import json
import platform
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import condshap as cs

STORE = Path(__file__).with_name("numbers.json")
N, R = 120, 4
TINY = {"epochs": 4, "width": 8, "depth": 1, "latent": 2, "device": "cpu", "progress": False}


def rows(n_features=5, seed=0):
    """Correlated numbers (N + R, n_features)."""
    rng = np.random.default_rng(seed)
    X = 0.7 * rng.normal(size=(N + R, 1)) + 0.7 * rng.normal(size=(N + R, n_features))
    return pd.DataFrame(X.round(3), columns=[f"x{j}" for j in range(n_features)])


def mixed(gaps=False):
    """Two of the columns as levels; with gaps, a tenth of the cells are missing."""
    X = rows(seed=1)
    X["x1"] = pd.Categorical(np.array(["low", "mid", "high"])[np.digitize(X["x1"], [-0.5, 0.5])])
    X["x3"] = X["x3"] > 0
    if gaps:
        X["x3"] = X["x3"].astype(object)
        X = X.mask(np.random.default_rng(2).random(X.shape) < 0.1)
        X["x1"] = X["x1"].astype("category")
    return X


def levels():
    """Three columns of levels."""
    X = rows(3, seed=3)
    return X.apply(lambda x: pd.Categorical(np.digitize(x, [-0.4, 0.4]).astype(str)))


def numbers_of(X):
    """Encode any of these tables as numbers (n, M), column by column, so that no sum depends on the batch."""
    codes = {"low": 0.0, "mid": 1.0, "high": 3.0, True: 1.0, False: 0.0, "0": 0.0, "1": 1.0, "2": 2.5}
    return [
        X[name].astype(float) if X[name].dtype == float else X[name].astype(object).map(codes).astype(float)
        for name in X.columns
    ]


def smooth(X):
    """Interactions and a kink; refuses gaps by returning NaN."""
    first, second, *others = (column.to_numpy() for column in numbers_of(X))
    total = 2 * first + first * second + np.maximum(second, others[0])
    for other in others:
        total = total + 0.3 * other * other
    return total


def accepts_gaps(X):
    """The same with gaps as zeros."""
    return smooth(pd.DataFrame({name: c.fillna(0.0) for name, c in zip(X.columns, numbers_of(X), strict=True)}))


def trained(kind, X):
    """A model of scikit-learn on numbers."""
    y = smooth(X[:N])
    if kind == "classifier":
        model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5, random_state=0)
        return model.fit(X[:N], np.digitize(y, [-1.0, 1.0]))
    models = {
        "forest": RandomForestRegressor(20, min_samples_leaf=3, random_state=0),
        "stumps": GradientBoostingRegressor(n_estimators=20, max_depth=1, random_state=0),
        "linear": LinearRegression(),
    }
    return models[kind].fit(X[:N], y)


def explained(model, X, approach, **options):
    """Explanation of the last rows by an explainer of the first ones."""
    return fitted(model, X, approach, **options).explain(X[N:])


def fitted(model, X, approach, **options):
    """Explainer of the first rows."""
    given = cs.approaches.VAEAC(**TINY) if approach == "vaeac" else approach
    return cs.Explainer(model, approach=given, progress=False, device="cpu", **options).fit(X[:N])


def saved_and_loaded():
    X = mixed()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.condshap"
        fitted(smooth, X, "vaeac").save(path)
        return cs.load_explainer(path, smooth).explain(X[N:])


def refined():
    X = rows(9, seed=4)
    explainer = fitted(smooth, X, "gaussian", n_coalitions="auto", tolerance=0.2)
    return explainer.refine(explainer.explain(X[N:]), tolerance=0.05)


def in_processes():
    from joblib import parallel_config

    with parallel_config(backend="loky"):
        return explained(accepts_gaps, rows(), "copula", n_jobs=2, memory_budget="1MiB")


SIZES = ["gaussian", "gaussian", "ctree", "regression_separate"]
CASES = {
    "independence": lambda: explained(smooth, rows(), "independence"),
    "empirical": lambda: explained(smooth, rows(), "empirical"),
    "empirical, aicc": lambda: explained(smooth, rows(), cs.approaches.Empirical(bandwidth="aicc_by_size")),
    "gaussian": lambda: explained(smooth, rows(), "gaussian"),
    "copula": lambda: explained(smooth, rows(), "copula"),
    "ctree, mixed": lambda: explained(smooth, mixed(), "ctree"),
    "categorical": lambda: explained(smooth, levels(), "categorical"),
    "regression_separate": lambda: explained(smooth, mixed(), "regression_separate"),
    "regression_surrogate": lambda: explained(smooth, mixed(), "regression_surrogate"),
    "vaeac, mixed": lambda: explained(smooth, mixed(), "vaeac"),
    "vaeac, gaps that the model refuses": lambda: explained(smooth, mixed(gaps=True), "vaeac"),
    "vaeac, gaps that the model accepts": lambda: explained(accepts_gaps, mixed(gaps=True), "vaeac"),
    "vaeac, additive": lambda: explained(trained("linear", rows()), rows(), "vaeac"),
    "groups": lambda: explained(smooth, mixed(), "vaeac", groups={"a": ["x0", "x3"], "b": ["x1"], "c": ["x2", "x4"]}),
    "one approach per size": lambda: explained(smooth, rows(), SIZES),
    "classifier": lambda: explained(trained("classifier", rows()), rows(), "gaussian"),
    "one output": lambda: explained(trained("classifier", rows()), rows(), "copula", output="name:1"),
    "forest": lambda: explained(trained("forest", rows()), rows(), "gaussian"),
    "forest, its own predict": lambda: explained(trained("forest", rows()), rows(), "ctree", fast_trees=False),
    "stumps": lambda: explained(trained("stumps", rows()), rows(), "gaussian"),
    "linear": lambda: explained(trained("linear", rows()), rows(), "ctree"),
    "curves": lambda: explained(lambda X: X["x0"] ** 2 + np.abs(X["x1"]), rows(), "copula", additive=True),
    "sampled": lambda: explained(smooth, rows(9, seed=4), "gaussian", n_coalitions=60),
    "sampled by least squares": lambda: explained(smooth, rows(9, seed=4), "independence", n_coalitions=30),
    "auto": lambda: explained(smooth, rows(9, seed=4), "gaussian", n_coalitions="auto", tolerance=0.1),
    "refined": refined,
    "target_error": lambda: explained(smooth, rows(), "gaussian", target_error=0.01),
    "target_error, ctree": lambda: explained(smooth, rows(), "ctree", target_error=0.02),
    "n_samples": lambda: explained(smooth, rows(), "gaussian", n_samples=20, base_value=1.5),
    "saved and loaded": saved_and_loaded,
    "in processes": in_processes,
}
WITH_NETWORKS = {name for name in CASES if "vaeac" in name} | {"groups", "saved and loaded"}


def fingerprint():
    """What numbers may differ by in their last bits.

    The features of a CPU do not tell which kernels a library takes: a BLAS may not know the CPU, and take those of an older
    one. So the kernels' names count as well, and what they compute.
    """
    from numpy._core._multiarray_umath import __cpu_features__
    from threadpoolctl import threadpool_info

    able = sorted(name for name, has in __cpu_features__.items() if has)
    kernels = sorted({f"{library['internal_api']} {library.get('architecture')}" for library in threadpool_info()})
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch", "numba")}
    return {
        "python": platform.python_version(),
        "cpu": hashlib.sha256(" ".join(able).encode()).hexdigest()[:12],
        "kernels": ", ".join(kernels),
        "rounding": rounding(),
        **packages,
    }


def rounding():
    """Digest of what this machine makes of products, solutions and functions of fixed matrices, in double and single."""
    import torch
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import ndtri

    found = hashlib.sha256()
    for n in (3, 8, 40):  # small enough for one thread, however many there are
        A = np.random.default_rng(n).random((n, n))
        spd = A @ A.T + np.eye(n)
        single = torch.from_numpy(A.astype(np.float32))
        for part in (spd, cho_solve(cho_factor(spd), A), np.linalg.eigvalsh(spd), np.exp(A), np.log(A), ndtri(A)):
            found.update(np.ascontiguousarray(part).tobytes())
        for part in (
            single @ single,
            torch.baddbmm(single[None], single[None], single[None]),
            single.exp(),
            single.log(),
        ):
            found.update(part.numpy().tobytes())
    return found.hexdigest()[:12]


def compute(name):
    """Numbers of a case, as lists, and a digest of its whole value table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CASES[name]()
    table = found.value_table
    content = np.ascontiguousarray(table.values).tobytes() + np.ascontiguousarray(table.std_errors).tobytes()
    msev = found.msev
    return {
        "values": found.values.tolist(),
        "std_errors": found.std_errors.tolist(),
        "model_errors": found.model_errors.tolist(),
        "base_values": np.asarray(found.base_values).tolist(),
        "msev": np.asarray(msev.value).tolist(),
        "n_evaluations": table.n_evaluations,
        "value_table": hashlib.sha256(content).hexdigest(),
    }


if __name__ == "__main__":
    numbers = {name: compute(name) for name in CASES}
    if "--write" in sys.argv:
        STORE.write_text(json.dumps({"made_on": fingerprint(), "numbers": numbers}) + "\n")
    else:
        stored = json.loads(STORE.read_text())["numbers"]
        differing = [name for name in CASES if json.loads(json.dumps(numbers[name])) != stored.get(name)]
        print("all as frozen" if not differing else f"differ: {differing}")
        sys.exit(bool(differing))
