"""The floor plan's rules about who may import whom, and what a plain import costs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "shortlist"
RECIPES = PACKAGE.with_name("shortlist_recipes")  # a package of its own, which the command finds by an entry point
# leftmost first; rooms in one entry stand side by side and do not import one another
ORDER = [
    ["cli"],
    ["serving"],
    ["loops"],
    ["runs", "estimators"],
    ["scenes"],
    ["reports", "exporting"],
    ["training"],
    ["objectives"],
    ["imcl"],
    ["tasks"],
    ["sets", "metrics", "models", "data"],
    ["nn"],
    ["memories"],
    ["functional"],
    ["timing"],
    ["kernels"],
    # shared ground, open to every room
    ["labels"],
    ["score_counts"],
    ["distributed", "checks", "links", "files", "options", "named", "packed"],
    ["optional", "text", "registry", "verticals", "device_flags", "device_arrays"],
    ["errors"],
]
VERTICAL = ("scenes",)  # rooms that no other one imports: the tables of verticals.py find what they bring
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
ONLY_IN = {
    "lightning_fabric": ("training",),
    "lightning": ("training", "loops"),
    "optuna": ("runs",),
    "torchmetrics": ("metrics",),
    "sklearn": ("estimators", "data"),
    "ray": ("runs",),
    "fastapi": ("serving",),
    "uvicorn": ("serving",),
    "onnx": ("exporting",),
    "onnxruntime": ("exporting",),
    "transformers": ("models", "loops"),
    "tokenizers": ("models",),
    "timm": ("models",),
    "triton": ("kernels",),
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports_of(path: Path) -> list[str]:
    """Every module named by an import statement anywhere in a file."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path.name} has a relative import; the package uses absolute ones"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_to_its_right(file: Path) -> None:
    here = room_of(file)
    for module in imports_of(file):
        parts = module.split(".")
        if parts[0] != "shortlist" or len(parts) == 1:
            continue
        there = parts[1]
        if there in RANK and there != here:
            assert RANK[here] < RANK[there], f"{here} may not import {module}"


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_room_imports_a_vertical_room_or_names_its_kind(file: Path) -> None:
    here = room_of(file)
    others = [kind for kind in VERTICAL if kind != here]
    assert not [name for name in imports_of(file) for kind in others if name.startswith(f"shortlist.{kind}")], file
    if here != "verticals":
        words = [node.value for node in nodes_of(file) if isinstance(node, ast.Constant)]
        assert not [kind for kind in others if kind in words], f"{file} asks for a kind by its name"


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_stay_in_their_rooms(file: Path) -> None:
    for module in imports_of(file):
        rooms = ONLY_IN.get(module.split(".")[0])
        assert rooms is None or room_of(file) in rooms, f"{module} is imported in {room_of(file)}"


BOTH = sorted([*PACKAGE.rglob("*.py"), *RECIPES.rglob("*.py")])
# who imports by a name in a text: the lazy tables, the native module, what the user allowed, optional packages
BY_NAME = {
    "shortlist/__init__.py",
    "shortlist/cli/__init__.py",
    "shortlist/kernels/dispatch.py",
    "shortlist/metrics/__init__.py",
    "shortlist/optional.py",
    "shortlist/registry.py",
}


def private(module: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in module.split("."))


def test_no_room_imports_what_another_one_keeps_to_itself() -> None:
    """Names with an underscore are of one room, or of the file beside the rooms that has them."""

    def across() -> Iterator[str]:
        for file in BOTH:
            here = ("shortlist_recipes",) if file.is_relative_to(RECIPES) else ("shortlist", room_of(file))
            for module in filter(private, imports_of(file)):
                there = tuple(module.split(".")[: len(here)])
                if there[0].startswith("shortlist") and there != here:
                    yield f"{file} imports {module}"

    assert list(across()) == []
    assert private("shortlist.sets._rule.SetRule")
    assert not private("shortlist.__version__")


def test_the_library_does_not_import_the_recipes_and_they_do_not_import_the_command_line() -> None:
    for file in sorted(PACKAGE.rglob("*.py")):
        assert not [name for name in imports_of(file) if name.startswith("shortlist_recipes")], file
    for file in sorted(RECIPES.rglob("*.py")):
        assert not [name for name in imports_of(file) if name.startswith("shortlist.cli")], file


@pytest.mark.parametrize("file", BOTH, ids=lambda p: str(p.relative_to(PACKAGE.parent)))
def test_only_the_lazy_tables_import_by_name_and_nothing_changes_where_python_looks(file: Path) -> None:
    here = str(file.relative_to(PACKAGE.parent))
    names = {node.id for node in nodes_of(file) if isinstance(node, ast.Name)}
    by_name = {"import_module", "__import__", "exec", "eval", "runpy"} & {*names, *imported_names(file)}
    assert not by_name or here in BY_NAME, f"{here} uses {', '.join(by_name)}"
    attributes = [node for node in nodes_of(file) if isinstance(node, ast.Attribute) and node.attr == "path"]
    places = [node for node in attributes if ast.unparse(node) == "sys.path"]
    assert not places or here == "shortlist/cli/__main__.py", f"{here} uses sys.path"


def imported_names(file: Path) -> set[str]:
    return {part for name in imports_of(file) for part in name.split(".")}


def modules_after(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(out.stdout.split())


def test_importing_the_package_imports_neither_torch_nor_numpy() -> None:
    assert not {"torch", "numpy"} & modules_after("import shortlist")


def test_scenes_need_no_torchmetrics_until_a_metric_class_is_asked_for() -> None:
    assert "torchmetrics" not in modules_after("import shortlist.scenes.task")


def test_verbs_that_do_not_train_never_import_the_compiler_of_torch() -> None:
    assert "torch._dynamo" not in modules_after("import shortlist.runs.ray_work, shortlist.functional")


def test_the_public_names_are_found_on_first_use() -> None:
    assert "torch" in modules_after("import shortlist; shortlist.functional.lml")


def test_an_unknown_name_says_what_there_is() -> None:
    import shortlist

    with pytest.raises(AttributeError, match="functional"):
        shortlist.functinal  # noqa: B018


def test_what_compilers_take_as_constant_is_marked_as_torch_marks_it() -> None:
    import torch

    from shortlist.kernels import dispatch

    assert vars(dispatch._triton_offers) == vars(torch.compiler.assume_constant_result(lambda: 0))
