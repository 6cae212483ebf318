"""Tables of all dtypes are explained, or refused in our own words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import condshap as cs
from condshap.approaches import VAEAC
from fuzz.options import FAST
from fuzz.profiles import cases
from fuzz.promise import check_explanation, kept
from fuzz.tables import any_model, made, rows_of, tables


@cases(short=60, long=4000)
@given(data=st.data())
def test_tables(data):
    table = data.draw(tables())
    rows = data.draw(rows_of(table))
    approach = data.draw(st.sampled_from([*FAST, "independence", "independence"]))
    if data.draw(st.integers(0, 49)) == 49:
        approach = VAEAC(epochs=2, width=4, depth=1, latent=1, companions=False)
    options = (
        {"n_samples": 8} if isinstance(approach, VAEAC) or approach in {"independence", "gaussian", "copula"} else {}
    )
    check = data.draw(st.integers(0, 4)) == 0
    categorical = data.draw(st.sampled_from([(), (), (), ("a",), (0,), ("a", "b")]))
    found = kept(
        lambda: cs.explain(
            any_model, table, rows, approach=approach, check_draws=check, categorical=categorical, **options
        )
    )
    if found is not None:
        check_explanation(found, len(rows), made(lambda: any_model(rows)))


@cases(short=8, long=400)
@given(data=st.data())
def test_tables_that_go_through_files(data, tmp_path_factory):
    table = data.draw(tables(("pandas", "polars", "pyarrow", "numpy")))
    path = tmp_path_factory.getbasetemp() / "fuzz-of-tables"

    def through_files():
        explainer = cs.Explainer(any_model, approach="independence", n_samples=4, check_draws=False).fit(table)
        found = explainer.explain(table[:2] if not hasattr(table, "slice") else table.slice(0, 2))
        explainer.save(path)
        again = cs.load_explainer(path, any_model).explain(found.data)
        again.save(path)
        return found, again, cs.load_explanation(path)

    found = kept(through_files)
    if found is not None:
        for one in found:
            check_explanation(one, len(found[0]))
            np.testing.assert_array_equal(one.values, found[0].values)
            np.testing.assert_array_equal(one.std_errors, found[0].std_errors)
