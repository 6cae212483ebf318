"""What is written is written whole: a full disk, a limit or a second writer never costs the file that was there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import StorageError
from condshap.storage.writing import append_line, write_figure, write_whole

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"])
SOURCE = Path(cs.__file__).parent

LIMITED = """
import resource, sys
import numpy as np, pandas as pd
import condshap as cs
from condshap.exceptions import StorageError
from condshap.studies.store import Key, Result, Store

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
model = lambda table: table["a"].to_numpy() + 0.0
explainer = cs.Explainer(model, approach="gaussian").fit(X)
found = explainer.explain(X)
import matplotlib
matplotlib.use("agg")
from condshap.storage.writing import write_figure
axes = cs.plots.bar(found)
writers = {
    "explainer": explainer.save,
    "explanation.parquet": found.save,
    "report.html": lambda path: cs.report(found, path),
    "picture.png": lambda path: write_figure(axes.figure, path),
}
folder = sys.argv[1]
for name, write in writers.items():
    write(f"{folder}/{name}")
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
else:
    open(f"{folder}/filling", "wb").write(b"")
    try:
        with open(f"{folder}/filling", "wb") as file:
            while True:
                file.write(b"0" * 512); file.flush()
    except OSError:
        pass
for name, write in writers.items():
    try:
        write(f"{folder}/{name}")
    except StorageError as error:
        assert "must be saved to a writable path" in str(error), error
        print("refused", name)
cs.load_explainer(f"{folder}/explainer", model)
cs.load_explanation(f"{folder}/explanation.parquet")
"""


def run_out_of_room(folder, how):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED, str(folder), how],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent), "MPLCONFIGDIR": str(folder.parent)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused", "explainer", "refused", "explanation.parquet", "refused", "report.html",
                                   "refused", "picture.png"]  # fmt: skip
    names = {path.name for path in folder.iterdir()} - {"filling"}
    assert names == {"explainer", "explanation.parquet", "report.html", "picture.png"}
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    assert (folder / "picture.png").read_bytes().endswith(b"IEND\xaeB`\x82")


def test_a_limit_on_file_sizes_leaves_the_files_that_were_there(tmp_path):
    (tmp_path / "out").mkdir()
    run_out_of_room(tmp_path / "out", "limit")


def test_a_full_disk_leaves_the_files_that_were_there(tmp_path):
    (tmp_path / "out").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path / "out")]
    if not hasattr(os, "geteuid") or os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        run_out_of_room(tmp_path / "out", "disk")
    finally:
        subprocess.run(["umount", str(tmp_path / "out")], check=True)


WRITER = """
import sys
from condshap.storage.writing import write_whole
for i in range(200):
    write_whole(sys.argv[1], sys.argv[2].encode() * 400_000, "a file")
"""


def test_two_writers_leave_one_of_both_files(tmp_path):
    path, environment = tmp_path / "file", {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    path.write_bytes(b"0" * 10)
    both = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), c], env=environment) for c in "12"]
    seen = set()
    while any(one.poll() is None for one in both):
        content = path.read_bytes()
        assert len(set(content)) == 1
        assert len(content) in {10, 400_000}
        seen.add(content[:1])
    assert [one.returncode for one in both] == [0, 0]
    assert seen >= {b"1", b"2"}
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed_and_permissions_kept(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "new", "a file")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link"}


def test_what_is_no_file_is_written_to_as_it_is():
    write_whole("/dev/null", b"gone", "a file")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("path", ["", "no/such/folder/file", "a" * 300, "null\0character"])
def test_a_path_that_cannot_be_written_is_refused(tmp_path, path):
    with pytest.raises(StorageError, match="a file must be saved to a writable path"):
        write_whole(tmp_path / path, b"", "a file")
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_is_interrupted_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"new", "a file")
    assert list(tmp_path.iterdir()) == []


def test_lines_are_added_and_a_torn_one_stays_apart(tmp_path):
    path = tmp_path / "new folder" / "lines"
    append_line(path, "one", "lines")
    append_line(path, "two", "lines")
    assert path.read_text() == "one\ntwo\n"
    path.write_text("one\ntw")
    append_line(path, "three", "lines")
    assert path.read_text().splitlines() == ["one", "tw", "three"]


def test_a_file_that_takes_no_lines_is_named(tmp_path):
    with pytest.raises(StorageError, match=f"lines must be written to {tmp_path}, but that failed"):
        append_line(tmp_path, "one", "lines")


def test_a_figure_has_the_format_of_its_ending(tmp_path):
    from matplotlib.figure import Figure

    for name, start in (("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml")):
        write_figure(Figure(), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


def test_nothing_in_the_library_writes_by_itself():
    own = {"storage/writing.py"}
    ways = (".write_text(", ".write_bytes(", "pq.write_table(", "to_csv(written", "save_file(", '.open("w', '.open("ab')
    found = [
        f"{path.relative_to(SOURCE)}: {way}"
        for path in SOURCE.rglob("*.py")
        for way in (*ways, ".savefig(")
        if way in path.read_text() and path.relative_to(SOURCE).as_posix() not in own
    ]
    assert found == []
