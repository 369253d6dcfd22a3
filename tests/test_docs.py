"""The reader's pages: their Python runs, their links lead somewhere, and the generated ones say what the code says."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS / "tools"))
CATALOGUE = ["losses.md", "objectives.md", "rules.md", "metrics.md", "readers.md", "backbones.md"]
GENERATED = [*CATALOGUE, "cli.md", "config.md", "floor-plan.md"]
PAGES = [*sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")), "../README.md"]


def python_blocks(text: str) -> list[tuple[int, str]]:
    """(line number, code) of every ```python block that is not a file of its own."""
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: str) -> None:
    names: dict[str, Any] = {"__name__": page}
    for line, code in python_blocks((DOCS / page).read_text()):
        exec(compile("\n" * line + code, str(DOCS / page), "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    from api_pages import api_pages

    for link in re.findall(r"\]\(((?!https?:)[^)\s]+)\)", without_code((DOCS / page).read_text())):
        file, _, anchor = link.partition("#")
        to = ((DOCS / page).parent / file).resolve() if file else DOCS / page
        if to.parent == DOCS / "api":  # made when the site is built
            assert to.relative_to(DOCS).as_posix() in api_pages(), f"{page} links to {link}"
            continue
        assert to.exists(), f"{page} links to {link}"
        assert not anchor or anchor in anchors(to.read_text()), f"{page} links to {link}"


def test_every_picture_is_on_a_page() -> None:
    text = "".join((DOCS / page).read_text() for page in PAGES)
    assert [path.name for path in (DOCS / "pictures").iterdir() if f"pictures/{path.name}" not in text] == []


def test_the_decision_page_ends_in_a_snippet() -> None:
    text = (DOCS / "which-loss.md").read_text().rstrip()
    assert text.endswith("```")
    assert len(python_blocks(text)) == 1


def test_the_decision_page_names_every_loss() -> None:
    import losses_page

    text = (DOCS / "which-loss.md").read_text()
    assert [loss.name for loss in losses_page.public_losses() if loss.name not in text] == []


def test_what_the_floor_plan_says_is_in_a_file_is_there() -> None:
    table = (DOCS / "floor-plan.md").read_text().partition("## Where do I find")[2]
    rows = re.findall(r"^\| [^|]+ \| `([^`|]+)` \| ([^|]+) \|$", table, re.MULTILINE)
    assert len(rows) >= 10
    for file, names in rows:
        text = (DOCS.parent / file).read_text()
        assert [name for name in re.findall(r"`(\w+)`", names) if not re.search(rf"\b{name}\b", text)] == [], file


def test_every_room_has_a_readme_and_it_names_only_files_that_exist() -> None:
    source = DOCS.parent / "src" / "shortlist"
    others = (source / "data" / "readers", source.parent / "shortlist_recipes", DOCS.parent / "tests")
    for room in [*(init.parent for init in source.glob("*/__init__.py")), *others]:
        named = re.findall(r"`([\w/.-]+\.(?:py|html|js|md))`", (room / "README.md").read_text())
        places = (room, source, source.parent, DOCS.parent, room / "assets")
        assert [name for name in named if not any((place / name).is_file() for place in places)] == [], room.name


@pytest.mark.parametrize("page", GENERATED)
def test_a_generated_page_says_what_the_code_says(page: str) -> None:
    import catalogue

    assert (DOCS / page).read_text() == catalogue.PAGES[page](), "run python docs/tools/catalogue.py"


def test_every_generated_page_is_looked_at_above() -> None:
    import catalogue

    assert set(catalogue.PAGES) == set(GENERATED)


def test_the_catalogue_refuses_a_docstring_without_its_blocks() -> None:
    import losses_page

    def my_loss() -> None:
        """Summary.

        Formula:
            0
        """

    with pytest.raises(ValueError, match="the docstring of my_loss has no block Use it when, Needs, Reference"):
        losses_page.read("my_loss", "none", my_loss)


def test_the_reference_has_every_public_name_of_a_room() -> None:
    from api_pages import api_pages

    import shortlist.functional

    page = api_pages()["api/functional.md"]
    assert [name for name in shortlist.functional.__all__ if not re.search(rf"^::: .*\.{name}$", page, re.M)] == []
    assert "::: shortlist.functional.lml.lml\n" in page  # the function, not the file of that name


def test_a_docstring_becomes_markdown() -> None:
    from docstring_parts import readable

    blocks = "Formula:\n    2 x\n    <= y\n\nArgs:\n    x, y: numbers\n        of any size.\n"
    docstring = f"Twice.\n\n- a\n  b\n\n{blocks}\n>>> twice(1)\n2\n  3"
    assert readable(docstring) == (
        "Twice.\n\n- a\n    b\n\n```text\n2 x\n<= y\n```\n\n**Args**\n\n- `x, y`: numbers\n    of any size.\n\n"
        "```pycon\n>>> twice(1)\n2\n  3\n```\n"
    )
