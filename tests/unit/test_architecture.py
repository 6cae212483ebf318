"""The house keeps its shape: small modules and functions, stages that look only back."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import condshap
from condshap.approaches import available_approaches

ROOT = Path(condshap.__file__).parent
MODULES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in sorted(ROOT.rglob("*.py"))}

FILES = {"writing", "sealing", "tensor_file"}
FOUNDATION = {
    "numerics",
    "types",
    "exceptions",
    "seeding",
    "options",
    "progress",
    "vaeac",
    "ctree",
    "trees",
    "announcing",
} | FILES
STAGES = {
    "schema": 1, "tables": 1, "table_formats": 1, "stored_tables": 1, "stored_schema": 1, "table_differences": 1,
    "coalitions": 2,
    "approaches": 3, "combination": 3, "regression": 3, "stored_values": 3, "state_file": 3,
    "predict": 4, "linear_models": 4,
    "values": 5, "precision": 5, "accelerator": 5, "additive": 5, "adaptive": 5, "draw_check": 5, "checking": 5,
    "additive_proof": 5, "tree_steps": 5, "predictions": 5, "members": 3,
    "solvers": 6, "null_players": 6,
    "explanation": 7, "notebook": 7, "storage": 7, "evaluation": 7, "convergence": 7, "comparing": 7, "feature_columns": 7,
    "plots": 8,
}  # fmt: skip
SEE_EVERYTHING = {
    "__init__",
    "__main__",
    "assembly",
    "automatic",
    "value_tables",
    "model_errors",
    "explainer",
    "maker",
    "one_call",
    "saving",
    "cli",
    "demo",
    "datasets",
    "testing",
    "studies",
    "reporting",
}


TABLE_FACE = {"vaeac/estimator", "vaeac/options"}  # what puts tables and estimators in front of the network


def part_of(module: str) -> str:
    return module.split("/")[0]


def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def imports_of(module: str, *, lazy: bool = True) -> set[str]:
    """Modules of condshap, as paths, and other packages that a module imports; without `lazy` only when it is loaded."""
    found: set[str] = set()
    for node in ast.walk(tree_of(module)) if lazy else loaded_nodes(tree_of(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if is_module(name) else node.module for name in names}
    return {name.removeprefix("condshap.").replace(".", "/") if name != "condshap" else "__init__" for name in found}


def is_module(name: str) -> bool:
    path = name.removeprefix("condshap.").replace(".", "/")
    return name.startswith("condshap.") and (path in MODULES or f"{path}/__init__" in MODULES)


def loaded_nodes(tree: ast.Module) -> list[ast.stmt]:
    """Statements that run when a module is loaded: not those in functions or under TYPE_CHECKING."""
    found: list[ast.stmt] = []
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not checking and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def own_imports(module: str, *, lazy: bool = True) -> set[str]:
    inside = {name for name in imports_of(module, lazy=lazy) if name in MODULES or f"{name}/__init__" in MODULES}
    return inside - {module, module.removesuffix("/__init__")}


def functions() -> list[tuple[str, int]]:
    """Every function and its number of lines of code: without docstring, comments, blank lines and signature."""
    found = []
    for module, path in MODULES.items():
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            inside = lines[body[0].lineno - 1 : node.end_lineno] if body else []
            code = [line for line in inside if line.strip() and not line.strip().startswith("#")]
            found.append((f"{module}.{node.name}", len(code)))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_module_has_at_most_500_lines(module):
    assert len(MODULES[module].read_text().splitlines()) <= 500


def test_no_function_is_longer_than_80_lines():
    assert [f"{name}: {n}" for name, n in functions() if n > 80] == []


def test_95_percent_of_the_functions_are_shorter_than_40_lines():
    lengths = functions()
    long = [f"{name}: {n}" for name, n in lengths if n >= 40]
    assert len(long) <= 0.05 * len(lengths), long


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_place(module):
    assert part_of(module) in FOUNDATION | set(STAGES) | SEE_EVERYTHING


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in STAGES])
def test_stage_imports_only_earlier_stages(module):
    stage = STAGES[part_of(module)]
    for other in own_imports(module):
        part = part_of(other)
        allowed = part in FOUNDATION or STAGES.get(part, 99) <= stage
        assert allowed, f"{module} (stage {stage}) imports {other}"


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in FOUNDATION])
def test_foundation_imports_no_stage(module):
    allowed = FOUNDATION | {"schema", "stored_schema", "__init__"} if module == "vaeac/estimator" else FOUNDATION
    assert {part_of(other) for other in own_imports(module)} <= allowed


def test_modules_do_not_import_each_other_in_circles():
    # a package stands for its __init__; what is imported inside a function runs later and closes no circle
    graph = {m.removesuffix("/__init__"): own_imports(m, lazy=False) for m in MODULES if m != "__init__"}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module in done:
            return
        for other in graph.get(module, set()):
            visit(other, (*trail, module))
        done.add(module)

    for module in graph:
        visit(module, ())
    assert done >= set(graph)


@pytest.mark.parametrize("module", MODULES)
def test_only_the_adapter_and_the_lazy_export_know_the_network(module):
    knows = any(part_of(other) == "vaeac" for other in own_imports(module))
    allowed = {
        "approaches/vaeac",
        "__init__",
        "studies/figures/mixture",
    }  # the last one draws the network's own insides
    assert not knows or part_of(module) == "vaeac" or module in allowed


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in {"numerics", "vaeac"}])
def test_numerics_know_neither_data_frames_nor_estimators(module):
    packages = {name.split("/")[0].split(".")[0] for name in imports_of(module)}
    assert module in TABLE_FACE or not packages & {"pandas", "sklearn", "polars", "pyarrow", "narwhals"}


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) == "vaeac" and m not in TABLE_FACE])
def test_network_does_not_know_its_table_face(module):
    assert not own_imports(module) & TABLE_FACE


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_are_imported_where_they_are_needed(module):
    heavy = {"torch", "matplotlib", "sklego", "polars", "pyarrow", "shap", "xgboost", "lightgbm", "joblib", "tqdm"}
    if (
        part_of(module) in {"vaeac", "accelerator"} or module == "numerics/device_draws"
    ):  # themselves imported when needed
        heavy -= {"torch"}
    if part_of(module) in {"plots", "studies"}:
        heavy -= {"matplotlib"}
    packages = {name.split("/")[0].split(".")[0] for name in imports_of(module, lazy=False) - type_only(module)}
    assert not packages & heavy


def type_only(module: str) -> set[str]:
    """Imports under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in ast.walk(node):
                if isinstance(child, ast.Import):
                    found |= {alias.name.replace(".", "/") for alias in child.names}
    return found


@pytest.mark.parametrize("name", available_approaches())
def test_file_name_is_the_name_of_the_approach(name):
    approach = import_module(f"condshap.approaches.{name}").APPROACH
    assert approach.name == name
    assert isinstance(approach.supports, frozenset)
    assert isinstance(approach.handles_missing, bool)
    assert approach.__name__.lower() == name.replace("_", "")


def test_every_file_in_the_folder_is_an_approach():
    files = {module.split("/")[1] for module in MODULES if module.startswith("approaches/")} - {"__init__", "base"}
    assert files == set(available_approaches())


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for(module):
    assert ast.get_docstring(tree_of(module))


@pytest.mark.parametrize(
    "module",
    ["schema", "coalitions/__init__", "approaches/base", "predict", "values", "solvers", "explanation", "evaluation"],
)
def test_stage_module_opens_with_its_arrow(module):
    docstring = ast.get_docstring(tree_of(module))
    assert docstring is not None
    assert "->" in docstring.splitlines()[0]
