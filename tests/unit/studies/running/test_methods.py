"""Names of methods become approaches with options."""

import pytest

from condshap.exceptions import OptionError
from condshap.studies.running.methods import available_methods, find_method


@pytest.mark.parametrize("name", ["independence", "empirical", "gaussian", "copula", "ctree", "categorical", "vaeac"])
def test_every_approach_is_a_method_with_its_defaults(name):
    method = find_method(name)
    assert name in available_methods()
    assert method.n_samples is None
    assert method.make_approach().name == name


def test_the_papers_vaeac_takes_250_samples():
    method = find_method("vaeac-paper")
    assert method.n_samples == 250
    assert method.make_approach().name == "vaeac"


def test_options_after_a_colon_are_python_literals():
    method = find_method("vaeac-uniform:width=64,scales=('standard', 'normal_scores'),n_samples=32")
    assert dict(method.options) == {"masking": "uniform", "width": 64, "scales": ("standard", "normal_scores")}
    assert method.n_samples == 32
    assert method.make_approach().name == "vaeac"
    assert find_method("ctree:minsplit=30").make_approach().minsplit == 30


def test_the_device_reaches_networks_only():
    assert find_method("vaeac").make_approach("cuda").device == "cuda"
    assert find_method("gaussian").make_approach("cuda").name == "gaussian"


@pytest.mark.parametrize(
    "name",
    ["vaec", "", "vaeac:64", "vaeac:width=", "vaeac:width=len([])", "vaeac:**{}", "vaeac:wdith=3", "gaussian:width=3"],
)
def test_what_is_no_method_is_refused(name):
    with pytest.raises(OptionError, match="must be"):
        find_method(name)


def test_an_approach_of_ones_own_is_named_by_its_import_path():
    method = find_method("condshap.approaches.ctree.Ctree:minsplit=30,n_samples=8")
    assert method.make_approach("cuda").minsplit == 30
    assert method.n_samples == 8
    assert method.name == "condshap.approaches.ctree.Ctree:minsplit=30,n_samples=8"


@pytest.mark.parametrize("name", ["nothing.here.Class", "condshap.approaches.ctree.Nothing", "pathlib.Path", ".x"])
def test_an_import_path_that_leads_to_no_approach_is_refused(name):
    with pytest.raises(OptionError, match="approach's class must"):
        find_method(name)


def test_categorical_shares_unseen_cells_as_stored_results_do_unless_told_otherwise():
    assert find_method("categorical").make_approach().share_unseen
    assert not find_method("categorical:share_unseen=False").make_approach().share_unseen
