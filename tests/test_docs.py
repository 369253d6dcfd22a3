"""The reader's pages: their Python runs, their links lead somewhere, and the catalogue says what the docstrings say."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = [*sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")), "../README.md"]


def python_blocks(text: str) -> list[tuple[int, str]]:
    """(line number, code) of every ```python block."""
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: str) -> None:
    names: dict[str, Any] = {"__name__": page}
    for line, code in python_blocks((DOCS / page).read_text()):
        exec(compile("\n" * line + code, str(DOCS / page), "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(((?!https?:)[^)\s]+)\)", (DOCS / page).read_text()):
        file, _, anchor = link.partition("#")
        to = (DOCS / page).parent / file if file else DOCS / page
        assert to.exists(), f"{page} links to {link}"
        assert not anchor or anchor in anchors(to.read_text()), f"{page} links to {link}"


def test_the_decision_page_ends_in_a_snippet() -> None:
    text = (DOCS / "which-loss.md").read_text().rstrip()
    assert text.endswith("```")
    assert len(python_blocks(text)) == 1


def test_the_catalogue_says_what_the_docstrings_say() -> None:
    catalogue = runpy.run_path(str(DOCS / "tools" / "catalogue.py"))
    assert (DOCS / "losses.md").read_text() == catalogue["page"](), "run python docs/tools/catalogue.py"


def test_the_catalogue_refuses_a_docstring_without_its_blocks() -> None:
    catalogue = runpy.run_path(str(DOCS / "tools" / "catalogue.py"))

    def my_loss() -> None:
        """Summary.

        Formula:
            0
        """

    with pytest.raises(ValueError, match="the docstring of my_loss has no block Use it when, Needs, Reference"):
        catalogue["read"]("my_loss", "none", my_loss)


def test_the_decision_page_names_every_loss() -> None:
    catalogue = runpy.run_path(str(DOCS / "tools" / "catalogue.py"))
    text = (DOCS / "which-loss.md").read_text()
    assert [loss.name for loss in catalogue["public_losses"]() if loss.name not in text] == []
