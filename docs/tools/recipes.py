"""Put a finished recipe into the docs: ``python docs/tools/recipes.py runs/recipes/NAME-cpu ...``.

Copies index.md to docs/recipes/NAME.md, table.json to docs/recipes/NAME.json and the figures beside them, and writes
docs/recipes/index.md, the list of all recipes. Without arguments it writes the list only.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

from shortlist.cli.recipe import summaries

PAGES = Path(__file__).resolve().parents[1] / "recipes"
INTRODUCTION = """\
# Recipes

<!-- Written by docs/tools/recipes.py. -->

Each recipe reproduces an experiment of a paper by one command, `shortlist recipe NAME`, and writes its table beside the
published one. `--scale cpu` (the default) takes minutes on one core and real data, `--scale smoke` seconds and no data,
and `--scale paper` is the full published protocol for those who have GPUs and the data. Run the same command again to
go on after an interruption. The pages here are the results at cpu scale, as the command wrote them.
"""


def put(folder: Path) -> str:
    """Copy one recipe's results; its name."""
    content = json.loads((folder / "table.json").read_text("utf-8"))
    name = content["recipe"]
    for old in [*PAGES.glob(f"{name}-*.svg")]:
        old.unlink()
    shutil.copyfile(folder / "index.md", PAGES / f"{name}.md")
    shutil.copyfile(folder / "table.json", PAGES / f"{name}.json")
    for figure in folder.glob(f"{name}-*.svg"):
        shutil.copyfile(figure, PAGES / figure.name)
    return str(name)


def overview() -> str:
    rows = ["| recipe | what it shows | took |", "|---|---|---:|"]
    for name, summary in summaries().items():
        table = PAGES / f"{name}.json"
        if table.exists():
            seconds = json.loads(table.read_text("utf-8"))["seconds"]
            rows.append(f"| [`{name}`]({name}.md) | {summary} | {max(1, round(seconds / 60))} min |")
        else:
            rows.append(f"| `{name}` | {summary} | |")
    return INTRODUCTION + "\n" + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="the --out of finished recipes")
    PAGES.mkdir(exist_ok=True)
    for folder in parser.parse_args().folders:
        if not (folder / "table.json").exists():
            sys.exit(f"{folder} has no table.json: is the recipe finished?")
        put(folder)
    (PAGES / "index.md").write_text(overview(), "utf-8")


if __name__ == "__main__":
    main()
