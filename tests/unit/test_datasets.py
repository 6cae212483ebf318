"""Datasets: right rows, right dtypes, right split, and a polite word when the extra is missing."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from condshap import CondShapError, FeatureSchema, Kind
from condshap.datasets import Dataset, load_abalone, load_diabetes, load_penguins

LOADERS = [load_abalone, load_penguins, load_diabetes]


@pytest.fixture(scope="module")
def abalone() -> Dataset:
    return load_abalone()


def test_abalone_is_in_the_order_of_the_uci_repository(abalone: Dataset) -> None:
    first = [0.455, 0.365, 0.095, 0.514, 0.2245, 0.101, 0.15]
    last = [0.71, 0.555, 0.195, 1.9485, 0.9455, 0.3765, 0.495]
    assert len(abalone.X) == 4177
    for position, numbers, sex, rings in ((0, first, "M", 15), (4176, last, "M", 12)):
        np.testing.assert_allclose(abalone.X.iloc[position, :7].to_numpy(dtype=float), numbers, rtol=1e-12)
        assert (abalone.X["Sex"].iloc[position], abalone.y.iloc[position]) == (sex, rings)


def test_abalone_has_the_papers_names_and_kinds(abalone: Dataset) -> None:
    schema = FeatureSchema.learn(abalone.X)
    assert schema.names == (
        "Length", "Diameter", "Height", "WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight", "Sex",
    )  # fmt: skip
    assert schema.of_kind(Kind.CATEGORICAL) == ("Sex",)
    assert schema.features[-1].levels == ("F", "I", "M")


def test_abalone_split_is_that_of_the_authors(abalone: Dataset) -> None:
    assert (len(abalone.train), len(abalone.test)) == (4077, 100)
    assert abalone.test[:7].tolist() == [102, 138, 441, 549, 654, 682, 534]
    assert abalone.test[-1] == 4172
    assert abalone.y_train.mean() == pytest.approx(9.93, abs=0.005)  # phi_0 in Section 5 of the paper


def test_test_rows_keep_the_order_of_the_authors(abalone: Dataset) -> None:
    assert abalone.X_test.index.tolist() == abalone.test.tolist()
    assert abalone.y_test.index.tolist() == abalone.test.tolist()


def test_penguins_keep_their_missing_values() -> None:
    penguins = load_penguins()
    assert penguins.X.shape == (344, 7)
    assert penguins.X.isna().sum().to_dict() == {
        "island": 0, "bill_length_mm": 2, "bill_depth_mm": 2, "flipper_length_mm": 2, "body_mass_g": 2, "sex": 11,
        "year": 0,
    }  # fmt: skip
    assert FeatureSchema.learn(penguins.X).of_kind(Kind.CATEGORICAL) == ("island", "sex")


def test_diabetes_is_in_its_own_units_with_sex_as_levels() -> None:
    diabetes = load_diabetes()
    assert diabetes.X["age"].between(19, 79).all()
    assert diabetes.X["sex"].cat.categories.tolist() == [1, 2]
    assert FeatureSchema.learn(diabetes.X).of_kind(Kind.CATEGORICAL) == ("sex",)


@pytest.mark.parametrize("load", LOADERS)
def test_train_and_test_hold_every_row_once(load) -> None:
    data = load()
    both = np.sort(np.concatenate([data.train, data.test]))
    np.testing.assert_array_equal(both, np.arange(len(data.X)))
    assert len(data.X_train) == len(data.y_train)
    assert len(data.X_test) == len(data.y_test)


@pytest.mark.parametrize("load", LOADERS)
def test_loading_twice_gives_the_same_table_and_independent_copies(load) -> None:
    first, second = load(), load()
    pd.testing.assert_frame_equal(first.X, second.X)
    np.testing.assert_array_equal(first.test, second.test)
    first.X.iloc[0, 1] = first.X.iloc[5, 1]
    pd.testing.assert_frame_equal(second.X, load().X)


@pytest.mark.parametrize(
    ("load", "module", "package"),
    [(load_abalone, "sklego.datasets", "scikit-lego"), (load_penguins, "palmerpenguins", "palmerpenguins")],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(load, module, package, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CondShapError, match=rf"{package}.*pip install 'condshap\[demo\]'") as caught:
        load()
    assert isinstance(caught.value, ImportError)


def test_a_table_of_another_length_is_refused_because_test_rows_are_positions(monkeypatch, abalone: Dataset) -> None:
    import sklego.datasets

    short = sklego.datasets.load_abalone(as_frame=True).iloc[:4000]
    monkeypatch.setattr(sklego.datasets, "load_abalone", lambda **_: short)
    with pytest.raises(CondShapError, match="must have 4177 rows"):
        load_abalone()
