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

FOUNDATION, ANYTHING = 0, 99
STAGES = {  # the longest name that fits a module counts; a module imports its own stage and earlier ones
    "types": FOUNDATION, "exceptions": FOUNDATION, "seeding": FOUNDATION, "options": FOUNDATION, "numerics": FOUNDATION,
    "runtime": FOUNDATION, "vaeac": FOUNDATION, "ctree": FOUNDATION, "trees": FOUNDATION, "storage": FOUNDATION,
    "schema": 1, "tables": 1, "storage/tables": 1, "storage/schemas": 1,
    "coalitions": 2,
    "approaches": 3, "values/assignments": 3, "precision/members": 3, "precision/influence": 3,
    "storage/plain_values": 3, "stored_values": 3,
    "storage/state_file": 3, "storage/networks": 3,
    "models": 4,
    "values": 5, "precision": 5, "draw_check": 5,
    "solvers": 6, "values/null_players": 6, "values/conditional_rows": 6,
    "explanation": 7, "evaluation": 7, "ranking": 7, "storage/explanations": 7, "precision/convergence": 7,
    "tables/feature_columns": 7, "reporting/notebook": 7, "views": 7,
    "games/__init__": 7, "games/exact_tables": 7, "games/interactions": 7, "games/owen": 7,
    "games/loss_explanation": 7, "plots": 8,
    "__init__": ANYTHING, "__main__": ANYTHING, "assembly": ANYTHING, "explainer": ANYTHING,
    "explaining": ANYTHING, "learning": ANYTHING,
    "game": 6, "comparison": ANYTHING,
    "values/valuation": ANYTHING, "precision/automatic": ANYTHING, "precision/model_errors": ANYTHING,
    "storage/explainers": ANYTHING, "storage/digests": ANYTHING, "cli": ANYTHING, "demo": ANYTHING, "datasets": ANYTHING,
    "amortised": ANYTHING, "bulk": ANYTHING,
    "testing": ANYTHING, "studies": ANYTHING, "reporting": ANYTHING, "games": ANYTHING,
}  # fmt: skip
MOST_TOP_LEVEL, MOST_LINES = 18, 400
MOST_PARAMETERS, MOST_WITH_MORE = 7, 10

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


def parameters() -> list[tuple[str, int]]:
    """Every function but constructors, and its number of parameters beside self and cls."""
    found = []
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name != "__init__":
                given = node.args
                named = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                collected = [arg for arg in (given.vararg, given.kwarg) if arg is not None]
                found.append((f"{module}.{node.name}", len(set(named) - {"self", "cls"}) + len(collected)))
    return found


def stage_of(module: str) -> int:
    """Stage of a module, by the longest name that fits."""
    parts = module.split("/")
    for n in range(len(parts), 0, -1):
        name = "/".join(parts[:n])
        if name in STAGES:
            return STAGES[name]
    raise AssertionError(f"{module} has no place: say in STAGES where it stands")


def test_there_are_few_modules_on_the_top_level():
    assert len([module for module in MODULES if "/" not in module]) <= MOST_TOP_LEVEL


def test_modules_are_short():
    lengths = {module: len(path.read_text().splitlines()) for module, path in MODULES.items()}
    assert {module: n for module, n in lengths.items() if n > MOST_LINES} == {}


def test_no_function_is_longer_than_80_lines():
    assert [f"{name}: {n}" for name, n in functions() if n > 80] == []


def test_95_percent_of_the_functions_are_shorter_than_40_lines():
    lengths = functions()
    long = [f"{name}: {n}" for name, n in lengths if n >= 40]
    assert len(long) <= 0.05 * len(lengths), long


def test_few_functions_take_more_than_seven_parameters():
    # public functions, commands, and kernels that hold loops
    many = [f"{name}: {n}" for name, n in parameters() if n > MOST_PARAMETERS]
    assert len(many) <= MOST_WITH_MORE, many


def test_modules_import_only_their_own_stage_and_earlier_ones():
    face = {"schema", "storage/networks"}  # of the networks' table face
    late = [
        f"{module} imports {other}"
        for module in MODULES
        for other in own_imports(module)
        if stage_of(other) > stage_of(module) and not (module == "vaeac/estimator" and other in face)
    ]
    assert late == []


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


def package_of(module: str) -> str:
    return module.removesuffix("/__init__").rpartition("/")[0] or "__init__"


def loaded_with(module: str, inside: str) -> set[str]:
    """Modules that are loaded with a module, packages around them included, but for one that is loaded already."""
    loaded: set[str] = set()
    waiting = [module]
    while waiting:
        one = waiting.pop()
        one = one if one in MODULES else f"{one}/__init__"
        if one not in {*loaded, "__init__", f"{inside}/__init__"}:
            loaded.add(one)
            waiting += [*own_imports(one, lazy=False), package_of(one)]
    return loaded


def test_imports_inside_functions_hide_no_circle_but_those_of_saving_and_showing():
    # a result that saves or shows itself needs a module that makes, or takes, such results
    closing = []
    for module in MODULES:
        functions = [n for n in ast.walk(tree_of(module)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        inside = {n.module for f in functions for n in ast.walk(f) if isinstance(n, ast.ImportFrom) and n.module}
        for other in sorted(inside):
            path = other.removeprefix("condshap.").replace(".", "/")
            if other.startswith("condshap.") and module in loaded_with(path, package_of(module)):
                closing.append((module, path))
    assert closing == [
        ("explainer", "storage/explainers"),
        ("explanation", "reporting/notebook"),
        ("explanation", "storage/explanations"),
        ("games/loss_explanation", "storage/explanations"),
    ]


def private_names(module: str) -> set[str]:
    """Private methods and attributes of the classes of a module."""
    found: set[str] = set()
    for one in (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef)):
        found |= {node.name for node in ast.walk(one) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        found |= {node.attr for node in ast.walk(one) if isinstance(node, ast.Attribute) and is_own(node)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def test_private_parts_of_a_class_are_used_in_its_own_module_alone():
    own = {module: private_names(module) for module in MODULES}
    all_names = set().union(*own.values())
    touched = [
        f"{module}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Attribute) and not is_own(node) and node.attr in all_names - own[module]
    ]
    assert touched == []


def test_approaches_declare_and_are_not_probed():
    # base reads declarations, assignments asks whether an object is an approach at all, the contract compares with the class
    probing = {
        module
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call) and is_probe(node) and names_an_approach(node.args[0])
    }
    assert probing == {"approaches/base", "values/assignments", "testing/checks"}


def is_probe(node: ast.Call) -> bool:
    """Whether a call asks if there is an attribute; `getattr` does with a default."""
    name = ast.unparse(node.func)
    return name == "hasattr" or (name == "getattr" and len(node.args) == 3)


def names_an_approach(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in {"approach", "sampler"}


def test_only_the_adapter_and_the_lazy_export_know_the_network():
    knows = {m for m in MODULES if any(part_of(other) == "vaeac" for other in own_imports(m)) and part_of(m) != "vaeac"}
    # storage stores them, one draws their insides, and networks of Shapley values read rows as they do
    allowed = {"approaches/vaeac", "__init__", "storage/networks", "studies/figures/mixture"}
    assert {m for m in knows if part_of(m) != "amortised"} <= allowed


def packages_of(module: str, *, lazy: bool = True) -> set[str]:
    names = imports_of(module, lazy=lazy)
    return {name.split("/")[0].split(".")[0] for name in (names if lazy else names - type_only(module))}


def test_numerics_know_neither_data_frames_nor_estimators():
    tables = {"pandas", "sklearn", "polars", "pyarrow", "narwhals"}
    inner = [m for m in MODULES if part_of(m) in {"numerics", "vaeac"} and m not in TABLE_FACE]
    assert [m for m in inner if packages_of(m) & tables] == []


def test_network_does_not_know_its_table_face():
    inner = [m for m in MODULES if part_of(m) == "vaeac" and m not in TABLE_FACE]
    assert [m for m in inner if own_imports(m) & TABLE_FACE] == []


WITH_TORCH = {"values/device", "models/on_device", "numerics/device_draws"}  # themselves imported when needed
WITH_TORCH |= {"amortised/network", "amortised/training", "amortised/likeness"}


def test_heavy_packages_are_imported_where_they_are_needed():
    heavy = {"torch", "matplotlib", "sklego", "polars", "pyarrow", "shap", "xgboost", "lightgbm", "joblib"}
    found = []
    for module in MODULES:
        allowed = {"torch"} if part_of(module) == "vaeac" or module in WITH_TORCH else set()
        allowed |= {"matplotlib"} if part_of(module) in {"plots", "studies"} else set()
        found += [f"{module}: {name}" for name in packages_of(module, lazy=False) & (heavy - allowed)]
    assert found == []


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
    files = {name for name in files if not name.startswith("_")}
    assert files == set(available_approaches())


def test_unit_tests_stand_in_rooms_of_the_source():
    # the contract suite, `testing`, has its own tests in tests/contract
    tests = Path(__file__).parents[1] / "unit"
    rooms = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert [room.as_posix() for room in sorted(rooms) if not (ROOT / room).is_dir()] == []
    assert {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} - {r.name for r in rooms} == {
        "testing"
    }


def test_every_module_says_what_it_is_for():
    assert [module for module in MODULES if not ast.get_docstring(tree_of(module))] == []


ARROWS = [
    "schema", "coalitions/__init__", "approaches/base", "models/predictor", "values/table", "solvers", "explanation",
    "evaluation",
]  # fmt: skip


@pytest.mark.parametrize("module", ARROWS)
def test_stage_module_opens_with_its_arrow(module):
    docstring = ast.get_docstring(tree_of(module))
    assert docstring is not None
    assert "->" in docstring.splitlines()[0]
