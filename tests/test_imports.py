"""The floor plan's rules about who may import whom, and what a plain import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "shortlist"
# leftmost first; rooms in one entry stand side by side and do not import one another
ORDER = [
    ["cli"],
    ["recipes"],
    ["reports"],
    ["estimators"],
    ["training"],
    ["objectives"],
    ["imcl", "scenes"],
    ["sets", "metrics", "models", "data"],
    ["nn"],
    ["functional"],
    ["kernels"],
    # shared ground, open to every room
    ["labels"],
    ["distributed", "checks", "links", "files", "optional"],
    ["errors"],
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
ONLY_IN = {
    "lightning_fabric": ("training",),
    "lightning": ("training",),
    "torchmetrics": ("metrics",),
    "sklearn": ("estimators", "recipes", "data"),
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> list[str]:
    """Every module named by an import statement anywhere in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
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
def test_heavy_packages_stay_in_their_rooms(file: Path) -> None:
    for module in imports_of(file):
        rooms = ONLY_IN.get(module.split(".")[0])
        assert rooms is None or room_of(file) in rooms, f"{module} is imported in {room_of(file)}"


def modules_after(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(out.stdout.split())


def test_importing_the_package_imports_neither_torch_nor_numpy() -> None:
    assert not {"torch", "numpy"} & modules_after("import shortlist")


def test_the_public_names_are_found_on_first_use() -> None:
    assert "torch" in modules_after("import shortlist; shortlist.functional.lml")


def test_an_unknown_name_says_what_there_is() -> None:
    import shortlist

    with pytest.raises(AttributeError, match="functional"):
        shortlist.functinal  # noqa: B018
