"""Names of methods -> approach objects and options of an explanation."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from condshap.approaches import available_approaches, find_approach
from condshap.exceptions import OptionError, listing

_PAPER_SAMPLES = 250
_NAMED: dict[str, dict[str, Any]] = {"vaeac-paper": {}, "vaeac-uniform": {"masking": "uniform"}}
_STUDIED: dict[str, dict[str, Any]] = {"categorical": {"share_unseen": True}}  # as R's shapr, and as results were made


@dataclass(frozen=True, slots=True)
class Method:
    """An approach with options.

    Attributes
    ----------
    name : as the user wrote it, and as it stands in stores
    approach : name of the approach
    is_paper : start from ``VAEAC.paper()`` and not from the defaults
    options : names and values of the approach's own options
    n_samples : samples per row and coalition, None for the approach's choice
    """

    name: str
    approach: str
    is_paper: bool
    options: tuple[tuple[str, Any], ...]
    n_samples: int | None

    @property
    def approach_class(self) -> Any:
        """What makes the approach."""
        return _approach_class(self.approach)

    def make_approach(self, device: str = "cpu") -> Any:
        """Make the approach, unfitted; `device` is where networks live, for approaches that have some."""
        made_by = self.approach_class
        options = dict(self.options)
        if self.approach == "vaeac":
            options.setdefault("device", device)
        return made_by.paper(**options) if self.is_paper else made_by(**options)


def available_methods() -> tuple[str, ...]:
    """Names of methods without options."""
    return tuple(sorted({*available_approaches(), *_NAMED}))


def find_method(name: str) -> Method:
    """Method called `name`, an approach or one of its named variants, with options after a colon.

    `n_samples` is an option of every method that draws. An approach of one's own is named by its import path.

    >>> find_method("vaeac:width=64, n_samples=32").options
    (('width', 64),)
    >>> find_method("condshap.approaches.gaussian.Gaussian").approach_class.name
    'gaussian'
    """
    base, _, text = name.partition(":")
    base = base.strip()
    if base not in available_methods() and "." not in base:
        names = listing(available_methods(), limit=20)
        raise OptionError(f"a method must be one of {names} or the import path of an approach's class, got {base!r}.")
    options = {**_NAMED.get(base, {}), **_STUDIED.get(base, {}), **_parse_options(name, text)}
    is_paper = base == "vaeac-paper"
    n_samples = options.pop("n_samples", _PAPER_SAMPLES if is_paper else None)
    approach = "vaeac" if base in _NAMED else base
    known = list(inspect.signature(_approach_class(approach)).parameters)
    unknown = [option for option in options if option not in known]
    if unknown:
        raise OptionError(
            f"options of method {base!r} must be among {listing(known, limit=50)}, got {listing(unknown)}."
        )
    return Method(name, approach, is_paper, tuple(options.items()), n_samples)


def _approach_class(name: str) -> Any:
    """Approach by its name, or by an import path such as ``package.module.Class``."""
    if "." not in name:
        return find_approach(name)
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"the import path of an approach's class must lead to one, got {name!r}: {error}.") from None
    lacking = [part for part in ("name", "supports", "fit") if not hasattr(found, part)]
    if lacking:
        raise OptionError(f"an approach's class must have {listing(lacking)}, but {name!r} does not.")
    return found


def _parse_options(name: str, text: str) -> dict[str, Any]:
    """Options written like keyword arguments, their values as Python literals."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError("options have names")
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise OptionError(
            f"options of a method must be written like vaeac:width=64,latent=16 with Python literals, got {name!r}: "
            f"{error}."
        ) from None
