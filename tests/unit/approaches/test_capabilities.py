"""An approach declares what it can do; one that does not say so is refused with what to write."""

import numpy as np
import pytest

import condshap as cs
from condshap.approaches import available_approaches, find_approach
from condshap.approaches.base import CONTINUOUS_ONLY, Capabilities, Donors, capabilities_of
from condshap.exceptions import ApproachError

X = np.random.default_rng(0).normal(size=(60, 3))


class Plain:
    """Nothing beyond what every approach must have."""

    name, supports, handles_missing, needs_model = "plain", CONTINUOUS_ONLY, False, False

    def fit(self, X, schema, *, plan, seed):
        self.rows_ = X
        return self

    def sample(self, X, masks, n_samples, *, keys, seed):
        first = np.arange(n_samples) % len(self.rows_)
        return Donors(np.broadcast_to(first, (len(masks), len(X), n_samples)), self.rows_, error_factor=0.0)


class Undeclared(Plain):
    """Offers more than it says."""

    default_samples = 32

    def to_state(self):
        """Never called."""


class Nameless:
    """Old style, and says nothing at all."""

    fit, sample = Plain.fit, Plain.sample


def explain(approach):
    return cs.explain(lambda Z: Z[:, 0], X, X[:2], approach=approach, check_draws=False, progress=False)


@pytest.mark.parametrize("name", available_approaches())
def test_every_approach_of_ours_declares(name):
    assert isinstance(find_approach(name)().capabilities, Capabilities)


def test_an_approach_that_offers_nothing_more_need_not_declare():
    assert capabilities_of(Plain()) == Capabilities(samples=True)
    assert explain(Plain()).values.shape == (2, 3)


@pytest.mark.parametrize(
    ("approach", "what"),
    [
        (Undeclared(), r"has \['to_state', 'default_samples'\] but does not declare them"),
        (Nameless(), "has no .*'name'"),
    ],
)
def test_what_is_not_declared_is_refused_with_what_to_write(approach, what):
    with pytest.raises(ApproachError, match=what) as found:
        explain(approach)
    assert "capabilities = Capabilities(samples=True" in str(found.value)


def test_the_message_can_be_pasted():
    with pytest.raises(ApproachError) as found:
        explain(Undeclared())
    line = next(line for line in str(found.value).splitlines() if "capabilities =" in line)
    declared = eval(line.split("=", 1)[1], {"Capabilities": Capabilities})
    assert declared == Capabilities(samples=True, is_storable=True, default_samples=32)
