"""Figures show the numbers that they are made of."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from condshap.exceptions import OptionError, StorageError
from condshap.studies.commands import main
from condshap.studies.figures.bars import draw_bars
from condshap.studies.figures.criteria import draw_criterion
from condshap.studies.figures.densities import density, draw_densities
from condshap.studies.figures.mixture import ACROSS, COUNTS, Mixture, components, draw_mixture, envelope
from condshap.studies.figures.sample_counts import count_table, draw_counts
from condshap.studies.figures.samples import draw_samples
from condshap.studies.figures.scene import AT, GIVEN, make_scene
from condshap.studies.pages.summary import Results
from condshap.studies.problems.abalone import AbaloneCell, choose_three
from condshap.studies.problems.cells import BurrCell
from condshap.studies.running.catalogue import STUDIES
from condshap.studies.running.runner import Study
from condshap.studies.running.store import Key, Result, Store
from condshap.vaeac.estimator import VAEACNetworks

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def scene():
    pytest.importorskip("sklego")
    return make_scene(AbaloneCell(n_train=300, n_rows=40, n_trees=10), ("independence", "ctree"), n_samples=40)


def test_samples_keep_what_is_given_and_only_ctree_follows_it(scene):
    for (name, value), drawn in scene.drawn.items():
        assert (drawn.rows[GIVEN] == value).all()
        assert drawn.weights.sum() == pytest.approx(1.0)
        assert len(drawn.rows) == len(drawn.weights) == len(drawn.responses) <= 40
        assert drawn.rows["Sex"].isin(["F", "I", "M"]).all(), name
    means = {place: drawn.rows["Diameter"].mean() for place, drawn in scene.drawn.items()}
    assert means["ctree", AT[-1]] - means["ctree", AT[0]] > 0.2
    assert abs(means["independence", AT[-1]] - means["independence", AT[0]]) < 0.1


def test_the_pairplot_has_all_training_rows_and_all_samples(scene):
    axes = draw_samples(scene).axes
    assert [axis.get_xlabel() for axis in axes] == ["Diameter", "ShuckedWeight"]
    for axis in axes:
        points = [np.asarray(part.get_offsets()) for part in axis.collections]
        assert len(points) == 1 + 2
        np.testing.assert_array_equal(points[0][:, 0], scene.X_train[axis.get_xlabel()])
        first = pd.concat([scene.drawn["independence", value].rows for value in AT])
        np.testing.assert_array_equal(points[1][:, 0], first[axis.get_xlabel()])
        np.testing.assert_allclose(points[1][:, 1], first[GIVEN] + 0.012)  # above those of ctree
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["training rows", "independence", "ctree"]


def test_bars_are_the_shapley_values_of_three_rows(scene):
    axes = draw_bars(scene).axes
    assert len(axes) == 3
    for row, axis in enumerate(axes):
        widths = [patch.get_width() for patch in axis.patches]
        expected = np.concatenate([found.values[row] for found in scene.explanations.values()])
        np.testing.assert_allclose(widths, expected)
        assert f"{scene.explanations['ctree'].predictions[row]:.2f} rings" in axis.get_title()
    distances = scene.explanations["ctree"].predictions - scene.explanations["ctree"].base_values
    assert distances[0] < 0 < distances[2]
    assert abs(distances[1]) < min(-distances[0], distances[2])


def test_densities_integrate_to_one_and_lines_are_v(scene):
    drawn = scene.drawn["ctree", AT[1]]
    grid = np.linspace(drawn.responses.min() - 10, drawn.responses.max() + 10, 4000)
    assert np.trapezoid(density(drawn, grid), grid) == pytest.approx(1.0, abs=1e-3)
    axes = draw_densities(scene).axes
    assert [axis.get_title() for axis in axes] == [f"ShellWeight = {value:g}" for value in AT]
    upright = [line.get_xdata()[0] for line in axes[1].lines if line.get_linestyle() == ":"]
    v = [scene.drawn[name, AT[1]] for name in ("independence", "ctree")]
    np.testing.assert_allclose(upright, [one.weights @ one.responses for one in v])


def test_three_rows_are_of_three_sexes():
    distance, sexes = np.array([-3.0, -2.5, 0.1, 0.2, 4.0, 3.0]), np.array(["I", "I", "I", "M", "F", "M"])
    assert choose_three(distance, sexes).tolist() == [0, 3, 4]
    with pytest.raises(OptionError, match="all three sexes"):
        choose_three(distance, np.array(["I", "I", "I", "M", "I", "M"]))


def test_the_criteria_against_k_come_from_the_store():
    names = [f"vaeac-paper:{kind}n_samples={K}" for kind in ("", "draws='qmc',") for K in (10, 100)]
    study = Study("s", (BurrCell(10, 1000),), tuple(names), ())
    cell = study.cells[0].key
    found = [
        Result(Key("s", cell, name, r, 0, "v"), 0.1 * (i + 1) + r, 0.2 + 10 * r + i * r, 0.3, 60.0, 60.0 * i, 1.0, 1)
        for i, name in enumerate(names)
        for r in (0, 1)
    ]
    results = Results.gather(study, found, "v")
    table = count_table(results).set_index(["kind", "K", "quantity"])
    assert table.loc[("plain", 10, "ec1"), "mean"] == pytest.approx(0.6)
    assert table.loc[("qmc", 100, "ec1"), "mean"] == pytest.approx(0.9)
    assert table.loc[("qmc", 100, "ec1"), "std_error"] == pytest.approx(
        0.0, abs=1e-12
    )  # repetitions differ, K does not
    assert table.loc[("qmc", 100, "ec2"), "std_error"] == pytest.approx(0.75)  # centred: -5.75 and -4.25 + 10
    assert table.loc[("qmc", 100, "minutes"), "mean"] == pytest.approx(4.0)
    figure = draw_counts(results)
    assert [axis.get_title() for axis in figure.axes] == ["EC1", "EC2", "EC3", "CPU minutes"]
    np.testing.assert_allclose(np.asarray(figure.axes[0].lines[0].get_ydata(), float), [0.6, 0.7])
    np.testing.assert_allclose(np.asarray(figure.axes[0].lines[0].get_xdata(), float), [10, 100])
    with pytest.raises(StorageError, match="needs results"):
        draw_counts(replace(results, places={}))


def test_criteria_stand_beside_the_papers():
    study = STUDIES["mixed-low"].study
    some = [cell for cell in study.cells if cell.setup == "M4" and cell.n_train == 1000]
    found = [
        Result(Key(study.name, cell.key, "vaeac", r, 0, "v"), cell.rho + r, 0.2, 0.3, 1.0, 1.0, 1.0, 1)
        for cell in some
        for r in (0, 2)
    ]
    results = Results.gather(study, found, "v")
    figure = draw_criterion(results, "ec1")
    axes = figure.axes
    assert len(axes) == 6
    assert figure.legends[0].get_texts()[0].get_text() == "the paper's figures"
    figure.canvas.draw()
    ticks = [label.get_text() for axis in axes for label in axis.get_yticklabels()]
    assert {"0.05", "0.1", "1"} <= set(ticks)
    assert not any("{" in label or "e" in label for label in ticks)  # no powers of ten
    (axis,) = [axis for axis in axes if axis.get_title() == "M = 4, L = 4, N = 1000"]
    lines = {line.get_label(): line for line in axis.containers[-1].lines[:1]}
    (line,) = lines.values()
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), [cell.rho + 1 for cell in some])
    papers = [np.asarray(part.get_offsets()) for part in axis.collections if len(part.get_offsets())]
    assert any(np.allclose(points[:, 1], [0.0773, 0.0770, 0.0869, 0.0792, 0.0667, 0.0633]) for points in papers)


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    size = rng.normal(size=400)
    X = pd.DataFrame({"Diameter": 5 + size, "kind": rng.choice(["a", "b"], 400), "ShellWeight": 9 + 2 * size})
    return VAEACNetworks.paper(epochs=20, n_restarts=1, device="cpu").fit(X, progress=False), X


def test_components_are_those_from_which_the_network_draws(trained):
    """Means of 3000 components, and total variance, agree with those of 3000 samples of the network.

    Both are means over independent latents; 5 standard errors, false alarm below 1e-5 for four numbers.
    """
    network, X = trained
    mixture = components(network, X, 3000, seed=1)
    assert mixture.names == ("Diameter", "ShellWeight")
    drawn = network.sample(X[:1], [[]], 3000, seed=2)[0, 0]
    for j, name in ((0, "Diameter"), (2, "ShellWeight")):
        mean, deviation = mixture.of(name, 3000)
        error = drawn[:, j].std() * np.sqrt(2 / 3000)
        assert abs(mean.mean() - drawn[:, j].mean()) < 5 * error
        total = mean.var() + (deviation**2).mean()
        assert total / drawn[:, j].var() == pytest.approx(1.0, abs=5 * np.sqrt(4 / 3000))


def test_contours_are_of_components_with_mode_one():
    mixture = Mixture((ACROSS, GIVEN), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, 1.0], [1.0, 1.0]]))
    found = envelope(mixture, 2, np.array([1.0, 1.5, 3.0]), np.array([2.0, 4.0]))
    assert found.shape == (2, 3)
    assert found[0, 0] == 1.0
    assert found[1, 2] == 1.0
    assert found[0, 1] == pytest.approx(np.exp(-0.5))  # one deviation from the first, 1.5 and 2 from the second
    assert envelope(mixture, 1, np.array([3.0]), np.array([4.0]))[0, 0] == pytest.approx(np.exp(-8 - 2))


def test_the_mixture_has_a_panel_per_number_of_components(trained):
    network, X = trained
    axes = draw_mixture(components(network, X, max(COUNTS)), X).axes
    assert [axis.get_title() for axis in axes] == [f"K = {n}" for n in COUNTS]
    for axis, n in zip(axes, COUNTS, strict=True):
        assert len(axis.collections[-1].get_offsets()) == n


def test_figures_are_written_as_files(tmp_path, capsys):
    store = tmp_path / "s.jsonl"
    cell = STUDIES["mixed-low"].study.cells[0]
    Store(store).append(Result(Key("mixed-low", cell.key, "vaeac", 0, 0, "v"), 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 1))
    out = tmp_path / "figures"
    arguments = ["plot", "mixed-low", "--store", str(store), "--of-version", "v", "--out", str(out)]
    assert main(arguments) == 0
    assert (out / "mixed-low-ec1.png").read_bytes()[:4] == PNG
    assert "Written" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert main([*arguments[:-1], str(tmp_path / "file" / "x")]) == 1
    assert main(["plot", "computation-times", "--out", str(out)]) == 1
    assert "needs a study with cells" in capsys.readouterr().err
