"""Options as the user gives them -> checked values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from math import inf, nan
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condshap.exceptions import OptionError

if TYPE_CHECKING:
    from condshap.types import Floats

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_NO_BOUND = 2.0**62  # bytes, more than any machine has
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_memory(budget: str | int) -> int:
    """Bytes of a memory budget.

    >>> parse_memory("32MiB"), parse_memory(1000)
    (33554432, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(budget))
    if found is None or found[2].upper() not in _UNITS or float(found[1]) <= 0 or isinstance(budget, bool):
        raise OptionError(f"memory_budget must be bytes or a text such as '1GiB' or '500MB', got {budget!r}.")
    return max(1, int(min(float(found[1]) * _UNITS[found[2].upper()], _NO_BOUND)))


def check_integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Integer that is not below `least`, nor above `most`."""
    try:
        whole = int(value.__index__())
    except (AttributeError, TypeError):  # arrays and classes have the method, too
        raise OptionError(f"{name} must be an integer, got {value!r}.") from None
    if isinstance(value, bool) or whole < least:
        raise OptionError(f"{name} must be an integer of at least {least}, got {value!r}.")
    if most is not None and whole > most:
        raise OptionError(f"{name} must be an integer of at most {most}, got {value!r}.")
    return whole


def as_number(value: Any) -> float:
    """One number as a float, NaN for whatever is none: text, truths, arrays, integers beyond all floats.

    >>> as_number(3), as_number("3"), as_number(10**400)
    (3.0, nan, nan)
    """
    if isinstance(value, (bool, str, bytes)) or getattr(value, "ndim", 0) != 0 or hasattr(value, "mask"):
        return nan
    try:
        return float(value)
    except (TypeError, ValueError, ArithmeticError):
        return nan


def check_positive(name: str, value: Any) -> float:
    """Finite number above zero."""
    number = as_number(value)
    if not 0 < number < inf:
        raise OptionError(f"{name} must be a finite number above 0, got {value!r}.")
    return number


def as_floats(given: Any) -> Floats:
    """Numbers as an array; masked ones are NaN, which no option takes, instead of what the mask hides."""
    import numpy as np  # the command line begins without it

    if np.iscomplexobj(given):
        raise TypeError("complex numbers have a part that would be lost")
    if isinstance(given, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(given), np.nan, given.data.astype(np.float64))
    return np.asarray(given, dtype=np.float64)


def floats_or_nan(given: Any) -> Floats:
    """Numbers of an option as an array, a single NaN for what is none, for a check of shape and size to refuse."""
    import numpy as np

    try:
        return as_floats(given)
    except (TypeError, ValueError, ArithmeticError):
        return np.array(np.nan)


def as_path(path: Any) -> Path:
    """Path of a file as given by the user."""
    try:
        return Path(path)
    except TypeError:
        raise OptionError(
            f"a path must be text or a pathlib.Path, got {type(path).__name__} {path!r}. Write e.g. 'name.parquet'."
        ) from None


def check_level(level: Any) -> float:
    """Level of a confidence interval, between 0 and 1."""
    number = as_number(level)
    if not 0 < number < 1:
        raise OptionError(f"level must be a number between 0 and 1, got {level!r}. Write e.g. 0.95.")
    return number


def check_tolerance(tolerance: Any) -> float:
    """Share of every row's spread, between 0 and 1."""
    number = as_number(tolerance)
    if not 0 < number < 1:
        raise OptionError(
            f"tolerance must be a number between 0 and 1, a share of each row's spread, got {tolerance!r}. Write e.g. 0.02."
        )
    return number


def check_coalitions(n_coalitions: Any, tolerance: Any, max_coalitions: Any) -> None:
    """Number of coalitions, or "auto" and what belongs to it."""
    if isinstance(n_coalitions, str) and n_coalitions != "auto":
        raise OptionError(f"n_coalitions must be an integer, 'auto' or None, got {n_coalitions!r}.")
    if n_coalitions is not None and not isinstance(n_coalitions, str):
        check_integer("n_coalitions", n_coalitions, least=1)
    check_tolerance(tolerance)
    if max_coalitions is not None:
        check_integer("max_coalitions", max_coalitions, least=1)
        if n_coalitions != "auto":
            raise OptionError(
                f"max_coalitions needs n_coalitions='auto', got n_coalitions={n_coalitions!r}. Leave it out."
            )


def find_named(option: str, wanted: Any, names: Sequence[str]) -> int | None:
    """Position of what is wanted by name, or by an integer that is a position; None if there is no such thing.

    An integer that is the name of one and the position of another is refused: nobody can know which was meant. Text is a
    name, or says what it is: "name:1", "position:1".

    >>> find_named("output", "low", ["high", "low"]), find_named("output", -1, ["high", "low"])
    (1, 1)
    >>> find_named("output", "position:1", ["1", "2", "3"]), find_named("output", "1", ["1", "2", "3"])
    (1, 0)
    """
    if not isinstance(wanted, Integral) or isinstance(wanted, bool):
        return _find_text(str(wanted), names)
    whole, n = int(wanted), len(names)
    by_position = whole % n if -n <= whole < n else None
    by_name = next((i for i, name in enumerate(names) if name == str(whole) or name == f"{whole}.0"), None)
    if by_name is not None and by_position is not None and by_name != by_position:
        raise OptionError(
            f"{option} must be unambiguous, but {whole} is both the name at position {by_name} and the position of "
            f"{names[by_position]!r}. Write 'name:{names[by_name]}' or 'position:{whole}'."
        )
    return by_position if by_name is None else by_name


def _find_text(wanted: str, names: Sequence[str]) -> int | None:
    if wanted in names:
        return list(names).index(wanted)
    kind, _, rest = wanted.partition(":")
    if kind == "name" and rest in names:
        return list(names).index(rest)
    is_position = kind == "position" and rest.removeprefix("-").isdecimal()
    return int(rest) % len(names) if is_position and -len(names) <= int(rest) < len(names) else None


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """One of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise OptionError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Ask about the name that is nearest to an unknown one, followed by a space; empty if none is near.

    >>> did_you_mean("guassian", ["copula", "gaussian"])
    "Did you mean 'gaussian'? "
    """
    near = get_close_matches(name, names, n=1, cutoff=0.4)
    return f"Did you mean '{near[0]}'? " if near else ""


def known_options(function: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A function's ``**options``, all of which must be among those that `spell_out` lists for it."""
    names = [p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in given:
        if name not in names:
            raise OptionError(
                f"{function.__name__} has no option '{name}'. {did_you_mean(name, names)}Choose among {names}."
            )
    return given


def check_jobs(n_jobs: Any) -> int:
    """Number of joblib workers: positive, or negative counting back from the number of cores."""
    whole = check_integer("n_jobs", n_jobs, least=-(10**6))
    if whole == 0:
        raise OptionError("n_jobs must not be 0. Use 1 for no workers, -1 for one per core.")
    if whole > 0:
        return whole
    from joblib import effective_n_jobs

    return int(effective_n_jobs(whole))


def check_folder(out: Path) -> Path:
    """Folder for results, created if needed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(
            f"the output folder must be one that can be created, got '{out}' ({error.strerror})."
        ) from None
    return out


def check_device(device: Any) -> str:
    """Where networks run; "cuda" only where there is an accelerator, because nothing falls back silently."""
    check_choice("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise OptionError("device='cuda' needs an accelerator that torch can see, got none. Use 'auto' or 'cpu'.")
    return str(device)


def check_target(target_error: object, n_samples: int | None, n_coalitions: int | str | None) -> None:
    """Check the wanted Monte Carlo error, and that nothing else decides on the same."""
    from condshap.types import LARGEST, SMALLEST_RANGE

    if not SMALLEST_RANGE <= check_positive("target_error", target_error) <= LARGEST:
        raise OptionError(
            f"target_error must be between {SMALLEST_RANGE:g} and {LARGEST:g}, because it is squared, got "
            f"{target_error!r}."
        )
    if n_samples is not None:
        raise OptionError("n_samples and target_error cannot be combined, got both. Leave n_samples out.")
    if n_coalitions == "auto":
        raise OptionError(
            "target_error cannot be combined with n_coalitions='auto', whose tolerance covers all errors together. "
            "Leave one of them out."
        )


def spell_out(function: Any, kind: type) -> None:
    """Let `help` and editors show a function's ``**options`` one by one, as the constructor of `kind` has them."""
    own, theirs = signature(function), signature(kind)
    options = [p for p in theirs.parameters.values() if p.kind is p.KEYWORD_ONLY]
    kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = own.replace(parameters=[*kept, *options])
