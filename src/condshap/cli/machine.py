"""The machine -> what condshap finds on it (``doctor``), and code compiled before it is needed (``warm-up``)."""

from __future__ import annotations

import platform
import re
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated, Any

import typer

from condshap.cli.screen import clear_messages, print_json

_REQUIREMENT = re.compile(
    r"""(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?(?P<bounds>[^;]*)(;.*extra == ['"](?P<extra>\w+)['"])?"""
)


@dataclass(frozen=True)
class Package:
    """A package that condshap asks for.

    Attributes
    ----------
    bounds : what it asks for, such as ">=2.0"
    extra : the extra that needs it, None for condshap itself
    installed : its version, None where it is missing
    """

    name: str
    bounds: str
    extra: str | None
    installed: str | None

    @property
    def is_fine(self) -> bool:
        """Installed, and not older than condshap asks for."""
        least = re.search(r">=([\w.]+)", self.bounds)
        return self.installed is not None and (least is None or _numbers(self.installed) >= _numbers(least[1]))


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, device, threads and caches, and what is missing for which extra."""
    with clear_messages():
        packages, facts = find_packages(), find_facts()
        if as_json:
            print_json({**facts, "packages": [vars(package) | {"is_fine": package.is_fine} for package in packages]})
        else:
            _show(packages, facts)
        if not all(package.is_fine for package in packages if package.extra is None):
            raise typer.Exit(1)


def warm_up() -> None:
    """Compile and load what the first explanation on a machine would wait for; later runs use it."""
    with clear_messages():
        for approach in ("gaussian", "ctree", "empirical", "vaeac"):
            start = time.perf_counter()
            _explain_a_little(approach)
            typer.echo(f"{approach}: ready after {time.perf_counter() - start:.1f} s")


def find_packages() -> list[Package]:
    """Every package that condshap's own metadata names, by what needs it."""
    matches = [_REQUIREMENT.match(line) for line in requires("condshap") or ()]
    return [
        Package(match["name"], match["bounds"].strip(), match["extra"], _installed(match["name"]))
        for match in matches
        if match is not None and match["name"] != "condshap"
    ]


def find_facts() -> dict[str, Any]:
    """What numbers and speed depend on beside packages."""
    from joblib import cpu_count
    from threadpoolctl import threadpool_info

    import condshap.numerics.gaussian  # noqa: F401  # loads BLAS, so that it can be asked
    from condshap.runtime.devices import find_accelerator

    blas = sorted({f"{one['internal_api']} {one.get('architecture') or ''}".strip() for one in threadpool_info()})
    return {
        "condshap": version("condshap"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": cpu_count(),
        "native_libraries": blas,
        "accelerator": find_accelerator("auto"),
        "compiled_code_is_kept_in": _cache_folder(),
    }


def _show(packages: list[Package], facts: dict[str, Any]) -> None:
    for name, fact in facts.items():
        shown = ", ".join(fact) if isinstance(fact, list) else fact
        typer.echo(f"{name.replace('_', ' ')}: {'none' if shown is None else shown}")
    for extra in dict.fromkeys(package.extra for package in packages):
        needed = [package for package in packages if package.extra == extra]
        missing = [_remark(package) for package in needed if not package.is_fine]
        what = "condshap" if extra is None else f"'condshap[{extra}]'"
        state = f"{', '.join(missing)}. Run: pip install --upgrade {what}" if missing else "complete"
        typer.echo(f"{'packages of condshap' if extra is None else f'extra {extra}'}: {state}")
        if extra is None:
            for package in needed:
                typer.echo(f"  {package.name} {package.installed or 'missing'}")


def _remark(package: Package) -> str:
    if package.installed is None:
        return f"{package.name} is missing"
    return f"{package.name} {package.installed} is too old, needs {package.bounds}"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    """Release numbers that can be compared: 2.13.0+cpu is (2, 13, 0)."""
    return tuple(int(number) for number in re.findall(r"\d+", text.split("+")[0])[:3])


def _cache_folder() -> str | None:
    """Where compiled code stays between runs; None where no folder can be written, and every process compiles anew."""
    from condshap.trees import cpu

    kernel: Any = cpu.add_trees
    return kernel.stats.cache_path  # type: ignore[no-any-return]


def _explain_a_little(approach: str) -> None:
    """Go through drawing, trees and networks once, on a table too small to cost anything."""
    import warnings

    import numpy as np
    from sklearn.ensemble import RandomForestRegressor

    import condshap as cs

    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RandomForestRegressor(n_estimators=3, random_state=0).fit(X, X.sum(axis=1))
    chosen = cs.approaches.VAEAC(epochs=2) if approach == "vaeac" else approach
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about so few rows, samples and epochs
        cs.explain(model, X, X[:2], approach=chosen, progress=False)
