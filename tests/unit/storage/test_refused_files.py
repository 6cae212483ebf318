"""Files and models that an explainer must not be loaded from are refused, with what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from sklearn.linear_model import LinearRegression, LogisticRegression

import condshap as cs
from condshap.exceptions import ModelError, NotFittedError, StorageError
from condshap.storage.file_kinds import EXPLAINER
from condshap.storage.state_file import write_tensors
from tests.unit.storage.explainers_there_and_back import TABLE, OwnRegressor, fitted, score, scores, there_and_back


def other_score(table):
    return score(table) + 1.0


@pytest.fixture
def saved(tmp_path):
    fitted(TABLE[["a", "b", "c"]], approach="empirical").save(tmp_path / "explainer")
    return tmp_path / "explainer"


def change(path, alter):
    """Read a saved explainer, let `alter(tensors, about)` change it, and write it again."""
    with safetensors.safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["condshap"])
        tensors = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - no mapping
    alter(tensors, about)
    write_tensors(path, tensors, json.dumps(about), EXPLAINER)  # sealed, as if nothing were wrong


def test_an_explainer_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError, match="must be fitted before it is saved"):
        cs.Explainer(score, approach="gaussian").save(tmp_path / "explainer")


def test_an_approach_that_was_set_after_the_fit_cannot_be_saved(tmp_path):
    explainer = fitted(TABLE[["a", "b", "c"]], approach="gaussian").set_params(approach=["gaussian", "copula"])
    with pytest.raises(StorageError, match="with the approach that it was fitted with"):
        explainer.save(tmp_path / "explainer")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.95])
def test_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StorageError, match=r"explainer' must be a complete safetensors file, but cannot"):
        cs.load_explainer(saved, score)


def test_files_of_others_are_refused(tmp_path):
    TABLE.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "text").write_text("not an explainer at all " * 20)
    for name in ("rows.parquet", "text"):
        with pytest.raises(StorageError, match=f"{name}' must be a complete safetensors file"):
            cs.load_explainer(tmp_path / name, score)
    safetensors.numpy.save_file({"x": np.zeros(2)}, tmp_path / "other")
    with pytest.raises(
        StorageError, match="must be an explainer saved by condshap, but is some other safetensors file"
    ):
        cs.load_explainer(tmp_path / "other", score)


def test_missing_file_and_folder_are_refused(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(StorageError, match=f"must be an existing file, got '{path}'. Check the path"):
            cs.load_explainer(path, score)


def test_paths_that_cannot_be_written_are_refused(tmp_path, saved):
    explainer = cs.load_explainer(saved, score)
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "no" / "such", saved / "below a file"):
        with pytest.raises(StorageError, match=f"must be saved to a writable path, got '{path}'.*Choose another path"):
            explainer.save(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["explainer", "folder"]


def test_saving_leaves_the_usual_permissions_and_nothing_else(tmp_path, saved):
    (tmp_path / "usual").touch()
    assert saved.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert {path.name for path in tmp_path.iterdir()} == {"usual", "explainer"}


def test_file_of_another_format_version_is_refused_with_its_writer(saved):
    change(saved, lambda tensors, about: about.update(format_version=99, written_by="7.1"))
    with pytest.raises(
        StorageError, match=r"must have format version 4, got 99, written by condshap 7.1. Read it with"
    ):
        cs.load_explainer(saved, score)


@pytest.mark.parametrize("text", ["{", "[]", "3", "{}", '"explainer"'])
def test_damaged_json_is_refused(saved, text):
    safetensors.numpy.save_file({"x": np.zeros(2)}, saved, {"condshap": text})
    with pytest.raises(StorageError, match="part of it is missing or damaged"):
        cs.load_explainer(saved, score)


def test_a_file_of_another_kind_is_refused(tmp_path, saved):
    network = cs.VAEACNetworks(epochs=1, width=4, depth=1, latent=1, device="cpu").fit(TABLE[["a", "b"]])
    network.save(tmp_path / "network")
    with pytest.raises(StorageError, match=r"network' must be of kind 'explainer', got 'networks'. Check the path"):
        cs.load_explainer(tmp_path / "network", score)
    with pytest.raises(StorageError, match=r"explainer' must be of kind 'networks', got 'explainer'. Check the path"):
        cs.VAEACNetworks.load(saved)


def test_every_array_is_needed(saved):
    content, names = saved.read_bytes(), set(safetensors.numpy.load_file(saved))
    for name in names:
        saved.write_bytes(content)
        change(saved, lambda tensors, about, name=name: tensors.pop(name))
        with pytest.raises(StorageError, match=r"part of it is missing or damaged.*Save it again"):
            cs.load_explainer(saved, score)


def test_every_fact_is_needed(saved):
    content, facts = saved.read_bytes(), []
    change(saved, lambda tensors, about: facts.extend(about["facts"]))
    for name in facts:
        saved.write_bytes(content)
        change(saved, lambda tensors, about, name=name: about["facts"].pop(name))
        with pytest.raises(StorageError, match="part of it is missing or damaged"):
            cs.load_explainer(saved, score)


@pytest.mark.parametrize(
    "alter",
    [
        lambda tensors, about: about["facts"]["learned"].pop("error_factors"),
        lambda tensors, about: about["facts"]["options"].update(nonsense=3),
        lambda tensors, about: about["facts"]["schema"].update(columns=3),
        lambda tensors, about: about["facts"]["part_0"].pop("name"),
        lambda tensors, about: about["facts"]["part_0"]["state"]["options"].update(nonsense=3),
        lambda tensors, about: about["facts"]["part_0"]["state"]["options"].update(sigma={"kind": "odd", "key": "a"}),
        lambda tensors, about: about["facts"]["plan"].update(masks={"kind": "code", "key": "masks/0"}),
        lambda tensors, about: about["facts"]["approach"].update(choices=[7]),
        lambda tensors, about: about.pop("same"),
        lambda tensors, about: tensors.update({"part_0/positions": np.array([99])}),
        lambda tensors, about: tensors.update({"plan/weights/1": np.zeros(3)}),
    ],
)
def test_file_with_a_part_missing_or_damaged_is_refused(saved, alter):
    change(saved, alter)
    with pytest.raises(StorageError, match="missing or damaged"):
        cs.load_explainer(saved, score)


def test_file_that_names_types_that_may_run_code_is_refused(tmp_path):
    import skops.io

    explainer = fitted(TABLE[["a", "b"]], approach="regression_surrogate")
    explainer.save(tmp_path / "explainer")
    bad = np.frombuffer(skops.io.dumps((OwnRegressor(),)), dtype=np.uint8)
    change(tmp_path / "explainer", lambda tensors, about: tensors.update({"part_0/state/models": bad}))
    with pytest.raises(StorageError, match=r"hold numbers and no code, got also \['.*OwnRegressor'\]"):
        cs.load_explainer(tmp_path / "explainer", score)
    junk = np.arange(50, dtype=np.uint8)
    change(tmp_path / "explainer", lambda tensors, about: tensors.update({"part_0/state/models": junk}))
    with pytest.raises(StorageError, match="must be an estimator whose packages are installed, but loading failed"):
        cs.load_explainer(tmp_path / "explainer", score)


# --- another model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [scores, lambda table: scores(table)[:, :0]])
def test_a_model_with_other_outputs_is_refused(saved, model):
    with pytest.raises(ModelError, match=r"must have the outputs of the one|must return outputs for every row"):
        cs.load_explainer(saved, model)


def test_a_classifier_with_other_classes_is_refused_with_both_names(tmp_path):
    table = TABLE[["a", "b", "c"]]
    one, other = (LogisticRegression().fit(table, np.array([*names])[np.arange(60) % 2]) for names in ("uv", "uw"))
    explainer = fitted(table, one, approach="gaussian")
    with pytest.raises(ModelError, match=r"fitted with, \['u', 'v'\], got \['u', 'w'\]. Pass that model, or fit a new"):
        there_and_back(explainer, tmp_path, other)


def test_a_model_that_takes_other_columns_is_refused(tmp_path):
    table = TABLE[["a", "b", "c"]]
    explainer = fitted(table, LinearRegression().fit(table, table["a"]), approach="gaussian")
    with pytest.raises(ModelError, match="LinearRegression must accept"):
        there_and_back(explainer, tmp_path, LinearRegression().fit(table[["a", "b"]], table["a"]))


def test_a_model_that_predicts_otherwise_is_announced_and_written_down(saved):
    with pytest.warns(cs.CondShapWarning, match=r"must be the one.*8 training rows differ.*up to 1, where.*fit a new"):
        loaded = cs.load_explainer(saved, other_score)
    assert "differ from the saved ones" in loaded.explain(TABLE[["a", "b", "c"]][:2]).provenance.warnings[-1]


def test_a_model_that_only_rounds_otherwise_is_the_same(saved):
    cs.load_explainer(saved, lambda table: score(table).astype(np.float32))
