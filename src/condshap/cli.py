"""Command line -> the same calls as the API.

Exit codes: 0 when all went well, 1 with a clear message on stderr and no traceback when something that came from
outside does not fit, 2 when the command itself was written wrongly.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from condshap.approaches import available_approaches, find_approach
from condshap.exceptions import CondShapError, ModelError, OptionError, SchemaError, listing
from condshap.explanation import Explanation
from condshap.stored_values import HARMLESS_TYPES
from condshap.study_cli import mount
from condshap.types import Model

if TYPE_CHECKING:
    from condshap.explainer import Explainer

app = typer.Typer(
    help="Conditional Shapley values: explain single predictions of any model, respecting dependent features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
mount(app)

_PICKLES = {".pkl", ".pickle", ".joblib"}
_PARQUET = {".parquet", ".pq"}
_APPROACH = "vaeac"
_TRAIN_HELP = "Training rows: .csv or .parquet."
_SETTLED_BY_FIT = (
    "train", "approach", "categorical", "n_samples", "n_coalitions", "max_coalitions", "base_value", "output", "seed",
)  # fmt: skip

# Options that several commands have.
ModelFile = Annotated[
    Path, typer.Option("--model", help="Model file: .skops, or .pkl, .pickle, .joblib with --trust-model.")
]
TrustModel = Annotated[bool, typer.Option("--trust-model", help="Load a model file that may run code of its own.")]
ApproachName = Annotated[str, typer.Option(help="How to model the features; see 'condshap approaches'.")]
Categorical = Annotated[list[str] | None, typer.Option(help="Numeric column that holds levels; may be repeated.")]
NSamples = Annotated[int | None, typer.Option(help="Samples per row and coalition.")]
NCoalitions = Annotated[
    str | None,
    typer.Option(metavar="INTEGER|auto", help="Coalitions, the empty and the grand one included; auto: until precise."),
]
Tolerance = Annotated[
    float, typer.Option(help="With --n-coalitions auto: largest standard error, as a share of every row's spread.")
]
MaxCoalitions = Annotated[int | None, typer.Option(help="With --n-coalitions auto: where to stop at the latest.")]
BaseValue = Annotated[list[float] | None, typer.Option(help="v of the empty coalition; repeat it for several outputs.")]
Output = Annotated[str | None, typer.Option(help="Explain this output only: a class or a position.")]
Seed = Annotated[int, typer.Option(help="One seed, one answer.")]
NJobs = Annotated[int, typer.Option(help="Workers; -1 for one per core.")]
MemoryBudget = Annotated[str, typer.Option(help="Bound on memory, e.g. 500MB.")]


def main() -> None:
    """Run the command line: the entry point ``condshap``."""
    app(prog_name="condshap")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"condshap {version('condshap')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@app.command("demo")
def run_demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("demo-output"),
    approach: Annotated[
        list[str] | None, typer.Option(help="Approach to run; may be repeated. By default the paper's that exist.")
    ] = None,
) -> None:
    """Explain a forest on the Abalone data, as the paper's Section 5 does."""
    from condshap.demo import run_demo

    with _clear_messages():
        run_demo(out, approach or ())


@app.command("approaches")
def list_approaches() -> None:
    """List the approaches: what they support and what they assume."""
    table = Table("approach", "features", "missing values", "what it does", box=box.ROUNDED)
    for name in available_approaches():
        approach = find_approach(name)
        kinds = "\n".join(sorted((kind.value for kind in approach.supports), reverse=True))
        first_line = (getdoc(approach) or "").partition("\n")[0]
        table.add_row(name, kinds, "yes" if approach.handles_missing else "no", escape(first_line).replace("``", ""))
    Console().print(table)


@app.command("fit")
def fit_command(
    context: typer.Context,
    model: ModelFile,
    train: Annotated[Path, typer.Option(help=_TRAIN_HELP)],
    out: Annotated[Path, typer.Option(help="File to write: an explainer for 'condshap explain --explainer'.")],
    approach: ApproachName = _APPROACH,
    trust_model: TrustModel = False,
    categorical: Categorical = None,
    n_samples: NSamples = None,
    n_coalitions: NCoalitions = None,
    tolerance: Tolerance = 0.02,
    max_coalitions: MaxCoalitions = None,
    base_value: BaseValue = None,
    output: Output = None,
    seed: Seed = 0,
    n_jobs: NJobs = 1,
    memory_budget: MemoryBudget = "1GiB",
) -> None:
    """Learn from training rows once, and save the explainer."""
    with _clear_messages():
        find_approach(approach)  # a misspelt name or an unusable path should not wait for the numbers
        _make_room(out)
        explainer = _fit(
            load_model(model, trust=trust_model),
            train,
            approach=approach,
            categorical=categorical,
            n_samples=n_samples,
            n_coalitions=_read_n_coalitions(n_coalitions, context),
            tolerance=tolerance,
            max_coalitions=max_coalitions,
            base_value=base_value,
            output=output,
            seed=seed,
            n_jobs=n_jobs,
            memory_budget=memory_budget,
        )
        explainer.save(out)
        typer.echo(f"Fitted approach '{approach}' on '{train}' in {explainer.seconds_:.1f} s.")
        typer.echo(f"Written: {out}")


@app.command("explain")
def explain_command(
    context: typer.Context,
    model: ModelFile,
    rows: Annotated[Path, typer.Option(help="Rows to explain: .csv or .parquet.")],
    out: Annotated[Path, typer.Option(help="File to write: .parquet, read it with condshap.load_explanation.")],
    explainer: Annotated[
        Path | None, typer.Option(help="Explainer saved by 'condshap fit', instead of --train and its options.")
    ] = None,
    train: Annotated[Path | None, typer.Option(help=_TRAIN_HELP)] = None,
    approach: ApproachName = _APPROACH,
    trust_model: TrustModel = False,
    categorical: Categorical = None,
    n_samples: NSamples = None,
    n_coalitions: NCoalitions = None,
    tolerance: Tolerance = 0.02,
    max_coalitions: MaxCoalitions = None,
    base_value: BaseValue = None,
    output: Output = None,
    seed: Seed = 0,
    n_jobs: NJobs = 1,
    memory_budget: MemoryBudget = "1GiB",
) -> None:
    """Explain rows of a table with a saved model, and training rows or a saved explainer."""
    _check_explain(out, explainer, train, context)
    with _clear_messages():
        find_approach(approach)  # a misspelt name or an unusable path should not wait for the numbers
        _make_room(out)
        loaded = load_model(model, trust=trust_model)
        if explainer is not None:
            fitted = _load_explainer(explainer, loaded, context)
        else:
            assert train is not None
            fitted = _fit(
                loaded,
                train,
                approach=approach,
                categorical=categorical,
                n_samples=n_samples,
                n_coalitions=_read_n_coalitions(n_coalitions, context),
                tolerance=tolerance,
                max_coalitions=max_coalitions,
                base_value=base_value,
                output=output,
                seed=seed,
                n_jobs=n_jobs,
                memory_budget=memory_budget,
            )
        explanation = fitted.explain(select_features(read_table(rows), loaded, rows))
        explanation.save(out)
        _summarise(explanation, out, was_fitted_now=explainer is None)


def _fit(
    model: Model,
    train: Path,
    *,
    approach: str,
    categorical: list[str] | None,
    n_samples: int | None,
    n_coalitions: int | str | None,
    tolerance: float,
    max_coalitions: int | None,
    base_value: list[float] | None,
    output: str | None,
    seed: int,
    n_jobs: int,
    memory_budget: str,
) -> Explainer:
    """Fit an explainer on the rows of a file."""
    from condshap.explainer import Explainer

    explainer = Explainer(
        model,
        approach=approach,
        n_samples=n_samples,
        n_coalitions=n_coalitions,
        tolerance=tolerance,
        max_coalitions=max_coalitions,
        base_value=base_value,
        output=_read_output(output, model),
        seed=seed,
        n_jobs=n_jobs,
        memory_budget=memory_budget,
    )
    return explainer.fit(select_features(read_table(train), model, train), categorical=categorical or ())


def _check_explain(out: Path, explainer: Path | None, train: Path | None, context: typer.Context) -> None:
    """Refuse options of 'explain' that do not go together."""
    if _suffix(out) not in _PARQUET:
        raise typer.BadParameter(f"must end in .parquet, got '{out}'.", param_hint="--out")
    if explainer is None and train is None:
        raise typer.BadParameter(
            "give --train with the rows to learn from, or --explainer with what 'condshap fit' wrote.",
            param_hint="--train",
        )
    settled = [f"--{name.replace('_', '-')}" for name in _SETTLED_BY_FIT if _is_given(name, context)]
    if explainer is not None and settled:
        raise typer.BadParameter(
            f"a saved explainer has its own, so leave out {', '.join(settled)}, or leave out --explainer.",
            param_hint="--explainer",
        )


def _read_n_coalitions(text: str | None, context: typer.Context) -> int | str | None:
    """A number of coalitions as the API takes it."""
    if text == "auto":
        return text
    _refuse_tolerance(context)
    if text is not None and not text.removeprefix("-").isdigit():
        raise typer.BadParameter(f"must be an integer or 'auto', got '{text}'.", param_hint="--n-coalitions")
    return None if text is None else int(text)


def _refuse_tolerance(context: typer.Context) -> None:
    if _is_given("tolerance", context):
        raise typer.BadParameter("goes with --n-coalitions auto only, so leave it out.", param_hint="--tolerance")


def _is_given(name: str, context: typer.Context) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _load_explainer(path: Path, model: Model, context: typer.Context) -> Explainer:
    """Load a saved explainer; how it works, unlike what it learned, may be changed."""
    from condshap.saving import load_explainer

    explainer = load_explainer(path, model)
    if explainer.n_coalitions != "auto":
        _refuse_tolerance(context)
    for name in ("n_jobs", "memory_budget", "tolerance"):
        if _is_given(name, context):
            setattr(explainer, name, context.params[name])
    return explainer


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV or Parquet file; text columns of a CSV become categories, Parquet keeps its dtypes."""
    if _suffix(path) not in {".csv", *_PARQUET}:
        raise SchemaError(f"a table must be a .csv or .parquet file, got '{path}'. Convert it.")
    _check_exists(path, "table")
    try:
        if _suffix(path) in _PARQUET:
            return pd.read_parquet(path)
        frame = pd.read_csv(path)
    except (ValueError, OSError) as error:  # parsers raise children of ValueError
        raise SchemaError(f"'{path}' must be a readable {_suffix(path)} table, but {_one_line(error)}") from None
    text = frame.select_dtypes(include=["object", "str"]).columns
    return frame.astype(dict.fromkeys(text, "category"))


def load_model(path: Path, *, trust: bool) -> Model:
    """Load a model; files that may run code are only loaded if they are trusted."""
    if _suffix(path) not in {".skops", *_PICKLES}:
        raise ModelError(
            f"a model must be a .skops, .pkl, .pickle or .joblib file, got '{path}'. Save it with skops.io.dump."
        )
    _check_exists(path, "model")
    if _suffix(path) in _PICKLES and not trust:
        raise ModelError(
            f"'{path}' must be trusted before it is loaded: a {_suffix(path)} file can run any code. Add --trust-model if "
            "you know where it comes from, or save the model with skops.io.dump."
        )
    try:
        return _load_skops(path, trust=trust) if _suffix(path) == ".skops" else _load_pickle(path)
    except CondShapError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise ModelError(
            f"'{path}' must be a complete model file whose packages are installed, but loading failed: "
            f"{type(error).__name__}: {_one_line(error)}"
        ) from None


def _load_pickle(path: Path) -> Model:
    import joblib

    return joblib.load(path)


def _load_skops(path: Path, *, trust: bool) -> Model:
    """Load a skops file; it holds no code, but names types, and skops knows which of them are harmless."""
    import skops.io

    untrusted = skops.io.get_untrusted_types(file=path)
    unknown = sorted(set(untrusted) - HARMLESS_TYPES)
    if unknown and not trust:
        raise ModelError(
            f"'{path}' must hold only types that are known to be harmless, got also {listing(unknown)}. Add --trust-model "
            "if you know where the file comes from."
        )
    return skops.io.load(path, trusted=untrusted)


def select_features(frame: pd.DataFrame, model: Model, path: Path) -> pd.DataFrame:
    """Columns that the model was trained with, if it tells them: a response in the same file is left out, aloud."""
    wanted = [str(name) for name in getattr(model, "feature_names_in_", ())]
    extra = [name for name in frame.columns if name not in wanted]
    if not wanted or not extra or not set(wanted) <= set(frame.columns):
        return frame  # whatever is missing, the gate names it
    _say(f"Note: '{path}' has columns {listing(extra)} that the model does not use; they are left out.")
    return frame[[name for name in frame.columns if name in wanted]]


def _read_output(output: str | None, model: Model) -> str | int | None:
    """An output as the API takes it: digits are a position, unless a class has this name."""
    names = [str(name) for name in getattr(model, "classes_", ())]
    is_position = output is not None and output not in names and output.removeprefix("-").isdigit()
    return int(output) if is_position and output is not None else output


def _summarise(explanation: Explanation, out: Path, *, was_fitted_now: bool) -> None:
    """Say what was explained, how well, and where it is."""
    about, msev = explanation.provenance, explanation.msev
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    kind = "all" if about.is_exact else "a sample of the"
    outputs = f", {len(explanation.output_names)} outputs" if explanation.values.ndim == 3 else ""
    seconds = sum(about.seconds.values()) if was_fitted_now else about.seconds["explain"]
    console.print(
        f"Explained {len(explanation)} rows, {len(explanation.player_names)} features{outputs}, with approach "
        f"'{about.approach}' and {kind} coalitions ({about.n_coalitions}), in {seconds:.1f} s."
    )
    if about.reached is not None:
        console.print(f"Largest standard error {about.reached:.2%} of its row's spread, wanted {about.tolerance:.2%}.")
    if len(explanation) > 1:
        low, high = msev.interval()
        console.print(f"MSEv {float(msev):.4g}, 95 % interval {low:.4g} to {high:.4g} (smaller is better).")
    console.print(f"Written: {escape(str(out))}")


@contextmanager
def _clear_messages() -> Iterator[None]:
    """Turn errors into one line on stderr and exit code 1, and warnings into lines of their own."""
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        except CondShapError as error:
            _say(f"Error: {error}")
            raise typer.Exit(1) from None
        except OSError as error:
            _say(f"Error: {error.filename or 'a file'} must be readable and writable, but {error.strerror or error}.")
            raise typer.Exit(1) from None


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"Warning: {message}")


def _say(text: str) -> None:
    """Write to stderr: the first word in bold where the terminal can, the rest as it is."""
    first, _, rest = text.partition(":")
    console = Console(stderr=True, highlight=False)
    console.print(f"[bold]{first}:[/bold]{escape(rest)}", soft_wrap=not console.is_terminal)  # logs keep one line


def _make_room(out: Path) -> None:
    if out.is_dir():
        raise OptionError(f"the output must be a file, got the folder '{out}'. Add a file name.")
    out.parent.mkdir(parents=True, exist_ok=True)


def _check_exists(path: Path, what: str) -> None:
    if not path.is_file():
        raise OptionError(f"the {what} must be an existing file, got '{path}'. Check the path.")


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
