"""Flat options: the same names and defaults as the configuration, whoever inherits them, and no torch."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import get_type_hints

import numpy as np
import pytest
from sklearn.base import clone

import condshap as cs
from condshap.approaches.base import State
from condshap.exceptions import OptionError
from condshap.seeding import row_keys
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.options import VAEACOptions

KNOWN = np.array([[True, False]])
FACES = [cs.VAEACNetworks, cs.approaches.VAEAC]
OWN = {
    cs.VAEACNetworks: {"device": "auto"},
    cs.approaches.VAEAC: {
        "device": "auto",
        "shrink": True,
        "exact_repeats": True,
        "support": None,
        "fill_missing": "auto",
        "progress": "auto",
    },
}


def parameters(face):
    return {name: p for name, p in inspect.signature(face.__init__).parameters.items() if name != "self"}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("face", FACES)
def test_parameters_are_the_fields_of_the_configuration_with_the_same_defaults(face):
    assert all(field.default is not MISSING for field in fields(VAEACConfig))
    wanted = {field.name: field.default for field in fields(VAEACConfig)} | OWN[face]
    assert {name: p.default for name, p in parameters(face).items()} == wanted


@pytest.mark.parametrize("face", FACES)
def test_parameters_are_keyword_only_and_known_to_scikit_learn(face):
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters(face).values())
    assert set(face().get_params()) == set(parameters(face))


@pytest.mark.parametrize("face", FACES)
def test_every_parameter_is_stored_as_it_came_and_reaches_the_configuration(face):
    for name in parameters(face):
        value = object()
        assert getattr(face(**{name: value}), name) is value
    assert face().config == VAEACConfig()
    assert face(width=9, scales=["standard"]).config == VAEACConfig(width=9, scales=("standard",))


@pytest.mark.parametrize("face", FACES)
def test_paper_has_the_settings_of_the_paper_and_takes_changes(face):
    assert face.paper().config == VAEACConfig.paper()
    changed = face.paper(epochs=7, device="cpu")
    assert (changed.epochs, changed.device, changed.config) == (7, "cpu", VAEACConfig.paper(epochs=7))
    assert type(changed) is face


def test_approach_of_the_paper_does_not_shrink_and_draws_250_plain_samples():
    approach = cs.approaches.VAEAC
    assert (approach().shrink, approach.paper().shrink, approach.paper(shrink=True).shrink) == (True, False, True)
    wanted = [made.capabilities.default_samples for made in (approach(), approach.paper())]
    assert wanted == [None, 250]


@pytest.mark.parametrize("face", FACES)
def test_clone_repr_and_set_params_keep_the_manners_of_scikit_learn(face):
    model = face(epochs=3, scales=("standard",))
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == f"{face.__name__}(epochs=3, scales=('standard',))"
    assert model.set_params(width=5).width == 5


@pytest.mark.parametrize("face", FACES)
def test_old_word_for_quasi_monte_carlo_works_with_a_warning(face):
    with pytest.warns(FutureWarning, match="draws='nets' has been renamed to draws='qmc'.*version 0.4"):
        assert face(draws="nets").config == VAEACConfig(draws="qmc")


def test_files_with_the_old_word_load_as_if_they_had_the_new_one():
    X = np.random.default_rng(0).normal(size=(80, 2))
    options = {"epochs": 2, "device": "cpu"}
    explainer = cs.Explainer(lambda x: x[:, 0], approach=cs.approaches.VAEAC(**options), check_draws=False).fit(X)
    approach = explainer.parts_[0].approach
    state = approach.to_state()
    facts = json.loads(json.dumps(state.facts).replace("qmc", "nets"))
    assert facts != state.facts
    again = cs.approaches.VAEAC.from_state(State(state.arrays, facts))
    assert again.draws == again.networks_.config.draws == "qmc"
    ours, theirs = (one.sample(X[:3], KNOWN, 8, keys=row_keys(X[:3]), seed=0) for one in (approach, again))
    assert np.array_equal(ours.rows, theirs.rows)


@pytest.mark.parametrize("face", [VAEACConfig, *FACES])
def test_constructor_shows_the_types_of_its_parameters(face):
    hints = get_type_hints(face.__init__)
    assert (hints["depth"], hints["scales"]) == (int, Sequence[str] | None)


def test_configuration_cannot_change_and_equal_ones_have_one_hash():
    config = VAEACConfig(epochs=3)
    with pytest.raises(FrozenInstanceError, match="epochs"):
        config.epochs = 4
    assert config.epochs == 3
    assert hash(config) == hash(VAEACConfig(epochs=3))


def test_mistakes_show_when_the_configuration_is_built_not_in_the_constructor():
    for options in ({"width": 0}, {"masking": "none"}, {"scales": "standard"}, {"scales": []}):
        wrong = VAEACOptions(**options)
        with pytest.raises(OptionError, match=next(iter(options))):
            wrong.config


def test_options_and_approaches_are_imported_without_torch():
    code = "import sys, condshap as cs; cs.approaches.VAEAC(epochs=3).config; cs.VAEACNetworks.paper(); print(*sys.modules)"
    assert "torch" not in run(code)


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pandas", "sklearn", "narwhals", "safetensors", "joblib"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import condshap.vaeac.ensemble
from condshap.vaeac import Networks, VAEACConfig
print(Networks.__name__)
"""


def test_networks_can_be_imported_where_pandas_and_scikit_learn_are_missing():
    assert run(WITHOUT) == ["Networks"]


def test_unknown_name_of_the_package_is_an_attribute_error():
    import condshap.vaeac

    with pytest.raises(AttributeError, match="no_such_name"):
        condshap.vaeac.no_such_name
