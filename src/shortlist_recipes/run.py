"""Running a recipe: its cells in order, each finished one saved at once, the page at the end."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from shortlist.errors import ShortlistError
from shortlist.optional import require
from shortlist_recipes.cells import Cell
from shortlist_recipes.page import duration, write_page
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Record, Results, ResultsFolder
from shortlist_recipes.sources import check_data

RESUMED: tuple[Scale, ...] = ("pixels", "paper")


def run_recipe(
    recipe: Recipe, scale: Scale, folder: Path, data: Path, say: Callable[[str], None], most: int | None = None
) -> Path:
    """Run what is not finished, but at most so many cells, and write the page; its path. ``say`` hears one line per
    cell.

    Whatever stops it, running it again goes on after the last finished cell; at paper and pixels scale, where cells
    take long, after the last epoch of the cell that was running.
    """
    if most != 0:
        check_data(recipe.name, scale, recipe.needs.get(scale, {}), data)
    require("matplotlib", "report")  # for the figures: now, and not after the last cell
    cells = recipe.cells(scale, data)
    _check_keys(cells)
    folder.mkdir(parents=True, exist_ok=True)
    results, names = ResultsFolder(folder), names_of(recipe, scale)
    records = {name: record for name in names if (record := results.get(scale, name)) is not None}
    if records:
        say(f"{len(records)} of {len(cells)} cells are finished already")
    begun, run_now = time.perf_counter(), 0
    order = sorted(zip(names, cells, strict=True), key=lambda pair: recipe.rank(pair[1].keys))
    for number, (name, cell) in enumerate(order, 1):
        if name in records:
            continue
        if run_now == most:
            break
        started = time.perf_counter()
        numbers = cell.run(folder / "runs" / name if scale in RESUMED else None)
        record = results.add(scale, name, cell.keys, numbers, time.perf_counter() - started)
        records[name] = record
        run_now += 1
        left = (time.perf_counter() - begun) / run_now * (len(cells) - len(records))
        took = f"{duration(record.seconds)}, {duration(left)} left"
        say(f"[{number}/{len(cells)}] {cell.title}: {_brief(record)} ({took})")
    if not records:
        raise ShortlistError(f"none of the {len(cells)} cells of {recipe.name} is finished: there is nothing to show")
    finished = Results([records[name] for name in names if name in records])
    return write_page(recipe, scale, finished, folder, planned=len(cells))


def names_of(recipe: Recipe, scale: Scale) -> list[str]:
    """What tells every cell from all others, in the order of the grid: the same wherever the data is."""
    return [cell.fingerprint for cell in recipe.cells(scale, Path("data"))]


def _brief(record: Record) -> str:
    numbers = [(name, value) for name, value in record.numbers.items() if isinstance(value, float)]
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers[:4])


def _check_keys(cells: Sequence[Cell]) -> None:
    seen: set[str] = set()
    for cell in cells:
        if cell.title in seen:
            raise ShortlistError(f"two cells of the recipe have the same keys: {cell.title}")
        seen.add(cell.title)
