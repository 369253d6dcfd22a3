"""What mkdocs does besides: folders in the navigation, the API pages, formulas.

Everything a reader's browser needs is in the built site: formulas are SVG, fonts are the system's.
"""

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))

from api_pages import api_pages
from mathematics import draw_formulas


def on_config(config: Any) -> Any:
    """A folder in the navigation (``guides/``) stands for those of its pages that are not named there, index first."""
    docs = Path(config.docs_dir)
    named = set(_names(config.nav))
    config.nav = _expanded(config.nav, docs, named)
    return config


def on_files(files: Any, config: Any) -> Any:
    """One page for each public room, made of its public names."""
    for path, text in api_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, **_: Any) -> str:
    return draw_formulas(html)


def _expanded(nav: list[Any], docs: Path, named: set[str]) -> list[Any]:
    """The list with every folder in it replaced by its pages."""
    out: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item == "api/":
            out += api_pages()
        elif isinstance(item, str) and item.endswith("/"):
            out += _pages(item, docs, named)
        elif isinstance(item, dict):
            inside = {
                title: _expanded(part, docs, named) if isinstance(part, list) else part for title, part in item.items()
            }
            out += [{title: part} for title, part in inside.items() if part]
        else:
            out.append(item)
    return out


def _pages(folder: str, docs: Path, named: set[str]) -> list[Any]:
    found = [f"{folder}{path.name}" for path in sorted((docs / folder).glob("*.md"))]
    pages = sorted((page for page in found if page not in named), key=lambda page: not page.endswith("index.md"))
    if folder == "recipes/":  # known by the names that the command takes; their titles are long
        return [page if page.endswith("index.md") else {Path(page).stem: page} for page in pages]
    return pages


def _names(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [name for part in parts for name in _names(part)]
