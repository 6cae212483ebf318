"""Trees are those of R's party: variables, split points, level sets, leaves and node numbers; statistics to 1e-8.

In two reference cases party's answer depends on the units, by an absolute tolerance: ours must not.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from condshap.ctree import TrainingTable, Tree, grow_tree

BY_UNITS = {"m2_tiny_scale": [1], "m_bad_scale": [2]}
"""Degrees of freedom at the root where party has 0 and 1: it takes small responses for constants."""

ALL_CASES = sorted((Path(__file__).parent / "data" / "ctree").glob("*.json"))
CASES = [path for path in ALL_CASES if path.stem not in BY_UNITS]
WITH_NEW_ROWS = [path for path in CASES if "newdata" in json.loads(path.read_text())]


def encode(variable: dict) -> tuple[np.ndarray, int]:
    """Values and number of levels of one variable; ordered factors become scores 1, 2, ..."""
    if variable["type"] == "numeric":
        return np.array(variable["values"], float), 0
    codes = np.array(variable["codes"], float)
    return (codes + 1.0, 0) if variable["type"] == "ordered" else (codes, len(variable["levels"]))


class Case:
    """A reference case and our tree for it, with numbers in other units if `factors` (columns,) are given."""

    def __init__(self, path: Path, factors: np.ndarray | None = None) -> None:
        self.case = json.loads(path.read_text())
        self.predictors, self.nodes = self.case["predictors"], self.case["party"]["nodes"]
        encoded = [encode(v) for v in [*self.predictors, *self.case["responses"]]]
        self.n_levels = [levels for _, levels in encoded]
        columns = np.column_stack([values for values, _ in encoded])
        self.is_number = np.array(self.n_levels) == 0
        self.factors = np.ones(len(encoded)) if factors is None else np.where(self.is_number, factors, 1.0)
        table = TrainingTable.build(columns * self.factors, self.n_levels)
        p = len(self.predictors)
        controls = {key: self.case["controls"][key] for key in ("mincriterion", "minsplit", "minbucket")}
        self.tree: Tree = grow_tree(table, range(p), range(p, len(encoded)), **controls, keep_tests=True)

    @property
    def names(self) -> list[str]:
        return [v["name"] for v in self.predictors]

    def splits(self) -> list[tuple[int, dict, dict]]:
        """(node, split, predictor) of every inner reference node; its ids count from 1 in pre-order, as ours from 0."""
        inner = [node for node in self.nodes if not node["terminal"]]
        return [(n["id"] - 1, n["split"], self.predictors[self.names.index(n["split"]["variable"])]) for n in inner]


@pytest.fixture(scope="module", params=CASES, ids=lambda path: path.stem)
def reference(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def test_all_reference_cases_are_there() -> None:
    assert len(CASES) >= 32
    assert len(ALL_CASES) == len(CASES) + len(BY_UNITS)


def test_the_leaves_hold_the_same_rows(reference: Case) -> None:
    expected = {tuple(rows) for rows in reference.case["party"]["leaves"].values()}
    assert {tuple(reference.tree.rows_of(leaf).tolist()) for leaf in range(reference.tree.n_leaves)} == expected


def test_the_nodes_are_the_same_in_the_same_order(reference: Case) -> None:
    tree, nodes = reference.tree, reference.nodes
    assert tree.n_nodes == len(nodes)
    assert [bool(f < 0) for f in tree.feature] == [node["terminal"] for node in nodes]
    for node, split, _ in reference.splits():
        assert reference.names[tree.feature[node]] == split["variable"]
        assert (tree.left[node] + 1, tree.right[node] + 1) == (nodes[node]["left"], nodes[node]["right"])


def test_thresholds_are_the_observed_values_of_the_reference(reference: Case) -> None:
    for node, split, predictor in reference.splits():
        if predictor["type"] == "numeric":
            assert reference.tree.threshold[node] == split["threshold"]
        elif predictor["type"] == "ordered":
            assert reference.tree.threshold[node] == split["threshold_code_1based"]


def test_levels_go_to_the_same_sides_absent_ones_too(reference: Case) -> None:
    for node, split, predictor in reference.splits():
        if predictor["type"] == "factor":
            sides = reference.tree.sides_of(node)
            assert [level for level, left in zip(predictor["levels"], sides, strict=True) if left] == split[
                "left_levels"
            ]


def test_statistics_agree(reference: Case) -> None:
    tests = reference.tree.tests
    assert tests is not None
    for i, node in enumerate(reference.nodes):
        if "statistic" not in node:
            assert np.isnan(tests.statistics[i]).all()
            continue
        for m, name in enumerate(reference.names):
            assert tests.dfs[i, m] == node["df"][name]
            np.testing.assert_allclose(tests.statistics[i, m], node["statistic"][name], rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(tests.p_values[i, m], node["p_unadjusted"][name], rtol=1e-7)
            if node["criterion"][name] != "-Inf":
                np.testing.assert_allclose(tests.criteria[i, m], node["criterion"][name], rtol=1e-8, atol=1e-10)
        if "split" in node:
            np.testing.assert_allclose(tests.split_statistics[i], node["split"]["statistic"], rtol=1e-9)


@pytest.mark.parametrize("path", WITH_NEW_ROWS, ids=lambda path: path.stem)
def test_new_rows_go_to_the_nodes_of_the_reference(path: Path) -> None:
    reference = Case(path)
    columns = [encode(v)[0] for v in reference.case["newdata"]["predictors"]]
    rows = np.column_stack([*columns, np.zeros((len(columns[0]), len(reference.case["responses"])))])
    nodes = np.flatnonzero(reference.tree.leaf >= 0)[reference.tree.leaf_of(rows)] + 1
    assert nodes.tolist() == reference.case["newdata"]["party_node"]


def test_training_rows_fall_into_their_own_leaves(reference: Case) -> None:
    nodes = np.flatnonzero(reference.tree.leaf >= 0) + 1
    where = np.empty(reference.case["n"], int)
    for leaf in range(reference.tree.n_leaves):
        where[reference.tree.rows_of(leaf)] = nodes[leaf]
    assert where.tolist() == reference.case["party"]["where"]


def assert_same_tree(found: Tree, wanted: Tree, factors: np.ndarray) -> None:
    """Compare trees of one table in two units: thresholds move with their columns, nothing else does."""
    for name in ("feature", "left", "right", "goes_left", "leaf", "leaf_rows", "first_row"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    inner = wanted.feature >= 0
    np.testing.assert_array_equal(found.threshold[inner], (wanted.threshold * factors[wanted.feature])[inner])


@pytest.mark.parametrize("exponents", [(-40,), (40,), (-40, 0, 40), (20, -30)], ids=str)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_reference_trees_do_not_change_with_powers_of_two_in_other_units(
    path: Path, exponents: tuple[int, ...]
) -> None:
    wanted = Case(path)
    found = Case(path, 2.0 ** np.resize(exponents, len(wanted.n_levels)))
    assert_same_tree(found.tree, wanted.tree, found.factors)


@pytest.mark.parametrize("path", [path for path in ALL_CASES if path.stem in BY_UNITS], ids=lambda path: path.stem)
def test_small_responses_count_whatever_their_units(path: Path) -> None:
    plain = Case(path)
    assert plain.tree.tests.dfs[0].tolist() == BY_UNITS[path.stem] != list(plain.nodes[0]["df"].values())
    for size in (1e-12, 3e-4, 1.0, 1e12):  # of all columns, each beginning at the same one
        values = np.column_stack([encode(v)[0] for v in [*plain.predictors, *plain.case["responses"]]])
        moved = Case(path, size / values.std(axis=0))
        assert moved.tree.tests.dfs[0].tolist() == BY_UNITS[path.stem]
        assert np.array_equal(moved.tree.leaf_rows, plain.tree.leaf_rows)
