"""Values over the steps ahead: lines, bands, what is added up, and single steps."""

import numpy as np
import pandas as pd
import pytest

from condshap import plots
from condshap.exceptions import OptionError

RNG = np.random.default_rng(2)
STEPS = [f"t+{k}" for k in range(1, 6)]


def test_lines_are_the_values_and_the_dashed_one_is_their_sum(explain):
    values = RNG.normal(size=(2, 3, 5))
    one = explain(values, outputs=STEPS, errors=0.1)
    ax = plots.horizons(one, 1)
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}
    for j in range(3):
        np.testing.assert_allclose(drawn[f"feature {j}"], values[1, j])
    np.testing.assert_allclose(drawn["prediction − base value"], values[1].sum(axis=0))
    assert [text.get_text() for text in ax.get_xticklabels()] == STEPS
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() - band[:, 1].min() > 0.2
    assert len(ax.collections) == 3


def test_players_beyond_the_lines_and_those_not_selected_are_added_up(explain):
    values = RNG.normal(size=(1, 12, 5))
    one = explain(values, outputs=STEPS)
    shown = {line.get_label(): np.asarray(line.get_ydata()) for line in plots.horizons(one, max_features=4).get_lines()}
    players = [shown[name] for name in shown if "feature" in name or "others" in name]
    assert "9 others" in shown
    np.testing.assert_allclose(np.sum(players, axis=0), values[0].sum(axis=0))
    some = [line.get_label() for line in plots.horizons(one[:, [0, 1]]).get_lines()]
    assert "10 not selected" in some


def test_the_title_is_the_time(explain):
    rows = pd.DataFrame(
        np.zeros((2, 2)), columns=["a", "b"], index=pd.to_datetime(["2024-01-01 00:00", "2024-01-02 03:00"])
    )
    one = explain(RNG.normal(size=(2, 2, 2)), outputs=["t+1", "t+2"], data=rows, names=["a", "b"])
    assert plots.horizons(one).get_title() == "forecast at 2024-01-01"
    assert plots.horizons(one, 1).get_title() == "forecast at 2024-01-02 03:00:00"


def test_one_step_has_points_with_error_bars(explain):
    ax = plots.horizons(explain(RNG.normal(size=(1, 3))))
    assert len(ax.containers) == 3


def test_many_steps_have_few_ticks(explain):
    steps = [f"t+{k}" for k in range(1, 49)]
    ax = plots.horizons(explain(RNG.normal(size=(1, 3, 48)), outputs=steps))
    assert len(ax.get_xticklabels()) == 16


def test_bad_rows_and_other_things_are_refused(explain):
    with pytest.raises(OptionError, match="row must be a position below 1"):
        plots.horizons(explain(RNG.normal(size=(1, 3, 2)), outputs=["t+1", "t+2"]), 1)
    with pytest.raises(OptionError, match="needs an Explanation, got int"):
        plots.horizons(3)
