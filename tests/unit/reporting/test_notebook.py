"""What notebooks show: well-formed HTML with the right numbers, nothing that runs, no noise."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import condshap
from condshap.views.palette import RAISES

EVIL = "<img src=x onerror=alert(1)>"
WEIGHTS = np.array([1.0, -2.0, 0.5])


def _frame(n: int, seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, 3))
    return pd.DataFrame(values, columns=[EVIL, "a & b", "mass"], index=[f"row<{i}>" for i in range(n)])


@pytest.fixture(scope="module")
def explanation() -> condshap.Explanation:
    model = LinearRegression().fit(_frame(50), _frame(50).to_numpy() @ WEIGHTS)
    return condshap.explain(model, _frame(50), _frame(20), approach="gaussian")


def _numbers(texts: list[str]) -> np.ndarray:
    return np.array([float(text.replace("−", "-").replace(",", "")) for text in texts])


def _half_a_digit(texts: list[str]) -> float:
    """Half of the last digit that is written, of the number with the fewest decimals."""
    return 0.501 * 10.0 ** -min(len(text.partition(".")[2]) for text in texts)


class Seen(HTMLParser):
    """Tags, and texts of cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.cells: list[list[str]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.cells.append([])
        if tag in {"td", "th"}:
            self.cells[-1].append("")

    def handle_data(self, data) -> None:
        if self.cells and self.lasttag in {"td", "th"}:
            self.cells[-1][-1] += data


def _bars(html: str) -> list[tuple[str, float, str]]:
    """Name, width and text of every bar."""
    picture = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6].replace("…", "..."))
    widths = [float(part.attrib["width"]) for part in picture.iter("rect")]
    texts = [part.text or "" for part in picture.iter("text")][1:]
    return list(zip(texts[::2], widths, texts[1::2], strict=True))


def test_names_are_text_and_nothing_runs(explanation) -> None:
    seen = Seen(explanation._repr_html_())
    assert seen.tags <= {"div", "p", "b", "br", "table", "tr", "th", "td", "svg", "title", "text", "rect"}
    assert not any(name.startswith("on") or name in {"src", "href"} for name in seen.attributes)
    assert EVIL[:23] + "…" in seen.cells[0]
    assert "row<0>" in seen.cells[1]


def test_the_table_has_the_first_rows(explanation) -> None:
    cells = Seen(explanation._repr_html_()).cells
    assert len(cells) == 7
    order = np.argsort(-np.abs(explanation.values).mean(axis=0))
    assert cells[0][1] == "base value"
    assert cells[0][2] == "a & b"
    assert cells[0][-1] == "prediction"
    for i, line in enumerate(cells[1:]):
        wanted = [explanation.base_values[i], *explanation.values[i, order], explanation.predictions[i]]
        np.testing.assert_allclose(_numbers(line[1:]), wanted, atol=_half_a_digit(line[1:]))
    assert "and 14 more" in explanation._repr_html_()


def test_bars_are_mean_sizes_over_rows_and_signed_values_of_one(explanation) -> None:
    sizes = np.sort(np.abs(explanation.values).mean(axis=0))[::-1]
    bars = _bars(explanation._repr_html_())
    texts = [text for _, _, text in bars]
    np.testing.assert_allclose(_numbers(texts), sizes, atol=_half_a_digit(texts))
    np.testing.assert_allclose([width / bars[0][1] for _, width, _ in bars], sizes / sizes[0], atol=0.001)
    one = _bars(explanation[3]._repr_html_())
    values = explanation.values[3]
    texts = [text for _, _, text in one]
    np.testing.assert_allclose(sorted(_numbers(texts)), np.sort(values), atol=_half_a_digit(texts))
    colours = re.findall(r'fill="(#\w+)"', explanation[3]._repr_html_())
    assert [colour == RAISES for colour in colours] == (_numbers(texts) >= 0).tolist()
    assert "MSEv" in explanation._repr_html_()
    assert "MSEv" not in explanation[3]._repr_html_()


def test_many_players_and_outputs_are_folded_without_losing_anything() -> None:
    X = np.random.default_rng(0).normal(size=(60, 14))
    slopes = np.arange(28.0).reshape(14, 2)
    found = condshap.explain(lambda x: x @ slopes, X, X[:5], approach="gaussian", n_coalitions=100, n_samples=20)
    cells = Seen(found._repr_html_()).cells
    assert cells[0][-2] == "6 others"
    assert [line[0] for line in cells[1:4]] == ["0, output_0", "0, output_1", "1, output_0"]
    for line in cells[1:]:
        numbers = _numbers(line[1:])
        np.testing.assert_allclose(numbers[:-1].sum(), numbers[-1], atol=len(numbers) * _half_a_digit(line[1:]))
    bars = _bars(found._repr_html_())
    assert len(bars) == 9
    total = np.abs(found.values).mean(axis=0).sum()
    texts = [text for _, _, text in bars]
    assert _numbers(texts).sum() == pytest.approx(total, abs=len(bars) * _half_a_digit(texts))
    assert found._repr_html_().count("<path") == len(bars), "a whisker each, also for the others"


def test_a_row_where_nothing_happens_has_bars_of_no_length() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    found = condshap.explain(lambda x: np.ones(len(x)), X, X[:1], approach="independence")
    assert [width for _, width, _ in _bars(found._repr_html_())] == [0.0, 0.0]


def test_explainers_show_the_diagram_of_scikit_learn_and_whether_they_are_fitted() -> None:
    X = _frame(50)
    explainer = condshap.Explainer(LinearRegression().fit(X, X["mass"]), approach="gaussian")
    before = explainer._repr_html_()
    assert "sk-top-container" in before
    assert "LinearRegression" in before
    assert "<span>Not fitted</span>" in before.partition("LinearRegression</div>")[0]
    explainer.fit(X)
    after = explainer._repr_html_()
    assert "<span>Fitted</span>" in after
    assert "<span>Not fitted</span>" not in after
    with pytest.raises(condshap.CondShapError):
        explainer.fit(X[:1])
    assert "<span>Not fitted</span>" in explainer._repr_html_().partition("LinearRegression</div>")[0]


def test_normal_use_makes_no_noise(capfd) -> None:
    X = _frame(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearRegression().fit(X, X["mass"])
        for approach in ("independence", "gaussian", "ctree", "regression_separate"):
            condshap.Explainer(model, approach=approach).fit(X).explain(X[:3])._repr_html_()
    assert capfd.readouterr() == ("", "")
