"""Put a finished recipe into the docs: ``python docs/tools/recipes.py runs/recipes/NAME-cpu ...``.

Copies index.md to docs/recipes/NAME.md, table.json to docs/recipes/NAME.json and the figures beside them (at pixels
scale NAME-pixels), and keeps the finished cells in docs/recipes/cells (NAME.jsonl, a line for each; at pixels scale a
folder NAME-pixels, a file for each). Then it writes the protocol at the end of every page, and the list of all recipes,
docs/recipes/index.md; without arguments nothing but these. To go on with a grid that somebody began, ``--restore NAME
...`` first: it puts the kept cells back into runs/recipes, where the command finds them.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

from shortlist import __version__
from shortlist.cli.recipe import RECIPES, summaries
from shortlist_recipes.page import PROTOCOL, protocol_text
from shortlist_recipes.run import names_of

PAGES = Path(__file__).resolve().parents[1] / "recipes"
INTRODUCTION = """\
# Recipes

<!-- Written by docs/tools/recipes.py. -->

Each recipe reproduces an experiment of a paper by one command, `shortlist recipe NAME`, and writes its table beside the
published one. `--scale cpu` (the default) takes minutes on one core and real data, `--scale smoke` seconds and no data.
`--scale paper` is for those who have GPUs and the data; the table below says where it is the full published protocol
and where not, and each page ends with the protocol field by field, with its sources. `--scale pixels`, which some have,
trains a small network from random weights; its cells take tens of minutes each. Run the same command again to go on
after an interruption; `--cells N` runs at most N more cells, and the page says how many of the planned ones are done.
The pages here are the results at cpu scale, as the command wrote them; those from pixels are beside them.
"""


def put(folder: Path) -> str:
    """Copy one recipe's results; its name."""
    content = json.loads((folder / "table.json").read_text("utf-8"))
    name = str(content["recipe"])
    name = f"{name}-pixels" if content["scale"] == "pixels" else name
    keep_cells(folder, content["scale"], name)
    text = (folder / "index.md").read_text("utf-8")
    for figure in folder.glob(f"{content['recipe']}-*.svg"):
        figure_name = figure.name.replace(content["recipe"], name, 1)
        text = text.replace(f"]({figure.name})", f"]({figure_name})")
        shutil.copyfile(figure, PAGES / figure_name)
    for old in PAGES.glob(f"{name}-*.svg"):
        if f"]({old.name})" not in text and not old.name.startswith(f"{name}-pixels"):
            old.unlink()
    (PAGES / f"{name}.md").write_text(text, "utf-8")
    shutil.copyfile(folder / "table.json", PAGES / f"{name}.json")
    return name


def keep_cells(folder: Path, scale: str, name: str) -> None:
    """Copy the finished cells of the grid as it is; those of another, and of another version, are left behind: they are
    to be run again."""
    grid = names_of(RECIPES.find(name.removesuffix("-pixels")), scale)
    paths = [path for cell in grid if (path := folder / "cells" / f"{scale}-{cell}.json").exists()]
    paths = [path for path in paths if json.loads(path.read_text("utf-8")).get("version") == __version__]
    if scale == "pixels":
        target = PAGES / "cells" / name
        target.mkdir(parents=True, exist_ok=True)
        for path in paths:
            shutil.copyfile(path, target / path.name)
        return
    lines = [json.dumps({"cell": path.stem} | json.loads(path.read_text("utf-8"))) for path in paths]
    (PAGES / "cells").mkdir(exist_ok=True)
    if lines:
        (PAGES / "cells" / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def restore(name: str, runs: Path) -> int:
    """Put the kept cells of a page where the command looks for them, beside those that are there; how many."""
    scale = "pixels" if name.endswith("-pixels") else "cpu"
    target = runs / (name if scale == "pixels" else f"{name}-cpu") / "cells"
    target.mkdir(parents=True, exist_ok=True)
    kept = {path.stem: path.read_text("utf-8") for path in (PAGES / "cells" / name).glob("*.json")}
    if (lines := PAGES / "cells" / f"{name}.jsonl").exists():
        for line in lines.read_text("utf-8").splitlines():
            content = json.loads(line)
            kept[content.pop("cell")] = json.dumps(content)
    for cell, text in kept.items():
        (target / f"{cell}.json").write_text(text, "utf-8")
    return len(kept)


def with_protocol(name: str) -> str:
    """A page with the protocol as its recipe states it now, whenever its cells were run."""
    recipe = RECIPES.find(name.removesuffix("-pixels"))
    scale = json.loads((PAGES / f"{name}.json").read_text("utf-8"))["scale"]
    results = (PAGES / f"{name}.md").read_text("utf-8").split(f"\n{PROTOCOL}\n")[0].rstrip()
    return f"{results}\n\n{protocol_text(recipe, scale)}".rstrip() + "\n"


def overview() -> str:
    rows = ["| recipe | what it shows | done | took | at paper scale |", "|---|---|---|---:|---|"]
    for name, summary in summaries().items():
        other = RECIPES.find(name).other_fields("paper")
        paper = f"not as published: {', '.join(dict.fromkeys(other))}" if other else "the full published protocol"
        for scale, page in (("cpu", name), ("pixels", f"{name}-pixels")):
            table = PAGES / f"{page}.json"
            if not table.exists():
                rows += [f"| `{name}` | {summary} | | | {paper} |"] if scale == "cpu" else []
                continue
            content = json.loads(table.read_text("utf-8"))
            done, planned = content["cells"], content.get("planned", content["cells"])
            run_with = content.get("run with") or [content["versions"]["shortlist"]]
            cells = f"{done} of {planned} cells, version {' and '.join(run_with)}"
            took = f"{max(1, round(content['seconds'] / 60))} min"
            title, said = (summary, paper) if scale == "cpu" else ("The same from pixels.", "")
            rows.append(f"| [`{page}`]({page}.md) | {title} | {cells} | {took} | {said} |")
    return INTRODUCTION + "\n" + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="the --out of finished recipes")
    parser.add_argument("--restore", nargs="+", metavar="NAME", help="go on with these pages' cells")
    arguments = parser.parse_args()
    for name in arguments.restore or ():
        print(f"{name}: {restore(name, Path('runs/recipes'))} cells")
    if arguments.restore:
        return
    PAGES.mkdir(exist_ok=True)
    for folder in arguments.folders:
        if not (folder / "table.json").exists():
            sys.exit(f"{folder} has no table.json: is the recipe finished?")
        put(folder)
    for table in PAGES.glob("*.json"):
        (PAGES / f"{table.stem}.md").write_text(with_protocol(table.stem), "utf-8")
    (PAGES / "index.md").write_text(overview(), "utf-8")


if __name__ == "__main__":
    main()
