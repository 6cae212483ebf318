"""Every approach keeps every promise on every kind of table."""

import pytest

from condshap.approaches import available_approaches, find_approach
from condshap.approaches.base import Capabilities
from condshap.testing import approach_checks, cases, check_approach

CASES = [case for name in available_approaches() for case in cases(find_approach(name)())]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.approach.name}-{case.kind}".replace(" ", "_"))
def test_approach_keeps_its_promises(case):
    broken = []
    for _, check in approach_checks():
        try:
            check(case)
        except Exception as error:  # the other promises are looked at, too
            error.add_note(f"in {check.__name__}")
            broken.append(error)
    if broken:
        raise ExceptionGroup(f"{case.approach.name} on a table of kind '{case.kind}'", broken)


class _Broken:
    """A sampler that breaks one promise after the other, to see that the suite notices."""

    name = "broken"

    def __init__(self, fault):
        self.fault = fault
        self.inner = find_approach("gaussian")()
        self.supports, self.handles_missing, self.needs_model = self.inner.supports, False, False
        self.calls = 0
        if fault == "does not know its error":
            self.capabilities = Capabilities(knows_error=True)
        if fault.startswith("expects"):
            self.capabilities = Capabilities(expects=True, expects_exactly=True)
            self.expect = lambda *a, function, **options: self.expected(
                self.inner.expect(*a, function=function, **options), function
            )

    def expected(self, outcomes, function):
        from dataclasses import replace

        is_wrong = type(function).__name__ == ("CurvedFunction" if "curves" in self.fault else "AffineFunction")
        return replace(outcomes, values=outcomes.values + 1e-6 * is_wrong)

    def fit(self, X, schema, *, plan, seed):
        self.inner.fit(X, schema, plan=plan, seed=seed)
        if self.fault == "changes training rows":
            X[0, 0] += 1
        return None if self.fault == "fit returns nothing" else self

    def sample(self, X, masks, n_samples, *, keys, seed):
        from dataclasses import replace

        import numpy as np

        self.calls += 1
        if self.fault == "depends on position":
            keys = np.arange(len(X), dtype=np.uint64)
        if self.fault == "depends on calls":
            seed = self.calls
        drawn = self.inner.sample(X, masks, n_samples, keys=keys, seed=seed)
        if self.fault == "changes known columns":
            return replace(drawn, rows=drawn.rows + 1e-9)
        if self.fault == "drops a row":
            return replace(drawn, rows=drawn.rows[:, 1:])
        if self.fault == "negative weights":
            return replace(drawn, weights=-np.ones(drawn.rows.shape[:3]))
        if self.fault == "not finite":
            return replace(drawn, rows=drawn.rows * np.where(masks[:, None, None, :], 1, np.nan))
        return drawn


@pytest.mark.parametrize(
    "fault",
    [
        "changes training rows",
        "fit returns nothing",
        "depends on position",
        "depends on calls",
        "changes known columns",
        "drops a row",
        "negative weights",
        "not finite",
        "expects too much of lines",
        "expects too much of curves",
        "does not know its error",
    ],
)
def test_contract_suite_notices(fault):
    with pytest.raises(AssertionError, match="'broken' breaks the promise"):
        check_approach(_Broken(fault))


def test_contract_suite_passes_the_unbroken_approach():
    check_approach(_Broken("none"))
