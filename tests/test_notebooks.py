"""The notebooks in examples/: they run from top to bottom, and what is written in them is what they print."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
sys.path.append(str(ROOT / "docs" / "tools"))


def printed(content: dict[str, Any]) -> list[bool]:
    """Of each cell of code, whether it printed or drew something."""
    return [bool(cell["outputs"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def test_there_are_notebooks_on_texts_ambiguous_images_and_partial_labels() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["ambiguous-images", "partial-labels", "texts"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs_and_shows_what_it_says(notebook: Path) -> None:
    from notebooks import run

    kept = json.loads(notebook.read_text())
    assert (kept["nbformat"], kept["metadata"]["kernelspec"]["language"]) == (4, "python")
    assert (kept["cells"][0]["cell_type"], kept["cells"][0]["source"][0][:2]) == ("markdown", "# ")  # the title
    assert printed(run(notebook)) == printed(kept)
