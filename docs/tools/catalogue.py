"""Write the generated pages: ``python docs/tools/catalogue.py`` (``--check``: compare only).

Losses, objectives, set rules, metrics, readers and backbones from their docstrings and signatures, the command line
from its help, the config from its types, the import graph from the imports.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import backbones_page
import commands_page
import config_page
import import_graph
import losses_page
import metrics_page
import objectives_page
import readers_page
import rules_page

DOCS = Path(__file__).resolve().parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "losses.md": losses_page.page,
    "objectives.md": objectives_page.page,
    "rules.md": rules_page.page,
    "metrics.md": metrics_page.page,
    "readers.md": readers_page.page,
    "backbones.md": backbones_page.page,
    "cli.md": commands_page.page,
    "config.md": config_page.page,
    "floor-plan.md": import_graph.page,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is not what would be written")
    check = parser.parse_args().check
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"docs/{name} is out of date: run python docs/tools/catalogue.py")


if __name__ == "__main__":
    main()
