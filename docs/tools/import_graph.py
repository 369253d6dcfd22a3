"""Which room imports which, drawn from the code: the graph in docs/floor-plan.md.

``python docs/tools/catalogue.py`` writes it, ``--check`` compares it. Shared ground, which every room may use, is left
out, and so is an arrow where a longer way leads to the same room: what is left shows the order.
"""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
PAGE = Path(__file__).resolve().parents[1] / "floor-plan.md"
BEGIN, END = "<!-- the import graph, written by docs/tools/import_graph.py -->", "<!-- end of the import graph -->"
SHARED = {"labels", "checks", "links", "errors", "options", "registry", "distributed", "files", "optional", "text"}
SHARED |= {"named", "verticals", "score_counts", "packed", "device_flags", "device_arrays"}


def page() -> str:
    """The floor plan with the graph as the code is now; the text around it is written by hand."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise SystemExit(f"docs/{PAGE.name} has no place for the graph: it needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{drawn(imports())}{END}{after}"


def imports() -> dict[str, set[str]]:
    """room -> the rooms that any file of it imports anywhere, shared ground aside."""
    found: dict[str, set[str]] = {}
    for package in ("shortlist", "shortlist_recipes"):
        for path in sorted((SOURCE / package).rglob("*.py")):
            here = _room(".".join(path.relative_to(SOURCE).with_suffix("").parts))
            if here is None:
                continue
            there = found.setdefault(here, set())
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                there |= {room for name in names if (room := _room(name)) is not None and room != here}
    rooms = set(found)
    return {room: there & rooms for room, there in found.items()}


def _room(module: str) -> str | None:
    package, _, rest = module.partition(".")
    if package == "shortlist_recipes":
        return package
    room = rest.partition(".")[0]
    return room if package == "shortlist" and room not in SHARED | {"", "__init__"} else None


def drawn(graph: dict[str, set[str]]) -> str:
    """Mermaid text: an arrow from a room to each that it imports, without those that a longer way implies."""
    lines = ["```mermaid", "graph LR"]
    for room in sorted(graph, key=lambda name: (-len(_reached(graph, name)), name)):
        for other in sorted(graph[room]):
            if not any(other in _reached(graph, between) for between in graph[room] - {other}):
                lines.append(f"  {room} --> {other}")
    return "\n".join([*lines, "```", ""])


def _reached(graph: dict[str, set[str]], room: str) -> set[str]:
    reached: set[str] = set()
    coming = set(graph[room])
    while coming:
        reached |= coming
        coming = {further for one in coming for further in graph[one]} - reached
    return reached


if __name__ == "__main__":
    print(drawn(imports()), end="")
