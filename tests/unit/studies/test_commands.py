"""Commands of the studies: they run and make tables, and refuse what does not fit with one clear line."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from condshap.cli import app
from condshap.studies.commands import main
from condshap.studies.running.catalogue import STUDIES
from condshap.studies.running.store import Key, Result, Store

SMALL = ["categorical", "--M", "3", "--levels", "4", "--rho", "0.5", "--quick", "--methods", "independence,categorical"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "store.jsonl"
    assert main(["run", *SMALL, "--store", str(path), "--repetitions", "3"]) == 0
    return path


def test_the_list_names_every_study(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in STUDIES)


def test_a_run_leaves_one_line_per_truth_and_method_with_machine_and_date(store):
    found = Store(store).read()
    assert {key.study for key in found} == {"categorical-quick"}
    assert len(store.read_text().splitlines()) == len(found) == 3 * 3
    assert all("condshap" in result.machine and len(result.date) == 10 for result in found.values())


def test_a_run_goes_into_a_file_of_the_studys_name_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *SMALL, "--repetitions", "1"]) == 0
    assert (tmp_path / "categorical.jsonl").is_file()
    assert main(["table", *SMALL]) == 0
    assert "# categorical-quick" in capsys.readouterr().out


def test_a_table_is_printed_or_written_as_markdown_or_csv(store, tmp_path, capsys):
    table = ["table", *SMALL, "--store", str(store)]
    assert main(table) == 0
    printed = capsys.readouterr().out
    assert "| M | L | N | rho | R |" in printed or "| method | R |" in printed
    page = tmp_path / "new" / "page.md"
    assert main([*table, "--write", str(page)]) == 0
    assert "--write" in page.read_text()  # the command that made it
    assert main([*table, "--csv"]) == 0
    assert "cell,M,L,N,rho,method,criterion" in capsys.readouterr().out.partition("\n")[2]


def test_repetitions_of_a_table_can_be_chosen(store, capsys):
    for more, n in (([], "3"), (["--first", "1", "--repetitions", "1"], "1")):
        assert main(["table", *SMALL, "--store", str(store), *more]) == 0
        assert f"| `categorical` | {n} |" in capsys.readouterr().out


def test_notes_beside_the_store_stand_in_the_page(store, capsys):
    notes = store.with_suffix(".notes.md")
    notes.write_text("The moon was full.")
    try:
        assert main(["table", *SMALL, "--store", str(store)]) == 0
    finally:
        notes.unlink()
    assert "## Notes\n\nThe moon was full." in capsys.readouterr().out


def test_computation_times_come_from_stores_of_the_full_studies(tmp_path, capsys):
    cell = STUDIES["mixed-low"].study.cells[0]
    for r, seconds in ((0, 60.0), (1, 120.0)):
        key = Key("mixed-low", cell.key, "vaeac", r, 0, "0.1.0")
        Store(tmp_path / "s.jsonl").append(Result(key, 0.1, 0.1, 0.1, seconds, 10.0, 1.0, 1, machine="here"))
    arguments = ["table", "computation-times", "--store", str(tmp_path / "s.jsonl"), "--of-version", "0.1.0"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "- here" in printed
    assert "| 4 | 4 | 100 | 90.0 + 10.0 / 108 = 0.93 |" in printed  # the paper: 1.8 minutes
    assert main([*arguments, "--csv"]) == 0
    assert "mixed-low,4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "mixed"], "a study must be one of"),
        (["table", "mixed"], "a study must be one of"),
        (["run", "mixed-low", "--M", "5"], "cells of study 'mixed-low' must have"),
        (["run", "mixed-low", "--methods", "independence,gaussian"], "'gaussian' does not support ['categorical']"),
        (["run", "mixed-low", "--methods", "vaec"], "a method must be one of"),
        (["run", "mixture"], "needs a study with cells"),
        (["run", "mixed-low", "--repetitions", "0"], "at least 1"),
        (["run", "mixed-low", "--jobs", "0"], "--jobs must be at least 1"),
        (["plan", "mixed-low", "--jobs", "0"], "--jobs must be at least 1"),
        (["run", "mixed-low", "--minutes", "0"], "--minutes must be positive"),
        (["run", "mixed-low", "--threads", "0"], "--threads and --minutes must be positive"),
        (["run", "mixed-low", "categorical", "--M", "99"], "cells of study 'mixed-low' must have"),
        (["run", "mixed-low", "nothing"], "a study must be one of"),
        (["plan", "mixed-low", "mixture"], "needs a study with cells"),
        (["table", "mixed-low", "--store", "nowhere.jsonl"], "must be in an existing file"),
        (["table", "computation-times"], "need stores of other studies"),
    ],
)
def test_what_does_not_fit_is_one_clear_line_and_nothing_is_written(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert message in error
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["run"], ["run", "mixed-low", "--M", "x"], ["run", "abalone", "--x"]]
)
def test_a_command_written_wrongly_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_store_of_another_version_is_neither_continued_nor_shown(store, tmp_path, capsys):
    old = tmp_path / "old.jsonl"
    for key, result in Store(store).read().items():
        Store(old).append(replace(result, key=replace(key, version="0.0.9")))
    before = old.read_bytes()
    for command in ("run", "table"):
        assert main([command, *SMALL, "--store", str(old)]) == 1
        assert "'0.0.9'" in capsys.readouterr().err
    assert old.read_bytes() == before
    assert main(["table", *SMALL, "--store", str(old), "--of-version", "0.0.9"]) == 0
    assert "9 results of condshap 0.0.9" in capsys.readouterr().out


@pytest.fixture
def locked(tmp_path):
    """A folder into which nobody can write; root can write into most."""
    if os.name != "posix" or (os.getuid() == 0 and not Path("/proc/self").is_dir()):
        pytest.skip("no folder that refuses this user")
    if os.getuid() == 0:
        return "/proc"
    (tmp_path / "locked").mkdir(mode=0o555)
    return str(tmp_path / "locked")


def test_a_folder_that_cannot_be_written_is_a_clear_error(store, locked, capsys):
    assert main(["run", *SMALL, "--store", f"{locked}/s.jsonl"]) == 1
    assert f"results must be written to {locked}/s.jsonl" in capsys.readouterr().err
    assert main(["table", *SMALL, "--store", str(store), "--write", f"{locked}/page.md"]) == 1
    error = capsys.readouterr().err
    assert f"Error: a table must be saved to a writable path, got '{locked}/page.md'" in error
    assert len(error.splitlines()) == 1


def test_the_commands_are_on_the_librarys_command_line(store):
    done = CliRunner().invoke(app, ["study", "table", *SMALL, "--store", str(store)])
    assert done.exit_code == 0
    assert "# categorical-quick" in done.stdout
    assert CliRunner().invoke(app, ["study", "run", "nothing"]).exit_code == 1
    assert CliRunner().invoke(app, ["study", "fly"]).exit_code == 2
    assert "COMMAND" in CliRunner().invoke(app, ["study", "--help"]).stdout


def test_rows_that_are_not_there_are_a_failure_that_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CONDSHAP_ABALONE", str(tmp_path / "none.csv"))
    store = tmp_path / "s.jsonl"
    assert main(["run", "abalone", "--quick", "--repetitions", "1", "--store", str(store)]) == 1
    error = capsys.readouterr().err
    assert "none.csv" in error
    assert "Traceback" not in error
    assert store.read_text() == ""


ABSENT = ("sklego", "skops", "typer", "rich", "matplotlib", "jinja2", "safetensors", "xgboost", "lightgbm", "shap")


@pytest.mark.parametrize("name", ["abalone", "mixed-low"])
def test_runs_and_tables_need_the_numerical_packages_only(name, tmp_path):
    pytest.importorskip("sklego.datasets").load_abalone(as_frame=True).to_csv(tmp_path / "rows.csv", index=False)
    script = f"""
import sys
from pathlib import Path
for name in {ABSENT!r}:
    sys.modules[name] = None
from condshap.studies.commands import main
chosen = ["{name}", "--quick", "--methods", "independence", "--repetitions", "1", "--store", "s.jsonl"]
assert main(["run", *chosen]) == 0
assert main(["table", *chosen]) == 0
"""
    here = os.environ | {"CONDSHAP_ABALONE": str(tmp_path / "rows.csv")}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "independence" in done.stdout


def test_lists_and_tables_are_printed_as_json(store, tmp_path, capsys):
    assert main(["list", "--json"]) == 0
    listed = {line["name"]: line for line in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(STUDIES)
    assert listed["categorical"]["cells"] == len(STUDIES["categorical"].study.cells)
    table = ["table", *SMALL, "--store", str(store)]
    assert main([*table, "--csv"]) == 0
    csv = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert main([*table, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["paper"] is None
    read = pd.DataFrame(found).astype(csv.dtypes.to_dict())
    pd.testing.assert_frame_equal(read, csv)
    with pytest.raises(SystemExit):
        main([*table, "--json", "--csv"])


@pytest.mark.parametrize("command", ["list", "run", "plan", "table", "plot", "summary"])
def test_the_help_of_every_command_has_an_example(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"example: condshap study {command}" in " ".join(capsys.readouterr().out.split())


def test_several_studies_are_run_into_a_folder_and_planned(tmp_path, capsys):
    words = ["categorical", "mixed-low", *SMALL[1:], "--repetitions", "2", "--store", str(tmp_path)]
    words[words.index("independence,categorical")] = "independence"
    assert main(["plan", *words]) == 0
    assert "4 results are open" in capsys.readouterr().out
    assert main(["run", *words]) == 0
    printed = capsys.readouterr().out
    assert "0 failures." in printed
    assert (tmp_path / "categorical.jsonl").is_file()
    assert not (tmp_path / "mixed-low.jsonl").exists()  # it has no cell with three features
    assert main(["plan", *words]) == 0
    assert "Nothing is open" in capsys.readouterr().out
    more = [*words[: words.index("--repetitions")], "--repetitions", "4", "--store", str(tmp_path)]
    assert main(["plan", *more, "--json", "--jobs", "2"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [(one["method"], one["results"], one["source"]) for one in plan["open"]] == [
        ("truth", 2, "measured"),
        ("independence", 2, "measured"),
    ]
    assert plan["jobs"] == 2
    assert main(["run", *more, "--minutes", "1e-9"]) == 0
    assert "no time for 4 results" in capsys.readouterr().out
    assert main(["run", *words[:-1], str(tmp_path / "categorical.jsonl")]) == 1
    assert "must be a folder for several studies" in capsys.readouterr().err


def test_what_is_said_not_to_be_run_is_left_out_unless_it_is_named(tmp_path, capsys):
    (tmp_path / "not-run.csv").write_text("study,M,N,method,reason\ncontinuous-low,10,,ctree,too slow\n")
    words = ["plan", "continuous-low", "--n-train", "100", "--repetitions", "1", "--store", str(tmp_path), "--json"]

    def planned(*more):
        assert main([*words, *more]) == 0
        return {(one["cell"].split()[1], one["method"]) for one in json.loads(capsys.readouterr().out)["open"]}

    found = planned()
    assert {("M=5", "ctree"), ("M=10", "gaussian")} <= found
    assert ("M=10", "ctree") not in found
    assert ("M=10", "ctree") in planned("--methods", "gaussian,ctree")


def test_a_damaged_store_of_another_study_does_not_stop_a_run(tmp_path, capsys):
    (tmp_path / "abalone.jsonl").write_text("hello\n")
    words = [*SMALL, "--repetitions", "1", "--store", str(tmp_path / "categorical.jsonl")]
    assert main(["run", *words]) == 0
    assert main(["plan", *words]) == 0
    assert "Nothing is open" in capsys.readouterr().out


def test_a_table_shows_older_results_with_a_mark(store, tmp_path, capsys):
    (tmp_path / "older").mkdir()
    for key, result in Store(store).read().items():
        folder = tmp_path / "older" if key.method == "categorical" else tmp_path
        version = "0.0.9" if key.method == "categorical" else key.version
        Store(folder / "categorical.jsonl").append(replace(result, key=replace(key, version=version)))
    table = ["table", *SMALL, "--store", str(tmp_path / "categorical.jsonl"), "--older"]
    for older in (tmp_path / "older", tmp_path / "older" / "categorical.jsonl"):
        assert main([*table, str(older)]) == 0
        assert "† by the default of `categorical` in condshap 0.0.9" in capsys.readouterr().out
    assert main([*table, str(tmp_path / "none.jsonl")]) == 1
    assert "must be in an existing file" in capsys.readouterr().err
