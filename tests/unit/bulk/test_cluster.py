"""A real scheduler and real worker processes: numbers, kills, memory, bad rows, and a cluster that goes away."""

import functools
import os
import signal
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import condshap as cs
from tests.unit.bulk.small import FEATURES, assert_same, make_rows, write_files

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

PATIENCE = 60  # seconds in which processes end on a busy machine


def start_cluster():
    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1500MB", **quiet)


@pytest.fixture(scope="module")
def client():
    """Two workers for all tests of this file, which come again when they are killed; a part may die once, not twice."""
    limits = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.memory.pause": False}
    with dask.config.set(limits):
        cluster = start_cluster()
        client = distributed.Client(cluster, timeout="10s")  # so long it looks for a scheduler that is gone
        yield client
        if cluster.status == distributed.Status.running:  # the last test closes it
            client.close(timeout=PATIENCE)
            cluster.close(timeout=PATIENCE)


def once(mark, act, X):
    """Do something when a certain row is explained: always, or with a file as mark only the first time."""
    if (np.asarray(X["age"]) > 900).any() and not (mark and Path(mark).exists()):
        if mark:
            Path(mark).touch()
        act()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def marked_model(act, mark, X):
    once(mark, act, X)
    return np.asarray(X["age"] * X["income"], dtype=float)


def doomed(act, rows, tmp_path, *, at=30, always=False):
    """Explainer whose model acts when it sees the marked row, and rows with that one."""
    fitted = cs.Explainer(
        functools.partial(marked_model, act, None if always else str(tmp_path / "mark")),
        approach="independence", n_samples=8, progress=False, additive=False,
    ).fit(make_rows(60))  # fmt: skip
    bad = rows.copy()
    bad.loc[at, "age"] = 1000.0
    return fitted, bad


def test_workers_give_the_numbers_of_explain(client, explainer, rows, source, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=5, key="id", cluster=client)
    assert found.is_complete
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == {"manifest.jsonl", *(done.file for done in found.parts)}
    assert not client.run(lambda dask_worker: [name for name in dask_worker.plugins if name.startswith("condshap-")])[
        next(iter(client.nthreads()))
    ]


def test_parts_come_back_where_workers_do_not_see_the_folder(client, explainer, rows, source, tmp_path, monkeypatch):
    from condshap.bulk import cluster

    hand_out = cluster._Run._hand_out

    def elsewhere(self, plugin, name):
        plugin.folder = plugin.folder / "not mounted"
        hand_out(self, plugin, name)

    monkeypatch.setattr(cluster._Run, "_hand_out", elsewhere)
    found = explainer.explain_dataset(source, tmp_path / "out", rows_per_part=20, cluster=client)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_run_can_change_between_this_process_and_a_cluster(client, explainer, rows, source, tmp_path, monkeypatch):
    from condshap.bulk import running

    note_done, calls = running.note_done, iter(range(100))

    def stop(*given):
        if next(calls) == 2:
            raise KeyboardInterrupt
        note_done(*given)

    monkeypatch.setattr(running, "note_done", stop)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=5, cluster=client)
    monkeypatch.setattr(running, "note_done", note_done)
    found = explainer.explain_dataset(source, tmp_path / "out")
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_a_killed_worker_costs_no_row_and_changes_no_number(client, rows, tmp_path):
    fitted, bad = doomed(die, rows, tmp_path)
    source = write_files(tmp_path / "source", bad, 20, 27)
    before = set(client.nthreads())
    found = fitted.explain_dataset(source, tmp_path / "out", rows_per_part=5, key="id", cluster=client)
    assert (tmp_path / "mark").exists()  # a worker was killed
    assert set(client.nthreads()) != before or len(client.nthreads()) < 2
    assert found.is_complete
    assert found.to_frame()["id"].tolist() == rows["id"].tolist()
    assert_same(found.to_explanation(), fitted.explain(bad[FEATURES]))


def test_a_bad_row_is_named_and_what_is_running_is_kept(client, explainer, rows, tmp_path):
    bad = rows.assign(**{"class": rows["class"].astype(str).where(rows.index != 33, "purple")})
    source = write_files(tmp_path / "source", bad, 20, 27)
    with pytest.raises(cs.CondShapError, match=r"part 3 \(rows 10 to 19 of 'b.parquet'\).*'purple'\] in rows \[3\]"):
        explainer.explain_dataset(source, tmp_path / "out", rows_per_part=10, cluster=client)
    assert len(cs.open_explanations(tmp_path / "out")) >= 20
    write_files(source, bad.assign(**{"class": rows["class"].astype(str)}), 20, 27)
    found = explainer.explain_dataset(source, tmp_path / "out", cluster=client)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


@pytest.mark.parametrize("cluster", [0, np.int64(0), True], ids=repr)
def test_a_number_of_processes_is_at_least_1(cluster, explainer, source, tmp_path):
    with pytest.raises(cs.CondShapError, match="cluster must be an integer of at least 1"):
        explainer.explain_dataset(source, tmp_path / "out", cluster=cluster)


def test_an_address_without_a_scheduler_is_refused(explainer, source, tmp_path, monkeypatch):
    from condshap.bulk import cluster

    monkeypatch.setattr(cluster, "_CONNECT", "1s")
    with pytest.raises(cs.CondShapError, match="cluster must be the address of a running Dask scheduler"):
        explainer.explain_dataset(source, tmp_path / "out", cluster="tcp://127.0.0.1:9")


def test_a_client_that_is_closed_is_refused_for_that(explainer, source, tmp_path):
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0", set_as_default=False) as closed:
        pass
    with pytest.raises(cs.CondShapError, match="the cluster must be up, but its client has lost it or is closed"):
        explainer.explain_dataset(source, tmp_path / "out", cluster=closed)


@pytest.mark.filterwarnings("error:Sending large graph")
def test_large_rows_are_sent_without_dasks_advice(client, explainer, rows, tmp_path):
    rows.assign(text="x" * 2**18 + rows["id"].astype(str)).to_parquet(tmp_path / "rows.parquet")  # 12 MiB
    found = explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", columns=["text"], cluster=client)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))


def test_an_address_is_connected_to(client, explainer, rows, source, tmp_path):
    found = explainer.explain_dataset(source, tmp_path / "out", cluster=client.scheduler.address)
    assert_same(found.to_explanation(), explainer.explain(rows[FEATURES]))
    assert client.nthreads()  # the cluster is somebody else's, and stays


def test_a_model_that_cannot_travel_is_refused(client, source, tmp_path):
    lock = threading.Lock()

    def locked(X):
        with lock:
            return np.asarray(X["age"] * X["income"], dtype=float)

    fitted = cs.Explainer(locked, approach="independence", n_samples=4, progress=False).fit(make_rows(60))
    with pytest.raises(cs.CondShapError, match="explainer and model must be loadable on the workers"):
        fitted.explain_dataset(source, tmp_path / "out", cluster=client)


def signed_model(path, X):
    """Leave the number of the process behind."""
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return np.asarray(X["age"] * X["income"], dtype=float)


def test_joblib_spreads_the_blocks_of_one_explanation_over_dask(client, rows, tmp_path):
    from joblib import parallel_config

    mark = tmp_path / "processes"
    options = {"approach": "independence", "n_samples": 8, "progress": False, "additive": False}
    model = functools.partial(signed_model, str(mark))
    one = cs.Explainer(model, **options).fit(make_rows(120)).explain(rows[FEATURES])
    many = cs.Explainer(model, **options, n_jobs=2, memory_budget="256KiB").fit(make_rows(120))  # for several blocks
    mark.unlink()
    with parallel_config(backend="dask"):
        assert_same(many.explain(rows[FEATURES]), one)
    assert set(map(int, mark.read_text().split())) & set(client.run(os.getpid).values())


def hog():
    held = []
    while True:  # until the nanny ends it
        held.append(np.ones(2**23))


def test_a_part_for_which_workers_run_out_of_memory_is_named_and_the_others_are_kept(client, rows, tmp_path):
    fitted, bad = doomed(hog, rows, tmp_path, always=True)
    source = write_files(tmp_path / "source", bad, 20, 27)
    with pytest.raises(
        cs.CondShapError, match=r"part 3 \(rows 10 to 19 of 'b.parquet'\).*out of memory, lower rows_per"
    ):
        fitted.explain_dataset(source, tmp_path / "out", rows_per_part=10, cluster=client)
    kept = cs.open_explanations(tmp_path / "out")
    assert len(kept) >= 20
    assert_same(kept.to_explanation(20), fitted.explain(bad[FEATURES][:20]))


def sleepy(home, X):
    """Take long on workers, so that the cluster is gone long before all parts are finished."""
    if os.getpid() != home:
        time.sleep(0.5)
    return np.asarray(X["age"] * X["income"], dtype=float)


def test_a_client_that_is_closed_while_a_run_waits_is_a_clear_error(monkeypatch):
    from condshap.bulk import cluster

    class Closed:
        status = "closed"
        as_current = nullcontext

    class Pending:
        status = "pending"

    def wait(*_, **__):
        raise ValueError("No clients found")  # what Dask says where there is no client any more

    monkeypatch.setattr(cluster, "wait", wait)
    with pytest.raises(cs.CondShapError, match=r"its scheduler is gone.*Finished parts are kept"):
        cluster._Run(Closed())._some({Pending(): None})


def test_a_cluster_that_goes_away_is_a_clear_error_and_nothing_finished_is_lost(client, rows, tmp_path):
    """The last test of this file: the cluster is gone afterwards."""
    options = {"approach": "independence", "n_samples": 4, "progress": False, "additive": False}
    slow = cs.Explainer(functools.partial(sleepy, os.getpid()), **options).fit(make_rows(60))
    source = write_files(tmp_path / "source", rows, 20, 27)
    out = tmp_path / "out"
    end = time.monotonic() + 10 * PATIENCE

    def close_later():
        manifest = out / "manifest.jsonl"
        while not (manifest.exists() and manifest.read_text().count('"done"') >= 2) and time.monotonic() < end:
            time.sleep(0.05)
        client.cluster.close(timeout=PATIENCE)

    closer = threading.Thread(target=close_later)
    closer.start()
    with pytest.raises(
        cs.CondShapError, match=r"(the cluster must stay|the cluster was closed).*Finished parts are kept"
    ):
        slow.explain_dataset(source, out, rows_per_part=2, cluster=client)
    closer.join()
    assert 4 <= len(cs.open_explanations(out)) < 47
    found = slow.explain_dataset(source, out)
    assert_same(found.to_explanation(), slow.explain(rows[FEATURES]))
