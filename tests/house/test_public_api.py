"""The public face: names, a quick import, types."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs

MEASURE = """
import resource, sys
before = resource.getrusage(resource.RUSAGE_SELF)
import condshap
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, *sys.modules)
"""


@pytest.fixture(scope="module")
def fresh_import() -> tuple[float, set[str]]:
    """CPU seconds of `import condshap`, the best of some runs, and the modules that it loads."""
    seconds, modules = [], set()
    for _ in range(5):
        run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
        first, *rest = run.stdout.split()
        seconds.append(float(first))
        modules = set(rest)
        if min(seconds) < 0.1:
            break
    return min(seconds), modules


def test_exported_names_are_sorted_and_exist():
    assert sorted(cs.__all__) == cs.__all__
    assert len(set(cs.__all__)) == len(cs.__all__)
    for name in cs.__all__:
        assert getattr(cs, name) is not None


def test_star_import_gives_the_exported_names():
    namespace: dict[str, object] = {}
    exec("from condshap import *", namespace)
    assert set(cs.__all__) <= set(namespace)


def test_the_contract_of_the_design_is_exported():
    for name in (
        "Explainer",
        "explain",
        "compare",
        "available_approaches",
        "load_explainer",
        "load_explanation",
        "report",
        "CoalitionPlan",
    ):
        assert name in cs.__all__
        assert getattr(cs, name).__doc__


@pytest.mark.parametrize("package", ["torch", "matplotlib", "numpy", "pandas", "scipy", "sklearn", "polars", "xgboost"])
def test_import_does_not_load(fresh_import, package):
    assert package not in fresh_import[1]


def test_import_takes_less_than_a_tenth_of_a_second(fresh_import):
    assert fresh_import[0] < 0.1


def test_explaining_with_a_plain_function_loads_neither_torch_nor_matplotlib():
    code = (
        "import sys, numpy as np, condshap as cs; X = np.random.default_rng(0).normal(size=(20, 2));"
        "cs.explain(lambda x: x[:, 0], X, X[:1], approach='gaussian', n_samples=4).to_frame(); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "condshap.explainer" in loaded
    assert not loaded & {"torch", "matplotlib", "sklego", "shap", "polars"}


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        cs.no_such_name
    with pytest.raises(AttributeError, match="NoSuchApproach"):
        cs.approaches.NoSuchApproach


def test_approaches_are_found_by_class_name():
    for name in cs.available_approaches():
        classes = [getattr(cs.approaches, n) for n in (name.title().replace("_", ""), name.upper()) if _has(n)]
        assert any(c.name == name for c in classes), name


def _has(name: str) -> bool:
    try:
        return isinstance(getattr(cs.approaches, name), type)
    except AttributeError:
        return False


def test_explain_spells_out_every_option_of_the_explainer():
    options = inspect.signature(cs.Explainer).parameters
    spelled = inspect.signature(cs.explain).parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in spelled.values())
    for name, parameter in options.items():
        assert spelled[name].default == parameter.default, name
    assert set(spelled) - set(options) == {"X_train", "X", "categorical"}


def test_type_checkers_know_the_options_of_explain_as_those_of_the_explainer():
    from condshap.explainer import ExplainerOptions

    options = dict(cs.Explainer.__init__.__annotations__)
    del options["model"], options["return"]
    assert {name: kind.__forward_arg__ for name, kind in ExplainerOptions.__annotations__.items()} == options


def test_options_are_keyword_only_with_the_defaults_of_the_design():
    options = inspect.signature(cs.Explainer).parameters
    assert all(p.kind is p.KEYWORD_ONLY for name, p in options.items() if name != "model")
    defaults = {"seed": 0, "n_jobs": 1, "device": "auto", "memory_budget": "1GiB", "progress": "auto"}
    defaults |= dict.fromkeys(("n_samples", "n_coalitions", "coalitions", "groups", "base_value", "output"))
    assert {name: options[name].default for name in defaults} == defaults


def test_types_are_shipped():
    assert (Path(cs.__file__).parent / "py.typed").exists()


def test_version_is_that_of_the_package():
    assert cs.__version__ == version("condshap")


def test_every_error_is_a_builtin_error_too():
    from condshap import exceptions

    errors = [e for e in vars(exceptions).values() if isinstance(e, type) and issubclass(e, exceptions.CondShapError)]
    assert len(errors) >= 8
    for error in errors:
        assert error is exceptions.CondShapError or issubclass(
            error, (ValueError, TypeError, RuntimeError, ImportError)
        )


# --- a fitted explainer -----------------------------------------------------------------------------------------------


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    return pd.DataFrame({"x": rng.normal(size=n), "n": rng.integers(0, 4, n), "c": rng.choice(["u", "v"], n)})


def fitted(approach: str = "independence", **options: object) -> tuple[cs.Explainer, pd.DataFrame]:
    X = frame()
    X = X if approach == "independence" else X[["x", "n"]].astype(float).assign(z=X["x"] ** 2)
    y = X["x"] + 2 * X["n"]
    steps = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    model = make_pipeline(steps, LinearRegression()).fit(X, y)
    return cs.Explainer(model, approach=approach, seed=3, **options).fit(X), X


@pytest.mark.parametrize("approach", ["independence", "gaussian", "copula"])
def test_fitted_explainer_pickles_and_gives_the_same_numbers(approach):
    explainer, X = fitted(approach, n_samples=16)
    again = pickle.loads(pickle.dumps(explainer))
    ours, theirs = explainer.explain(X[:4]), again.explain(X[:4])
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_array_equal(ours.std_errors, theirs.std_errors)


def test_pickled_explainer_gives_the_same_numbers_in_another_process(tmp_path):
    explainer, X = fitted("gaussian", n_samples=16)
    (tmp_path / "explainer.pickle").write_bytes(pickle.dumps((explainer, X[:4])))
    code = (
        "import pickle, sys; explainer, X = pickle.load(open(sys.argv[1], 'rb'));"
        "print(*(value.hex() for value in explainer.explain(X).values.ravel().tolist()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "explainer.pickle")], capture_output=True, text=True, check=True
    )
    theirs = [float.fromhex(value) for value in run.stdout.split()]
    np.testing.assert_allclose(theirs, explainer.explain(X[:4]).values.ravel(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("approach", ["independence", "gaussian", "copula"])
def test_explain_does_not_change_a_fitted_explainer(approach):
    explainer, X = fitted(approach, n_samples=16)
    explainer = pickle.loads(pickle.dumps(explainer))  # so that the comparison sees only what explain does
    before = pickle.dumps(explainer)
    data = X.copy()
    explainer.explain(X[:4])
    assert pickle.dumps(explainer) == before
    pd.testing.assert_frame_equal(X, data)


def test_threads_may_share_an_explainer():
    explainer, X = fitted("gaussian", n_samples=16)
    expected = [explainer.explain(X[i : i + 2]).values for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: explainer.explain(X[i : i + 2]).values, range(8)))
    for ours, theirs in zip(expected, found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_clone_keeps_the_fitted_model_and_the_options_but_not_what_was_learned():
    explainer, X = fitted("gaussian", n_samples=16, base_value=1.5)
    copy = clone(explainer)
    assert copy.model is explainer.model
    assert copy.get_params(deep=False) == explainer.get_params(deep=False)
    with pytest.raises(cs.CondShapError, match="fitted"):
        copy.explain(X)
    np.testing.assert_array_equal(copy.fit(X).explain(X[:3]).values, explainer.explain(X[:3]).values)


def test_parameters_can_be_read_set_and_shown():
    explainer, _ = fitted("gaussian", n_samples=16)
    assert explainer.get_params(deep=False)["n_samples"] == 16
    assert explainer.set_params(n_samples=32).n_samples == 32
    assert "approach='gaussian'" in repr(explainer)
    assert "n_samples=32" in repr(explainer)
    assert set(explainer.get_params(deep=False)) == set(inspect.signature(cs.Explainer).parameters)


def test_fitting_does_not_change_the_approach_that_was_given():
    approach = cs.approaches.Gaussian()
    X = frame()[["x", "n"]]
    explainer = cs.Explainer(lambda T: T["x"], approach=approach).fit(X)
    assert not hasattr(approach, "model_")
    assert explainer.approach is approach
    by_name = cs.Explainer(lambda T: T["x"], approach="gaussian").fit(X)
    np.testing.assert_array_equal(explainer(X[:3]).values, by_name(X[:3]).values)


def test_a_fit_that_fails_leaves_nothing_that_looks_fitted():
    X = np.random.default_rng(0).normal(size=(30, 2))
    explainer = cs.Explainer(lambda x: x[:, 0], approach="gaussian").fit(X)
    with pytest.raises(cs.CondShapError):
        explainer.fit(X[:1])
    with pytest.raises(cs.CondShapError, match="must be fitted"):
        explainer.explain(X)


def test_an_explanation_keeps_its_rows_when_the_table_changes_later():
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = X[:3].copy()
    explanation = cs.explain(lambda x: x[:, 0], X, rows, approach="gaussian")
    rows[:] = 0
    assert (explanation.data == X[:3]).all()


def test_an_old_name_works_with_a_warning():
    with pytest.warns(FutureWarning, match="condshap.VAEAC has been renamed to condshap.VAEACNetworks"):
        assert cs.VAEAC is cs.VAEACNetworks
