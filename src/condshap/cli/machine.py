"""The machine -> what condshap finds on it (``doctor``), and code compiled before it is needed (``warm-up``)."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condshap.cli.screen import clear_messages, print_json

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_FOR_DEVELOPERS = {"dev", "docs", "league"}


@dataclass(frozen=True)
class Package:
    """A package that condshap asks for.

    Attributes
    ----------
    bounds : versions that it asks for, such as ">=2.0"
    extra : the extra that needs it, None for condshap itself
    installed : its version, None where it is missing
    is_fine : whether it is installed, in a version within the bounds
    """

    name: str
    bounds: str
    extra: str | None
    installed: str | None
    is_fine: bool

    @property
    def remark(self) -> str:
        """What is wrong with it."""
        return (
            f"{self.name} is missing"
            if self.installed is None
            else f"{self.name} {self.installed} is not {self.bounds}"
        )


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, accelerator, threads and caches, and which packages are missing for condshap and each extra."""
    with clear_messages():
        packages, facts = find_packages(), find_facts()
        if as_json:
            print_json({**facts, "packages": [vars(package) for package in packages]})
        else:
            _show(packages, facts)
        if not all(package.is_fine for package in packages if package.extra is None):
            raise typer.Exit(1)


def warm_up() -> None:
    """Compile trees, additive models and ctree now, so that the first explanations on this machine need not wait."""
    with clear_messages():
        for what, approach in (("trees", "gaussian"), ("additive models", "gaussian"), ("ctree", "ctree")):
            start = time.perf_counter()
            _explain_a_little(approach, is_additive=what == "additive models")
            typer.echo(f"{what}: ready after {time.perf_counter() - start:.1f} s")


def find_packages() -> list[Package]:
    """Every package that condshap's own metadata names, by what needs it; tools of its developers are left out."""
    about = distribution("condshap")
    extras = [name for name in about.metadata.get_all("Provides-Extra", []) if name not in _FOR_DEVELOPERS]
    return [_look_up(asked, extra) for extra in (None, *extras) for asked in _requirements(about.requires or [], extra)]


def _requirements(lines: list[str], extra: str | None) -> list[Requirement]:
    """What condshap itself asks for (None), or what an extra adds to that."""
    from packaging.requirements import Requirement

    asked = [Requirement(line) for line in lines]
    always = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    if extra is None:
        return always
    return [
        one for one in asked if one not in always and one.marker is not None and one.marker.evaluate({"extra": extra})
    ]


def _look_up(asked: Requirement, extra: str | None) -> Package:
    try:
        installed = version(asked.name)
    except PackageNotFoundError:
        installed = None
    is_fine = installed is not None and asked.specifier.contains(installed, prereleases=True)
    return Package(asked.name, str(asked.specifier), extra, installed, is_fine)


def find_facts() -> dict[str, Any]:
    """What numbers and speed depend on beside packages; None where there is nothing, or nothing can be found out."""
    asked = {
        "condshap": lambda: version("condshap"),
        "python": platform.python_version,
        "system": platform.platform,
        "accelerator": _accelerator,
        "cores": _cores,
        "native_libraries": _native_libraries,
        "compiled_code": _cache_folder,
    }
    return {name: _answer(ask) for name, ask in asked.items()}


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ImportError:  # of a package that the list of packages will name
        return None


def _accelerator() -> str | None:
    from condshap.runtime.devices import find_accelerator

    return find_accelerator("auto")


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _native_libraries() -> list[str]:
    """BLAS and OpenMP with the kernels that they choose for this CPU, and the threads that they would use."""
    import scipy.linalg  # noqa: F401  # loads BLAS, so that it can be asked
    from threadpoolctl import threadpool_info

    return sorted(
        {
            f"{one['internal_api']} {one.get('architecture') or ''}".strip() + f" ({one['num_threads']} threads)"
            for one in threadpool_info()
        }
    )


def _cache_folder() -> str | None:
    """Where compiled code stays between runs; None where no folder can be written, and every process compiles anew."""
    from condshap.trees import cpu

    kernel: Any = cpu.add_trees
    return kernel.stats.cache_path  # type: ignore[no-any-return]


def _show(packages: list[Package], facts: dict[str, Any]) -> None:
    for name, fact in facts.items():
        shown = ", ".join(fact) if isinstance(fact, list) else fact
        typer.echo(f"{name.replace('_', ' ')}: {'none' if shown is None else shown}")
    for extra in dict.fromkeys(package.extra for package in packages):
        needed = [package for package in packages if package.extra == extra]
        wrong = [package.remark for package in needed if not package.is_fine]
        what = "condshap" if extra is None else f"'condshap[{extra}]'"
        state = f"{', '.join(wrong)}. Run: pip install --upgrade {what}" if wrong else "complete"
        typer.echo(f"{'packages' if extra is None else f'extra {extra}'}: {state}")
        for package in needed:
            typer.echo(f"  {package.name} {package.installed or 'missing'}")


def _explain_a_little(approach: str, *, is_additive: bool) -> None:
    """Go through drawing and predicting once, on a table too small to cost anything."""
    import warnings

    import numpy as np
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    import condshap as cs

    X = np.random.default_rng(0).normal(size=(60, 3))
    forest = RandomForestRegressor(n_estimators=3, random_state=0)
    model = make_pipeline(SplineTransformer(), LinearRegression()) if is_additive else forest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about so few rows and samples
        cs.explain(model.fit(X, X.sum(axis=1)), X, X[:2], approach=approach, progress=False)
