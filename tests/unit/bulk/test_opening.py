"""A folder of explained parts gives what it is asked for, and reads no more than that."""

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.bulk import opening
from tests.unit.bulk.small import FEATURES, assert_same, make_rows, write_files


@pytest.fixture(scope="module")
def expected(explainer, rows) -> cs.Explanation:
    return explainer.explain(rows[FEATURES])


@pytest.fixture(scope="module")
def out(explainer, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("opened")
    source = write_files(folder / "source", rows, 20, 20, 7)
    explainer.explain_dataset(source, folder / "out", rows_per_part=10, key="id", columns=["branch"])
    return folder / "out"


@pytest.fixture(scope="module")
def compact(explainer, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compact")
    source = write_files(folder / "source", rows, 20, 20, 7)
    return explainer.explain_dataset(source, folder / "out", rows_per_part=10, key="id", values="compact")


def test_a_set_says_what_it_is(out):
    found = cs.open_explanations(str(out))
    assert repr(found) == "ExplanationSet(47 rows in 5 parts, values='full')"
    assert (found.is_complete, found.key, found.columns) == (True, "id", ("branch",))


def test_iterating_gives_one_explanation_a_part(out, expected):
    parts = list(cs.open_explanations(out))
    assert [len(part) for part in parts] == [10, 10, 10, 10, 7]
    assert_same(parts[3], expected[30:40])


def test_a_limit_takes_the_first_rows_and_reads_only_their_parts(out, expected, monkeypatch):
    read, files = opening.read_part, []
    monkeypatch.setattr(opening, "read_part", lambda folder, done: files.append(done.part.number) or read(folder, done))
    assert_same(cs.open_explanations(out).to_explanation(limit=13), expected[:13])
    assert files == [0, 1]


def test_rows_come_in_the_order_of_their_keys_from_the_parts_that_have_them(out, expected, monkeypatch):
    read, files = opening.read_part, []
    monkeypatch.setattr(opening, "read_part", lambda folder, done: files.append(done.part.number) or read(folder, done))
    found = cs.open_explanations(out).rows([1000 + 3 * 45, 1000, np.int64(1003), 1000])
    assert_same(found, expected[[45, 0, 1, 0]])
    assert files == [0, 4]
    assert found.data.index.tolist() == [1135, 1000, 1003, 1000]


def test_a_single_key_is_one_row(out, expected):
    assert_same(cs.open_explanations(out).rows(1006), expected[2])


def test_other_parts_may_be_gone_when_a_row_is_looked_up(explainer, source, expected, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10, key="id")
    for done in found.parts[1:]:
        (tmp_path / "out" / done.file).unlink()
    assert_same(found.rows([1003]), expected[[1]])


def test_without_a_key_rows_are_found_by_position(explainer, source, expected, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10)
    assert_same(found.rows([46, 3]), expected[[46, 3]])
    with pytest.raises(cs.CondShapError, match=r"keys must be positions below 47, got \[47\]"):
        found.rows([47])


@pytest.mark.parametrize(("keys", "message"), [([1001], r"among those of 'id', got \[1001\]"), ([], "at least one")])
def test_keys_that_nobody_has_are_refused(keys, message, out):
    with pytest.raises(cs.CondShapError, match=message):
        cs.open_explanations(out).rows(keys)


@pytest.mark.parametrize("make", [lambda i: f"k{i}", lambda i: pd.Timestamp("2024-01-01") + pd.Timedelta(days=i)])
def test_keys_may_be_text_or_times(make, explainer, rows, expected, tmp_path):
    named = rows.assign(id=[make(97 * i % 47) for i in range(47)])
    source = write_files(tmp_path / "source", named, 20, 27)
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10, key="id")
    assert_same(found.rows([named["id"][40], named["id"][2]]), expected[[40, 2]])


def test_keys_of_a_csv_are_text_and_numbers_find_them(explainer, rows, expected, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    found = explainer.explain_dataset(tmp_path / "rows.csv", tmp_path / "out", rows_per_part=10, key="id")
    assert_same(found.rows(["1003", 1135]), expected[[1, 45]])


def test_the_summary_is_that_of_all_rows(out, compact, expected):
    for found in (cs.open_explanations(out), compact):
        summary = found.summary()
        np.testing.assert_allclose(summary["mean |value|"], np.abs(expected.values).mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(summary["mean value"], expected.values.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(summary["mean error"], expected.errors.mean(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(summary["smallest"], expected.values.min(axis=0))
        np.testing.assert_array_equal(summary["largest"], expected.values.max(axis=0))
        assert summary.index.tolist() == list(expected.player_names)


def test_a_frame_has_the_key_and_what_was_carried_along(out, rows, expected):
    frame = cs.open_explanations(out).to_frame(25)
    assert frame["id"].tolist() == rows["id"][:25].tolist()
    assert frame["branch"].tolist() == rows["branch"][:25].tolist()
    np.testing.assert_array_equal(frame[list(expected.player_names)], expected.values[:25])


def test_a_frame_can_be_joined_by_its_key(out, rows):
    frame = cs.open_explanations(out).to_frame(errors=True)
    joined = frame.merge(rows[["id", "age"]], on="id", suffixes=("", " itself"))
    assert joined["age itself"].tolist() == rows["age"].tolist()
    assert frame.index.tolist() == rows["id"].tolist()
    assert frame.sort_values("id").reset_index()["id"].is_monotonic_increasing


def test_times_are_keys_however_they_are_held(explainer, rows, expected, tmp_path):
    when = pd.date_range("2024-05-01", periods=len(rows), freq="90min")
    rows.assign(when=when).to_parquet(tmp_path / "rows.parquet")
    found = explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", rows_per_part=20, key="when")
    for keys in (when[[30, 2]], when[[30, 2]].to_numpy(), when[[30, 2]].to_pydatetime(), pd.Series(when[[30, 2]])):
        assert_same(found.rows(keys), expected[[30, 2]])


def test_intervals_are_keys(explainer, rows, expected, tmp_path):
    after = pd.to_timedelta(np.arange(len(rows)), unit="h")
    rows.assign(after=after).to_parquet(tmp_path / "rows.parquet")
    found = explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", rows_per_part=20, key="after")
    for keys in (after[[30, 2]], after[[30, 2]].to_numpy()):
        assert_same(found.rows(keys), expected[[30, 2]])


@pytest.mark.parametrize("keys", [[[1000, 1003]], [{}], np.array([[1000, 1003]])], ids=["list", "dict", "2-D"])
def test_a_key_that_cannot_be_one_is_refused(out, keys):
    with pytest.raises(cs.CondShapError, match="keys must be values of the key column"):
        cs.open_explanations(out).rows(keys)


def test_a_report_takes_the_options_of_any_report(out, rows, tmp_path):
    path = cs.open_explanations(out).report(tmp_path / "report.html", model="Scores", train=rows[FEATURES])
    assert "Scores" in path.read_text()


def test_a_report_shows_rows_from_all_over_the_set(out, tmp_path):
    path = cs.open_explanations(out).report(tmp_path / "report.html", limit=5)
    page = path.read_text()
    assert "5 of 47 rows" in page
    assert '"1000"' in page  # the first key
    assert '"1138"' in page  # the last one


def test_compact_has_no_value_table_and_no_rows(compact, expected):
    found = compact.to_explanation()
    assert_same(found, expected)
    assert found.value_table is None
    assert found.data.columns.tolist() == ["id"]
    assert not found.has_msev


REFUSED = {
    "v.S. was not kept|which was not kept": lambda found: found.msev,
    "v.S. was not kept": lambda found: found.interactions(),
    "Explain these rows with values='full'": lambda found: found.owen({"all": FEATURES}),
    "were not kept": lambda found: cs.report(found, "report.html"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_compact_explanations_cannot_give_is_refused(message, compact):
    with pytest.raises(cs.CondShapError, match=message):
        REFUSED[message](compact.to_explanation())


def test_compact_explanations_can_be_selected_saved_and_shown(compact, expected, tmp_path):
    found = compact.to_explanation()
    assert found[:, "age"].values.shape == (47, 1)
    assert_same(found[3:5], expected[3:5])
    found.save(tmp_path / "compact.parquet")
    assert_same(cs.load_explanation(tmp_path / "compact.parquet"), expected)
    assert len(found.to_frame()) == 47
    assert abs(found).mean(0).values.shape == (4,)
    assert "<" in found._repr_html_()


def test_compact_with_the_features_carried_along_can_be_reported(explainer, source, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", values="compact", columns=FEATURES)
    assert found.report(tmp_path / "report.html").exists()


def test_compact_takes_some_8_times_2p_plus_2_bytes_a_row(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(3000, 6)), columns=list("abcdef"))
    fitted = cs.Explainer(lambda X: X["a"] * X["b"] + X["c"], approach="gaussian", n_samples=4, progress=False).fit(
        X[:200]
    )
    X.to_parquet(tmp_path / "rows.parquet")
    found = fitted.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", values="compact", rows_per_part=3000)
    size = (tmp_path / "out" / found.parts[0].file).stat().st_size
    assert size / 3000 < 1.1 * 8 * (2 * 6 + 2)


def test_a_part_is_an_explanation_like_any_other(out, expected):
    found = cs.open_explanations(out)
    assert_same(cs.load_explanation(out / found.parts[1].file), expected[10:20])


def test_a_damaged_part_is_refused(explainer, source, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=20)
    path = tmp_path / "out" / found.parts[1].file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert len(found.to_explanation(limit=20)) == 20
    with pytest.raises(cs.CondShapError, match="must be as it was written, but its contents have changed"):
        found.to_explanation()


def test_what_is_no_set_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(cs.CondShapError, match="must be a folder written by explain_dataset"):
            cs.open_explanations(path)


def test_coalitions_that_only_some_parts_needed_are_nan_in_the_others(rows, source, tmp_path):
    def wide(X):
        return np.asarray(X["age"] * X["income"], dtype=float) + 3 * np.asarray(X["code"] > 2) * np.asarray(X["age"])

    train = make_rows(120)
    more = {f"x{j}": np.random.default_rng(j).normal(size=120) for j in range(4)}
    X = train.assign(**more)
    options = {"approach": "independence", "n_samples": 200, "n_coalitions": "auto", "tolerance": 0.3}
    fitted = cs.Explainer(wide, progress=False, **options).fit(X)
    X[:40].to_parquet(tmp_path / "rows.parquet")
    joined = fitted.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", rows_per_part=4).to_explanation()
    expected = fitted.explain(X[:40])
    np.testing.assert_array_equal(joined.values, expected.values)
    table = joined.value_table
    ours = {mask.tobytes(): line for mask, line in zip(table.coalitions, table.values, strict=True)}
    for mask, line in zip(expected.value_table.coalitions, expected.value_table.values, strict=True):
        np.testing.assert_array_equal(ours[mask.tobytes()], line)
    assert joined.value_table.coalitions[0].sum() == 0
    assert joined.value_table.coalitions[-1].all()
