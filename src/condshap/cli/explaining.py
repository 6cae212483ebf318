"""Model, training rows and rows in files -> explainers and explanations in files: ``fit``, ``explain``, ``compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condshap.approaches import find_approach
from condshap.cli.files import PARQUET, load_model, make_room, read_table, select_features, suffix_of
from condshap.cli.options import (
    DEFAULT_APPROACH,
    ApproachName,
    ApproachNames,
    AsJson,
    ModelFile,
    RowsFile,
    Settings,
    TrainFile,
    TrustModel,
    takes_settings,
)
from condshap.cli.screen import (
    clear_messages,
    print_comparison,
    print_json,
    print_summary,
    print_written,
    say,
    summary_of,
)
from condshap.exceptions import listing
from condshap.options import check_folder
from condshap.writing import write_whole

if TYPE_CHECKING:
    from condshap.approaches.base import Approach

PAPER_APPROACHES = ("independence", "ctree", "vaeac")


@takes_settings
def fit(
    model: ModelFile,
    train: TrainFile,
    out: Annotated[Path, typer.Option(help="File to write: an explainer for 'condshap explain --explainer'.")],
    settings: Settings,
    approach: ApproachName = DEFAULT_APPROACH,
    trust_model: TrustModel = False,
    as_json: AsJson = False,
) -> None:
    """Learn from training rows once, and save the explainer."""
    with clear_messages():
        find_approach(approach)  # a misspelt name or an unusable path should not wait for the numbers
        make_room(out)
        loaded = load_model(model, trust=trust_model)
        explainer = settings.explainer(loaded, approach)
        explainer.fit(select_features(read_table(train), loaded, train), categorical=settings.categorical or ())
        explainer.save(out)
        if as_json:
            print_json({"approach": approach, "seconds": explainer.seconds_, "written": [out]})
            return
        typer.echo(f"Fitted approach '{approach}' on '{train}' in {explainer.seconds_:.1f} s.")
        print_written([out], as_json=False)


@takes_settings
def explain(
    model: ModelFile,
    rows: RowsFile,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, read it with condshap.load_explanation.")],
    settings: Settings,
    explainer: Annotated[
        Path | None, typer.Option(help="Explainer saved by 'condshap fit', instead of --train and its options.")
    ] = None,
    train: Annotated[Path | None, typer.Option(help="Training rows: .csv or .parquet.")] = None,
    approach: ApproachName = DEFAULT_APPROACH,
    trust_model: TrustModel = False,
    as_json: AsJson = False,
) -> None:
    """Explain rows of a table with a saved model, and training rows or a saved explainer."""
    _check_explain(out, explainer, train, settings)
    with clear_messages():
        find_approach(approach)  # a misspelt name or an unusable path should not wait for the numbers
        make_room(out)
        loaded = load_model(model, trust=trust_model)
        if explainer is not None:
            fitted = settings.load_explainer(explainer, loaded)
        else:
            assert train is not None
            fitted = settings.explainer(loaded, approach)
            fitted.fit(select_features(read_table(train), loaded, train), categorical=settings.categorical or ())
        explanation = fitted.explain(select_features(read_table(rows), loaded, rows))
        explanation.save(out)
        about = explanation.provenance
        seconds = sum(about.seconds.values()) if explainer is None else about.seconds["explain"]
        if as_json:
            print_json({**summary_of(explanation, seconds), "written": [out]})
        else:
            print_summary(explanation, out, seconds)


@takes_settings
def compare(
    model: ModelFile,
    train: TrainFile,
    rows: RowsFile,
    out: Annotated[Path, typer.Option(help="Folder for the explanations, a .parquet file each, and comparison.csv.")],
    settings: Settings,
    approach: ApproachNames = None,
    level: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the confidence intervals over rows.")] = 0.95,
    trust_model: TrustModel = False,
    as_json: AsJson = False,
) -> None:
    """Explain the same rows with several approaches, and compare them by MSEv: how well v(S) predicts the model."""
    settings.check()
    from condshap.one_call import check_approaches, compare_explanations

    with clear_messages():
        names = tuple(dict.fromkeys(approach or PAPER_APPROACHES))
        _check_samples([find_approach(name)() for name in names], settings)
        loaded = load_model(model, trust=trust_model)
        X_train, X = (select_features(read_table(path), loaded, path) for path in (train, rows))
        check_approaches(names, X_train, categorical=settings.categorical or ())
        check_folder(out)
        explanations, written = [], []
        for i, name in enumerate(names, start=1):
            say(f"Approach {i} of {len(names)}: {name} ...")
            explainer = settings.explainer(loaded, name).fit(X_train, categorical=settings.categorical or ())
            explanations.append(explainer.explain(X))
            written.append(out / f"{name}.parquet")
            explanations[-1].save(written[-1])
        table = compare_explanations(explanations, level=level)
        written.append(out / "comparison.csv")
        write_whole(written[-1], table.to_csv(index=False), "the comparison")
        if as_json:
            print_json({"level": level, "approaches": table.to_dict("records"), "written": written})
            return
        print_comparison(table, level)
        print_written(written, as_json=False)


def _check_samples(approaches: Sequence[Approach], settings: Settings) -> None:
    """Refuse options about samples where an approach uses none, before another one has spent its time."""
    from condshap.approaches.base import is_sampler

    without = [approach.name for approach in approaches if not is_sampler(approach)]
    for option in sorted({"n_samples", "target_error"} & settings.given if without else ()):
        raise typer.BadParameter(
            f"approaches {listing(without)} use no samples: leave them or this option out.",
            param_hint=f"--{option.replace('_', '-')}",
        )


def _check_explain(out: Path, explainer: Path | None, train: Path | None, settings: Settings) -> None:
    """Refuse options of 'explain' that do not go together."""
    if suffix_of(out) not in PARQUET:
        raise typer.BadParameter(f"must end in .parquet, got '{out}'.", param_hint="--out")
    if explainer is None and train is None:
        raise typer.BadParameter(
            "give --train with the rows to learn from, or --explainer with what 'condshap fit' wrote.",
            param_hint="--train",
        )
    settled = settings.settled_by_fit()
    if explainer is not None and settled:
        raise typer.BadParameter(
            f"a saved explainer has its own, so leave out {', '.join(settled)}, or leave out --explainer.",
            param_hint="--explainer",
        )
