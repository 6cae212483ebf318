"""Files with a model and its tables -> files with explainers and explanations: ``fit``, ``explain``, ``compare``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condshap.approaches import find_approach
from condshap.cli.csv_file import text_columns
from condshap.cli.files import PARQUET, is_folder, load_model, make_room, read_answered, read_features, suffix_of
from condshap.cli.many_rows import Bulk, Cluster, Columns, Kept, KeyColumn, Resume, RowsPerPart, Values, Workers
from condshap.cli.options import (
    DEFAULT_APPROACH,
    ApproachName,
    ApproachNames,
    AsJson,
    ModelFile,
    RowsFile,
    RowsOrDataset,
    Settings,
    TrainFile,
    TrustModel,
    read_level,
    takes_settings,
)
from condshap.cli.screen import (
    clear_messages,
    loss_summary_of,
    print_comparison,
    print_json,
    print_loss_summary,
    print_summary,
    print_written,
    say,
    summary_of,
)
from condshap.exceptions import OptionError, listing
from condshap.options import check_folder
from condshap.storage.writing import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from condshap.approaches.base import Approach
    from condshap.explaining import Ready
    from condshap.games.loss_explanation import LossExplanation


class LossName(StrEnum):
    """Losses that have a name; functions need Python."""

    squared_error = "squared_error"
    absolute_error = "absolute_error"
    log_loss = "log_loss"


PAPER_APPROACHES = ("independence", "ctree", "vaeac")


@takes_settings
def fit(
    model: ModelFile,
    train: TrainFile,
    out: Annotated[Path, typer.Option(help="Explainer file to write, for 'condshap explain --explainer'.")],
    settings: Settings,
    approach: ApproachName = DEFAULT_APPROACH,
    trust_model: TrustModel = False,
    as_json: AsJson = False,
) -> None:
    """Learn from training rows once and save the explainer."""
    from condshap.learning import learn, prepare
    from condshap.storage.schemas import schema_to_json

    with clear_messages():
        find_approach(approach)  # a misspelt name or an unusable path should not wait for the numbers
        make_room(out)
        loaded = load_model(model, trust=trust_model)
        explainer = settings.explainer(loaded, approach)
        prepared = prepare(explainer, read_features(train, loaded), settings.categorical)
        schema_to_json(prepared.setup.schema)  # fails before training if the result could not be saved
        explainer.game_ = learn(explainer, prepared)
        explainer.save(out)
        if as_json:
            print_json({"approach": approach, "seconds": explainer.seconds_, "written": [out]})
            return
        typer.echo(f"Fitted approach '{approach}' on '{train}' in {explainer.seconds_:.1f} s.")
        print_written([out], as_json=False)


@takes_settings
def explain(
    model: ModelFile,
    rows: RowsOrDataset,
    out: Annotated[
        Path,
        typer.Option(
            help="Explanation file to write, .parquet; in Python, load_explanation reads it. Or a folder, for many rows, "
            "that open_explanations opens."
        ),
    ],
    settings: Settings,
    explainer: Annotated[
        Path | None, typer.Option(help="Explainer saved by 'condshap fit', in place of --train and its options.")
    ] = None,
    train: Annotated[Path | None, typer.Option(help="Training rows: .csv or .parquet.")] = None,
    approach: ApproachName = DEFAULT_APPROACH,
    loss: Annotated[
        LossName | None,
        typer.Option(
            metavar="<loss>",
            help="Explain this loss instead of predictions, squared_error, absolute_error or log_loss: which features the "
            "model needs.",
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="With --loss: column of the rows with the true answers.")] = None,
    rows_per_part: RowsPerPart = None,
    column: Columns = None,
    key: KeyColumn = None,
    values: Values = Kept.full,
    cluster: Cluster = None,
    workers: Workers = None,
    resume: Resume = True,
    trust_model: TrustModel = False,
    as_json: AsJson = False,
) -> None:
    """Explain rows of a table, or of a dataset of any size, given a saved model and training rows or a saved explainer."""
    bulk = Bulk(rows_per_part, column, key, values, cluster, workers, resume)
    if is_folder(out):
        bulk.check(out, explainer, settings.given)
        _check_options(explainer, settings)
        assert explainer is not None
        with clear_messages():
            loaded = load_model(model, trust=trust_model)
            bulk.explain(settings.load_explainer(explainer, loaded), rows, out, as_json=as_json)
        return
    bulk.refuse(settings.given)
    _check_explain(out, explainer, train, settings)
    _check_loss(loss, target, settings)
    from condshap.explaining import finish, get_ready
    from condshap.storage.tables import store_table

    with clear_messages():
        find_approach(approach)  # a misspelt name or an unusable path should not wait for the numbers
        make_room(out)
        loaded = load_model(model, trust=trust_model)
        explanation: Any
        if explainer is not None:
            fitted = settings.load_explainer(explainer, loaded)
            X, y = read_answered(rows, loaded, target, text_columns(fitted.schema_))
            store_table(X)  # fails before explaining if the result could not be saved
            if loss is not None and not hasattr(fitted, "explain_loss"):
                raise OptionError(
                    f"--loss needs an explainer that estimates v(S), got the fast explainer '{explainer}'. Pass the "
                    "explainer that it was made from."
                )
            explanation = fitted.explain(X) if loss is None else fitted.explain_loss(X, y, loss.value)
        else:
            assert train is not None
            X_train, _ = read_answered(train, loaded, target, is_needed=False)
            X, y = read_answered(rows, loaded, target, text_columns(X_train))
            store_table(X)
            fresh = settings.explainer(loaded, approach)
            categorical = settings.categorical
            if loss is None:
                explanation = finish(get_ready(fresh, X_train, X, categorical=categorical))
            else:
                explanation = _finish_loss(get_ready(fresh, X_train, X, categorical=categorical), y, loss.value)
        explanation.save(out)
        about = explanation.provenance
        seconds = sum(about.seconds.values()) if explainer is None else about.seconds["explain"]
        summarise, show = (summary_of, print_summary) if loss is None else (loss_summary_of, print_loss_summary)
        if as_json:
            print_json({**summarise(explanation, seconds), "written": [out]})
        else:
            show(explanation, out, seconds)


@takes_settings
def compare(
    model: ModelFile,
    train: TrainFile,
    rows: RowsFile,
    out: Annotated[Path, typer.Option(help="Folder for comparison.csv and one .parquet file per approach.")],
    settings: Settings,
    approach: ApproachNames = None,
    level: Annotated[
        float,
        typer.Option(callback=read_level, help="Level of the confidence intervals over rows, from 0.5 to 0.9999."),
    ] = 0.95,
    trust_model: TrustModel = False,
    as_json: AsJson = False,
) -> None:
    """Explain the same rows with several approaches and compare their MSEv: how far v(S) is from the prediction."""
    settings.check()
    from condshap.comparison import get_all_ready
    from condshap.storage.tables import store_table

    with clear_messages():
        names = tuple(dict.fromkeys(approach or PAPER_APPROACHES))
        _check_samples([find_approach(name)() for name in names], settings)
        loaded = load_model(model, trust=trust_model)
        X_train = read_features(train, loaded)
        X = read_features(rows, loaded, text_columns(X_train))
        store_table(X)
        explainers = [settings.explainer(loaded, name) for name in names]
        ready = get_all_ready(explainers, X_train, X, categorical=settings.categorical)
        check_folder(out)
        table, written, failed = _explain_each(dict(zip(names, ready, strict=True)), out, level)
        if as_json:
            lines = table.to_dict("records")
            print_json({"level": level, "approaches": lines, "failed": failed, "written": written})
        else:
            print_comparison(table, level)
            print_written(written, as_json=False)
        if failed:
            raise typer.Exit(1)


def _explain_each(ready: dict[str, Ready], out: Path, level: float) -> tuple[pd.DataFrame, list[Path], dict[str, str]]:
    """Train and explain with one approach after the other; finished results are written, whatever happens to the next.

    Returns
    -------
    Lines of the comparison, files, and for each approach that failed what went wrong.
    """
    from condshap.comparison import failure
    from condshap.explaining import finish
    from condshap.ranking import compare_explanations

    explanations, written, failed = [], [], {}
    for i, (name, one) in enumerate(ready.items(), start=1):
        say(f"Approach {i} of {len(ready)}: {name} ...")
        try:
            explanation = finish(one)
            explanation.save(out / f"{name}.parquet")
        except Exception as error:  # of any kind: the results of the other approaches must not be lost
            failed[name] = failure(one, error)
            if len(failed) == len(ready):
                raise
            say(f"Error: {failed[name]}")
            continue
        explanations.append(explanation)
        written.append(out / f"{name}.parquet")
        table = compare_explanations(explanations, level=level)
        # after each approach, so that there is a table if the next one is stopped
        write_whole(out / "comparison.csv", table.to_csv(index=False), "the comparison")
    return table, [*written, out / "comparison.csv"], failed


def _check_samples(approaches: Sequence[Approach], settings: Settings) -> None:
    """Refuse options about samples if an approach uses none, before another approach has spent time."""
    from condshap.approaches.base import is_sampler

    without = [approach.name for approach in approaches if not is_sampler(approach)]
    for option in sorted({"n_samples", "target_error"} & settings.given if without else ()):
        raise typer.BadParameter(
            f"approaches {listing(without)} use no samples: leave out either these approaches or this option.",
            param_hint=f"--{option.replace('_', '-')}",
        )


def _finish_loss(ready: Ready, y: Any, loss: str) -> LossExplanation:
    """Train and explain a loss, once the true answers (R,) are known to fit."""
    from condshap.games.losses import make_losses
    from condshap.learning import learn

    make_losses(loss, y, len(ready.rows), ready.prepared.setup.predictor)
    ready.explainer.game_ = learn(ready.explainer, ready.prepared)
    return ready.explainer.explain_loss(ready.X, y, loss)


def _check_loss(loss: LossName | None, target: str | None, settings: Settings) -> None:
    """Refuse a loss without true answers, answers without a loss, and options that are about predictions."""
    for option in sorted({"link", "target_error"} & settings.given if loss is not None else ()):
        raise typer.BadParameter(
            "is about predictions: leave it out with --loss.", param_hint=f"--{option.replace('_', '-')}"
        )
    if loss is not None and target is None:
        raise typer.BadParameter("needs --target with the column of the true answers.", param_hint="--loss")
    if target is not None and loss is None:
        raise typer.BadParameter("works only with --loss: leave it out.", param_hint="--target")


def _check_explain(out: Path, explainer: Path | None, train: Path | None, settings: Settings) -> None:
    """Refuse options of 'explain' that cannot be combined."""
    if suffix_of(out) not in PARQUET:
        raise typer.BadParameter(f"must end in .parquet, got '{out}'.", param_hint="--out")
    if explainer is None and train is None:
        raise typer.BadParameter(
            "give --train with the training rows, or --explainer with the file that 'condshap fit' wrote.",
            param_hint="--train",
        )
    _check_options(explainer, settings)


def _check_options(explainer: Path | None, settings: Settings) -> None:
    settled = settings.settled_by_fit()
    if explainer is not None and settled:
        raise typer.BadParameter(
            f"a saved explainer already fixes these options: leave out {', '.join(settled)}, or leave out --explainer.",
            param_hint="--explainer",
        )
