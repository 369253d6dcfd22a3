"""Which column of a table names images."""

from collections.abc import Sequence
from os.path import isfile  # a name that is too long is none, where Path.is_file raises an error
from pathlib import Path

from shortlist.data.column_use import listed
from shortlist.data.readers.image_folder import IMAGE_ENDINGS, names_image
from shortlist.data.readers.image_table import most_are_missing, place_of
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs.guess.first_cells import FirstCells

_TRIED = 10  # cells of each column, where a folder of images is given


def find_images(cells: FirstCells, labels: Sequence[str], images: PathLike | None) -> str | None:
    """The column with the paths of images, which start from the folder ``images``, or else from that of the table."""
    root, missing = cells.path.parent if images is None else Path(images), ""
    for name in cells.names:
        named = [] if name in labels else named_images(cells, name)
        if not named:
            continue
        if any(isfile(place_of(cell, root)) for cell in named):
            return name
        missing = missing or (
            f"the column {name!r} names images (its first {len(cells.written(name))} cells were looked at): "
            f"{most_are_missing(named, root)}; to do without images: data.train.reader=features"
        )
    if missing:
        raise ShortlistError(f"{cells.path}: {missing}")
    if images is None:
        return None
    for name in cells.names:  # a name without its ending is none of an image's
        texts = map(str, cells.table.texts(name)[:_TRIED]) if cells.table.is_flat(name) else ()
        if any(isfile(place_of(cell, root)) for cell in texts):
            return name
    raise ShortlistError(
        f"{cells.path}: no column names images (endings: {', '.join(sorted(IMAGE_ENDINGS))}), "
        f"the columns are {listed([repr(name) for name in cells.names])}"
    )


def named_images(cells: FirstCells, name: str) -> list[str]:
    """The names of images in a column, if nine tenths of its cells are such."""
    found = cells.written(name)
    dotted = (cell for cell in map(str, found) if "." in cell)  # paths take long to take apart
    named = [cell for cell in dotted if names_image(Path(cell))]
    return named if 10 * len(named) >= 9 * len(found) else []
