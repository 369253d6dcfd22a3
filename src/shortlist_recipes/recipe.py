"""What a recipe is: a grid of cells, the published figures, and what to write about the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from shortlist.errors import ShortlistError
from shortlist_recipes.cells import Cell
from shortlist_recipes.layout import Texts
from shortlist_recipes.results import Results
from shortlist_recipes.sources import data_folder
from shortlist_recipes.tables import Table

if TYPE_CHECKING:
    from shortlist_recipes.figures import Drawing

Scale = Literal["smoke", "cpu", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)


def _none(results: Results) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Recipe:
    """One experiment of a paper at three scales.

    Args:
        name: as on the command line.
        title: of the page.
        paper: what is reproduced: authors, title, year, tables and figures.
        claim: what the paper claims, in a sentence or two.
        cells: scale and data folder -> the grid, in the order in which it is run.
        tables: what is shown beside the published figures.
        findings: results -> sentences on what they show, computed from them.
        overview: results -> small tables below the sentences: the differences that these speak of.
        figures: results -> drawings.
        needs: for each scale, the files and folders under the data folder, and what they are or where to get them.
        differences: for each scale, how the protocol differs from the paper's.
    """

    name: str
    title: str
    paper: str
    claim: str
    cells: Callable[[Scale, Path], Sequence[Cell]]
    tables: Sequence[Table]
    findings: Callable[[Results], Sequence[str]]
    figures: "Callable[[Results], Sequence[Drawing]]" = _none
    overview: Callable[[Results], Sequence[Texts]] = _none
    needs: Mapping[Scale, Mapping[str, str]] = field(default_factory=dict)
    differences: Mapping[Scale, str] = field(default_factory=dict)

    def run(self, scale: str, folder: Path, data: Path | None, say: Callable[[str], None]) -> Path:
        """Run what is not finished yet, and write the page, whose path is the answer; this is what the command calls.

        ``data`` is the folder of the data sets, None for the usual one; ``say`` is told of every finished cell.
        """
        from shortlist_recipes.run import run_recipe  # which needs this module

        known = next((known for known in SCALES if known == scale), None)
        if known is None:
            raise ShortlistError(f"the scale is one of {', '.join(SCALES)}, got {scale!r}")
        return run_recipe(self, known, folder, data_folder(data), say)
