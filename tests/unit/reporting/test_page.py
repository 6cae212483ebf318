"""The report as a file: what is in it, what cannot be in it, and what is refused. tests/browser looks at it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import condshap as cs
from condshap.exceptions import OptionError, SchemaError, StorageError
from condshap.numerics.readable import estimate, feature_value, interval
from condshap.reporting import page as page_module
from condshap.reporting.outside_training import find_outside
from condshap.reporting.page import to_json
from condshap.reporting.quality import against_the_best, judge

EVIL_NAME = "<img src=x onerror=alert(1)>"
EVIL_LEVEL = "</script><script>alert(1)</script>"
RNG = np.random.default_rng(3)
N = 90
DATA = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "number": np.where(RNG.random(N) < 0.1, np.nan, 123456700.0 + np.arange(N)),
        EVIL_NAME: pd.Categorical(RNG.choice(["b", EVIL_LEVEL], N), categories=["b", EVIL_LEVEL]),
    },
    index=[f"row & {i}" for i in range(N)],
)
TRAIN, ROWS = DATA[:70], DATA[70:]


def one(X):
    return X["x"].to_numpy() ** 3 + X["number"].fillna(0).to_numpy() / 1e9 + 2 * (X[EVIL_NAME] == "b").to_numpy()


def two(X):
    return np.column_stack([one(X), -2 * X["x"].to_numpy()])


def explain(f=one, rows=ROWS, **options):
    return cs.explain(f, TRAIN, rows, approach="independence", n_samples=20, **options)


@pytest.fixture(scope="module")
def single():
    return explain()


@pytest.fixture(scope="module")
def several():
    whole = DATA.assign(number=DATA["number"].fillna(123456700.0))  # trees accept no gaps
    names = ("independence", "ctree")
    return [cs.explain(two, whole[:70], whole[70:], approach=name, n_samples=20) for name in names]


class Reader(HTMLParser):
    """Elements with their attributes, and the text of every script and style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.open = ""
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open = tag
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open in self.inside:
            self.inside[self.open][-1] += data
        else:
            self.text.append(data)


def read(path: Path) -> Reader:
    return Reader(path.read_text(encoding="utf-8"))


def payload(reader: Reader) -> dict:
    return json.loads(reader.inside["script"][0])


def array(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def write(tmp_path, explanations, **options) -> Reader:
    return read(cs.report(explanations, tmp_path / "report.html", **options))


# --- nothing gets out, nothing gets in ---------------------------------------------------------------------------------


def test_names_and_levels_never_become_markup(tmp_path, single):
    reader = write(tmp_path, single, title=EVIL_LEVEL, names=[EVIL_NAME], model=EVIL_NAME, train=TRAIN)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert EVIL_LEVEL in "".join(reader.text), "the title, as text"
    assert payload(reader)["features"][2]["levels"] == ["b", EVIL_LEVEL]
    assert payload(reader)["players"][2]["name"] == EVIL_NAME
    assert not re.search(r"[<>&]", reader.inside["script"][0])
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)


@pytest.mark.parametrize("character", ["<", ">", "&", "\u2028", "\u2029", "é", "\ud800", "</script>", "<!--"])
def test_json_can_stand_in_a_script(character):
    text = to_json({"a": character})
    assert text.isascii()
    assert not re.search(r"[<>&]", text)
    assert json.loads(text) == {"a": character}


def test_json_has_no_numbers_that_browsers_cannot_read():
    with pytest.raises(ValueError, match="JSON"):
        to_json([np.nan])


def test_the_policy_knows_the_style_and_the_script_by_their_hashes_and_forbids_the_rest(tmp_path, single):
    reader = write(tmp_path, single)
    metas = [attributes for tag, attributes in reader.elements if tag == "meta"]
    policy = next(meta["content"] for meta in metas if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for name, text in (("style-src", reader.inside["style"][0]), ("script-src", reader.inside["script"][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert "unsafe" not in policy
    assert rules["require-trusted-types-for"] == "'script'"


def test_nothing_is_loaded_from_elsewhere(tmp_path, single):
    text = cs.report(single, tmp_path / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    reader = Reader(text)
    assert not [attributes for _, attributes in reader.elements if "src" in attributes]
    assert [a["href"] for tag, a in reader.elements if "href" in a] == ["#main"]
    assert not re.search(r"@import|url\(", reader.inside["style"][0])


def test_scripts_write_text_and_never_markup():
    for name in page_module._SCRIPTS:
        script = page_module._asset(name)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script), (
            name
        )
        assert "</script" not in script
        assert "<!--" not in script


# --- what is in it -----------------------------------------------------------------------------------------------------


def test_numbers_come_back_from_the_page(tmp_path, several):
    data = payload(write(tmp_path, several))
    assert data["rows"] == len(ROWS)
    assert data["labels"] == list(ROWS.index)
    assert data["outputs"] == list(several[0].output_names)
    for given, packed in zip(several, data["explanations"], strict=True):
        assert packed["name"] == given.provenance.approach
        values = np.moveaxis(given.values, 2, 0)
        np.testing.assert_allclose(array(packed["values"], "<f4"), values.ravel(), rtol=1e-6, atol=1e-30)
        halves = array(packed["errors"], "<u2").astype(np.uint32) << 16
        errors = np.moveaxis(given.std_errors, 2, 0).ravel()
        np.testing.assert_allclose(halves.view(np.float32), errors, rtol=2.0**-8, atol=1e-30)
        np.testing.assert_array_equal(array(packed["base"], "<f8"), given.base_values.T.ravel())
        np.testing.assert_array_equal(array(packed["predictions"], "<f8"), given.predictions.T.ravel())
        np.testing.assert_array_equal([at[0] for at in packed["msev"]], given.msev.value)


def test_features_keep_their_digits_their_gaps_and_their_levels(tmp_path, single):
    x, number, label = payload(write(tmp_path, single))["features"]
    np.testing.assert_allclose(array(x["data"], "<f4"), ROWS["x"], rtol=1e-6)
    assert (x["type"], number["type"]) == ("f4", "f8")
    np.testing.assert_array_equal(array(number["data"], "<f8"), ROWS["number"])
    assert array(label["data"], "<i4").tolist() == ROWS[EVIL_NAME].cat.codes.tolist()


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda X: X.to_numpy(), lambda X: X.iloc[:, ::-1]])
def test_any_table_shows_the_same_features(tmp_path, convert):
    X = DATA[["x"]].assign(z=DATA["x"] ** 2).reset_index(drop=True)
    explanation = cs.explain(lambda x: np.asarray(x)[:, 0], X[:70], convert(X[70:]), approach="gaussian", n_samples=10)
    data = payload(write(tmp_path, explanation, train=convert(X[:70])))
    assert [feature["name"] for feature in data["features"]] == ["x", "z"]
    np.testing.assert_allclose(array(data["features"][1]["data"], "<f4"), X["z"][70:], rtol=1e-6)


def test_rows_with_names_of_an_explainer_without(tmp_path):
    X = RNG.normal(size=(30, 2))
    rows = pd.DataFrame(X[:5], columns=["a", "b"])
    explanation = cs.explain(lambda x: x[:, 0], X, rows, approach="gaussian", n_samples=10)
    data = payload(write(tmp_path, explanation, train=X))
    assert [feature["name"] for feature in data["features"]] == ["x0", "x1"]
    assert data["outside"] == {}


def test_groups_are_players(tmp_path):
    explanation = explain(groups={"both": ["x", EVIL_NAME], "rest": ["number"]})
    assert payload(write(tmp_path, explanation))["players"] == [
        {"name": "both", "members": [0, 2]},
        {"name": "rest", "members": [1]},
    ]


def test_the_page_tells_how_it_was_made(tmp_path, single):
    text = "".join(write(tmp_path, single, model="Forest(7)", title="Snails").text)
    for part in (
        "Snails",
        "Forest(7)",
        "independence",
        "8 (all of 2^3)",
        f"condshap {cs.__version__}",
        "mean prediction",
    ):
        assert part in text
    assert estimate(float(single.msev), single.msev.total_std_error()) in text
    low, high = single.msev.interval()
    assert interval(low, high, single.msev.total_std_error()) in text


def test_warnings_and_missed_precision_are_shown(tmp_path, single):
    about = replace(single.provenance, warnings=("beware & look",), tolerance=0.02, reached=0.5, n_iterations=3)
    text = "".join(write(tmp_path, replace(single, provenance=about)).text)
    assert "beware & look" in text
    assert "50.00% of its spread, more than the 2.00% you asked for" in text


def test_noise_as_large_as_the_values_needs_attention(tmp_path, single, several):
    def text_of(explanations):
        return "".join(write(tmp_path, explanations).text)

    unsaid = replace(single.provenance, warnings=())
    quiet = replace(single, std_errors=np.abs(single.values) / 10, provenance=unsaid)
    noisy = [replace(one, std_errors=np.abs(one.values) + 0.1) for one in (single, *several)]
    begin = "standard errors must be well below the Shapley values"
    assert begin not in text_of(quiet)
    assert text_of(noisy[0]).count(begin) == 1
    assert f"{several[1].provenance.approach}: {begin}" in text_of([several[0], noisy[2]])
    said = replace(noisy[0].provenance, warnings=(f"{begin} for their signs",))
    assert text_of(replace(noisy[0], provenance=said)).count(begin) == 1


def test_a_missed_tolerance_is_told_once(tmp_path, single):
    said = "the largest standard error must be at most 0.02 of every row's spread, but 1 of 3 rows"
    about = replace(single.provenance, warnings=(said,), tolerance=0.02, reached=0.5, n_iterations=3)
    text = "".join(write(tmp_path, replace(single, provenance=about)).text)
    assert said in text
    assert "the tolerance was not reached" not in text


def test_sums_that_are_off_are_a_warning(tmp_path, single):
    text = "".join(write(tmp_path, replace(single, values=single.values * 1.5)).text)
    assert "miss the prediction by up to" in text
    assert "miss the prediction by up to" not in "".join(write(tmp_path, single).text)


def test_differences_of_msev_are_paired(several):
    judged = against_the_best(several, [judge(one) for one in several])
    ours, theirs = (one.msev.per_row for one in several)
    for o in range(2):
        best = int(theirs[:, o].mean() < ours[:, o].mean())
        assert judged[best][o].behind == "best"
        difference = (ours - theirs)[:, o] * (1 if best else -1)
        mean, error = difference.mean(), stats.sem(difference)
        low, high = stats.t.interval(0.95, N - 70 - 1, mean, error)
        assert judged[1 - best][o].behind == f"+{estimate(mean, error, 3)} ({interval(low, high, error, 3)})"


def test_shares_of_sure_signs(single):
    line = judge(single)[0]
    assert line.sure == np.mean(np.abs(single.values) > 1.959963984540054 * single.std_errors)
    assert line.largest_error == single.std_errors.max()


def test_same_explanations_make_the_same_file(tmp_path, single):
    files = [cs.report(single, tmp_path / name).read_bytes() for name in ("a.html", "b.html")]
    assert files[0] == files[1]


def test_a_saved_explanation_makes_the_same_report(tmp_path, single):
    single.save(tmp_path / "saved.parquet")
    again = cs.load_explanation(tmp_path / "saved.parquet")
    files = [cs.report(given, tmp_path / "report.html").read_bytes() for given in (single, again)]
    assert files[0] == files[1]


def test_one_row_and_one_player(tmp_path):
    X = np.arange(20.0).reshape(-1, 1)
    explanation = cs.explain(lambda x: x[:, 0], X, X[:1], approach="independence")
    data = payload(write(tmp_path, explanation))
    assert data["labels"] is None
    assert data["explanations"][0]["errors"] is None
    assert data["explanations"][0]["msev"] == [[None] * 4]


def test_no_msev_where_rows_share_no_coalition(single):
    gaps = single.value_table.values.copy()
    gaps[1:-1, 0] = np.nan
    line = judge(replace(single, value_table=replace(single.value_table, values=gaps)))[0]
    assert np.isnan([line.msev, line.low, line.high]).all()


# --- rows outside the training data ------------------------------------------------------------------------------------


def test_values_beyond_training_are_found(tmp_path):
    rows = pd.DataFrame(
        {"x": [0.0, 99.0, -99.0, 0.0], "number": [1.3e8, np.nan, 123456710.0, 123456720.0], EVIL_NAME: ["b"] * 4}
    )
    train = TRAIN.assign(number=TRAIN["number"].fillna(123456700.0))
    explanation = replace(explain(rows=ROWS[:4]), data=rows)
    found = find_outside(explanation, train)
    assert {row: [feature for feature, _ in all_] for row, all_ in found.by_row.items()} == {0: [1], 1: [0, 1], 2: [0]}
    assert found.by_feature == {"x": 2, "number": 2}
    assert found.by_row[1][0][1] == " to ".join(feature_value(TRAIN["x"].agg(end), 6) for end in ("min", "max"))
    new_level = replace(explanation, data=rows.assign(**{EVIL_NAME: ["b", "new", "b", "b"]}))
    assert find_outside(new_level, train).by_row[1][-1] == (2, "2 other levels")
    text = "".join(write(tmp_path, explanation, train=train).text)
    assert "3 of 4 rows have values outside the training data (70 rows), in x (2), number (2)." in text


def test_rows_of_training_are_never_outside(tmp_path):
    explanation = explain(rows=TRAIN[:20])
    assert find_outside(explanation, TRAIN).by_row == {}
    assert "All values of all rows lie within" in "".join(write(tmp_path, explanation, train=TRAIN).text)


def test_numbers_that_training_holds_as_levels_are_no_strangers():
    X = pd.DataFrame({"a": RNG.integers(0, 3, 50).astype(float), "b": RNG.normal(size=50)})
    explanation = cs.explain(lambda T: T["b"], X, X[:5], approach="independence", n_samples=5)
    levels = X.assign(a=pd.Categorical(X["a"].astype(int)))
    assert find_outside(explanation, levels).by_row == {}


@pytest.mark.parametrize(
    ("train", "message"), [(TRAIN[["x"]], r"without \['number'"), (TRAIN[:0], "train must have rows")]
)
def test_training_rows_must_fit(tmp_path, single, train, message):
    with pytest.raises(SchemaError, match=message):
        cs.report(single, tmp_path / "report.html", train=train)


# --- what is refused ---------------------------------------------------------------------------------------------------


def test_a_path_that_cannot_be_written(tmp_path, single):
    with pytest.raises(StorageError, match="writable path"):
        cs.report(single, tmp_path / "no" / "such" / "folder.html")
    with pytest.raises(StorageError, match="writable path"):
        cs.report(single, tmp_path)


def test_explanations_of_different_rows_players_or_outputs(tmp_path, single):
    others = {
        "numbers of rows": single[:5],
        "same rows": explain(rows=ROWS.iloc[::-1]),
        "players": explain(groups={"both": ["x", EVIL_NAME], "rest": ["number"]}),
        "outputs": explain(two),
    }
    for message, other in others.items():
        with pytest.raises(OptionError, match=message):
            cs.report([single, other], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_other_levels_are_other_rows(tmp_path, single):
    turned = ROWS.assign(**{EVIL_NAME: ROWS[EVIL_NAME].cat.rename_categories({"b": "c"})})
    with pytest.raises(OptionError, match="img src"):
        cs.report([single, replace(single, data=turned)], tmp_path / "report.html")


@pytest.mark.parametrize("names", [["only one"], ["a", "a"], ["a", "b", "c"], "ab"])
def test_names_that_do_not_fit(tmp_path, single, names):
    with pytest.raises(OptionError, match="names must be 2 different names"):
        cs.report([single, single], tmp_path / "report.html", names=names)


def test_names_by_default_are_the_approaches_numbered_where_they_repeat(tmp_path, single, several):
    data = payload(write(tmp_path, [single, single]))
    assert [one["name"] for one in data["explanations"]] == ["independence (1)", "independence (2)"]
    assert [one["name"] for one in payload(write(tmp_path, several))["explanations"]] == ["independence", "ctree"]
    assert [one["name"] for one in payload(write(tmp_path, several, names=["a", "b"]))["explanations"]] == ["a", "b"]


@pytest.mark.parametrize("given", [[], "report", [1, 2]])
def test_what_is_no_explanation(tmp_path, given):
    with pytest.raises(OptionError, match="explanations must be"):
        cs.report(given, tmp_path / "report.html")


def test_no_rows(tmp_path, single):
    with pytest.raises(OptionError, match="a report needs rows"):
        cs.report(single[[]], tmp_path / "report.html")


# --- interactions ------------------------------------------------------------------------------------------------------


def tabs_of(reader: Reader) -> list[str | None]:
    return [attributes["aria-controls"] for _, attributes in reader.elements if attributes.get("role") == "tab"]


def test_interactions_have_a_part_of_their_own_where_they_are_given(tmp_path, several):
    pairs = several[0].interactions("STII", 3)
    reader = write(tmp_path, several, interactions=pairs)
    assert tabs_of(reader) == ["overview", "rows", "interactions", "quality", "method"]
    given = payload(reader)["interactions"]
    assert given["sets"] == [[0, 1], [0, 2], [1, 2], [0, 1, 2]]
    values = array(given["values"], "<f4").reshape(2, len(ROWS), 4)
    np.testing.assert_allclose(values[1, :, 2], pairs.values[1, 2][:, 1], rtol=1e-6, atol=1e-30)
    errors = (array(given["errors"], "<u2").astype(np.uint32) << 16).view(np.float32).reshape(2, len(ROWS), 4)
    np.testing.assert_allclose(errors[0, :, 3], pairs.std_errors[0, 1, 2][:, 0], rtol=1e-2, atol=1e-30)
    text = "".join(reader.text)
    assert "part of an interaction is this dependence" in text
    assert "all coalitions" in text


def test_without_interactions_there_is_no_such_part(tmp_path, single):
    reader = write(tmp_path, single)
    assert tabs_of(reader) == ["overview", "rows", "quality", "method"]
    assert payload(reader)["interactions"] is None


def test_interactions_must_fit_the_report(tmp_path, single, several):
    with pytest.raises(OptionError, match="interactions must be what explanation"):
        write(tmp_path, single, interactions=single)
    for other in (single[:3], several[0]):
        with pytest.raises(OptionError, match="interactions must be of the rows, players and outputs of the report"):
            write(tmp_path, single, interactions=other.interactions())
