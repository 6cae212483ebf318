"""Parts -> tasks on a Dask cluster: one a part, with the explainer once on every worker.

Explainer and model travel as a plugin, which the scheduler hands to every worker once: to those that are there, to those
that come later and to those that come again after a kill. The rows of a part travel with its task, so only this process
reads the source. A worker that sees the folder writes its parts there; others send them back. The manifest is written here.
"""

from __future__ import annotations

import logging
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from dask import config
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, WorkerPlugin, get_worker, wait

from condshap import __version__
from condshap.bulk.manifest import PARTIAL, Done
from condshap.bulk.part_files import Rows, Runner, Work, write_part
from condshap.bulk.parts import Part
from condshap.exceptions import ClusterError, CondShapError, OptionError
from condshap.options import check_integer
from condshap.runtime.announcing import announce
from condshap.runtime.threads import single_threaded_blas, single_threaded_openmp

_CONNECT = "10s"
_LOOK = 2.0  # seconds between looks at whether there are workers at all
_PATIENCE = 60.0  # seconds without any worker, as while a cluster grows
_AHEAD = 2  # tasks for every thread: one is worked on, one is there already
_KEPT = "Finished parts are kept: make the same call again to go on."


class Undisturbed(WorkerPlugin):  # type: ignore[misc]
    """Lets local workers ignore Ctrl-C, which a terminal sends to all processes: the one that made the call ends them."""

    def setup(self, worker: Any) -> None:
        """Workers run their loop in the main thread, where signals can be set."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class Explaining(WorkerPlugin):  # type: ignore[misc]
    """What every worker gets once."""

    def __init__(self, work: Work, folder: Path, sign: str) -> None:
        self.work, self.folder, self.sign, self.version = work, folder, sign, __version__

    def setup(self, worker: Any) -> None:
        """Refuse a worker whose numbers might be others."""
        if self.version != __version__:
            raise RuntimeError(f"workers must have condshap {self.version}, but one has {__version__}")

    def explain(self, part: Part, rows: Any) -> tuple[Done, bytes | None]:
        """Explain a part on one core, and write it if the folder is here; else its content goes back."""
        from joblib import parallel_config

        with single_threaded_blas(), single_threaded_openmp(), parallel_config(backend="sequential"):
            done, content = self.work(part, rows)
        if not (self.folder / self.sign).exists():
            return done, content
        write_part(self.folder, done, content)
        return done, None


def _explain(name: str, part: Part, rows: Any) -> tuple[Done, bytes | None]:
    """Run a task."""
    found: tuple[Done, bytes | None] = get_worker().plugins[name].explain(part, rows)
    return found


@contextmanager
def runner_on(cluster: Any) -> Iterator[Runner]:
    """Runner on a cluster: a client, an address, or a number of processes, which end with it."""
    if isinstance(cluster, Client):
        yield _Run(cluster)
    elif isinstance(cluster, str):
        with _client_of(cluster) as client:
            yield _Run(client)
    elif isinstance(cluster, (int, np.integer)):
        n = check_integer("cluster", cluster, least=1)
        options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 50}
        with LocalCluster(n_workers=n, threads_per_worker=1, **options) as local, Client(local) as client:
            client.register_plugin(Undisturbed())
            try:
                yield _Run(client)
            except KeyboardInterrupt:  # what they are working on would not be kept, so nobody waits for it
                _kill(local)
                raise
    else:
        raise OptionError(
            "cluster must be a dask.distributed.Client, the address of a scheduler such as 'tcp://host:8786', or a number "
            f"of local processes, got {cluster!r}."
        )


def _kill(local: LocalCluster) -> None:
    """End the processes of a cluster, which otherwise takes some seconds while they are busy."""
    # what was being sent to them fails, perhaps after the cluster has stopped silencing its logs
    logging.getLogger("distributed.batched").setLevel(logging.WARNING)
    for nanny in local.workers.values():
        nanny.auto_restart = False
        with suppress(psutil.Error, ValueError):  # one that has ended, or has no process yet
            psutil.Process(nanny.pid).kill()


def _client_of(address: str) -> Client:
    try:
        return Client(address, timeout=_CONNECT)
    except (OSError, ValueError) as error:  # of a time-out, too
        raise ClusterError(
            f"cluster must be the address of a running Dask scheduler, got '{address}': {error}. Start one with 'dask "
            "scheduler'."
        ) from None


class _Run:
    """A runner, see `condshap.bulk.running.Runner`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, work: Work, rows: Rows, folder: Path) -> Iterator[Done]:
        name = f"condshap-{secrets.token_hex(4)}"
        sign = folder.resolve() / f".{name}{PARTIAL}"  # is removed with other leftovers, whatever happens
        sign.touch()
        try:
            self._hand_out(Explaining(work, folder.resolve(), sign.name), name)
            yield from self._all(iter(rows), folder, name)
        finally:
            sign.unlink(missing_ok=True)
            if self._client.status == "running":
                with suppress(Exception):  # of a cluster that is going away
                    self._client.unregister_worker_plugin(name)

    def _hand_out(self, plugin: Explaining, name: str) -> None:
        try:
            self._client.register_plugin(plugin, name=name)
        except Exception as error:  # what cannot be pickled, or unpickled there, fails in many ways
            if self._client.status != "running":
                raise ClusterError(
                    f"the cluster must be up, but its client has lost it or is closed ({type(error).__name__}: {error}). "
                    f"{_KEPT}"
                ) from None
            raise ClusterError(
                f"explainer and model must be loadable on the workers, which need condshap {__version__} and the model's "
                f"packages, but sending them failed with {type(error).__name__}: {error}."
            ) from error

    def _all(self, rows: Iterator[tuple[Part, Any]], folder: Path, name: str) -> Iterator[Done]:
        """Keep all threads busy; after an error no part is begun any more, but those that are running are kept."""
        running: dict[Future, Part] = {}
        failed: CondShapError | None = None
        has_warned, is_over = False, False
        try:
            while True:
                while failed is None and not is_over and len(running) < self._room():
                    part, table = next(rows, (None, None))
                    is_over = part is None
                    if part is not None:
                        running[self._submit(name, part, table)] = part
                if not running:
                    break
                for future in self._some(running):
                    try:
                        done = self._collect(future, running.pop(future), folder)
                    except CondShapError as error:
                        failed = failed or error
                        continue
                    if done.warnings and not has_warned:  # of a part: the others tend to say the same
                        has_warned = True
                        announce(f"{done.warnings[0]} (In {done.part.text}; not repeated for other parts.)")
                    yield done
        finally:
            if running and self._client.status == "running":
                self._client.cancel(list(running), force=True)
        if failed is not None:
            raise failed

    def _room(self) -> int:
        n_threads: int = sum(self._client.nthreads().values())
        return _AHEAD * max(1, n_threads)

    def _submit(self, name: str, part: Part, table: Any) -> Future:
        # rows are large, which is meant, so Dask need not warn of it
        with config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"}):
            return self._client.submit(_explain, name, part, table, key=f"{name}-part-{part.number}", pure=False)

    def _some(self, running: dict[Future, Part]) -> list[Future]:
        """Tasks that have ended; an error if there is nobody any more to end one."""
        alone_since = None
        while True:
            try:
                with suppress(TimeoutError, CancelledError), self._client.as_current():  # not whichever is the default
                    wait(list(running), timeout=_LOOK, return_when="FIRST_COMPLETED")
            except (RuntimeError, ValueError):
                if self._client.status == "running":
                    raise  # else it was closed meanwhile, which is told below
            ended = [future for future in running if future.status != "pending"]
            if ended:
                return ended
            if self._client.status != "running":
                raise ClusterError(
                    f"the cluster must stay up until the run has ended, but its scheduler is gone. {_KEPT}"
                )
            if self._client.nthreads():
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > _PATIENCE:
                raise ClusterError(f"the cluster must have workers, but had none for {_PATIENCE:g} s. {_KEPT}")

    def _collect(self, future: Future, part: Part, folder: Path) -> Done:
        try:
            done: Done
            done, content = future.result()
        except CondShapError:
            raise
        except KilledWorker as error:
            raise ClusterError(
                f"{part.text}: the workers that tried it died, {_last_of(error)} last. If they ran out of memory, lower "
                f"rows_per_part or memory_budget, or give workers more; or the cluster was closed. {_KEPT}"
            ) from None
        except (CancelledError, OSError) as error:
            raise ClusterError(
                f"{part.text}: the cluster must stay up until the run has ended, but it is gone "
                f"({type(error).__name__}). {_KEPT}"
            ) from None
        except Exception as error:  # of the worker, not of the explainer
            raise ClusterError(
                f"{part.text}: its worker failed with {type(error).__name__}: {error}. {_KEPT}"
            ) from error
        if content is not None:
            write_part(folder, done, content)
        return done


def _last_of(error: KilledWorker) -> str:
    return str(error.last_worker.address) if error.last_worker else "all"
