"""Command-line options -> options of an `Explainer`, the same for every command that fits one."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from condshap.approaches import available_approaches
from condshap.types import Model

if TYPE_CHECKING:
    from condshap.approaches.base import Approach
    from condshap.explainer import Explainer

DEFAULT_APPROACH = "vaeac"
_SETTLED_BY_FIT = (
    "train", "approach", "categorical", "n_samples", "target_error", "n_coalitions", "max_coalitions", "base_value",
    "output", "additive", "seed", "check_draws", "causal_ordering", "confounding", "asymmetric", "link",
)  # fmt: skip


class Link(StrEnum):
    """Scales on which classifiers can be explained."""

    logit = "logit"


class Additive(StrEnum):
    """Whether a model is additive."""

    auto = "auto"
    yes = "yes"
    no = "no"


class YesNo(StrEnum):
    """An answer."""

    yes = "yes"
    no = "no"


# Options that several commands share.
ModelFile = Annotated[
    Path, typer.Option("--model", help="Model file: .skops, or .pkl, .pickle, .joblib with --trust-model.")
]
TrustModel = Annotated[
    bool,
    typer.Option("--trust-model", help="Load a model file that can run code: only if you trust it."),
]
TrainFile = Annotated[Path, typer.Option(help="Training rows: .csv or .parquet.")]
RowsFile = Annotated[Path, typer.Option(help="Rows to explain: .csv or .parquet.")]
RowsOrDataset = Annotated[
    Path,
    typer.Option(
        help="Rows to explain: .csv or .parquet; for many rows also Arrow files, a folder, or a glob in quotes."
    ),
]
ApproachName = Annotated[
    str, typer.Option(help="How to model the features: see 'condshap approaches'.", autocompletion=available_approaches)
]
ApproachNames = Annotated[
    list[str] | None,
    typer.Option(
        help="Approach to compare; may be repeated. See 'condshap approaches'. Default: independence, ctree and vaeac.",
        autocompletion=available_approaches,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; progress and notes go to stderr.")]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of an `Explainer`, and the names of the options that the user gave."""

    categorical: Annotated[
        list[str] | None, typer.Option(help="Numeric column to treat as categorical; may be repeated.")
    ] = None
    n_samples: Annotated[int | None, typer.Option(help="Samples per row and coalition.")] = None
    target_error: Annotated[
        float | None,
        typer.Option(help="Sample until the Monte Carlo error of every Shapley value is at most this."),
    ] = None
    n_coalitions: Annotated[
        str | None,
        typer.Option(
            metavar="<int|auto>",
            help="Coalitions, including the empty and the grand one; auto: as many as --tolerance needs.",
        ),
    ] = None
    tolerance: Annotated[
        float,
        typer.Option(help="With --n-coalitions auto: largest standard error allowed, relative to the row's spread."),
    ] = 0.02
    max_coalitions: Annotated[int | None, typer.Option(help="With --n-coalitions auto: upper limit on coalitions.")] = (
        None
    )
    base_value: Annotated[
        list[float] | None,
        typer.Option(metavar="<float>", help="v of the empty coalition; repeat the option for several outputs."),
    ] = None
    output: Annotated[
        str | None,
        typer.Option(help="Explain only this output: a class or a position; write name:1 or position:1 if ambiguous."),
    ] = None
    causal_ordering: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<columns>",
            help="Columns of one component, separated by commas; repeat the option for the next component, causes first.",
        ),
    ] = None
    confounding: Annotated[
        list[YesNo] | None,
        typer.Option(
            metavar="<yes|no>",
            help="With --causal-ordering: causal values. Whether something unseen causes the columns of a component "
            "together; give it once for all components, or once for each.",
        ),
    ] = None
    asymmetric: Annotated[
        bool, typer.Option(help="With --causal-ordering: average only over orders of the features that respect it.")
    ] = False
    additive: Annotated[
        Additive,
        typer.Option(
            metavar="<answer>",
            help="Whether the model is a sum of one function per feature, which needs no samples: yes, which is put to the "
            "test, no or auto.",
        ),
    ] = Additive.auto
    check_draws: Annotated[
        bool, typer.Option(help="Compare draws with training rows and warn if they do not look alike.")
    ] = True
    link: Annotated[Link | None, typer.Option(help="For classifiers: explain log-odds instead of probabilities.")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="Random seed: the same seed gives the same answer.")] = 0
    n_jobs: Annotated[int, typer.Option(help="Number of workers; -1 for one per core.")] = 1
    memory_budget: Annotated[str, typer.Option(help="Memory limit, e.g. 500MB.")] = "1GiB"
    given: frozenset[str] = frozenset()

    def check(self) -> None:
        """Refuse options that cannot be combined."""
        self._coalitions()

    def explainer(self, model: Model, approach: str | Approach) -> Explainer:
        """Unfitted explainer with these options."""
        from condshap.explainer import Explainer

        return Explainer(
            model,
            approach=approach,
            n_samples=self.n_samples,
            target_error=self.target_error,
            n_coalitions=self._coalitions(),
            tolerance=self.tolerance,
            max_coalitions=self.max_coalitions,
            causal_ordering=self._ordering(),
            confounding=self._confounding(),
            asymmetric=self.asymmetric,
            base_value=self.base_value,
            output=read_output(self.output),
            additive="auto" if self.additive is Additive.auto else self.additive is Additive.yes,
            check_draws=self.check_draws,
            link=None if self.link is None else self.link.value,
            seed=self.seed,
            n_jobs=self.n_jobs,
            memory_budget=self.memory_budget,
        )

    def _coalitions(self) -> int | str | None:
        """Number of coalitions, in the form that the API accepts."""
        text = self.n_coalitions
        if text == "auto":
            return text
        self.refuse_tolerance()
        if text is not None and not text.removeprefix("-").isdigit():
            raise typer.BadParameter(f"must be an integer or 'auto', got '{text}'.", param_hint="--n-coalitions")
        return None if text is None else int(text)

    def _ordering(self) -> list[list[str]] | None:
        """Components of columns; a column whose name has a comma is written in quotes."""
        if self.causal_ordering is None:
            return None
        return [next(csv.reader([text], skipinitialspace=True), []) for text in self.causal_ordering]

    def _confounding(self) -> bool | list[bool] | None:
        """Answers as the API accepts them."""
        answers = [answer is YesNo.yes for answer in self.confounding or ()]
        return None if not answers else answers[0] if len(answers) == 1 else answers

    def refuse_tolerance(self) -> None:
        """Refuse a tolerance that would have no effect."""
        if "tolerance" in self.given:
            raise typer.BadParameter("works only with --n-coalitions auto: leave it out.", param_hint="--tolerance")

    def settled_by_fit(self) -> list[str]:
        """Options that the user gave although a saved explainer already fixes them."""
        return [f"--{name.replace('_', '-')}" for name in _SETTLED_BY_FIT if name in self.given]

    def load_explainer(self, path: Path, model: Model) -> Any:
        """Load a saved explainer; workers, memory and tolerance may be changed, what it has learned may not."""
        from condshap.storage.explainers import load_explainer

        found = load_explainer(path, model)
        explainer = getattr(found, "explainer", found)  # of which a fast explainer has learned
        if explainer.n_coalitions != "auto":
            self.refuse_tolerance()
        for name in ("n_jobs", "memory_budget", "tolerance"):
            if name in self.given:
                setattr(explainer, name, getattr(self, name))
        return found


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``settings`` of a command with the options of `Settings`, one by one."""
    hints = get_type_hints(Settings, include_extras=True)
    names = [field.name for field in fields(Settings) if field.name != "given"]

    def run(context: typer.Context, **words: Any) -> None:
        given = frozenset(name for name in words if is_given(name, context))
        chosen = {name: words.pop(name) for name in names}
        command(**words, settings=Settings(**chosen, given=given))

    own = inspect.signature(command, eval_str=True).parameters.values()
    kept = [one.replace(kind=one.KEYWORD_ONLY) for one in own if one.name != "settings"]
    added = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(Settings)
        if field.name in names
    ]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *kept, *added]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run


def is_given(name: str, context: typer.Context) -> bool:
    """Whether the user gave an option, rather than leaving it at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def read_level(level: float) -> float:
    """Level of an interval; its range stands in the help, where that of an option's type would widen the table."""
    if not 0.5 <= level <= 0.9999:
        raise typer.BadParameter(f"must be from 0.5 to 0.9999, got {level}.")
    return level


def read_output(output: str | None) -> str | int | None:
    """An output as the API accepts it: digits become an integer, which is a name or a position, whichever exists."""
    return None if output is None else read_row(output)


def read_row(row: str) -> str | int:
    """A row as the API accepts it: digits become an integer, which is a position, all else is a label."""
    return int(row) if row.removeprefix("-").isdecimal() else row
