"""What a recipe is: a grid of cells, the published figures, and what to write about the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shortlist.errors import ShortlistError
from shortlist_recipes.cells import Cell
from shortlist_recipes.layout import Texts
from shortlist_recipes.protocol import Protocol
from shortlist_recipes.results import Results
from shortlist_recipes.sources import data_folder
from shortlist_recipes.tables import Table

if TYPE_CHECKING:
    from shortlist_recipes.figures import Drawing

Scale = Literal["smoke", "cpu", "pixels", "paper"]


@dataclass(frozen=True)
class Recipe:
    """One experiment of a paper at several scales: smoke, cpu and paper, and for some pixels.

    Args:
        name: as on the command line.
        title: of the page.
        paper: what is reproduced: authors, title, year, tables and figures.
        claim: what the paper claims, in a sentence or two.
        cells: scale and data folder -> the grid, in the order in which it is shown.
        tables: what is shown beside the published figures.
        findings: results -> sentences on what they show, computed from them.
        overview: results -> small tables below the sentences: the differences that these speak of.
        figures: results -> drawings.
        protocols: what was published field by field, and what ours does; one for each experiment.
        needs: for each scale, the files and folders under the data folder, and what they are or where to get them.
        differences: for each scale, what is to be known besides about how it differs from the paper.
        scales: those that it has.
        rank: the keys of a cell -> what is small for cells that are run first, where not in the order of the grid.
    """

    name: str
    title: str
    paper: str
    claim: str
    cells: Callable[[Scale, Path], Sequence[Cell]]
    tables: Sequence[Table]
    findings: Callable[[Results], Sequence[str]]
    figures: "Callable[[Results], Sequence[Drawing]]" = lambda results: ()
    overview: Callable[[Results], Sequence[Texts]] = lambda results: ()
    protocols: Sequence[Protocol] = ()
    needs: Mapping[Scale, Mapping[str, str]] = field(default_factory=dict)
    differences: Mapping[Scale, str] = field(default_factory=dict)
    scales: tuple[Scale, ...] = ("smoke", "cpu", "paper")
    rank: Callable[[Mapping[str, Any]], Any] = lambda keys: 0

    def run(
        self, scale: str, folder: Path, data: Path | None, say: Callable[[str], None], *, cells: int | None = None
    ) -> Path:
        """Run what is not finished yet, and write the page, whose path is the answer; this is what the command calls.

        ``data`` is the folder of the data sets, None for the usual one; ``say`` is told of every finished cell.
        ``cells``: at most so many, and the page of what is finished then.
        """
        from shortlist_recipes.run import run_recipe  # which needs this module

        known = next((known for known in self.scales if known == scale), None)
        if known is None:
            raise ShortlistError(f"the scale of {self.name} is one of {', '.join(self.scales)}, got {scale!r}")
        if cells is not None and cells < 0:
            raise ShortlistError(f"cells must be 0 or more, got {cells}")
        return run_recipe(self, known, folder, data_folder(data), say, cells)

    def other_fields(self, scale: Scale) -> list[str]:
        """What this scale does not do as published; nothing: it is the full published protocol."""
        return [name for protocol in self.protocols for name in protocol.other_fields(scale)]
